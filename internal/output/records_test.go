package output

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// given is a source of records as programs have them: it makes each batch when asked
// for it and releases it when asked for the next one.
type given struct {
	make   []func() arrow.Record
	err    error // after the last one
	panics int   // before batch n, from 1
	passes int
	ended  int // passes that ended, in any way
}

func (g *given) read(context.Context) iter.Seq2[arrow.Record, error] {
	g.passes++
	return func(yield func(arrow.Record, error) bool) {
		defer func() { g.ended++ }()
		for i, f := range g.make {
			if g.panics == i+1 {
				panic("the program's fault")
			}
			if !lend(f(), yield) {
				return
			}
		}
		if g.err != nil {
			yield(nil, g.err)
		}
	}
}

// lend yields a record and releases it, also when yield panics.
func lend(rec arrow.Record, yield func(arrow.Record, error) bool) bool {
	if rec != nil {
		defer rec.Release()
	}
	return yield(rec, nil)
}

// batches returns n batches of rows each: k counts from 0, s is k as text.
func batches(t testing.TB, n, rows int) *given {
	mem := sourcetest.Checked(t)
	g := &given{}
	for b := range n {
		g.make = append(g.make, func() arrow.Record {
			return sourcetest.Record(t, mem,
				sourcetest.Col{Name: "k", Values: sourcetest.Numbers(rows, func(i int) int64 { return int64(b*rows + i) })},
				sourcetest.Col{Name: "s", Values: sourcetest.Numbers(rows, func(i int) string { return fmt.Sprint("t", b*rows+i) })})
		})
	}
	return g
}

func (g *given) file(name string, opts source.RecordsOptions) *source.File {
	rec := g.make[0]()
	defer rec.Release()
	return source.Records(name, rec.Schema(), g.read, opts)
}

// rowsRead reads all rows of the files with Map.
func rowsRead(ctx context.Context, columns []int, files ...*source.File) (rows []string, err error) {
	wanted := func(*source.File) ([]int, error) { return columns, nil }
	for r, err := range roomtest.Map(ctx, source.Split(files, dataset.Shard{}), 3, wanted, roomtest.Pass) {
		if err != nil {
			return rows, err
		}
		rows = append(rows, sourcetest.Rows(r.Record)...)
		r.Record.Release()
	}
	return rows, nil
}

func TestRecords(t *testing.T) {
	g := batches(t, 4, 3)
	f := g.file("mine", source.RecordsOptions{})
	want := sourcetest.Numbers(12, func(i int) string { return fmt.Sprintf("%d|t%d", i, i) })
	for range 2 { // two passes
		rows, err := rowsRead(t.Context(), nil, f)
		if err != nil || !slices.Equal(rows, want) {
			t.Fatalf("%v, %v, want %v", rows, err, want)
		}
	}
	rows, err := rowsRead(t.Context(), []int{1}, f)
	if sourcetest.Equal(t, "column s", rows, sourcetest.Numbers(12, func(i int) string { return fmt.Sprint("t", i) })); err != nil {
		t.Error(err)
	}
	if rows, err = rowsRead(t.Context(), []int{1, 0}, f); err != nil || rows[5] != "t5|5" {
		t.Errorf("the columns in another order: %v, %v", rows, err)
	}
	n := 0
	for rec, err := range rowfilter.Read(t.Context(), f, 0, []int{}) { // without columns the rows still count
		if n += int(rec.NumRows()); err != nil || rec.NumCols() != 0 {
			t.Errorf("%v, %v", rec, err)
		}
	}
	sourcetest.Equal(t, "rows without columns", n, 12)
	sourcetest.Equal(t, "passes ended", g.ended, g.passes)
	sourcetest.Equal(t, "rows known", f.Rows(), -1)
	sourcetest.Equal(t, "rows said", g.file("mine", source.RecordsOptions{Rows: 12}).Rows(), 12)
	sourcetest.Equal(t, "format", f.Format(), dataset.RecordBatches)
	if fp, err := f.Fingerprint(); fp != nil || err != nil || f.Once() || f.BytesRead() != 0 {
		t.Errorf("fingerprint %x, %v; once %v; %d bytes read", fp, err, f.Once(), f.BytesRead())
	}
	if _, ok, err := (&Run{Log: []*source.File{f}}).Digest(); ok || err != nil {
		t.Errorf("a digest of records: %v, %v", ok, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestRecordsOfAnySize: a record with more rows than are examined at once comes in
// steps, a slice as the rows that it shows, and a record without rows not at all.
func TestRecordsOfAnySize(t *testing.T) {
	mem := sourcetest.Checked(t)
	const n = 2*source.StepRows + 7
	g := &given{make: []func() arrow.Record{
		func() arrow.Record { return sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: []int64{}}) },
		func() arrow.Record {
			whole := sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: sourcetest.Numbers(n+20, func(i int) int64 { return int64(i - 10) })})
			defer whole.Release()
			return whole.NewSlice(10, n+10)
		},
		func() arrow.Record { return sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: []int64{n}}) },
	}}
	next, largest := int64(0), int64(0)
	for rec, err := range rowfilter.Read(t.Context(), g.file("mine", source.RecordsOptions{Rows: n + 1}), 0, nil) {
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, rec.NumRows())
		for _, v := range rec.Column(0).(*array.Int64).Int64Values() {
			if v != next {
				t.Fatalf("row %d holds %d", next, v)
			}
			next++
		}
	}
	sourcetest.Equal(t, "rows", next, n+1)
	sourcetest.Equal(t, "rows of the largest step", largest, source.StepRows)
}

// TestRecordsRefusals: records that do not fit the schema, and any other mistake of a
// sequence, are errors that name the File and the record.
func TestRecordsRefusals(t *testing.T) {
	mem := sourcetest.Checked(t)
	nulls := func() arrow.Record {
		return sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: []any{1, nil}})
	}
	good := func() arrow.Record { return sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: []any{1, 2}}) }
	required := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil)
	failed := errors.New("the program failed")
	for _, c := range []struct {
		what  string
		g     given
		opts  source.RecordsOptions
		kind  error
		words []string
		good  int // rows before
	}{
		{what: "another type", g: given{make: []func() arrow.Record{good, func() arrow.Record {
			return sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: []string{"a"}})
		}}},
			kind: fault.ErrMismatch, words: []string{"row group 2", "column k", "int64", "utf8"}, good: 2},
		{what: "another name", g: given{make: []func() arrow.Record{func() arrow.Record { return sourcetest.Record(t, mem, sourcetest.Col{Name: "x", Values: []int64{1}}) }}},
			kind: fault.ErrMismatch, words: []string{"row group 1", "want k", "got x"}},
		{what: "a column too many", g: given{make: []func() arrow.Record{func() arrow.Record {
			return sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: []int64{1}}, sourcetest.Col{Name: "x", Values: []int64{1}})
		}}},
			kind: fault.ErrMismatch, words: []string{"want 1", "got 2"}},
		{what: "a NULL", g: given{make: []func() arrow.Record{nulls}}, kind: fault.ErrMismatch, words: []string{"column k", "no NULL"}},
		{what: "no record", g: given{make: []func() arrow.Record{func() arrow.Record { return nil }}}, words: []string{"neither a record nor an error"}},
		{what: "an error", g: given{make: []func() arrow.Record{good}, err: failed}, kind: failed, words: []string{"row group 2"}, good: 2},
		{what: "a panic at once", g: given{make: []func() arrow.Record{good}, panics: 1}, words: []string{"panicked: the program's fault", "records_test.go"}},
		{what: "a panic later", g: given{make: []func() arrow.Record{good, good}, panics: 2}, words: []string{"row group 1", "panicked"}, good: 2},
		{what: "fewer rows", g: given{make: []func() arrow.Record{good}}, opts: source.RecordsOptions{Rows: 3}, kind: fault.ErrMismatch, words: []string{"want 3", "got 2"}, good: 2},
		{what: "more rows", g: given{make: []func() arrow.Record{good, good}}, opts: source.RecordsOptions{Rows: 3}, kind: fault.ErrMismatch, words: []string{"want 3", "more"}, good: 2},
	} {
		f := source.Records("mine", required, c.g.read, c.opts)
		rows, err := rowsRead(t.Context(), nil, f)
		sourcetest.Says(t, c.what, err, c.kind, append(c.words, "mine")...)
		sourcetest.Equal(t, c.what+": rows before", len(rows), c.good)
		sourcetest.Equal(t, c.what+": passes ended", c.g.ended, 1)
	}
	f := source.Records("mine", required, func(context.Context) iter.Seq2[arrow.Record, error] { return nil }, source.RecordsOptions{})
	_, err := rowsRead(t.Context(), nil, f)
	sourcetest.Says(t, "no sequence", err, nil, "mine", "no sequence")

	f = (&given{make: []func() arrow.Record{good}}).file("mine", source.RecordsOptions{Once: true})
	sourcetest.Equal(t, "once", f.Once(), true)
	if _, err := rowsRead(t.Context(), nil, f); err != nil {
		t.Error(err)
	}
	_, err = rowsRead(t.Context(), nil, f)
	sourcetest.Says(t, "a second pass", err, nil, "mine", "only once")
}

// TestRecordsStop: if the reader stops, the pass ends and the sequence frees what it
// holds. A panic of the reader is not blamed on the sequence.
func TestRecordsStop(t *testing.T) {
	g := batches(t, 5, 2)
	f := g.file("mine", source.RecordsOptions{})
	for range rowfilter.Read(t.Context(), f, 0, nil) {
		break
	}
	func() {
		defer func() { sourcetest.Equal(t, "the reader's panic", recover(), "the reader's") }()
		for range rowfilter.Read(t.Context(), f, 0, nil) {
			panic("the reader's")
		}
	}()
	sourcetest.Equal(t, "passes ended", g.ended, 2)
	for _, at := range []int{0, 1, 3} {
		ctx, cancel := context.WithCancelCause(t.Context())
		seen := 0
		var last error
		if at == 0 {
			cancel(errEnough)
		}
		for r, err := range roomtest.Map(ctx, source.Split([]*source.File{f}, dataset.Shard{}), 0, nil, roomtest.Pass) {
			if last = err; err != nil {
				break
			}
			r.Record.Release()
			if seen++; seen == at {
				cancel(errEnough)
			}
		}
		cancel(nil)
		if !errors.Is(last, errEnough) {
			t.Errorf("after %d of %d records: %v", seen, at, last)
		}
	}
	sourcetest.Equal(t, "passes ended", g.ended, g.passes)
	// A sequence that ends by itself when the context does is not a shorter log.
	ctx, cancel := context.WithCancelCause(t.Context())
	early := source.Records("mine", f.Schema(), func(ctx context.Context) iter.Seq2[arrow.Record, error] {
		cancel(errEnough)
		return func(func(arrow.Record, error) bool) {}
	}, source.RecordsOptions{})
	for rec, err := range rowfilter.Read(ctx, early, 0, nil) {
		if rec != nil || !errors.Is(err, errEnough) {
			t.Errorf("%v, %v", rec, err)
		}
		return
	}
	t.Error("a cancelled pass looks like one without rows")
}

var errEnough = errors.New("enough")

// TestRecordsScan: a scan of records gives the same rows as a scan of files with these
// rows, for every output.
func TestRecordsScan(t *testing.T) {
	const n, groups = 3000, 6
	mem := sourcetest.Checked(t)
	made := func(lo, hi int) func() arrow.Record {
		return func() arrow.Record {
			return sourcetest.Record(t, mem,
				sourcetest.Col{Name: "k", Values: sourcetest.Numbers(hi-lo, func(i int) int64 { return int64((lo + i) * 7 % 1000) })},
				sourcetest.Col{Name: "s", Values: sourcetest.Numbers(hi-lo, func(i int) string { return fmt.Sprint("t", lo+i) })})
		}
	}
	dir := t.TempDir()
	whole := sourcetest.Write(t, filepath.Join(dir, "log.parquet"), n/groups, made(0, n)())
	var mine []*source.File
	for g := range groups { // as many Files as the other has row groups
		src := &given{}
		for b := range 5 {
			lo := n/groups*g + n/groups/5*b
			src.make = append(src.make, made(lo, lo+n/groups/5))
		}
		mine = append(mine, src.file(fmt.Sprintf("part-%d", g), source.RecordsOptions{}))
	}
	bits := roomtest.BloomOf(t, "k", 3, sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: []int64{3, 500, 999, 7}}))
	for _, filter := range []*filters.Filter{roomtest.ExactOf("k", 3, 500, 999, 7), bits} {
		for _, columns := range [][]string{nil, {"s"}, {"s", "k"}} {
			opts := keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(filter), Key: "k"}}, Columns: columns}}
			want := scanText(t, opts, source.Split(roomtest.Open(t, source.Opening{}, whole), dataset.Shard{}))
			if len(want) < 12 {
				t.Fatalf("%d rows", len(want))
			}
			for of := range uint32(8) {
				var got []string
				for i := range max(of, 1) {
					got = append(got, scanText(t, opts, source.Split(mine, dataset.Shard{Index: i, Of: of}))...)
				}
				sourcetest.Equal(t, fmt.Sprintf("columns %v, %d shards", columns, of), got, want)
			}
		}
	}
	scanner := func() *keyscan.Scanner {
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("k", 3, 500, 999, 7))}}}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// The name of a File of records may be that of an output.
	t.Chdir(t.TempDir())
	for _, name := range []string{"part-0", "out.arrow", "part-1/"} {
		s := scanner()
		out := Destination{Output: Output{Name: name}, Result: s.Result(), Run: &Run{Log: mine}}
		if _, err := out.Pending(t.Context()); err != nil {
			t.Fatal(err)
		}
		w, err := out.WriteScan(t.Context(), s, source.Split(mine, dataset.Shard{}), mine, nil)
		if err != nil || w.Rows != 4*n/1000 {
			t.Errorf("%s: %v, %d rows", name, err, w.Rows)
		}
		if _, err := out.Pending(t.Context()); err == nil || errors.Is(err, ErrDone) {
			t.Errorf("%s: %v, want that something exists: records have no identity", name, err)
		}
	}
	s := scanner()
	if err := Count(t.Context(), s, source.Split(mine, dataset.Shard{})); err != nil {
		t.Error(err)
	}
	path, why := s.PathOf(mine[0])
	sourcetest.Equal(t, "path", path+": "+why, "generic: the rows are given as Arrow records")
}

func scanText(t testing.TB, opts keyscan.Options, pieces []source.Piece) (rows []string) {
	t.Helper()
	s, err := keyscan.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range arraycopy.Scan(t.Context(), s, pieces) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, sourcetest.Rows(r.Record)...)
		r.Record.Release()
	}
	return rows
}

// TestRecordsKeys: the keys of records are those of a file with the same rows.
func TestRecordsKeys(t *testing.T) {
	mem := sourcetest.Checked(t)
	made := func() arrow.Record {
		return sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: sourcetest.Numbers(source.StepRows+9, func(i int) int64 { return int64(i) * 3 })})
	}
	file := sourcetest.Write(t, filepath.Join(t.TempDir(), "k.parquet"), 1000, made())
	g := &given{make: []func() arrow.Record{made}}
	sums := func(f *source.File) (rows, sum uint64) {
		_, _, err := keyscan.Read(t.Context(), source.Split([]*source.File{f}, dataset.Shard{}), keyscan.ReadOptions{Key: "k", Threads: 1}, func() (func(*keyscan.Keys) error, error) {
			return func(k *keyscan.Keys) error {
				rows += uint64(k.Batch.Len)
				values, _ := k.Batch.Ints()
				for _, v := range values {
					sum += v * v
				}
				return nil
			}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return rows, sum
	}
	rows, sum := sums(g.file("mine", source.RecordsOptions{}))
	wantRows, wantSum := sums(roomtest.Open(t, source.Opening{}, file)[0])
	sourcetest.Equal(t, "rows", rows, wantRows)
	sourcetest.Equal(t, "sum of squares", sum, wantSum)
}
