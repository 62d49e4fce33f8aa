package output

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	v15 "github.com/apache/arrow/go/v15/parquet"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// scanTurns scans the files, one after the other with one worker, into a directory.
func scanTurns(t *testing.T, out, where string, threads int, match dataset.Match, names ...string) error {
	t.Helper()
	o := source.OpenOptions{Mem: sourcetest.Checked(t), Where: where, Base: filepath.Dir(names[0])}
	files := roomtest.Open(t, source.Opening{OpenOptions: o}, names...)
	s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{match}, Threads: threads, Mem: sourcetest.Checked(t)}})
	if err != nil {
		t.Fatal(err)
	}
	d := Destination{Output: Output{Name: out + "/"}, Result: source.ResultExact}
	_, err = d.WriteScan(t.Context(), s, source.Split(files, dataset.Shard{}), files, nil)
	return err
}

// filesThatDiffer writes files whose neighbours differ in one thing or several: codec, version of
// pages, dictionaries, NULLs, type of the key, other columns. Most have one schema with others.
func filesThatDiffer(t *testing.T, dir string) (names []string) {
	rng := rand.New(rand.NewPCG(21, 22))
	name := func() string { return filepath.Join(dir, fmt.Sprintf("%02d.parquet", len(names))) }
	clicks := func(l roomtest.Layout, rows []roomtest.Click) {
		names = append(names, roomtest.WriteClicks(t, name(), rows, l))
	}
	records := func(cols ...sourcetest.Col) {
		names = append(names, sourcetest.Write(t, name(), 70, sourcetest.Record(t, sourcetest.Checked(t), cols...)))
	}
	few := sourcetest.Numbers(200, func(i int) int64 { return int64(i % 5 * 3) })
	many := sourcetest.Numbers(200, func(i int) int64 { return int64(i * 7) })
	some := make([]any, 200)
	for i := range some {
		if i%3 > 0 {
			some[i] = i % 11
		}
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	foreign := func(dict bool, rows string) {
		names = append(names, roomtest.Foreign(t, name(), schema, rows, v15.WithDictionaryDefault(dict)))
	}
	for range 2 {
		for _, l := range roomtest.Layouts {
			clicks(l, roomtest.Clicks(rng, 300, len(names)*300))
		}
		clicks(roomtest.Layouts[0], slices.Repeat([]roomtest.Click{{Row: 1}}, 50)) // no key
		foreign(true, `{"id":3},{"id":3},{"id":null},{"id":4}`)
		foreign(false, `{"id":6},{"id":7},{"id":9}`)
		foreign(true, `{"id":5},{"id":5}`)
		foreign(false, `{"id":null}`)
		foreign(true, `{"id":9},{"id":1}`)
		records(sourcetest.Col{Name: "id", Values: few})
		records(sourcetest.Col{Name: "id", Values: many})
		records(sourcetest.Col{Name: "id", Values: some})
		records(sourcetest.Col{Name: "x", Values: many}, sourcetest.Col{Name: "id", Values: few})
		records(sourcetest.Col{Name: "id", Values: sourcetest.Numbers(90, func(i int) int32 { return int32(i) })})
	}
	return names
}

// TestFilesInTurnThatDiffer checks that what a worker keeps from one file to the next changes
// no byte of an output.
func TestFilesInTurnThatDiffer(t *testing.T) {
	names := filesThatDiffer(t, filepath.Join(t.TempDir(), "in"))
	members := sourcetest.Numbers(300, func(i int) int64 { return int64(i * 3) })
	match := dataset.Match{Filter: (*codec.Filter)(roomtest.ExactOf("id", members...))}
	for _, where := range []string{"", "id > 3"} {
		alone := t.TempDir()
		for _, n := range names {
			if err := scanTurns(t, filepath.Join(alone, filepath.Base(n)), where, 1, match, n); err != nil {
				t.Fatal(err)
			}
		}
		for _, threads := range []int{1, 3} {
			out := filepath.Join(t.TempDir(), "out")
			if err := scanTurns(t, out, where, threads, match, names...); err != nil {
				t.Fatal(err)
			}
			for _, n := range names {
				base := filepath.Base(n)
				own := sourcetest.Tree(t, filepath.Join(alone, base))
				has := slices.Contains(sourcetest.Tree(t, out), base)
				if has != slices.Contains(own, base) {
					t.Fatalf("%q, %d threads: %s has an output: %v; alone, it has %q", where, threads, base, has, own)
				}
				if has && sourcetest.Get(t, filepath.Join(out, base)) != sourcetest.Get(t, filepath.Join(alone, base, base)) {
					t.Errorf("%q, %d threads: %s is not the file that it is alone", where, threads, base)
				}
			}
		}
	}
}

// TestMisfitInALaterFile checks that an error in one of several files of a schema names that
// file.
func TestMisfitInALaterFile(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for i, v := range []string{"1", "2", "300000", "4"} {
		names = append(names, filepath.Join(dir, "in", fmt.Sprint(i, ".parquet")))
		sourcetest.Write(t, names[i], 10, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []string{"3", v}}))
	}
	match := dataset.Match{Filter: (*codec.Filter)(roomtest.ExactOf("id", 1, 2, 3, 4)), Key: "id::int16"}
	err := scanTurns(t, filepath.Join(dir, "out"), "", 1, match, names...)
	sourcetest.Says(t, "a misfit", err, fault.ErrMismatch, "2.parquet")
}
