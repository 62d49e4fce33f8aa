package keyscan_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// TestRuns: each row of a row group is in a run equally often, whether groups are large
// or small, and the shares of all runs add up to 1.
func TestRuns(t *testing.T) {
	var groups []sourcetest.Group
	for range 500 {
		groups = append(groups, sourcetest.Group{Batches: 1000}, sourcetest.Group{Batches: 100}, sourcetest.Group{Batches: 7}, sourcetest.Group{})
	}
	f := roomtest.Fake("log", groups...)
	pieces := []source.Piece{{File: f, Lo: 0, Hi: 1000}, {File: f, Lo: 1000, Hi: 2000}}
	const n, rows = 13_000, 40
	runs, err := keyscan.RunsOf(pieces, n, rows)
	if err != nil || len(runs) != n {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	at := map[int64][]float64{1000: make([]float64, 1000), 100: make([]float64, 100), 7: make([]float64, 7)}
	var stands float64
	last := tasks.Task{}
	for _, r := range runs {
		size := f.GroupRows(r.Group)
		if r.Group < last.Group || r.Group == last.Group && r.Lo < last.Lo || r.Hi-r.Lo != min(rows, size) || r.Lo >= size {
			t.Fatalf("run %+v after %+v in a group of %d", r, last, size)
		}
		last = r
		stands += r.Stands
		picked := picked(r.Range, size)
		if int64(len(picked)) != r.Hi-r.Lo || !slices.IsSorted(picked) || len(slices.Compact(slices.Clone(picked))) != len(picked) {
			t.Fatalf("run %+v picks %v", r, picked)
		}
		for _, row := range picked {
			at[size][row]++
		}
	}
	if total := 500.0 * 1107; math.Abs(stands-total) > 1e-6*total {
		t.Errorf("the runs stand for %.1f rows of %.0f", stands, total)
	}
	for size, counts := range at {
		// The probability that a run begins in groups of that size is their share of
		// all rows; it takes min(40, size) rows.
		want := float64(n) * float64(min(rows, size)) / 1107
		for row, got := range counts {
			if math.Abs(got-want) > 6*math.Sqrt(want) {
				t.Errorf("row %d of groups of %d was picked %.0f times, want about %.0f", row, size, got, want)
			}
		}
	}

	if again, _ := keyscan.RunsOf(pieces, n, rows); !slices.Equal(again, runs) {
		t.Error("the same files give other runs")
	}
	runs, err = keyscan.RunsOf(pieces, 1000, 1000)
	if err != nil || len(runs) != 1500 {
		t.Errorf("more than there is: %d runs, %v", len(runs), err)
	}
	unknown := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true}}, sourcetest.Put(t, filepath.Join(t.TempDir(), "ids.txt"), "1\n2\n"))
	if _, err := keyscan.RunsOf(source.Split(unknown, dataset.Shard{}), 2, 2); err == nil {
		t.Error("runs of a text, whose rows nobody knows")
	}
	if runs, err := keyscan.RunsOf(nil, 5, 5); len(runs) != 0 || err != nil {
		t.Errorf("of nothing: %v, %v", runs, err)
	}
}

// picked lists the rows of a run.
func picked(r tasks.Range, size int64) (rows []uint32) {
	for _, s := range r.Set(size) {
		for row := s[0]; row < s[1]; row++ {
			rows = append(rows, uint32(row))
		}
	}
	return rows
}

// TestReadKeysOfRuns: the keys of runs are those of their rows, for every format, key
// and number of workers.
func TestReadKeysOfRuns(t *testing.T) {
	const rows, groupRows = 5000, 700
	ids := sourcetest.Numbers(rows, func(i int) any {
		if i%11 == 3 {
			return nil
		}
		return i
	})
	names := sourcetest.Numbers(rows, func(i int) string { return fmt.Sprint("user-", i%300) })
	dir := t.TempDir()
	for _, ending := range []string{"parquet", "arrow"} {
		name := sourcetest.Write(t, filepath.Join(dir, "log."+ending), groupRows, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: ids}, sourcetest.Col{Name: "name", Values: names}))
		pieces := source.Split(roomtest.Open(t, source.Opening{}, name), dataset.Shard{})
		for _, column := range []string{"id", "name", "id,name"} {
			for _, n := range []int{7, 300} { // a sample, and all
				runs, err := keyscan.RunsOf(pieces, n, 100)
				if err != nil {
					t.Fatal(err)
				}
				got := make([][]string, len(runs))
				seen := make([]int, len(runs))
				shares := make([]float64, len(runs))
				var mu sync.Mutex
				o := keyscan.ReadOptions{Key: column, Runs: n, RunRows: 100, Threads: 3}
				rows, _, err := keyscan.Read(t.Context(), pieces, o, func() (func(*keyscan.Keys) error, error) {
					return func(k *keyscan.Keys) error {
						mu.Lock()
						defer mu.Unlock()
						seen[k.Run] += k.Batch.Len
						shares[k.Run] = k.Share
						for i := range k.Batch.Rows {
							got[k.Run] = append(got[k.Run], string(k.Batch.Append(nil, i)))
						}
						return nil
					}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				all, read := 0.0, int64(0)
				for i, r := range runs {
					picked := picked(r.Range, r.File.GroupRows(r.Group))
					var want []string
					for _, row := range picked {
						if k, ok := keyAt(t, ids, names, column, r.Group*groupRows+int(row)); ok {
							want = append(want, k)
						}
					}
					if seen[i] != len(picked) || !slices.Equal(got[i], want) {
						t.Fatalf("%s, key %s, run %d of %d rows: %d rows with %d keys, want %d", ending, column, i, len(picked), seen[i], len(got[i]), len(want))
					}
					all, read = all+shares[i], read+int64(len(picked))
				}
				if math.Abs(all-1) > 1e-9 || rows != read {
					t.Errorf("%s, key %s: shares add up to %v, %d rows of %d", ending, column, all, rows, read)
				}
			}
		}
	}
}

// keyAt returns the key of a row as package key encodes it, from a record of that row
// alone.
func keyAt(t *testing.T, ids []any, names []string, column string, row int) (string, bool) {
	t.Helper()
	rec := sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: ids[row : row+1]}, sourcetest.Col{Name: "name", Values: names[row : row+1]})
	defer rec.Release()
	if ids[row] == nil && column != "name" {
		return "", false
	}
	paths, err := keys.ParseColumns(column)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := keys.NewEncoder(rec.Schema(), paths, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b keys.Batch
	if err := enc.Encode(rec, &b); err != nil || len(b.Rows) != 1 {
		t.Fatal(err, b.Rows)
	}
	return string(b.Append(nil, 0)), true
}

// TestEstimateRows: the exact number, if there is one.
func TestEstimateRows(t *testing.T) {
	dir := t.TempDir()
	name := sourcetest.Write(t, filepath.Join(dir, "log.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: sourcetest.Numbers(25, func(i int) int64 { return int64(i) })}))
	if n, exact, err := rowfilter.EstimateRows(roomtest.Open(t, source.Opening{}, name)[0]); n != 25 || !exact || err != nil {
		t.Errorf("Parquet: %d rows, exactly %v, %v", n, exact, err)
	}
	in := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Stdin: strings.NewReader("1\n")}}, "-")[0]
	if n, exact, err := rowfilter.EstimateRows(in); n != -1 || exact || err != nil {
		t.Errorf("standard input: %d rows, exactly %v, %v", n, exact, err)
	}
	if n := rowfilter.PlainBytes(in, 0, 1, nil); n != -1 {
		t.Errorf("standard input has %d bytes", n)
	}
}

// TestSkippable: of a sorted log everything is skipped except the row groups with
// values between the bounds. IntegerRange and PlainBytes
// know the values' range and size from the footers alone.
func TestSkippable(t *testing.T) {
	dir := t.TempDir()
	ids := sourcetest.Numbers(1000, func(i int) int64 { return int64(i) - 200 })
	sorted := sourcetest.Write(t, filepath.Join(dir, "a.parquet"), 100, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: ids}, sourcetest.Col{Name: "n", Values: ids}))
	nulls := sourcetest.Write(t, filepath.Join(dir, "b.parquet"), 100, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: []any{5_000, nil}}, sourcetest.Col{Name: "n", Values: ids[:2]}))
	files := roomtest.Open(t, source.Opening{}, sorted, nulls)
	s, err := keyscan.Skippable(t.Context(), source.Split(files, dataset.Shard{}), dataset.Match{Filter: (*codec.Filter)(roomtest.Between(-50, 120))}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	groups, skipped, rows, left := s.RowGroups.Load(), s.RowGroupsSkipped.Load(), s.RowsIn.Load(), s.RowsOut.Load()
	if groups != 11 || skipped != 8 || rows != 1002 || left < 171 || left > 300 {
		t.Errorf("%d of %d row groups are skipped, %d of %d rows are left", skipped, groups, left, rows)
	}
	if s, err := keyscan.Skippable(t.Context(), source.Split(files, dataset.Shard{}), dataset.Match{Filter: (*codec.Filter)(roomtest.Between(-50, 120))}, 3); err != nil || s.RowGroups.Load() != 3 {
		t.Errorf("three groups: %v, %v", s, err)
	}
	// A condition leaves out more, also of the numbers that the footers give.
	some := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Where: "n BETWEEN 0 AND 99"}}, sorted, nulls)
	if s, err := keyscan.Skippable(t.Context(), source.Split(some, dataset.Shard{}), dataset.Match{Filter: (*codec.Filter)(roomtest.Between(-50, 120))}, 1000); err != nil || s.RowsOut.Load() != 100 {
		t.Errorf("with a condition %d rows are left, want 100: %v", s.RowsOut.Load(), err)
	}
	if n, exact, err := rowfilter.EstimateRows(some[0]); n != 100 || exact || err != nil {
		t.Errorf("with a condition there are %d rows (exactly: %t), want 100 at most: %v", n, exact, err)
	}
	if all, one := rowfilter.PlainBytes(files[0], 2, 3, nil), rowfilter.PlainBytes(some[0], 0, 10, nil); all != one {
		t.Errorf("with a condition there are %d bytes, want the %d of one row group", one, all)
	}
	path := keys.Column{Path: keys.Path{"id"}}
	if lo, hi, ok := keyscan.IntegerRange(files, path, false); !ok || lo != -200 || hi != 5000 {
		t.Errorf("range %v to %v, %v", lo, hi, ok)
	}
	if _, _, ok := keyscan.IntegerRange(files, keys.Column{Path: keys.Path{"x"}}, false); ok {
		t.Error("a range of a column that is not there")
	}
	if all, one := rowfilter.PlainBytes(files[0], 0, 10, nil), rowfilter.PlainBytes(files[0], 0, 10, []int{0}); one < 8*1000 || all < 2*one*9/10 || all > 2*one*11/10 {
		t.Errorf("%d bytes, of one column %d", all, one)
	}
}
