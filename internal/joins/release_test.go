package joins_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// tracked opens files with an allocator that must be empty once they are closed.
func tracked(t testing.TB, mem memory.Allocator, names ...string) []*partition.File {
	t.Helper()
	return open(t, partition.OpenOptions{Mem: mem, Text: true}, names...)
}

// checked returns an allocator that fails the test if memory is not released.
func checked(t testing.TB) memory.Allocator {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

// TestReleases: however a join ends, all memory is released and no goroutine remains
// (see TestMain).
func TestReleases(t *testing.T) {
	idDir := writeTable(t, table(t, numbers("k", arrow.PrimitiveTypes.Int64, 0, 300), texts("w", slices.Repeat([]string{"pay"}, 300)...)), 3, 3, "")
	logDir := writeTable(t, table(t, numbers("k", arrow.PrimitiveTypes.Int64, 250, 900)), 4, 3, "")
	errStop := errors.New("enough")
	// Unless all run: each type, strategy and moment, with one or four threads, in turn.
	for i, typ := range types {
		for s, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
			for k, threads := range []int{1, 4} {
				for a, at := range []int{0, 1, 2, 5, 1000} { // batches before the end
					if (i+s+k+a)%2 != 0 && !cases.All() {
						continue
					}
					for _, how := range []string{"break", "cancel", "before"} {
						if how == "before" && at > 0 {
							continue // no batch comes
						}
						name := fmt.Sprint(typ, strategy, threads, at, how)
						mem := checked(t)
						ctx, cancel := context.WithCancelCause(context.Background())
						j, err := join.New(tracked(t, mem, idDir), tracked(t, mem, logDir), join.Options{On: "k", Type: typ, Strategy: strategy, Threads: threads, Mem: mem})
						if err != nil {
							t.Fatal(err)
						}
						if how == "before" {
							cancel(errStop)
						}
						seen := 0
						var last error
						for r, err := range j.Run(ctx) {
							if last != nil {
								t.Fatalf("%s: the sequence goes on after %v", name, last)
							}
							if last = err; err != nil {
								continue
							}
							r.Record.Release()
							if seen++; seen > at && how == "break" {
								break
							} else if seen > at {
								cancel(errStop)
							}
						}
						cancel(nil)
						if how == "before" && (seen > 0 || last == nil) || last != nil && !errors.Is(last, errStop) && !errors.Is(last, context.Canceled) {
							t.Errorf("%s: %d batches, then %v", name, seen, last)
						}
					}
				}
			}
		}
	}
}

// TestErrorMidway: damage in the middle of either side is an error that names the file,
// and all memory is released.
func TestErrorMidway(t *testing.T) {
	good := writeTable(t, table(t, numbers("k", arrow.PrimitiveTypes.Int64, 0, 300), numbers("w", arrow.PrimitiveTypes.Int64, 0, 300)), 3, 3, "")
	bad := writeTable(t, table(t, numbers("k", arrow.PrimitiveTypes.Int64, 0, 300), numbers("w", arrow.PrimitiveTypes.Int64, 0, 300)), 3, 3, "")
	broken := filepath.Join(bad, "001.parquet")
	b, err := os.ReadFile(broken)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b[len(b)/5 : len(b)/3] { // pages in the middle, not the footer
		b[len(b)/5+i] ^= 0x5a
	}
	if err := os.WriteFile(broken, b, 0o600); err != nil {
		t.Fatal(err)
	}
	csv := filepath.Join(t.TempDir(), "ids.csv")
	if err := os.WriteFile(csv, []byte("k,w\n"+strings.Repeat("1,x\n", 70_000)+"oops,y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ids, logs, word string }{{good, bad, broken}, {bad, good, broken}, {csv, good, "line 70002"}} {
		for _, typ := range types {
			for _, strategy := range []join.Strategy{join.Auto, join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
				mem := checked(t)
				j, err := join.New(tracked(t, mem, c.ids), tracked(t, mem, c.logs), join.Options{On: "k", Type: typ, Strategy: strategy, Mem: mem})
				if err != nil {
					t.Fatal(err)
				}
				var last error
				for r, err := range j.Run(context.Background()) {
					if last = err; err == nil {
						r.Record.Release()
					}
				}
				// A semi join does not read the other columns of the IDs, where the
				// only damage may be.
				if last == nil || !strings.Contains(last.Error(), c.word) {
					t.Errorf("%s %s: %v, want an error that names %s", typ, strategy, last, c.word)
				}
			}
		}
	}
	mem := checked(t) // over the budget, with IDs in memory
	for _, memory := range []int64{30_000, 40_000, 60_000} {
		j, err := join.New(tracked(t, mem, good), tracked(t, mem, good), join.Options{On: "k", Type: join.Full, Strategy: join.Lookup, Memory: memory, Mem: mem})
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range j.Run(context.Background()) {
			if err == nil {
				r.Record.Release()
			}
		}
	}
}

// TestProgress: Progress counts every row of the log once.
func TestProgress(t *testing.T) {
	ids := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 3))
	logs := files(t, 3, 3, numbers("k", arrow.PrimitiveTypes.Int64, 0, 100))
	for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
		told := make(chan int64, 100)
		got, err := run(t, ids, logs, join.Options{On: "k", Strategy: strategy, Progress: func(n int64) { told <- n }})
		close(told)
		var sum int64
		for n := range told {
			sum += n
		}
		if err != nil || sum != 100 || got.report.RowsIn != 100 {
			t.Errorf("%s: %v, %d rows, %d in the report, want 100", strategy, err, sum, got.report.RowsIn)
		}
	}
}
