package arrowparquet_test

import (
	"errors"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/decimal256"
	"github.com/apache/arrow/go/v15/arrow/float16"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/arrowtest"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// heldTypes are types of all kinds, also ones that Parquet does not have or stores with other
// values.
func heldTypes() []arrow.DataType {
	p, f, b := arrow.PrimitiveTypes, arrow.FixedWidthTypes, arrow.BinaryTypes
	flat := []arrow.DataType{
		p.Int8, p.Int16, p.Int32, p.Int64, p.Uint8, p.Uint16, p.Uint32, p.Uint64, p.Float32, p.Float64, f.Float16, f.Boolean,
		f.Date32, f.Date64, f.Time32s, f.Time32ms, f.Time64us, f.Time64ns, f.Timestamp_s, f.Timestamp_ns, &arrow.TimestampType{Unit: arrow.Second},
		f.Duration_s, f.Duration_ns, f.MonthInterval, f.DayTimeInterval, f.MonthDayNanoInterval, arrow.Null,
		b.String, b.Binary, b.LargeString, b.LargeBinary, b.StringView, b.BinaryView,
		&arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.Decimal128Type{Precision: 4, Scale: 9}, &arrow.Decimal256Type{Precision: 60, Scale: -2},
		arrowtest.ExtensionOf(&arrow.FixedSizeBinaryType{ByteWidth: 16}),
	}
	all := flat
	for i, t := range flat {
		u := flat[(i+5)%len(flat)]
		all = append(all, arrow.ListOf(t), arrow.LargeListOf(t), arrow.FixedSizeListOf(2, t), arrow.MapOf(p.Int16, t),
			arrow.StructOf(arrow.Field{Name: "a", Type: t}, arrow.Field{Name: "b", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "c", Type: u, Nullable: true})), Nullable: true}),
			arrow.ListOf(arrow.ListOf(arrow.MapOf(b.String, u))))
	}
	return append(all, arrowtest.ExtensionOf(arrow.ListOf(p.Int64)), arrow.StructOf(), arrow.ListOf(arrow.StructOf()))
}

// appendRandom appends a random value, or NULL.
func appendRandom(b array.Builder, rng *rand.Rand, nulls float64) {
	if rng.Float64() < nulls {
		b.AppendNull()
		return
	}
	raw := make([]byte, 16)
	for i := range raw {
		raw[i] = byte(rng.Uint32())
	}
	n := rng.Int64()
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(n%2 == 0)
	case *array.Int8Builder:
		b.Append(int8(n))
	case *array.Int16Builder:
		b.Append(int16(n))
	case *array.Int32Builder:
		b.Append(int32(n))
	case *array.Int64Builder:
		b.Append(-n)
	case *array.Uint8Builder:
		b.Append(uint8(n))
	case *array.Uint16Builder:
		b.Append(uint16(n))
	case *array.Uint32Builder:
		b.Append(uint32(n))
	case *array.Uint64Builder:
		b.Append(uint64(n) << 1)
	case *array.Float16Builder:
		b.Append(float16.New(float32(int16(n))))
	case *array.Float32Builder:
		b.Append(float32(n))
	case *array.Float64Builder:
		b.Append(float64(n))
	case *array.Date32Builder:
		b.Append(arrow.Date32(n))
	case *array.Date64Builder:
		b.Append(arrow.Date64(n)) // not a whole day
	case *array.Time32Builder:
		b.Append(arrow.Time32(n))
	case *array.Time64Builder:
		b.Append(arrow.Time64(n))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(n))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(n))
	case *array.MonthIntervalBuilder:
		b.Append(arrow.MonthInterval(n))
	case *array.DayTimeIntervalBuilder:
		b.Append(arrow.DayTimeInterval{Days: int32(n), Milliseconds: int32(n >> 32)})
	case *array.MonthDayNanoIntervalBuilder:
		b.Append(arrow.MonthDayNanoInterval{Months: int32(n), Days: int32(n >> 32), Nanoseconds: -n})
	case *array.NullBuilder:
		b.AppendNull()
	case *array.StringBuilder:
		b.Append(string(raw[:n%17]))
	case *array.LargeStringBuilder:
		b.Append(string(raw[:n%17]))
	case *array.StringViewBuilder:
		b.Append(string(raw[:n%17]))
	case *array.BinaryViewBuilder:
		b.Append(raw[:n%17])
	case *array.BinaryBuilder: // large binary, too
		b.Append(raw[:n%17])
	case *array.FixedSizeBinaryBuilder:
		b.Append(raw[:b.Type().(*arrow.FixedSizeBinaryType).ByteWidth])
	case *array.Decimal128Builder:
		b.Append(decimal128.New(-n, uint64(n)))
	case *array.Decimal256Builder:
		b.Append(decimal256.New(uint64(n), 1, 2, uint64(n)<<1))
	case *array.ExtensionBuilder:
		appendRandom(b.StorageBuilder(), rng, 0)
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			appendRandom(b.FieldBuilder(i), rng, nulls)
		}
	case *array.MapBuilder:
		b.Append(true)
		for range n % 4 {
			appendRandom(b.KeyBuilder(), rng, 0)
			appendRandom(b.ItemBuilder(), rng, nulls)
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for range b.Type().(*arrow.FixedSizeListType).Len() {
			appendRandom(b.ValueBuilder(), rng, nulls)
		}
	case array.ListLikeBuilder:
		b.Append(true)
		for range n % 4 {
			appendRandom(b.ValueBuilder(), rng, nulls)
		}
	default:
		panic(b.Type())
	}
}

// TestHolder: an array that a holder keeps becomes the same array again: of every type, with
// NULLs at every depth, whole or a slice, in any number of pages. A missing row becomes NULL.
func TestHolder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i, dt := range heldTypes() {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		b := array.NewBuilder(mem, dt)
		for range rng.IntN(90) {
			appendRandom(b, rng, []float64{0, .3, 1}[i%3])
		}
		whole := b.NewArray()
		b.Release()
		lo := rng.Int64N(int64(whole.Len()) + 1)
		want := array.NewSlice(whole, lo, lo+rng.Int64N(int64(whole.Len())-lo+1))
		sc := arrow.NewSchema([]arrow.Field{{Name: "first", Type: arrow.ListOf(dt)}, {Name: "x", Type: dt}}, nil) // neither may have NULLs
		h, err := arrowparquet.NewHolder(sc)
		if err != nil {
			t.Fatalf("%s: %v", dt, err)
		}
		leaves, err := meta.LeavesOf(h.Schema())
		if err != nil {
			t.Fatal(err)
		}
		before := len(leaves) / 2
		all, err := h.Assemblies()
		if err != nil {
			t.Fatal(err)
		}
		a := all[1]
		lb := array.NewListBuilder(mem, dt)
		lb.AppendNulls(want.Len())
		first := lb.NewArray()
		rec := array.NewRecord(sc, []arrow.Array{first, want}, int64(want.Len()))
		pages := map[int]*parquet.Page{}
		err = h.Shred(rec, func(leaf int, p *parquet.Page) error {
			pages[leaf] = p.Clone()
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", dt, err)
		}
		of := func(shift uint8) func(leaf int) iter.Seq2[*parquet.Page, error] {
			return func(leaf int) iter.Seq2[*parquet.Page, error] {
				return func(yield func(*parquet.Page, error) bool) {
					p := *pages[before+leaf]
					if shift > 0 { // after a row of level 0
						none := &parquet.Page{Values: 1, Rows: 1, Def: []uint8{0}}
						if leaves[before+leaf].MaxRep > 0 {
							none.Rep = []uint8{0}
						}
						if !yield(none, nil) {
							return
						}
						def := make([]uint8, len(p.Def))
						for i, d := range p.Def {
							def[i] = d + shift
						}
						p.Def = def
					}
					yield(&p, nil)
				}
			}
		}
		got, err := a.Array(mem, want.Len(), of(0))
		if err != nil {
			t.Fatalf("%s: %v", dt, err)
		}
		if !array.Equal(got, want) || !arrow.TypeEqual(got.DataType(), dt) {
			t.Errorf("%s: got %v, want %v", dt, got, want)
		}
		got.Release()
		if got, err = a.Optional().Array(mem, want.Len()+1, of(1)); err != nil {
			t.Fatalf("%s: %v", dt, err)
		}
		rest := array.NewSlice(got, 1, int64(got.Len()))
		if got.Len() != want.Len()+1 || !got.IsNull(0) && dt != arrow.Null || !array.Equal(rest, want) {
			t.Errorf("%s, optional: got %v, want NULL and %v", dt, got, want)
		}
		for _, r := range []interface{ Release() }{rest, got, rec, first, lb, want, whole} {
			r.Release()
		}
		mem.AssertSize(t, 0)
	}
}

// TestHolderRefuses: what cannot be held is named.
func TestHolderRefuses(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for _, dt := range []arrow.DataType{arrowtest.ExtensionOf(dict), arrow.ListViewOf(arrow.PrimitiveTypes.Int8), arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int8)} {
		_, err := arrowparquet.NewHolder(arrow.NewSchema([]arrow.Field{{Name: "x", Type: dt}}, nil))
		if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "column x") || !strings.Contains(err.Error(), "cannot be held in memory") {
			t.Errorf("%s: %v", dt, err)
		}
	}
}
