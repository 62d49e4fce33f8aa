package output

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// TestManifestCountsNulls: the root manifest has the rows of each input, with those that have
// no key, as [dataset.Written] has them.
func TestManifestCountsNulls(t *testing.T) {
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "out")+"/"
	sourcetest.Write(t, filepath.Join(in, "a.parquet"), 4, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []any{1, nil, 3, nil, nil}}))
	sourcetest.Write(t, filepath.Join(in, "b.parquet"), 4, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []any{nil, 3}}))
	files := roomtest.Open(t, source.Opening{}, in)
	s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", 3))}}}})
	if err != nil {
		t.Fatal(err)
	}
	run := runOf(1)
	run.Log = files
	w, err := Destination{Output: Output{Name: out}, Result: source.ResultExact, Run: run}.WriteScan(t.Context(), s, source.Split(files, dataset.Shard{}), files, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range stateOf(t, out).Inputs {
		want := [4]int64{5, 1, 1, 3}
		if i == 1 {
			want = [4]int64{2, 1, 1, 1}
		}
		sourcetest.Equal(t, e.Input, [4]int64{e.RowsIn, e.RowsKept, e.RowsOut, e.KeysNull}, want)
		sourcetest.Equal(t, e.Input+" as written", w.Inputs[i].KeysNull, want[3])
	}
}

// nullableLog writes three row groups of small pages with an index, every fifth of whose rows has
// no key. The keys of a row group begin at 1000 times its number. Each row group claims to be so
// large that it is read in the given number of ranges. The claim is in a column that is not read.
func nullableLog(t *testing.T, ranges int64, o source.Opening) []*source.File {
	t.Helper()
	const rows = 700
	var b bytes.Buffer
	w := pq.NewWriter(&b,
		pq.NewSchema("log", pq.Group{"id": pq.Optional(pq.Leaf(pq.Int64Type)), "row": pq.Leaf(pq.Int64Type), "wide": pq.Leaf(pq.Int32Type)}),
		pq.CreatedBy("github.com/parquet-go/parquet-go", "0.32.0", ""), pq.PageBufferSize(200), pq.MaxRowsPerRowGroup(rows))
	for i := range int64(3 * rows) {
		id := pq.Int64Value(i/rows*1000+i%rows).Level(0, 1, 0)
		if i%5 == 2 {
			id = pq.ValueOf(nil).Level(0, 0, 0)
		}
		if _, err := w.WriteRows([]pq.Row{{id, pq.Int64Value(i).Level(0, 0, 1), pq.Int32Value(0).Level(0, 0, 2)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files := roomtest.Open(t, o, sourcetest.Put(t, filepath.Join(t.TempDir(), "log.parquet"), b.String()))
	p := files[0].Parquet().File()
	for g := range p.RowGroups {
		p.Metadata.RowGroups[g].Columns[2].MetaData.TotalUncompressedSize = ranges * tasks.RangeBytes
		sourcetest.Equal(t, "ranges", len(slices.Collect(tasks.RangesIn(p, g))), int(ranges))
	}
	return files
}

// TestNullsOfRanges: rows without a key are counted once, although a row group is read in several
// ranges, whether it is skipped, skipped in part, or read whole.
func TestNullsOfRanges(t *testing.T) {
	for _, ranges := range []int64{1, 2, 5} {
		for _, c := range []struct {
			name  string
			ids   []int64
			where string
			nulls int64
			apart int64 // row groups that are skipped by the key's bounds
		}{
			{"no row group skipped", []int64{0, 1300, 2699}, "", 420, 0},
			{"one of three read", []int64{1300, 1302}, "", 420, 2},
			{"all skipped", []int64{5000}, "", 420, 3},
			{"of a part of the rows", []int64{1300, 1302}, "row < 900", 180, -1},
			{"of rows in the last range", []int64{1300, 1302}, "row >= 1300", 160, -1},
		} {
			what := fmt.Sprintf("%s, %d ranges", c.name, ranges)
			filter := roomtest.ExactOf("id", c.ids...)
			files := nullableLog(t, ranges, source.Opening{OpenOptions: source.OpenOptions{Where: c.where}})
			pieces := source.Split(files, dataset.Shard{})
			for _, distinct := range []bool{false, true} {
				o := keyscan.ReadOptions{Key: "id", Filter: filter, Distinct: distinct, CountNulls: true, Threads: 2}
				_, nulls, err := keyscan.Read(t.Context(), pieces, o, func() (func(*keyscan.Keys) error, error) {
					return func(*keyscan.Keys) error { return nil }, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				sourcetest.Equal(t, fmt.Sprintf("%s: NULLs of keys that were read, distinct %v", what, distinct), nulls, c.nulls)
			}
			once, twice := []dataset.Match{{Filter: (*codec.Filter)(filter)}}, []dataset.Match{{Filter: (*codec.Filter)(filter)}, {Filter: (*codec.Filter)(filter)}}
			for _, match := range [][]dataset.Match{once, twice} {
				o := keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: match, CountNulls: true, Columns: []string{"id", "row"}, Threads: 2, Mem: sourcetest.Checked(t)}}
				skipped := func(what string, s *keyscan.Scanner) {
					t.Helper()
					if c.apart >= 0 {
						sourcetest.Equal(t, fmt.Sprintf("%s: row groups skipped by %s", c.name, what), s.Stats.RowGroupsSkipped.Load(), c.apart)
					}
				}
				scanner := func() *keyscan.Scanner {
					s, err := keyscan.New(o, files...)
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
				counted := scanner()
				if err := Count(t.Context(), counted, pieces); err != nil {
					t.Fatal(err)
				}
				sourcetest.Equal(t, fmt.Sprintf("%s: NULLs of a count by %d filters", what, len(match)), counted.Stats.KeysNull.Load(), c.nulls)
				skipped("a count", counted)
				read := scanner()
				for r, err := range arraycopy.Scan(t.Context(), read, pieces) {
					if err != nil {
						t.Fatal(err)
					}
					r.Record.Release()
				}
				sourcetest.Equal(t, fmt.Sprintf("%s: NULLs of a scan by %d filters", what, len(match)), read.Stats.KeysNull.Load(), c.nulls)
				skipped("a scan", read)
				pages := scanner()
				out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), "out.parquet")}, Result: source.ResultExact}
				written, err := out.WriteScan(t.Context(), pages, pieces, files, nil)
				if err != nil {
					t.Fatal(err)
				}
				sourcetest.Equal(t, fmt.Sprintf("%s: NULLs of a written scan by %d filters", what, len(match)), []int64{pages.Stats.KeysNull.Load(), written.Inputs[0].KeysNull}, []int64{c.nulls, c.nulls})
				skipped("a written scan", pages)
			}
		}
	}
}
