package output

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// visits writes a log with keys of several kinds, and returns its directory and its
// rows as (n, s): n is -1 if the key is NULL.
func visits(t testing.TB) (dir string, rows [][2]int64) {
	t.Helper()
	dir = t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	for i, name := range []string{"a.parquet", "b.arrow", "c.parquet", "d.parquet"} {
		count := []int{1000, 700, 0, 333}[i]
		var n []any
		var s []string
		for range count {
			row := [2]int64{int64(rng.IntN(500)), int64(rng.IntN(50))}
			if row[0]%10 == 3 {
				row[0] = -1
				n = append(n, nil)
			} else {
				n = append(n, int(row[0]))
			}
			s = append(s, fmt.Sprint("s", row[1]))
			rows = append(rows, row)
		}
		mem := sourcetest.Checked(t)
		sourcetest.Write(t, filepath.Join(dir, name), 90, sourcetest.Record(t, mem, sourcetest.Col{Name: "s", Values: s}, sourcetest.Col{Name: "n", Values: n}, sourcetest.Col{Name: "row", Values: sourcetest.Numbers(count, func(j int) int64 { return int64(len(rows) - count + j) })}))
	}
	return dir, rows
}

// rowsWhere returns the numbers of the rows that satisfy keep.
func rowsWhere(rows [][2]int64, keep func(n, s int64) bool) []int {
	var out []int
	for i, r := range rows {
		if keep(r[0], r[1]) {
			out = append(out, i)
		}
	}
	return out
}

func TestScan(t *testing.T) {
	dir, rows := visits(t)
	low := roomtest.ExactOf("n", sourcetest.Numbers(200, func(i int) int64 { return int64(i) })...)
	even := roomtest.ExactOf("n", sourcetest.Numbers(250, func(i int) int64 { return int64(2 * i) })...)
	strs := roomtest.BloomOf(t, "s", 1, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "s", Values: []string{"s1", "s2", "s49"}}))
	isStr := func(s int64) bool { return s == 1 || s == 2 || s == 49 }
	pairs := roomtest.BloomOf(t, "n,s", 64, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "n", Values: []int32{4, 5, 6}}, sourcetest.Col{Name: "s", Values: []string{"s4", "s5", "s6"}}))
	isPair := func(n, s int64) bool { return n == s && n >= 4 && n <= 6 }
	for _, c := range []struct {
		name  string
		opts  keyscan.Options
		keep  func(n, s int64) bool
		exact bool // otherwise a superset is right
		nulls func(n, s int64) bool
	}{
		{"exact", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low)}}}}, func(n, s int64) bool { return n >= 0 && n < 200 }, true, nil},
		{"bloom", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(strs)}}}}, func(n, s int64) bool { return isStr(s) }, false, nil},
		{"composite", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(pairs)}}}}, isPair, false, nil},
		{"all", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low)}, {Filter: (*codec.Filter)(even)}}}}, func(n, s int64) bool { return n >= 0 && n < 200 && n%2 == 0 }, true, nil},
		{"any", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low)}, {Filter: (*codec.Filter)(even)}}, Any: true}}, func(n, s int64) bool { return n >= 0 && (n < 200 || n%2 == 0) }, true, nil},
		{"all of two columns", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low)}, {Filter: (*codec.Filter)(strs)}}}}, func(n, s int64) bool { return n >= 0 && n < 200 && isStr(s) }, false, nil},
		{"any of two columns", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low)}, {Filter: (*codec.Filter)(strs)}}, Any: true}}, func(n, s int64) bool { return n >= 0 && n < 200 || isStr(s) }, false, nil},
		{"exclude", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), NoMatch: true}}}}, func(n, s int64) bool { return n < 0 || n >= 200 }, true, nil},
		{"all but", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low)}, {Filter: (*codec.Filter)(even), NoMatch: true}}}}, func(n, s int64) bool { return n >= 0 && n < 200 && n%2 == 1 }, true, nil},
		{"any but", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low)}, {Filter: (*codec.Filter)(even), NoMatch: true}}, Any: true}}, func(n, s int64) bool { return n >= 0 && n < 200 && n%2 == 1 }, true, nil},
		{"nothing", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("n"))}}}}, func(n, s int64) bool { return false }, true, nil},
		{"all but nothing", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("n")), NoMatch: true}}}}, func(n, s int64) bool { return true }, true, nil},
		{"another column", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), Key: "row"}}}}, nil, true, nil},
		{"columns without the key", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low)}}, Columns: []string{"row"}}}, func(n, s int64) bool { return n >= 0 && n < 200 }, true, nil},
		{"columns in another order", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(strs)}, {Filter: (*codec.Filter)(low)}}, Columns: []string{"n", "row"}}}, func(n, s int64) bool { return n >= 0 && n < 200 && isStr(s) }, false, nil},
	} {
		want := rowsWhere(rows, func(n, s int64) bool { return c.keep != nil && c.keep(n, s) })
		if c.keep == nil {
			want = sourcetest.Numbers(200, func(i int) int { return i })
		}
		var first []int
		for _, threads := range []int{1, 8} {
			c.opts.Threads = threads
			got, st := roomtest.Scanned(t, c.opts, dataset.Shard{}, dir)
			if first == nil {
				first = got
			}
			sourcetest.Equal(t, c.name+": with other threads", got, first)
			if st.RowsIn.Load() != int64(len(rows)) || st.RowsOut.Load() != int64(len(got)) || st.RowGroups.Load() != 12+8+0+4 {
				t.Errorf("%s: %d rows in, %d out, %d groups", c.name, st.RowsIn.Load(), st.RowsOut.Load(), st.RowGroups.Load())
			}
			if c.exact {
				sourcetest.Equal(t, c.name, got, want)
			} else if !slices.IsSorted(got) || len(got) == len(rows) {
				t.Errorf("%s: %d rows of %d, in order: %v", c.name, len(got), len(rows), slices.IsSorted(got))
			}
			for _, row := range want {
				if _, ok := slices.BinarySearch(got, row); !ok {
					t.Fatalf("%s: row %d is lost", c.name, row)
				}
			}
			for _, of := range []uint32{2, 7, 40} {
				var parts []int
				for i := range of {
					part, _ := roomtest.Scanned(t, c.opts, dataset.Shard{Index: i, Of: of}, dir)
					parts = append(parts, part...)
				}
				sourcetest.Equal(t, fmt.Sprintf("%s: %d shards", c.name, of), parts, first)
			}
		}
	}
}

func TestScanCountsNULLs(t *testing.T) {
	dir, rows := visits(t)
	nulls := len(rowsWhere(rows, func(n, s int64) bool { return n < 0 }))
	_, st := roomtest.Scanned(t, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("n", 1))}}}}, dataset.Shard{}, dir)
	sourcetest.Equal(t, "NULL keys", st.KeysNull.Load(), int64(nulls))
}

// Dictionaries are probed by value. NULLs inside them and beside them are NULLs.
func TestScanDictionaries(t *testing.T) {
	mem := sourcetest.Checked(t)
	typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	b := array.NewDictionaryBuilder(mem, typ).(*array.BinaryDictionaryBuilder)
	defer b.Release()
	var want []int
	for i := range 100 {
		switch {
		case i%7 == 0:
			b.AppendNull()
		default:
			if err := b.AppendString(fmt.Sprint("k", i%5)); err != nil {
				t.Fatal(err)
			}
			if i%5 == 2 {
				want = append(want, i)
			}
		}
	}
	values := b.NewArray()
	defer values.Release()
	rec := sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: values}, sourcetest.Col{Name: "row", Values: sourcetest.Numbers(100, func(i int) int64 { return int64(i) })})
	slice := rec.NewSlice(10, 90)
	rec.Release()
	filter := roomtest.BloomOf(t, "k", 64, sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: []string{"k2"}}))
	want = slices.DeleteFunc(want, func(i int) bool { return i < 10 || i >= 90 })
	for _, name := range []string{"a.arrow", "a.parquet"} {
		slice.Retain()
		path := sourcetest.Write(t, filepath.Join(t.TempDir(), name), 1000, slice)
		got, _ := roomtest.Scanned(t, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(filter)}}}}, dataset.Shard{}, path)
		sourcetest.Equal(t, name, got, want)
		// Written to an output and read back.
		out := filepath.Join(t.TempDir(), "out"+filepath.Ext(name))
		files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Mem: mem}}, path)
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(filter)}}, Mem: mem}})
		if err != nil {
			t.Fatal(err)
		}
		pieces := source.Split(files, dataset.Shard{})
		if _, err := (Destination{Output: Output{Name: out}}).Write(t.Context(), []Part{{Piece: pieces[0], Schema: files[0].Schema()}}, arraycopy.Scan(t.Context(), s, pieces)); err != nil {
			t.Fatal(err)
		}
		rows, _ := sourcetest.Contents(t, out)
		sourcetest.Equal(t, name+": rows", rows, sourcetest.Numbers(len(want), func(i int) string { return fmt.Sprintf("k2|%d", want[i]) }))
	}
	slice.Release()
}

// Integers of other widths and signs are compared by value.
func TestScanWidths(t *testing.T) {
	mem := sourcetest.Checked(t)
	b := array.NewUint64Builder(mem)
	defer b.Release()
	b.AppendValues([]uint64{5, math.MaxUint64, 7}, nil)
	big := b.NewArray()
	defer big.Release()
	filter := roomtest.ExactOf("id", 5, -1)
	for i, values := range []any{[]int32{-1, 4, 5}, []int64{5, -1, -5}, big} {
		rec := sourcetest.Record(t, mem, sourcetest.Col{Name: "id", Values: values}, sourcetest.Col{Name: "row", Values: []int64{0, 1, 2}})
		path := sourcetest.Write(t, filepath.Join(t.TempDir(), "a.parquet"), 10, rec)
		got, _ := roomtest.Scanned(t, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(filter)}}}}, dataset.Shard{}, path)
		sourcetest.Equal(t, fmt.Sprintf("%T", values), got, [][]int{{0, 2}, {0, 1}, {0}}[i])
	}
}

func TestScanRefusals(t *testing.T) {
	dir, _ := visits(t)
	low := roomtest.ExactOf("n", 1, 2)
	strs := roomtest.BloomOf(t, "s", 1, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "s", Values: []string{"s1"}}))
	openF := roomtest.ExactOf("n", 1)
	openF.Facts().Partial = &filters.Partial{Of: 2, Held: []uint32{0}}
	old := roomtest.ExactOf("n", 1)
	old.Facts().NormalForm = "0"
	for _, c := range []struct {
		name  string
		opts  keyscan.Options
		kind  error
		words []string
	}{
		{"an unsealed filter", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low)}, {Filter: (*codec.Filter)(openF)}}}}, fault.ErrMismatch, []string{"a finished filter", "partial", "merge"}},
		{"other rules for keys", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(old)}}}}, fault.ErrMismatch, []string{"normal form", "want 1, got 0"}},
		{"excluding by a Bloom filter", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(strs), NoMatch: true}}}}, fault.ErrUnsupported, []string{"unsupported", "Kind exact", "anti join"}},
	} {
		_, err := keyscan.New(c.opts)
		sourcetest.Says(t, c.name, err, c.kind, c.words...)
	}
	extra := sourcetest.Write(t, filepath.Join(dir, "z/other.parquet"), 10, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "n", Values: []string{"1"}}, sourcetest.Col{Name: "row", Values: []int64{1}}))
	files := roomtest.Open(t, source.Opening{}, dir)
	for _, c := range []struct {
		name  string
		opts  keyscan.Options
		kind  error
		words []string
	}{
		{"text against integers", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low)}}}}, fault.ErrMismatch, []string{extra, "column n", "want integer (the filter), got text or binary (the log)", "n::int64"}},
		{"integers against text", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(strs), Key: "row"}}}}, fault.ErrMismatch, []string{"a.parquet", "column row", "want text or binary (the filter), got integer", "row::string", "ID::int64"}},
		{"a key that one file lacks", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(strs)}}}}, nil, []string{extra, `no column "s"`, "there are n, row"}},
		{"a column that one file lacks", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), Key: "row"}}, Columns: []string{"n", "s"}}}, nil, []string{extra, `no column "s"`}},
		{"a column that is none", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), Key: "row"}}, Columns: []string{"rwo"}}}, nil, []string{`no column "rwo" (there are n, row)`}},
		{"one column for a key of two", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), Key: "row,n"}}}}, fault.ErrMismatch, []string{"number of key columns", "want 1, got 2"}},
		{"a key that is no path", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), Key: "a,,b"}}}}, nil, []string{"empty"}},
	} {
		s, err := keyscan.New(c.opts)
		if err != nil {
			t.Fatal(err)
		}
		var checks []string
		var last error
		for _, f := range files {
			if err := s.Check(f); err != nil {
				checks, last = append(checks, f.Rel()), err
			}
		}
		sourcetest.Says(t, c.name, last, c.kind, c.words[1:]...)
		if !strings.Contains(fmt.Sprint(last), c.words[0]) && len(checks) == 1 {
			t.Errorf("%s: %v", c.name, last)
		}
		// Without the check the scan ends with the error; no row is lost.
		for _, err := range arraycopy.Scan(t.Context(), s, source.Split(files, dataset.Shard{})) {
			if last = err; err != nil {
				break
			}
		}
		sourcetest.Says(t, c.name+", unchecked", last, c.kind)
	}
}

// TestNoColumns: an empty list of columns means none, not all. Records then have a
// number of rows only, and nothing can be written.
func TestNoColumns(t *testing.T) {
	f := roomtest.Open(t, source.Opening{}, sourcetest.Write(t, filepath.Join(t.TempDir(), "a.parquet"), 2, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "n", Values: []int64{1, 2, 3}})))
	opts := keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("n", 1, 2, 3))}}, Columns: []string{}}}
	s, err := keyscan.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	var rows int64
	for r, err := range arraycopy.Scan(t.Context(), s, source.Split(f, dataset.Shard{})) {
		if err != nil {
			t.Fatal(err)
		}
		rows += r.Record.NumRows()
		sourcetest.Equal(t, "columns", r.Record.NumCols(), 0)
		r.Record.Release()
	}
	sourcetest.Equal(t, "rows", rows, 3)
	out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), "out.parquet")}}
	_, err = out.WriteScan(t.Context(), s, source.Split(f, dataset.Shard{}), f, nil)
	sourcetest.Says(t, "no columns", err, nil, "no column is named")
}
