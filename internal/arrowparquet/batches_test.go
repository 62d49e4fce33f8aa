package arrowparquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// gathered returns the rows of all records as one, which may be nil, the bytes of each
// record, and the error.
func gathered(t testing.TB, records iter.Seq2[arrow.Record, error]) (rec arrow.Record, sizes []int64, err error) {
	t.Helper()
	var all []arrow.Record
	for r, e := range records {
		if err != nil {
			t.Fatalf("a yield after %v", err)
		}
		if err = e; e != nil {
			continue
		}
		r.Retain()
		all = append(all, r)
		sizes = append(sizes, 0)
		for _, c := range r.Columns() {
			sizes[len(sizes)-1] += dataBytes(c.Data())
		}
	}
	if len(all) == 0 {
		return nil, sizes, err
	}
	columns := make([]arrow.Array, all[0].NumCols())
	rows := int64(0)
	for c := range columns {
		var parts []arrow.Array
		for _, r := range all {
			parts = append(parts, r.Column(c))
		}
		whole, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		columns[c] = whole
	}
	for _, r := range all {
		rows += r.NumRows()
		r.Release()
	}
	return array.NewRecord(all[0].Schema(), columns, rows), sizes, err
}

// dataBytes returns the bytes that an array takes.
func dataBytes(d arrow.ArrayData) (n int64) {
	for _, b := range d.Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	for _, c := range d.Children() {
		n += dataBytes(c)
	}
	return n
}

// equalRecords compares the values of two records.
func equalRecords(t testing.TB, what string, got, want arrow.Record) {
	t.Helper()
	if got == nil || got.NumRows() != want.NumRows() {
		t.Fatalf("%s: %v rows, want %d", what, got, want.NumRows())
	}
	for i, c := range want.Columns() {
		if !array.Equal(got.Column(i), c) {
			t.Errorf("%s: column %s differs", what, want.ColumnName(i))
		}
	}
}

// mixed returns random rows with NULLs: numbers, booleans, words that repeat, lists,
// maps, fixed-size lists, and every sixteenth time a long string, which repeats as well.
func mixed(rng *rand.Rand, rows int) arrow.Record {
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "i", Type: arrow.PrimitiveTypes.Int16, Nullable: true},
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "f", Type: &arrow.FixedSizeBinaryType{ByteWidth: 5}, Nullable: true},
		{Name: "w", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "u", Type: arrow.BinaryTypes.LargeString, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.FixedWidthTypes.Boolean), Nullable: true},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "x", Type: arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float64), Nullable: true},
	}, nil)
	bld := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer bld.Release()
	var words []string
	for i := range 20 {
		words = append(words, strings.Repeat(string(rune('a'+i)), 1+rng.IntN(9)))
	}
	words = append(words, strings.Repeat("long", 2500))
	word := func() string {
		if rng.IntN(16) == 0 {
			return words[20]
		}
		return words[rng.IntN(20)]
	}
	nulls := []int{1, 2, 20, 1000}[rng.IntN(4)] // one in this number of values is NULL
	var add func(b array.Builder)
	add = func(b array.Builder) {
		if rng.IntN(nulls+1) == 0 {
			b.AppendNull()
			return
		}
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(rng.Int64N(1 << rng.IntN(60)))
		case *array.Int32Builder:
			b.Append(int32(rng.IntN(100)))
		case *array.Int16Builder:
			b.Append(int16(rng.IntN(1000) - 500))
		case *array.Float64Builder:
			b.Append(rng.Float64())
		case *array.BooleanBuilder:
			b.Append(rng.IntN(2) == 0)
		case *array.FixedSizeBinaryBuilder:
			b.Append([]byte(fmt.Sprintf("%05d", rng.IntN(100))))
		case *array.StringBuilder:
			b.Append(word())
		case *array.LargeStringBuilder:
			b.Append(fmt.Sprint(rng.Uint64()))
		case *array.ListBuilder:
			b.Append(true)
			for range rng.IntN(4) {
				add(b.ValueBuilder())
			}
		case *array.MapBuilder:
			b.Append(true)
			for range rng.IntN(3) {
				b.KeyBuilder().(*array.StringBuilder).Append(word())
				add(b.ItemBuilder())
			}
		case *array.FixedSizeListBuilder:
			b.Append(true)
			for range 3 {
				add(b.ValueBuilder())
			}
		}
	}
	for range rows {
		for _, b := range bld.Fields() {
			add(b)
		}
	}
	return bld.NewRecord()
}

// The rows are the same whatever the size of batches, for all rows and for some, and a
// batch of several rows takes at most about twice that size, although dictionaries make
// rows larger than the footer says.
func TestBatchesOfAnySize(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 26))
	const rows = 1500
	cut := 0
	for try := range cases.Count(2, 6, 60) {
		rec := mixed(rng, rows)
		p := open(t, paged(t, written(t, rec, 1000, WriterOptions{}), []int{500, 20_000, 0}[try%3]), nil)
		var picked []uint32
		var places []int
		for i := range rows {
			if rng.IntN(3) == 0 {
				picked, places = append(picked, uint32(i)), append(places, i)
			}
		}
		some, err := take.Record(memory.DefaultAllocator, rec, places)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int64{1, 3000, 100_000, 1 << 20, 1 << 40} {
			what := fmt.Sprintf("try %d, batches of %d bytes", try, size)
			all, sizes, err := gathered(t, p.InBatches(size).Read(t.Context(), 0, nil))
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			equalRecords(t, what, all, rec)
			for i, v := range all.Column(0).(*array.Int64).Int64Values() {
				if v != 0 && all.Column(0).IsNull(i) {
					t.Fatalf("%s: row %d: %d is left where there is a NULL", what, i, v)
				}
			}
			if size == 1 && len(sizes) != rows {
				t.Errorf("%s: %d records", what, len(sizes))
			}
			for _, n := range sizes {
				if n > 2*size+31_000 { // a row has up to three long words
					t.Errorf("%s: a record of %d bytes", what, n)
				}
				if n > size {
					cut++
				}
			}
			if all, _, err = gathered(t, p.InBatches(size).ReadRows(t.Context(), 0, nil, picked)); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			equalRecords(t, what+", some rows", all, some)
		}
	}
	if cut == 0 {
		t.Error("no batch was larger than was expected")
	}
}

// paged returns a file of one row group with pages of the given size.
func paged(t testing.TB, b []byte, size int) []byte {
	f := open(t, b, nil).f
	var out bytes.Buffer
	w, err := parquet.NewWriter(&out, f.Metadata.Schema, f.Metadata.ColumnOrders, parquet.WriterOptions{PageBytes: size, KeyValue: f.Metadata.KeyValueMetadata})
	if err != nil {
		t.Fatal(err)
	}
	var chunks []*parquet.EncodedChunk
	for l := range f.Leaves {
		to, from := w.Chunk(l), f.Chunk(0, l)
		p, err := from.Next(t.Context())
		for ; err == nil; p, err = from.Next(t.Context()) {
			if err := to.Add(p, from.Dictionary()); err != nil {
				t.Fatal(err)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		e, err := to.Finish()
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, e)
		from.Close()
	}
	if err := w.RowGroup(f.RowGroups[0].Rows, chunks); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// stringsOf returns a record of one column of strings.
func stringsOf(values iter.Seq[string]) arrow.Record {
	bld := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String}}, nil))
	defer bld.Release()
	for v := range values {
		bld.Field(0).(*array.StringBuilder).Append(v)
	}
	return bld.NewRecord()
}

// A row that is larger than a batch gets a record of its own, and those around it do not
// shrink.
func TestWideRowAmongOthers(t *testing.T) {
	const rows, wide, size = 30_000, 12_345, 100_000
	rec := stringsOf(func(yield func(string) bool) {
		for i := range rows {
			v := fmt.Sprint("row ", i)
			if i == wide {
				v = strings.Repeat("wide", 1_000_000)
			}
			if !yield(v) {
				return
			}
		}
	})
	p := open(t, written(t, rec, rows, WriterOptions{}), nil)
	got, sizes, err := gathered(t, p.InBatches(size).Read(t.Context(), 0, nil))
	if err != nil {
		t.Fatal(err)
	}
	equalRecords(t, "all", got, rec)
	large := 0
	for _, n := range sizes {
		if n > 2*size {
			large++
		}
	}
	if large != 1 || len(sizes) > 60 {
		t.Errorf("%d records, %d of them large", len(sizes), large)
	}
}

// Batches have the wanted size even if pages are larger than the footer says.
func TestPagesLargerThanTheFooterSays(t *testing.T) {
	const rows, size = 20_000, 1 << 20
	rng := rand.New(rand.NewPCG(1, 1))
	rec := stringsOf(func(yield func(string) bool) {
		for range rows {
			if !yield(strings.Repeat(string(rune('a'+rng.IntN(26))), 500+rng.IntN(1000))) {
				return
			}
		}
	})
	p := open(t, written(t, rec, rows, WriterOptions{}), nil)
	p.f.Metadata.RowGroups[0].Columns[0].MetaData.TotalUncompressedSize = 1
	got, sizes, err := gathered(t, p.InBatches(size).Read(t.Context(), 0, nil))
	if err != nil {
		t.Fatal(err)
	}
	equalRecords(t, "all", got, rec)
	for _, n := range sizes {
		if n > 2*size {
			t.Errorf("a record of %d bytes", n)
		}
	}
	if len(sizes) < 10 || len(sizes) > 60 {
		t.Errorf("%d records", len(sizes))
	}
}

// counting counts the bytes that are allocated at once.
type counting struct {
	memory.Allocator
	most int
}

func (c *counting) Allocate(n int) []byte {
	c.most = max(c.most, n)
	return c.Allocator.Allocate(n)
}

func (c *counting) Reallocate(n int, b []byte) []byte {
	c.most = max(c.most, n)
	return c.Allocator.Reallocate(n, b)
}

// NULLs of wide values take no bytes in a file, so the footer says nothing of their size.
// No memory is taken for them before they are counted.
func TestWideNulls(t *testing.T) {
	const rows, width = 1000, 100_000
	bld := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "f", Type: &arrow.FixedSizeBinaryType{ByteWidth: width}, Nullable: true}}, nil))
	bld.Field(0).AppendNulls(rows)
	rec := bld.NewRecord()
	mem := &counting{Allocator: memory.DefaultAllocator}
	p := open(t, written(t, rec, rows, WriterOptions{RowGroupRows: rows, RowGroupBytes: 1 << 40}), mem)
	if p.NumGroups() != 1 {
		t.Fatalf("%d row groups", p.NumGroups())
	}
	got := int64(0)
	for r, err := range p.InBatches(1<<20).Read(t.Context(), 0, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Column(0).NullN() != int(r.NumRows()) {
			t.Errorf("%d NULLs in %d rows", r.Column(0).NullN(), r.NumRows())
		}
		got += r.NumRows()
	}
	if got != rows || mem.most > 5<<20 {
		t.Errorf("%d rows, at most %d bytes at once", got, mem.most)
	}
}

// An error in a later page comes after the records of the pages before it, which are
// right, and ends the sequence.
func TestErrorInLaterPage(t *testing.T) {
	const rows = 200_000
	bld := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil))
	for i := range rows {
		bld.Field(0).(*array.Int64Builder).Append(int64(i) * 1_000_003)
	}
	rec := bld.NewRecord()
	b := paged(t, written(t, rec, rows, WriterOptions{}), 100_000)
	p := open(t, b, nil)
	md := p.f.Metadata.RowGroups[0].Columns[0].MetaData
	end := md.DataPageOffset + md.TotalCompressedSize
	if d := md.DictionaryPageOffset; d > 0 {
		end = d + md.TotalCompressedSize
	}
	for i := range int64(50) {
		b[end-1-i] ^= 0x55
	}
	p = open(t, b, nil)
	got, sizes, err := gathered(t, p.Read(t.Context(), 0, nil))
	if !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(fmt.Sprint(err), "row group 1: column n: page ") {
		t.Errorf("the error is %v", err)
	}
	if len(sizes) == 0 || got.NumRows() >= rows {
		t.Fatalf("%d records before the error", len(sizes))
	}
	part := rec.NewSlice(0, got.NumRows())
	equalRecords(t, "before the error", got, part)
}

// Keys and values of a map that repeat differently are an error before a record has such
// rows.
func TestMapsWhosePartsDisagree(t *testing.T) {
	const rows, bad = 100_000, 80_000
	sc := arrow.NewSchema([]arrow.Field{{Name: "m", Type: arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32)}}, nil)
	bld := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	model := open(t, written(t, bld.NewRecord(), 1, WriterOptions{}), nil)
	var out bytes.Buffer
	w, err := parquet.NewWriter(&out, model.f.Metadata.Schema, nil, parquet.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var chunks []*parquet.EncodedChunk
	for l := range model.f.Leaves {
		var p parquet.Page
		for row := range rows {
			n := 1
			if row == bad+l { // the same number in both
				n = 2
			}
			for i := range n {
				p.Rep = append(p.Rep, uint8(min(i, 1)))
				p.Def = append(p.Def, uint8(model.f.Leaves[l].MaxDef))
				p.Plain = append(p.Plain, byte(row), byte(row>>8), byte(row>>16), byte(i))
			}
		}
		p.Values, p.Rows, p.NonNull = len(p.Def), rows, len(p.Def)
		c := w.Chunk(l)
		if err := c.Add(&p, nil); err != nil {
			t.Fatal(err)
		}
		e, err := c.Finish()
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, e)
	}
	if err := w.RowGroup(rows, chunks); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p := open(t, out.Bytes(), nil)
	got, _, err := gathered(t, p.Read(context.Background(), 0, nil))
	if !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(fmt.Sprint(err), "repeats otherwise") {
		t.Errorf("the error is %v", err)
	}
	if got == nil || got.NumRows() == 0 || got.NumRows() > bad {
		t.Errorf("%v rows before the error", got)
	}
}
