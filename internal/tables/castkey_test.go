package tables

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/compute"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// castSamples has the types between which keys are cast, with values in the notation of builders.
var castSamples = []struct {
	types  []arrow.DataType
	values string // separated by spaces
}{
	{[]arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	}, "0 1 -1 127 128 -128 -129 255 256 65535 -32768 2147483648 -2147483648 9223372036854775807 -9223372036854775808 18446744073709551615"},
	{[]arrow.DataType{arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64}, "0 -0 1 -1.5 0.1 65504 1e30 1e300 NaN +Inf -Inf 5e-324 1e-45 6e-8"},
	{[]arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary}, "YWI= YQ== AAA= /w== w7w="},
	{[]arrow.DataType{arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64}, "1970-01-01 1969-12-31 2024-02-29 0001-01-01 9999-12-31"},
	{[]arrow.DataType{arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns}, "00:00:00 23:59:59 12:00:00.001 12:00:00.000001 12:00:00.000000001"},
	{[]arrow.DataType{
		&arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Millisecond}, &arrow.TimestampType{Unit: arrow.Microsecond}, &arrow.TimestampType{Unit: arrow.Nanosecond},
	}, "1970-01-01T00:00:00 1969-12-31T23:59:59 2024-02-29T12:00:00.001 1969-12-31T23:59:59.999999 2024-02-29T12:00:00.000000001 2500-01-01T00:00:00"},
	{[]arrow.DataType{
		&arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"},
	}, "1970-01-01T00:00:00Z 1969-12-31T23:59:59.5Z 2024-02-29T12:00:00.001Z"},
	{[]arrow.DataType{arrow.FixedWidthTypes.Boolean}, "true false"},
	{[]arrow.DataType{
		&arrow.Decimal128Type{Precision: 5, Scale: 2}, &arrow.Decimal128Type{Precision: 38, Scale: 0}, &arrow.Decimal128Type{Precision: 38, Scale: 10}, &arrow.Decimal256Type{Precision: 76, Scale: 20},
	}, "0 1 -1.5 0.25 999.99 -999.99 100000"},
}

// TestCastKey: keys become those that Arrow's own casts make where these keep all of them, with the
// zeros' signs; what has no equal is refused.
func TestCastKey(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(1, 2))
	same, refused := 0, 0
	for _, c := range castSamples {
		texts := strings.Fields(c.values)
		for _, from := range c.types {
			for _, to := range c.types {
				for round := range 40 {
					b := array.NewBuilder(mem, from)
					for range r.IntN(6) {
						if err := b.AppendValueFromString(texts[r.IntN(len(texts))]); err != nil || round%4 == 0 {
							b.AppendNull()
						}
					}
					a := b.NewArray()
					b.Release()
					want := arrowCast(mem, a, to)
					got, err := CastKey(mem, a, arrow.Field{Name: "k", Type: to})
					switch {
					case err == nil && want == nil:
						if !sameKeys(a, got) {
							t.Errorf("%s to %s: %v became %v", from, to, a, got)
						}
					case err != nil && want != nil:
						t.Errorf("%s to %s: %v: %v, want %v", from, to, a, err, want)
					case err != nil:
						refused++
					case !arrow.TypeEqual(got.DataType(), want.DataType()) || got.String() != want.String(): // with the signs of zeros
						t.Errorf("%s to %s: %v became %v, want %v", from, to, a, got, want)
					default:
						same++
					}
					for _, x := range []arrow.Array{a, got, want} {
						if x != nil {
							x.Release()
						}
					}
				}
			}
		}
	}
	if same < 500 || refused < 100 {
		t.Errorf("%d as Arrow's, %d refused", same, refused)
	}
	// Classes that meet in a join have no values in common as columns.
	for _, c := range [][2]arrow.DataType{{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64}, {arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String}, {arrow.BinaryTypes.String, &arrow.FixedSizeBinaryType{ByteWidth: 1}}} {
		b := array.NewBuilder(mem, c[0])
		if err := b.AppendValueFromString("1"); err != nil {
			t.Fatal(err)
		}
		a := b.NewArray()
		b.Release()
		if _, err := CastKey(mem, a, arrow.Field{Name: "k", Type: c[1]}); err == nil {
			t.Errorf("%s to %s: no error", c[0], c[1])
		}
		a.Release()
	}
	// NULLs alone are of every type, and a dictionary has the keys of its values.
	none := array.NewNull(3)
	defer none.Release()
	if got, err := CastKey(mem, none, arrow.Field{Name: "k", Type: arrow.BinaryTypes.String}); err != nil || got.NullN() != 3 {
		t.Error(err)
	} else {
		got.Release()
	}
	b := array.NewDictionaryBuilder(mem, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Int8}).(*array.Int8DictionaryBuilder)
	defer b.Release()
	for _, v := range []int8{-5, 7, -5} {
		if err := b.Append(v); err != nil {
			t.Fatal(err)
		}
	}
	d := b.NewArray()
	defer d.Release()
	got, err := CastKey(mem, d, arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int64})
	if err != nil || got.String() != "[-5 7 -5]" {
		t.Errorf("%v, %v", got, err)
	}
	got.Release()
}

// arrowCast is Arrow's safe cast, nil if it fails or changes a key.
func arrowCast(mem memory.Allocator, a arrow.Array, to arrow.DataType) arrow.Array {
	if arrow.TypeEqual(a.DataType(), to) {
		a.Retain()
		return a
	}
	out, err := compute.CastArray(compute.WithAllocator(context.Background(), mem), a, compute.SafeCastOptions(to))
	if err != nil {
		return nil
	}
	if !sameKeys(a, out) {
		out.Release()
		return nil
	}
	return out
}
