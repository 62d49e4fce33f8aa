package arrowipc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/decimal256"
	"github.com/apache/arrow/go/v15/arrow/float16"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

func field1(name string, dt arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: dt, Nullable: true}
}

// wideFields returns one column of each type whose slices can be written.
func wideFields() []arrow.Field {
	inner := arrow.StructOf(field1("a", arrow.PrimitiveTypes.Int32), field1("b", arrow.BinaryTypes.String))
	return []arrow.Field{
		field1("i8", arrow.PrimitiveTypes.Int8), field1("u16", arrow.PrimitiveTypes.Uint16),
		field1("i32", arrow.PrimitiveTypes.Int32), {Name: "i64", Type: arrow.PrimitiveTypes.Int64},
		field1("f16", arrow.FixedWidthTypes.Float16), field1("f64", arrow.PrimitiveTypes.Float64),
		field1("bool", arrow.FixedWidthTypes.Boolean), field1("utf8", arrow.BinaryTypes.String),
		field1("large", arrow.BinaryTypes.LargeString), field1("bin", arrow.BinaryTypes.Binary),
		field1("fsb", &arrow.FixedSizeBinaryType{ByteWidth: 5}), field1("date", arrow.FixedWidthTypes.Date32),
		field1("ts", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}),
		field1("dec", &arrow.Decimal128Type{Precision: 20, Scale: 3}), field1("dec256", &arrow.Decimal256Type{Precision: 50, Scale: 3}),
		field1("list", arrow.ListOf(arrow.PrimitiveTypes.Int64)), field1("biglist", arrow.LargeListOf(inner)),
		field1("struct", inner), field1("fsl", arrow.FixedSizeListOf(3, arrow.BinaryTypes.String)),
		field1("map", arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32)), field1("null", arrow.Null),
	}
}

// fill appends n random values, with NULLs where the field may have them.
func fill(r *rand.Rand, b array.Builder, n int, nullable bool) {
	for range n {
		if nullable && r.IntN(5) == 0 {
			b.AppendNull()
			continue
		}
		word := fmt.Sprint("w", r.IntN(1000), "…"[:3*r.IntN(2)])
		switch b := b.(type) {
		case *array.Int8Builder:
			b.Append(int8(r.Int()))
		case *array.Uint16Builder:
			b.Append(uint16(r.Int()))
		case *array.Int32Builder:
			b.Append(int32(r.Int()))
		case *array.Int64Builder:
			b.Append(r.Int64())
		case *array.Float16Builder:
			b.Append(float16.New(r.Float32()))
		case *array.Float64Builder:
			b.Append(r.NormFloat64())
		case *array.BooleanBuilder:
			b.Append(r.IntN(2) == 0)
		case *array.StringBuilder:
			b.Append(word)
		case *array.LargeStringBuilder:
			b.Append(word)
		case *array.BinaryBuilder:
			b.Append([]byte(word))
		case *array.StringViewBuilder:
			b.Append(word + "longer than the view itself"[:27*r.IntN(2)])
		case *array.FixedSizeBinaryBuilder:
			b.Append([]byte("12345"))
		case *array.Date32Builder:
			b.Append(arrow.Date32(r.IntN(20000)))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(r.Int64N(1e15)))
		case *array.Decimal128Builder:
			b.Append(decimal128.FromI64(r.Int64()))
		case *array.Decimal256Builder:
			b.Append(decimal256.FromI64(r.Int64()))
		case *array.FixedSizeListBuilder:
			b.Append(true)
			fill(r, b.ValueBuilder(), 3, true)
		case *array.MapBuilder:
			b.Append(true)
			k := r.IntN(3)
			fill(r, b.KeyBuilder(), k, false)
			fill(r, b.ItemBuilder(), k, true)
		case *array.StructBuilder:
			b.Append(true)
			for i := range b.NumField() {
				fill(r, b.FieldBuilder(i), 1, true)
			}
		case *array.BinaryDictionaryBuilder:
			if err := b.AppendString(fmt.Sprint("d", r.IntN(7))); err != nil {
				panic(err)
			}
		case *array.RunEndEncodedBuilder:
			b.Append(1)
			fill(r, b.ValueBuilder(), 1, true)
		case array.UnionBuilder:
			i := r.IntN(len(b.Type().(arrow.UnionType).Fields()))
			b.Append(b.Type().(arrow.UnionType).TypeCodes()[i])
			fill(r, b.Child(i), 1, true)
			if b.Mode() == arrow.SparseMode {
				b.Child(1 - i).AppendNull()
			}
		case array.ListLikeBuilder:
			b.(interface{ Append(bool) }).Append(true)
			fill(r, b.ValueBuilder(), r.IntN(4), true)
		case *array.NullBuilder:
			b.AppendNull()
		default:
			panic(fmt.Sprintf("%T", b))
		}
	}
}

// sample returns a record of n random rows.
func sample(r *rand.Rand, mem memory.Allocator, s *arrow.Schema, n int) arrow.Record {
	b := array.NewRecordBuilder(mem, s)
	defer b.Release()
	for i, f := range s.Fields() {
		fill(r, b.Field(i), n, f.Nullable)
	}
	return b.NewRecord()
}

// oddFields returns types with special layouts.
func oddFields() []arrow.Field {
	kids := []arrow.Field{field1("x", arrow.PrimitiveTypes.Int32), field1("y", arrow.BinaryTypes.String)}
	codes := []arrow.UnionTypeCode{5, 2}
	return []arrow.Field{
		field1("dict", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}),
		field1("view", arrow.BinaryTypes.StringView),
		{Name: "ree", Type: arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String)},
		{Name: "sparse", Type: arrow.SparseUnionOf(kids, codes)},
		{Name: "dense", Type: arrow.DenseUnionOf(kids, codes)},
	}
}

// encode writes records that all have the schema of the first one.
func encode(t testing.TB, stream bool, opts WriterOptions, recs ...arrow.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	open := NewFileWriter
	if stream {
		open = NewStreamWriter
	}
	w, err := open(&out, recs[0].Schema(), opts)
	if err != nil {
		t.Fatal(err)
	}
	var rows int64
	for _, rec := range recs {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		rows += rec.NumRows()
	}
	gotRows, gotBytes, err := w.Close()
	if err != nil || gotRows != rows || gotBytes != int64(out.Len()) {
		t.Fatalf("closed with %d rows, %d bytes, %v; want %d, %d", gotRows, gotBytes, err, rows, out.Len())
	}
	return out.Bytes()
}
