package arrowparquet

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/bloomjoin/bloomjoin/fault"
	decimals "github.com/bloomjoin/bloomjoin/internal/decimal"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

func oneColumn(dt arrow.DataType) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: "c", Type: dt, Nullable: true}}, nil)
}

// Types that are read back as others, with the equivalent values.
func TestConvertedTypes(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for name, c := range map[string]struct {
		from, to   arrow.DataType
		json, want string
	}{
		"seconds": {arrow.FixedWidthTypes.Timestamp_s, arrow.FixedWidthTypes.Timestamp_ms,
			`[{"c":"2024-01-01 00:00:01"},{"c":null}]`, `["2024-01-01 00:00:01",null]`},
		"time of seconds": {arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, `[{"c":"01:02:03"}]`, `["01:02:03"]`},
		"date64": {arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Date32,
			`[{"c":"1969-12-31"},{"c":"2024-02-29"}]`, `["1969-12-31","2024-02-29"]`},
		"dictionary": {dict, arrow.BinaryTypes.String, `[{"c":"a"},{"c":null},{"c":"b"},{"c":"a"}]`, `["a",null,"b","a"]`},
		"fixed-size list": {arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8),
			`[{"c":[1,null]},{"c":null},{"c":[3,4]}]`, `[[1,null],null,[3,4]]`},
	} {
		t.Run(name, func(t *testing.T) {
			mem := checked(t)
			rec := record(t, mem, oneColumn(c.from), c.json)
			defer rec.Release()
			p := open(t, written(t, rec, 2, WriterOptions{}), mem)
			tbl := all(t, p, nil)
			defer tbl.Release()
			want, _, err := array.FromJSON(mem, c.to, strings.NewReader(c.want))
			if err != nil {
				t.Fatal(err)
			}
			defer want.Release()
			if !same(tbl.Column(0), want, mem) {
				t.Errorf("got %v, want %v", tbl.Column(0), want)
			}
		})
	}
}

func TestDecimals(t *testing.T) {
	for precision := int32(1); precision <= 76; precision++ {
		mem := checked(t)
		dt := arrow.DataType(&arrow.Decimal256Type{Precision: precision})
		if precision <= 38 {
			dt = &arrow.Decimal128Type{Precision: precision}
		}
		nines := strings.Repeat("9", int(precision))
		rec := decimalRecord(mem, dt, nines, "-"+nines, "-1", "", "0")
		p := open(t, written(t, rec, 5, WriterOptions{}), mem)
		tbl := all(t, p, nil)
		if !arrow.TypeEqual(p.Schema().Field(0).Type, dt) || !same(tbl.Column(0), rec.Column(0), mem) {
			t.Errorf("precision %d: %v", precision, tbl.Column(0))
		}
		tbl.Release()
		rec.Release()
	}
}

// decimalRecord returns a record with a column c of unscaled values; an empty text
// is NULL.
func decimalRecord(mem memory.Allocator, dt arrow.DataType, values ...string) arrow.Record {
	b := array.NewRecordBuilder(mem, oneColumn(dt))
	defer b.Release()
	for _, s := range values {
		v, ok := new(big.Int).SetString(s, 10)
		switch c := b.Field(0).(type) {
		case *array.Decimal128Builder:
			if ok {
				c.Append(decimals.From128(v))
				continue
			}
		case *array.Decimal256Builder:
			if ok {
				c.Append(decimals.From256(v))
				continue
			}
		}
		b.Field(0).AppendNull()
	}
	return b.NewRecord()
}

func TestDecimalThatDoesNotFit(t *testing.T) {
	b := array.NewDecimal128Builder(memory.NewGoAllocator(), &arrow.Decimal128Type{Precision: 2})
	b.Append(decimal(100000))
	arr := b.NewArray()
	rec := array.NewRecord(oneColumn(arr.DataType()), []arrow.Array{arr}, 1)
	w, err := NewParquetWriter(io.Discard, rec.Schema(), WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Write(rec)
	if _, _, err := w.Close(); err == nil || !strings.Contains(err.Error(), "column c") {
		t.Errorf("got %v", err)
	}
}

func TestUnwritableTypes(t *testing.T) {
	annotated := oneColumn(arrow.BinaryTypes.Binary).Field(0)
	annotated.Metadata = arrow.NewMetadata([]string{logicalKey}, []string{"HIEROGLYPH"})
	inner := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.FixedWidthTypes.MonthInterval, Nullable: true})
	for name, f := range map[string]arrow.Field{
		"interval":        {Name: "c", Type: arrow.FixedWidthTypes.MonthInterval},
		"in a struct":     {Name: "c", Type: inner},
		"empty struct":    {Name: "c", Type: arrow.StructOf()},
		"required null":   {Name: "c", Type: arrow.Null},
		"negative scale":  {Name: "c", Type: &arrow.Decimal128Type{Precision: 5, Scale: -1}},
		"no bytes":        {Name: "c", Type: &arrow.FixedSizeBinaryType{}},
		"union":           {Name: "c", Type: arrow.SparseUnionOf([]arrow.Field{annotated}, []int8{0})},
		"lost annotation": annotated,
	} {
		_, err := NewParquetWriter(io.Discard, arrow.NewSchema([]arrow.Field{f}, nil), WriterOptions{})
		if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "column c") || !strings.Contains(err.Error(), "unsupported") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewParquetWriter(io.Discard, oneColumn(arrow.PrimitiveTypes.Int8), WriterOptions{Codec: "lzo"}); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("codec lzo: %v", err)
	}
}

func TestEmptyTable(t *testing.T) {
	mem := checked(t)
	rec := record(t, mem, everything(), "[]")
	defer rec.Release()
	p := open(t, written(t, rec, 1, WriterOptions{}), mem)
	if p.NumGroups() != 0 || p.Schema().NumFields() != everything().NumFields() {
		t.Errorf("%d row groups, schema %v", p.NumGroups(), p.Schema())
	}
}

func TestWrongRecords(t *testing.T) {
	mem := checked(t)
	w, err := NewParquetWriter(io.Discard, oneColumn(arrow.PrimitiveTypes.Int64), WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rec := record(t, mem, oneColumn(arrow.PrimitiveTypes.Int32), `[{"c":1}]`)
	defer rec.Release()
	if err := w.Write(rec); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("another type: %v", err)
	}
	if _, _, err := w.Close(); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("the error did not stick: %v", err)
	}
	required := arrow.NewSchema([]arrow.Field{{Name: "c", Type: arrow.PrimitiveTypes.Int32}}, nil)
	if w, err = NewParquetWriter(io.Discard, required, WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	null := record(t, mem, oneColumn(arrow.PrimitiveTypes.Int32), `[{"c":null}]`)
	defer null.Release()
	w.Write(null)
	if _, _, err := w.Close(); err == nil {
		t.Error("a NULL went into a required column")
	}
}

// failing fails after n bytes, or writes short without an error.
type failing struct {
	n     int
	short bool
}

var errDisk = errors.New("disk full")

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		if f.short {
			return 0, nil
		}
		return 0, errDisk
	}
	return len(p), nil
}

// A failed write is returned by Close, wherever it happens.
func TestWriteErrorsStick(t *testing.T) {
	mem := checked(t)
	rec := record(t, mem, everything(), rowsJSON(40))
	defer rec.Release()
	opts := WriterOptions{RowGroupRows: 10}
	size := len(written(t, rec, 40, opts))
	for n := 0; n < size; n += 1 + size/97 {
		for _, short := range []bool{false, true} {
			want := errDisk
			if short {
				want = io.ErrShortWrite
			}
			w, err := NewParquetWriter(&failing{n, short}, rec.Schema(), opts)
			if err != nil {
				if n >= 4 {
					t.Fatalf("after %d bytes: %v", n, err)
				}
				if !errors.Is(err, want) {
					t.Errorf("after %d bytes: %v", n, err)
				}
				continue // during the magic number
			}
			w.Write(rec)
			if _, _, err := w.Close(); !errors.Is(err, want) {
				t.Errorf("after %d of %d bytes: %v", n, size, err)
			}
		}
	}
}

// Statistics are present where they are valid and have no distinct counts.
func TestStatistics(t *testing.T) {
	mem := checked(t)
	rec := record(t, mem, everything(), rowsJSON(40))
	defer rec.Release()
	b := written(t, rec, 40, WriterOptions{})
	f, err := parquet.Open(nil, bytes.NewReader(b), int64(len(b)), "x")
	if err != nil {
		t.Fatal(err)
	}
	without := map[string]bool{"null": true, "st.b.list.item": true} // they have no values
	for i, c := range f.Metadata.RowGroups[0].Columns {
		st, name := c.MetaData.Statistics, f.Leaves[i].Dotted
		if st.DistinctCount.Valid {
			t.Errorf("%s has a distinct count", name)
		}
		if has := st.MinValue.Valid && st.MaxValue.Valid; has == without[name] {
			t.Errorf("%s has statistics: %v", name, has)
		}
		if c.MetaData.NumValues < 40 {
			t.Errorf("%s has %d values", name, c.MetaData.NumValues)
		}
	}
	if f.Metadata.CreatedBy != "bloomjoin" || len(f.Metadata.ColumnOrders) != len(f.Leaves) {
		t.Errorf("created by %q, %d column orders", f.Metadata.CreatedBy, len(f.Metadata.ColumnOrders))
	}
}

// The stored Arrow schema is only a hint: an invalid one changes nothing.
func TestHostileStoredSchema(t *testing.T) {
	sc := oneColumn(&arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Asia/Tokyo"})
	good, err := EncodeSchema(sc)
	if err != nil {
		t.Fatal(err)
	}
	if s := parseStored(good); s == nil {
		t.Fatal("the stored schema is malformed")
	} else if _, typ := s.fields[0].Type(); string(typ.Bytes(6)) != "Asia/Tokyo" {
		t.Fatalf("the stored schema is not read: %+v", s)
	}
	for _, bad := range []string{"", "!", "AAAA", "/////w==", "/////3gAAAAQAAAA", strings.Repeat("/", 400), good[:len(good)/2]} {
		if parseStored(bad) != nil {
			t.Errorf("%q was taken for a schema", bad)
		}
	}
}

// sharing returns a stored schema whose metadata has the same pair of a key and a
// value, of the given size, many times.
func sharing(times, bytes int) string {
	b := flatbuffers.NewBuilder(0)
	value := b.CreateString(strings.Repeat("v", bytes))
	b.StartObject(2)
	b.PrependUOffsetTSlot(1, value, 0)
	pair := b.EndObject()
	b.StartVector(4, times, 4)
	for range times {
		b.PrependUOffsetT(pair)
	}
	pairs := b.EndVector(times)
	b.StartObject(3)
	b.PrependUOffsetTSlot(2, pairs, 0)
	schema := b.EndObject()
	b.StartObject(3)
	b.PrependByteSlot(1, 1, 0)
	b.PrependUOffsetTSlot(2, schema, 0)
	b.Finish(b.EndObject())
	message := b.FinishedBytes()
	out := binary.LittleEndian.AppendUint32([]byte{0xff, 0xff, 0xff, 0xff}, uint32(len(message)))
	return base64.StdEncoding.EncodeToString(append(out, message...))
}

// Shared parts of a stored schema do not take memory for each reference.
func TestStoredSchemaThatExpands(t *testing.T) {
	if s := parseStored(sharing(2, 1000)); s == nil || len(s.metadata) != 2 || len(s.metadata[1].Value) != 1000 {
		t.Errorf("a pair in two places: %+v", s)
	}
	if parseStored(sharing(100, 1<<20)) != nil {
		t.Error("1 MiB became 100")
	}
}

func FuzzStoredSchema(f *testing.F) {
	good, err := EncodeSchema(everything())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, s string) { parseStored(s) })
}
