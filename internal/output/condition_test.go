package output

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	v15 "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/storage"
)

// event is a row of a log for conditions. Pointers are NULL if nil.
type event struct {
	row, ts int64
	id      *int64
	s       *string
	f       *float64
	x       *int32 // u.x; u is NULL if void
	void    bool
	list    bool // l is not NULL
}

// events makes a log: ts ascends, so that statistics settle much, and all else is random.
func events(rng *rand.Rand, n int) []event {
	rows := make([]event, n)
	maybe := func() bool { return rng.IntN(6) > 0 }
	for i := range rows {
		e := event{row: int64(i), ts: int64(i / 3), void: rng.IntN(5) == 0, list: maybe()}
		if maybe() {
			v := rng.Int64N(60)
			e.id = &v
		}
		if maybe() {
			v := []string{"", "a", "ab", "b", "NO", "z"}[rng.IntN(6)]
			e.s = &v
		}
		if maybe() {
			v := []float64{math.NaN(), math.Copysign(0, -1), 0, 1.5, -2, math.Inf(1), float64(rng.IntN(9))}[rng.IntN(7)]
			e.f = &v
		}
		if maybe() && !e.void {
			v := int32(rng.IntN(10))
			e.x = &v
		}
		rows[i] = e
	}
	return rows
}

var eventSchema = arrow.NewSchema([]arrow.Field{
	{Name: "ts", Type: arrow.PrimitiveTypes.Int64},
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "u", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), Nullable: true},
	{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	{Name: "row", Type: arrow.PrimitiveTypes.Int64},
}, nil)

func eventRecord(rows []event) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, eventSchema)
	defer b.Release()
	for _, e := range rows {
		b.Field(0).(*array.Int64Builder).Append(e.ts)
		add(b.Field(1).(*array.Int64Builder), e.id)
		add(b.Field(2).(*array.StringBuilder), e.s)
		add(b.Field(3).(*array.Float64Builder), e.f)
		u, l := b.Field(4).(*array.StructBuilder), b.Field(5).(*array.ListBuilder)
		if u.Append(!e.void); !e.void { // else it appends NULL to its field
			add(u.FieldBuilder(0).(*array.Int32Builder), e.x)
		}
		if l.Append(e.list); e.list {
			l.ValueBuilder().(*array.Int64Builder).Append(e.row)
		}
		b.Field(6).(*array.Int64Builder).Append(e.row)
	}
	return b.NewRecord()
}

func add[T any](b interface {
	Append(T)
	AppendNull()
}, v *T) {
	if v == nil {
		b.AppendNull()
	} else {
		b.Append(*v)
	}
}

// eventTest is a condition, in SQL and by definition: 0 is false, 1 NULL and 2 true.
type eventTest struct {
	text  string
	truth func(e event) int
}

func ofValue[T any](v *T, is func(T) bool) int {
	switch {
	case v == nil:
		return 1
	case is(*v):
		return 2
	}
	return 0
}

// drawEventTest draws a condition. n is the number of values of ts.
func drawEventTest(rng *rand.Rand, n int64, depth int) eventTest {
	if depth > 0 {
		a, b := drawEventTest(rng, n, depth-1), drawEventTest(rng, n, rng.IntN(depth))
		switch rng.IntN(5) {
		case 0, 1:
			return eventTest{"(" + a.text + " AND " + b.text + ")", func(e event) int { return min(a.truth(e), b.truth(e)) }}
		case 2, 3:
			return eventTest{"(" + a.text + " OR " + b.text + ")", func(e event) int { return max(a.truth(e), b.truth(e)) }}
		}
		return eventTest{"(NOT " + a.text + ")", func(e event) int { return 2 - a.truth(e) }}
	}
	v, w := rng.Int64N(n+2)-1, rng.Int64N(n/4+1)
	switch rng.IntN(10) {
	case 0, 1, 2:
		return eventTest{fmt.Sprintf("ts BETWEEN %d AND %d", v, v+w), func(e event) int { return ofValue(&e.ts, func(t int64) bool { return t >= v && t <= v+w }) }}
	case 3:
		return eventTest{fmt.Sprintf("ts >= %d", v), func(e event) int { return ofValue(&e.ts, func(t int64) bool { return t >= v }) }}
	case 4:
		k := rng.Int64N(70)
		return eventTest{fmt.Sprintf("id IN (%d, %d, -1)", k, k/2), func(e event) int { return ofValue(e.id, func(i int64) bool { return i == k || i == k/2 }) }}
	case 5:
		s := []string{"", "a", "NO", "zz"}[rng.IntN(4)]
		return eventTest{"s <= '" + s + "'", func(e event) int { return ofValue(e.s, func(t string) bool { return t <= s }) }}
	case 6:
		return eventTest{"s LIKE 'a%'", func(e event) int { return ofValue(e.s, func(t string) bool { return strings.HasPrefix(t, "a") }) }}
	case 7: // NaN is the largest value
		x := float64(rng.IntN(4))
		return eventTest{fmt.Sprintf("f > %g", x), func(e event) int { return ofValue(e.f, func(f float64) bool { return f > x || f != f }) }}
	case 8:
		x := int32(rng.IntN(10))
		return eventTest{fmt.Sprintf("u.x < %d", x), func(e event) int { return ofValue(e.x, func(v int32) bool { return v < x }) }}
	}
	null := []eventTest{
		{"s IS NULL", func(e event) int { return ofValue(new(bool), func(bool) bool { return e.s == nil }) }},
		{"l IS NOT NULL", func(e event) int { return ofValue(new(bool), func(bool) bool { return e.list }) }},
		{"u IS NULL", func(e event) int { return ofValue(new(bool), func(bool) bool { return e.void }) }},
		{"u.x IS NULL", func(e event) int { return ofValue(new(bool), func(bool) bool { return e.x == nil }) }},
	}
	return null[rng.IntN(len(null))]
}

// eventFiles stores the rows in several ways.
func eventFiles(t *testing.T, rows []event) (names []string) {
	dir := t.TempDir()
	names = append(names,
		sourcetest.Write(t, filepath.Join(dir, "small.parquet"), 64, eventRecord(rows)),
		sourcetest.Write(t, filepath.Join(dir, "one.parquet"), 1<<20, eventRecord(rows)),
		sourcetest.Write(t, filepath.Join(dir, "a.arrow"), 100, eventRecord(rows)))
	if bits.UintSize < 64 { // arrow/go's Parquet writer panics, because of an unaligned counter
		return names
	}
	for name, o := range map[string][]v15.WriterProperty{
		"coded.parquet": {v15.WithDataPageSize(100), v15.WithBatchSize(16), v15.WithMaxRowGroupLength(300)},
		"plain.parquet": {v15.WithDictionaryDefault(false), v15.WithDataPageSize(200), v15.WithBatchSize(16), v15.WithMaxRowGroupLength(150)},
		"mixed.parquet": {v15.WithDictionaryPageSizeLimit(60), v15.WithDataPageSize(100), v15.WithBatchSize(8), v15.WithStats(false)},
	} {
		rec := eventRecord(rows)
		defer rec.Release()
		var b bytes.Buffer
		w, err := pqarrow.NewFileWriter(rec.Schema(), &b, v15.NewWriterProperties(o...), pqarrow.NewArrowWriterProperties())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		names = append(names, sourcetest.Put(t, filepath.Join(dir, name), b.String()))
	}
	return names
}

// TestWhere: no reader of a file sees rows that fail its condition, in files of every
// layout and with all other options.
func TestWhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	rows := events(rng, 700)
	names := eventFiles(t, rows)
	for round := range cases.Count(3, 6, 40) {
		test := drawEventTest(rng, rows[len(rows)-1].ts, rng.IntN(4))
		var kept []event
		for _, e := range rows {
			if test.truth(e) == 2 {
				kept = append(kept, e)
			}
		}
		for _, name := range names {
			threads := 1 + rng.IntN(3)
			t.Run(fmt.Sprintf("%d/%s", round, filepath.Base(name)), func(t *testing.T) {
				opts, far := source.Opening{OpenOptions: source.OpenOptions{Where: test.text}}, &farFiles{Storage: storage.Local()}
				if round%3 == 0 {
					opts.Store = far
				}
				checkWhere(t, roomtest.Open(t, opts, name), kept, threads)
				sourcetest.Equal(t, "announcements that are not released", far.open.Load(), 0)
				if t.Failed() {
					t.Fatal(test.text)
				}
			})
		}
	}
}

// TestNothingDecides: a scan without a filter needs files with a condition, also those that it gets later.
func TestNothingDecides(t *testing.T) {
	for _, name := range eventFiles(t, events(rand.New(rand.NewPCG(1, 2)), 50)) {
		files := roomtest.Open(t, source.Opening{}, name)
		if _, err := keyscan.New(keyscan.Options{}, files...); err == nil || !strings.Contains(err.Error(), "needs a condition") {
			t.Errorf("%s: %v", name, err)
		}
		s, err := keyscan.New(keyscan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := Count(t.Context(), s, source.Split(files, dataset.Shard{})); err == nil || !strings.Contains(err.Error(), "needs a condition") {
			t.Errorf("%s, counted: %v", name, err)
		}
	}
}

// farFiles are local files that are read as if over a network. open counts the
// announcements that are not released.
type farFiles struct {
	storage.Storage // local
	open            atomic.Int64
}

type farFile struct {
	storage.Reader
	of *farFiles
}

func (s *farFiles) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	r, err := s.Storage.Open(ctx, o)
	return farFile{r, s}, err
}

// Prefetch implements storage.Prefetcher.
func (f farFile) Prefetch([]storage.Range) func() {
	f.of.open.Add(1)
	return sync.OnceFunc(func() { f.of.open.Add(-1) })
}

// Gap implements storage.Prefetcher.
func (f farFile) Gap() int64 { return 0 }

func rowNumbers(rows []event) []int64 {
	out := []int64{}
	for _, e := range rows {
		out = append(out, e.row)
	}
	return out
}

// checkWhere reads the files in all ways, and compares with the rows.
func checkWhere(t *testing.T, files []*source.File, rows []event, threads int) {
	t.Helper()
	ctx, pieces := t.Context(), source.Split(files, dataset.Shard{})
	want := rowNumbers(rows)

	// Records, of some columns and of none.
	got, n := []int64{}, int64(0)
	column := files[0].Schema().FieldIndices("row")
	for _, p := range pieces {
		for g := p.Lo; g < p.Hi; g++ {
			for rec, err := range rowfilter.Read(ctx, p.File, g, column) {
				if err != nil {
					t.Fatal(err)
				}
				if rec.NumCols() != 1 {
					t.Errorf("%d columns", rec.NumCols())
				}
				got = append(got, rec.Column(0).(*array.Int64).Int64Values()...)
			}
			for rec, err := range rowfilter.Read(ctx, p.File, g, []int{}) {
				if err != nil {
					t.Fatal(err)
				}
				n += rec.NumRows()
			}
		}
	}
	sourcetest.Equal(t, "rows that are read", got, want)
	sourcetest.Equal(t, "rows without columns", n, int64(len(want)))

	// Keys, one by one and by dictionary.
	var keys, distinct map[int64]int64
	var nulls, without int64
	want64 := map[int64]int64{}
	for _, e := range rows {
		if e.id != nil {
			want64[*e.id]++
		} else {
			without++
		}
	}
	keys, nulls = keyCounts(t, pieces, keyscan.ReadOptions{Key: "id", Threads: threads})
	sourcetest.Equal(t, "keys", keys, want64)
	sourcetest.Equal(t, "NULL keys", nulls, without)
	distinct, _ = keyCounts(t, pieces, keyscan.ReadOptions{Key: "id", Threads: threads, Distinct: true})
	sourcetest.Equal(t, "keys of dictionaries", distinct, want64)

	// Scans.
	low := roomtest.ExactOf("id", sourcetest.Numbers(30, func(i int) int64 { return int64(i) })...)
	pairs := roomtest.BloomOf(t, "id,s", 256, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: []int64{4, 5, 6, 7}}, sourcetest.Col{Name: "s", Values: []string{"a", "b", "NO", ""}}))
	isLow := func(e event) bool { return e.id != nil && *e.id < 30 }
	check := func() func(*keyscan.Keys) ([]uint32, error) {
		return func(k *keyscan.Keys) ([]uint32, error) { return k.Probe() }
	}
	for _, c := range []struct {
		what string
		opts keyscan.Options
		keep func(e event) bool // nil: a superset of the rows of the filter
	}{
		{"a filter", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), Key: "id"}}}}, isLow},
		{"the condition alone", keyscan.Options{}, func(event) bool { return true }},
		{"the condition alone, of any filter", keyscan.Options{ScanOptions: keyscan.ScanOptions{Any: true, CountNulls: true}}, func(event) bool { return true }},
		{"a filter, with NULLs counted", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), Key: "id"}}, CountNulls: true}}, isLow},
		{"a check", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), Key: "id"}}}, Check: check}, isLow},
		{"no match", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), Key: "id", NoMatch: true}}}}, func(e event) bool { return !isLow(e) }},
		{"any of two filters", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), Key: "id"}, {Filter: (*codec.Filter)(low), Key: "row"}}, Any: true}}, func(e event) bool { return isLow(e) || e.row < 30 }},
		{"two filters", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(low), Key: "id"}, {Filter: (*codec.Filter)(low), Key: "row", NoMatch: true}}}}, func(e event) bool { return isLow(e) && e.row >= 30 }},
		{"a composite key", keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(pairs), Key: "id,s"}}}}, nil},
	} {
		c.opts.Threads, c.opts.Columns = threads, []string{"row"}
		want := []int64{}
		for _, e := range rows {
			if c.keep != nil && c.keep(e) {
				want = append(want, e.row)
			}
		}
		got, st := passing(t, files, c.opts)
		if c.keep == nil {
			want = got
			for _, row := range got {
				if !slices.Contains(rowNumbers(rows), row) {
					t.Errorf("%s: row %d", c.what, row)
				}
			}
		}
		sourcetest.Equal(t, c.what, got, want)
		if n := st.RowsWhere.Load(); n > int64(len(rows)) || c.opts.CountNulls && n != int64(len(rows)) {
			t.Errorf("%s: %d rows are said to satisfy the condition, want %d", c.what, n, len(rows))
		}
		if c.opts.CountNulls && c.opts.Match != nil {
			sourcetest.Equal(t, c.what+": NULL keys", st.KeysNull.Load(), without)
		}
		sourcetest.Equal(t, c.what+": rows in", st.RowsIn.Load(), storedRowsOf(t, files[0]))

		s, err := keyscan.New(c.opts, files...)
		if err != nil {
			t.Fatal(err)
		}
		if err := Count(ctx, s, pieces); err != nil {
			t.Fatal(err)
		}
		sourcetest.Equal(t, c.what+": counted", s.Stats.RowsOut.Load(), int64(len(want)))

		out := filepath.Join(t.TempDir(), "out.parquet")
		if s, err = keyscan.New(c.opts, files...); err != nil {
			t.Fatal(err)
		}
		if _, err := (Destination{Output: Output{Name: out}, Result: source.ResultCandidates}).WriteScan(ctx, s, pieces, files, nil); err != nil {
			t.Fatal(err)
		}
		written, _ := sourcetest.Contents(t, out)
		sourcetest.Equal(t, c.what+": written", written, stringsOf(want))
	}

	// Rows in memory.
	table := roomtest.ColumnsOf(t, files, "row")
	var held []int64
	read, _, err := tables.Read(ctx, pieces, table, tables.ReadOptions{Key: "row", Threads: threads}, func(b *tables.Batch) error {
		ints, _ := b.Keys.Ints()
		for _, v := range ints {
			held = append(held, int64(v))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sourcetest.Equal(t, "rows held", held, want)
	sourcetest.Equal(t, "rows that are read into memory", read, int64(len(want)))

	// A sample of everything: rows that fail count, but have no key.
	var mu sync.Mutex
	sampled, seen := int64(0), int64(0)
	if _, _, err := keyscan.Read(ctx, pieces, keyscan.ReadOptions{Key: "row", Runs: 1000, RunRows: 1000, Threads: threads}, func() (func(*keyscan.Keys) error, error) {
		return func(k *keyscan.Keys) error {
			mu.Lock()
			defer mu.Unlock()
			sampled, seen = sampled+int64(len(k.Batch.Rows)), seen+int64(k.Batch.Len)
			return nil
		}, nil
	}); err != nil {
		if files[0].Rows() >= 0 {
			t.Fatal(err)
		}
		return
	}
	most := int64(0)
	for _, p := range pieces {
		most += rowfilter.MostRows(p)
	}
	sourcetest.Equal(t, "keys of a sample", sampled, int64(len(rows)))
	sourcetest.Equal(t, "rows of a sample", seen, most)
}

func storedRowsOf(t *testing.T, f *source.File) int64 {
	n, err := f.CountRows()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func stringsOf(rows []int64) []string {
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprint(r))
	}
	return out
}

// keyCounts reads integer keys, with their numbers of rows.
func keyCounts(t *testing.T, pieces []source.Piece, o keyscan.ReadOptions) (rows map[int64]int64, nulls int64) {
	t.Helper()
	rows = map[int64]int64{}
	var mu sync.Mutex
	_, nulls, err := keyscan.Read(t.Context(), pieces, o, func() (func(*keyscan.Keys) error, error) {
		return func(k *keyscan.Keys) error {
			mu.Lock()
			defer mu.Unlock()
			ints, _ := k.Batch.Ints()
			for i, v := range ints {
				if k.Times == nil {
					rows[int64(v)]++
				} else if k.Times[i] > 0 {
					rows[int64(v)] += int64(k.Times[i])
				}
			}
			return nil
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, nulls
}

// passing returns the values of the last column of rows that pass a scan.
func passing(t *testing.T, files []*source.File, o keyscan.Options) ([]int64, *keyscan.Stats) {
	t.Helper()
	s, err := keyscan.New(o, files...)
	if err != nil {
		t.Fatal(err)
	}
	got := []int64{}
	for r, err := range arraycopy.Scan(t.Context(), s, source.Split(files, dataset.Shard{})) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Record.Column(int(r.Record.NumCols())-1).(*array.Int64).Int64Values()...)
		r.Record.Release()
	}
	return got, s.Stats
}

// TestWhereNaN: statistics leave NaN out, so bounds of floats settle no condition that NaN, the
// largest value, decides otherwise. The rows are those of the definition, in columns of both widths.
func TestWhereNaN(t *testing.T) {
	if bits.UintSize < 64 {
		t.Skip("arrow/go's Parquet writer panics on a counter that is not aligned to 64 bits")
	}
	nan := math.NaN()
	groups := [][]float64{{1, nan, 5, 2}, {nan, 20, 30, 25}, {1, 5, 2, 3}, {20, nan, 20, nan}, {nan, nan, nan, nan}, {-1, 4, 4, nan}}
	most := func(v float64) float64 { // as a number that compares like v
		if v != v {
			return math.Inf(1)
		}
		return v
	}
	conditions := map[string]func(v float64) bool{
		"f < 10": func(v float64) bool { return v < 10 }, "f > 10": func(v float64) bool { return v > 10 },
		"f <= 5": func(v float64) bool { return v <= 5 }, "f >= 1": func(v float64) bool { return v >= 1 },
		"f = 'nan'": func(v float64) bool { return math.IsInf(v, 1) }, "f <> 'nan'": func(v float64) bool { return !math.IsInf(v, 1) },
		"NOT f < 10": func(v float64) bool { return v >= 10 }, "f = 20": func(v float64) bool { return v == 20 },
		"f <> 20": func(v float64) bool { return v != 20 }, "f BETWEEN -5 AND 50": func(v float64) bool { return v >= -5 && v <= 50 },
		"f IN (7, 'nan')": func(v float64) bool { return math.IsInf(v, 1) }, "f IS DISTINCT FROM 7": func(float64) bool { return true },
	}
	for _, dt := range []arrow.DataType{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "f", Type: dt}, {Name: "row", Type: arrow.PrimitiveTypes.Int64}}, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		var all []float64
		for _, v := range slices.Concat(groups...) {
			switch f := b.Field(0).(type) {
			case *array.Float32Builder:
				f.Append(float32(v))
			case *array.Float64Builder:
				f.Append(v)
			}
			b.Field(1).(*array.Int64Builder).Append(int64(len(all)))
			all = append(all, most(v))
		}
		rec := b.NewRecord()
		defer rec.Release()
		var out bytes.Buffer
		props := v15.NewWriterProperties(v15.WithCreatedBy("parquet-cpp-arrow version 15.0.0"), v15.WithMaxRowGroupLength(4))
		w, err := pqarrow.NewFileWriter(schema, &out, props, pqarrow.NewArrowWriterProperties())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		name := sourcetest.Put(t, filepath.Join(t.TempDir(), "log.parquet"), out.String())
		for i, f := range roomtest.Open(t, source.Opening{}, name)[0].Parquet().File().Metadata.RowGroups {
			if st := f.Columns[0].MetaData.Statistics; st.MinValue.Valid == (i == 4) {
				t.Fatalf("%s: row group %d has bounds: %v", dt, i, st.MinValue.Valid)
			}
		}
		for text, holds := range conditions {
			want := []int64{}
			for row, v := range all {
				if holds(v) {
					want = append(want, int64(row))
				}
			}
			opts := keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("row", sourcetest.Numbers(len(all), func(i int) int64 { return int64(i) })...))}}}}
			got, _ := passing(t, roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Where: text}}, name), opts)
			sourcetest.Equal(t, fmt.Sprintf("%s of %s", text, dt), got, want)
		}
	}
}

// TestWhereMisfits: a value that does not fit its cast is no error in a row that fails.
func TestWhereMisfits(t *testing.T) {
	rec := sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "s", Values: []string{"1", "x", "3"}}, sourcetest.Col{Name: "row", Values: []int64{0, 1, 2}})
	name := sourcetest.Write(t, filepath.Join(t.TempDir(), "a.parquet"), 10, rec)
	scan := keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("s", 1, 3)), Key: "s::int64"}}, Columns: []string{"row"}}}
	got, _ := passing(t, roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Where: "row <> 1"}}, name), scan)
	sourcetest.Equal(t, "rows", got, []int64{0, 2})
	keys, _ := keyCounts(t, source.Split(roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Where: "row <> 1"}}, name), dataset.Shard{}), keyscan.ReadOptions{Key: "s::int64", Options: keys.Options{Classes: []keys.Class{keys.Integer}}})
	sourcetest.Equal(t, "keys", keys, map[int64]int64{1: 1, 3: 1})
}

// TestWhereErrors: a condition that does not suit the files is an error at Open.
func TestWhereErrors(t *testing.T) {
	dir := t.TempDir()
	name := sourcetest.Write(t, filepath.Join(dir, "a.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "n", Values: []int64{1}}))
	for _, c := range []struct{ where, name, word string }{
		{"m = 1", name, "m"},
		{"n = 'x'", name, "n"},
		{"n = ", name, "character 5"},
		{"n = 1", sourcetest.Put(t, filepath.Join(dir, "ids.txt"), "1\n"), "n"},
		{"id = 1", filepath.Join(dir, "ids.txt"), "columns of text are strings"},
	} {
		files, err := source.Open(t.Context(), []string{c.name}, source.Opening{OpenOptions: source.OpenOptions{Where: c.where, Text: true}})
		if err == nil {
			t.Errorf("%s: no error", c.where)
			source.Close(files)
			continue
		}
		sourcetest.Says(t, c.where, err, nil, c.word)
	}
}

// TestWhereReadsLittle: of a year, a day's condition reads what a file of that day alone
// takes, whether the filter is small or large.
func TestWhereReadsLittle(t *testing.T) {
	const days, perDay = 365, 500
	rng := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	rec := sourcetest.Record(t, memory.DefaultAllocator,
		sourcetest.Col{Name: "ts", Values: sourcetest.Numbers(days*perDay, func(i int) int64 { return int64(i/perDay)*1000 + int64(i%perDay) })},
		sourcetest.Col{Name: "id", Values: sourcetest.Numbers(days*perDay, func(int) int64 { return rng.Int64N(1 << 40) })},
		sourcetest.Col{Name: "s", Values: sourcetest.Numbers(days*perDay, func(int) string { return fmt.Sprintf("%x", rng.Uint64()) })})
	day := sourcetest.Write(t, filepath.Join(dir, "day.parquet"), perDay, rec.NewSlice(100*perDay, 101*perDay))
	year := sourcetest.Write(t, filepath.Join(dir, "year.parquet"), perDay, rec)
	scan := func(name string, where string, m dataset.Match) (bytes int64) {
		file := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Where: where}}, name)
		before := file[0].BytesRead()
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{m}}}, file...)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out.parquet")
		if _, err := (Destination{Output: Output{Name: out}, Result: source.ResultExact}).WriteScan(t.Context(), s, source.Split(file, dataset.Shard{}), file, nil); err != nil {
			t.Fatal(err)
		}
		if n := s.Stats.RowsWhere.Load(); n != perDay {
			t.Errorf("%d rows of the day", n)
		}
		return file[0].BytesRead() - before
	}
	spread := roomtest.ExactOf("id", sourcetest.Numbers(1<<12, func(i int) int64 { return int64(i) << 28 })...)
	for _, m := range []dataset.Match{{Filter: (*codec.Filter)(spread), Key: "id"}, {Filter: (*codec.Filter)(spread), Key: "id", NoMatch: true}, {Filter: (*codec.Filter)(roomtest.ExactOf("id")), Key: "id", NoMatch: true}} {
		alone, all := scan(day, "", m), scan(year, "ts >= 100000 AND ts < 101000", m)
		if all > alone+alone/20 || alone == 0 {
			t.Errorf("%v: %d bytes are read of the year, %d of the day alone", m, all, alone)
		}
	}
}

// TestWherePages: pages are left out by their index, and where that settles the condition
// its column is not read.
func TestWherePages(t *testing.T) {
	// Written by pyarrow: 20 days of 400 rows in one row group, a page for each day:
	// ts (timestamp[us]), id (int64), s (string).
	name := filepath.Join("testdata", "days.parquet")
	for _, c := range []struct {
		where      string
		rows, read int64 // pages
	}{
		{"ts >= '2024-03-05' AND ts < '2024-03-06'", 400, 1},                       // of id alone
		{"ts >= '2024-03-05 12:00:00' AND ts < '2024-03-06 12:00:00'", 400, 2 + 2}, // of ts and id
		{"ts < '2024-03-03' OR ts >= '2024-03-20 12:00:00'", 1000, 1 + 3},          // ts of the last day, id of three
		{"ts < '2024-03-01' OR ts > '2025-01-01'", 0, 0},                           // nothing
		{"ts IS NOT NULL", 8000, 20},                                               // id alone
	} {
		files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Where: c.where}}, name)
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", sourcetest.Numbers(1<<16, func(i int) int64 { return int64(i) })...)), Key: "id"}}}}, files...)
		if err != nil {
			t.Fatal(err)
		}
		if err := Count(t.Context(), s, source.Split(files, dataset.Shard{})); err != nil {
			t.Fatal(err)
		}
		sourcetest.Equal(t, c.where+": rows", s.Stats.RowsOut.Load(), c.rows)
		sourcetest.Equal(t, c.where+": pages", s.Stats.Pages.Load()-s.Stats.PagesSkipped.Load(), c.read)
	}
}

// TestWhereExcludes: files whose directories exclude all rows are not opened.
func TestWhereExcludes(t *testing.T) {
	dir := t.TempDir()
	for day := 1; day <= 3; day++ {
		for _, country := range []string{"NO", "SE", "__HIVE_DEFAULT_PARTITION__"} {
			n := int64(day * 10)
			sourcetest.Write(t, filepath.Join(dir, fmt.Sprintf("dt=2024-01-%02d/country=%s/a.parquet", day, country)), 10,
				sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "row", Values: []int64{n, n + 1, n + 2}}))
		}
	}
	sourcetest.Put(t, filepath.Join(dir, "dt=2024-01-02/country=SE/a.parquet"), "no Parquet file at all")
	for _, c := range []struct {
		where    string
		excluded int
		rows     int64
	}{
		{"country = 'NO' AND dt >= '2024-01-02'", 7, 6},
		{"country IS NULL", 6, 9},
		{"dt = '2024-01-03' AND row > 30", 6, 6},
		{"(dt = '2024-01-01' OR row = 22) AND country = 'NO'", 6, 4},
		{"dt > '2025-01-01'", 8, 0}, // one file is opened for its columns
	} {
		var excluded []string
		files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto, Where: c.where}, Excluded: func(name string) { excluded = append(excluded, name) }}, dir)
		sourcetest.Equal(t, c.where+": excluded files", len(excluded), c.excluded)
		sourcetest.Equal(t, c.where+": opened files", len(files), 9-c.excluded)
		rows := int64(0)
		for _, p := range source.Split(files, dataset.Shard{}) {
			for g := p.Lo; g < p.Hi; g++ {
				for rec, err := range rowfilter.Read(t.Context(), p.File, g, nil) {
					if err != nil {
						t.Fatal(err)
					}
					rows += rec.NumRows()
				}
			}
		}
		sourcetest.Equal(t, c.where+": rows", rows, c.rows)
	}
	_, err := source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{Where: "country = 'SE'"}})
	sourcetest.Says(t, "a file that is not excluded", err, nil, "dt=2024-01-02/country=SE/a.parquet")
}

// TestWhereExcludesByTheFilesType: a condition on a column that is both in the path and in the
// files compares values of the files' type, so the path must have the same type.
func TestWhereExcludesByTheFilesType(t *testing.T) {
	dir := t.TempDir()
	for _, hour := range []string{"08", "10"} {
		n := int64(hour[0]-'0')*10 + int64(hour[1]-'0')
		sourcetest.Write(t, filepath.Join(dir, "hour="+hour, "a.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "hour", Values: []int64{n}}))
	}
	_, err := source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{Where: "hour < '1'"}}) // "08" is, "10" is not; 8 and 10 are not
	sourcetest.Says(t, "of other types", err, fault.ErrMismatch, "hour", "HiveTypes")
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto, Where: "hour > 9", HiveTypes: "hour:bigint"}}, dir)
	sourcetest.Equal(t, "files", len(files), 1)
}
