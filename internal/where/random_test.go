package where

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/float16"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/decimal"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// sample is a type of column: its name, random values in ascending order, and
// literals to compare them with. The values are appended in their natural order, so
// that the bounds of some of them are the first and the last.
type sample struct {
	name     string
	typ      arrow.DataType
	append   func(b array.Builder, v float64) // v is an integer from -3 to 3, or NaN for floats
	literals []string
}

var strs = []string{"", "a", "a%", "ab", "b", "bä", "c"}

// samples has a column of each kind.
var samples = []sample{
	{"i8", arrow.PrimitiveTypes.Int8, func(b array.Builder, v float64) { b.(*array.Int8Builder).Append(int8(v)) }, numbers},
	{"i64", arrow.PrimitiveTypes.Int64, func(b array.Builder, v float64) { b.(*array.Int64Builder).Append(int64(v) << 61) }, append(numbers, "2305843009213693952", "-6917529027641081856", "9223372036854775807", "-9223372036854775808", "1e30")},
	{"u64", arrow.PrimitiveTypes.Uint64, func(b array.Builder, v float64) { b.(*array.Uint64Builder).Append(uint64(v+3) << 61) }, append(numbers, "2305843009213693952", "9223372036854775808", "18446744073709551615", "18446744073709551616")},
	{"f32", arrow.PrimitiveTypes.Float32, func(b array.Builder, v float64) { b.(*array.Float32Builder).Append(float32(v / 10)) }, floats},
	{"f64", arrow.PrimitiveTypes.Float64, func(b array.Builder, v float64) { b.(*array.Float64Builder).Append(v / 10) }, floats},
	{"f16", arrow.FixedWidthTypes.Float16, func(b array.Builder, v float64) { b.(*array.Float16Builder).Append(half(v)) }, floats},
	{"dec", &arrow.Decimal128Type{Precision: 38, Scale: 2}, func(b array.Builder, v float64) {
		b.(*array.Decimal128Builder).Append(decimal128.FromI64(int64(v) * 50))
	}, numbers},
	{"dec256", &arrow.Decimal256Type{Precision: 76, Scale: 1}, func(b array.Builder, v float64) {
		b.(*array.Decimal256Builder).Append(decimal.From256(big.NewInt(int64(v) * 5)))
	}, numbers},
	{"s", arrow.BinaryTypes.String, func(b array.Builder, v float64) { b.(*array.StringBuilder).Append(strs[int(v)+3]) }, texted},
	{"bin", arrow.BinaryTypes.LargeBinary, func(b array.Builder, v float64) { b.(*array.BinaryBuilder).Append([]byte(strs[int(v)+3])) }, append(texted, `'a\x00'`, `'\xff'`)},
	{"fix", &arrow.FixedSizeBinaryType{ByteWidth: 1}, func(b array.Builder, v float64) {
		b.(*array.FixedSizeBinaryBuilder).Append([]byte{byte(int(v)*40 + 128)})
	}, []string{`'\x80'`, `'\x81'`, `''`, `'a'`}},
	{"b", arrow.FixedWidthTypes.Boolean, func(b array.Builder, v float64) { b.(*array.BooleanBuilder).Append(v > 0) }, []string{"TRUE", "FALSE", "'true'"}},
	{"d", arrow.FixedWidthTypes.Date32, func(b array.Builder, v float64) { b.(*array.Date32Builder).Append(arrow.Date32(19844 + v)) }, moments[:4]},
	{"ts", &arrow.TimestampType{Unit: arrow.Microsecond}, func(b array.Builder, v float64) {
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(19844*86400e6 + v*43200e6))
	}, moments},
	{"tz", &arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}, func(b array.Builder, v float64) {
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(19844*86400 + v*43200))
	}, append(moments, "'2024-05-01 14:00:00+02'")},
	{"time", arrow.FixedWidthTypes.Time64us, func(b array.Builder, v float64) {
		b.(*array.Time64Builder).Append(arrow.Time64((v + 3) * 3600e6))
	}, []string{"'03:00'", "TIME '04:00:00.000001'", "'00:00:00'"}},
	{"i96", keys.Int96, func(b array.Builder, v float64) {
		b.(*array.ExtensionBuilder).Builder.(*array.FixedSizeBinaryBuilder).Append(stored96(v))
	}, moments},
}

var (
	numbers = []string{"0", "1", "-1", "1.5", "-1.50", "2", "1e0", "-1e400", "1e-400", "'1'"}
	floats  = []string{"0", "-0.0", "0.1", "-0.1", "0.3", "0.30000000000000004", "1e-1", "'nan'", "'-inf'", "'inf'", "1e39"}
	texted  = []string{"''", "'a'", "'aa'", "'a%'", "'ab'", "'zz'", "'bä'"}
	moments = []string{"'2024-05-01'", "DATE '2024-05-02'", "TIMESTAMP '2024-05-01 12:00:00'", "TIMESTAMPTZ '2024-05-01 14:00:00+02:00'", "'2024-05-01 12:00:00'", "'2024-04-30 23:59:59.999999999'"}
)

func half(v float64) float16.Num { return float16.New(float32(v / 10)) }

// stored96 returns an INT96 timestamp, v half days around 2024-05-01.
func stored96(v float64) []byte {
	day, nanos := int64(2440588+19844), int64(v*43200e9)
	if nanos < 0 {
		day, nanos = day-2, nanos+2*86400e9
	}
	out := make([]byte, 12)
	for i := range 8 {
		out[i] = byte(uint64(nanos) >> (8 * i))
	}
	for i := range 4 {
		out[8+i] = byte(uint64(day) >> (8 * i))
	}
	return out
}

// randomColumn returns an array of a sample's type, and its facts.
func randomColumn(r *rand.Rand, s sample) (arrow.Array, Facts) {
	values := make([]float64, r.IntN(6))
	nulls, nans := r.IntN(3) == 0, strings.HasPrefix(s.name, "f") && s.name != "fix" && r.IntN(2) == 0
	least, most := math.Inf(1), math.Inf(-1)
	for i := range values {
		values[i] = float64(r.IntN(7) - 3)
		least, most = min(least, values[i]), max(most, values[i])
	}
	b := array.NewBuilder(memory.DefaultAllocator, s.typ)
	defer b.Release()
	for _, v := range values {
		s.append(b, v)
	}
	if nulls {
		b.AppendNull()
	}
	if nans {
		s.append(b, math.NaN())
	}
	f := Facts{NoNulls: !nulls && r.IntN(2) == 0, AllNulls: len(values) == 0 && !nans && r.IntN(2) == 0, NaN: nans || r.IntN(4) == 0}
	if len(values) > 0 && r.IntN(4) > 0 {
		bounds := array.NewBuilder(memory.DefaultAllocator, s.typ)
		defer bounds.Release()
		s.append(bounds, max(-3, least-float64(r.IntN(2))))
		s.append(bounds, min(3, most+float64(r.IntN(2))))
		f.Range = bounds.NewArray()
	}
	return b.NewArray(), f
}

// randomTest returns a random test on a column.
func randomTest(r *rand.Rand, s sample) string {
	literal := func() string {
		if r.IntN(12) == 0 {
			return "NULL"
		}
		return s.literals[r.IntN(len(s.literals))]
	}
	not := []string{"", "NOT "}[r.IntN(2)]
	switch n := r.IntN(12); {
	case n < 6:
		op := []string{"=", "<>", "<", "<=", ">", ">="}[n]
		if r.IntN(4) == 0 {
			return literal() + " " + op + " " + s.name
		}
		return s.name + " " + op + " " + literal()
	case n == 6:
		return s.name + " " + not + "BETWEEN " + literal() + " AND " + literal()
	case n == 7:
		return s.name + " IS " + not + "NULL"
	case n == 8:
		return s.name + " IS " + not + "DISTINCT FROM " + literal()
	case n == 9 && s.name == "s":
		patterns := []string{"'a%'", "'%'", "'_'", "'%b%'", "'a\\%'", "'b_'", "NULL", "''", "'%a_'"}
		return s.name + " " + not + "LIKE " + patterns[r.IntN(len(patterns))]
	case n == 9 && s.name == "b":
		return []string{"b", "NOT b", "b IS TRUE", "b IS NOT FALSE"}[r.IntN(4)]
	}
	list := make([]string, 1+r.IntN(4))
	for i := range list {
		list[i] = literal()
	}
	return s.name + " " + not + "IN (" + strings.Join(list, ", ") + ")"
}

// randomCond returns a random condition.
func randomCond(r *rand.Rand, depth int) string {
	if n := r.IntN(6); depth > 0 && n < 5 {
		a, b := randomCond(r, depth-1), randomCond(r, depth-1)
		switch n {
		case 0, 1:
			return a + " AND " + b
		case 2:
			return "(" + a + ") OR " + b
		case 3:
			return "NOT (" + a + ")"
		default:
			return "(" + a + ") IS " + []string{"NULL", "TRUE", "NOT FALSE"}[r.IntN(3)]
		}
	}
	return randomTest(r, samples[r.IntN(len(samples))])
}

// schemaOf returns the schema of the samples.
func schemaOf() *arrow.Schema {
	var fields []arrow.Field
	for _, s := range samples {
		fields = append(fields, arrow.Field{Name: s.name, Type: s.typ, Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// checkPossible returns an error if a predicate is true of a value in a way that
// Possible excludes, or if the same holds for the condition.
func checkPossible(r *rand.Rand, b *Bound) error {
	columns, facts := make([]arrow.Array, len(b.columns)), make([]Facts, len(b.columns))
	rows := 0
	for i, f := range b.columns {
		at := slices.IndexFunc(samples, func(s sample) bool { return s.name == f.Names[0] })
		columns[i], facts[i] = randomColumn(r, samples[at])
		rows = max(rows, columns[i].Len())
	}
	truths, sets := make([][]Truth, len(b.preds)), make([]Truths, len(b.preds))
	for i, p := range b.preds {
		got := p.Eval([]Truth{True}, columns[p.column])[1:]
		if len(got) != columns[p.column].Len() {
			return fmt.Errorf("predicate %d: %d truths of %d values", i, len(got), columns[p.column].Len())
		}
		sets[i] = p.Possible(facts[p.column])
		for row, truth := range got {
			if !sets[i].Has(truth) {
				return fmt.Errorf("predicate %d: %s of %v, but possible are %b (%+v)", i, truth, columns[p.column].ValueStr(row), sets[i], facts[p.column])
			}
		}
		for row := len(got); row < rows && len(got) > 0; row++ {
			got = append(got, got[row%len(got)])
		}
		if len(got) == 0 {
			return nil // no rows
		}
		truths[i] = got
	}
	possible := b.Possible(sets)
	for row, truth := range b.Combine(nil, truths) {
		if !possible.Has(truth) {
			return fmt.Errorf("row %d: %s, but possible are %b", row, truth, possible)
		}
	}
	return nil
}
