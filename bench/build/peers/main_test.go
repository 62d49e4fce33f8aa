package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
)

// write writes two files with a set's keys and a log of other keys.
func write[T any](t *testing.T, n uint64, key func(i uint64) T) (dir, log string) {
	t.Helper()
	type row struct {
		ID T `parquet:"id,snappy"`
	}
	dir, log = t.TempDir(), filepath.Join(t.TempDir(), "log.parquet")
	rows := func(from, to uint64) (all []row) {
		for i := from; i < to; i++ {
			all = append(all, row{key(i)})
		}
		return all
	}
	for path, part := range map[string][]row{
		filepath.Join(dir, "a.parquet"): rows(0, n/3), filepath.Join(dir, "b.parquet"): rows(n/3, n), log: rows(n, 2*n),
	} {
		if err := parquet.WriteFile(path, part, parquet.MaxRowsPerRowGroup(3000)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, log
}

// Every peer finds all keys of the set and few others, with any reader and number of
// threads.
func TestPeers(t *testing.T) {
	const n = 20_000
	ints, intLog := write(t, n, func(i uint64) int64 { return int64(keyset.Sparse().At(i)) })
	strings, stringLog := write(t, n, func(i uint64) string { return string(keyset.AppendText(nil, i)) })
	check := func(dir, log string, args ...string) {
		t.Helper()
		for _, probe := range []string{filepath.Join(dir, "a.parquet"), filepath.Join(dir, "b.parquet"), log} {
			r, err := run(append(args, "-probe", probe, dir))
			if err != nil || r.Keys != n || r.Version == "" {
				t.Fatalf("%q: %+v, %v", args, r, err)
			}
			member := probe != log
			if member && (r.Hits != r.Probed || r.Probed == 0) {
				t.Errorf("%q: %d of %d members found", args, r.Hits, r.Probed)
			}
			if !member && (r.Probed != n || r.Hits == 0 || float64(r.Hits) > 0.02*n) {
				t.Errorf("%q: %d of %d others found, want about 1 %%", args, r.Hits, r.Probed)
			}
			if bits := 8 * float64(r.Bytes) / n; bits < 9 || bits > 16 {
				t.Errorf("%q: %.1f bits a key", args, bits)
			}
		}
	}
	for _, threads := range []int{1, 3} {
		for _, name := range []string{"parquet-go", "bits-and-blooms", "arrow-go"} {
			for _, reader := range []string{"arrow-go", "pages", "rows"} {
				check(ints, intLog, "-filter", name, "-reader", reader, "-threads", fmt.Sprint(threads))
			}
			check(strings, stringLog, "-filter", name, "-threads", fmt.Sprint(threads))
		}
	}
}

// All readers return the same keys.
func TestReaders(t *testing.T) {
	const n = 10_000
	dir, _ := write(t, n, func(i uint64) int64 { return int64(keyset.Sparse().At(i)) })
	for name, read := range readers {
		pieces, rows, err := list(read, []string{filepath.Join(dir, "a.parquet"), filepath.Join(dir, "b.parquet")})
		if err != nil || rows != n || len(pieces) < 3 {
			t.Fatalf("%s: %d row groups, %d rows, %v", name, len(pieces), rows, err)
		}
		at := uint64(0)
		for _, p := range pieces {
			err := read.read(p, func(b batch) {
				for _, v := range b.ints {
					if want := int64(keyset.Sparse().At(at)); v != want {
						t.Fatalf("%s: row %d is %d, want %d", name, at, v, want)
					}
					at++
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if at != n {
			t.Errorf("%s: %d rows", name, at)
		}
	}
}

func TestUsage(t *testing.T) {
	dir, _ := write(t, 100, func(i uint64) int64 { return int64(i) })
	for _, args := range [][]string{{}, {t.TempDir()}, {"-filter", "cuckoo", dir}, {"-reader", "csv", dir}, {"-threads", "0", dir}, {dir, dir}} {
		if r, err := run(args); err == nil {
			t.Errorf("%q: got %+v, want an error", args, r)
		}
	}
}
