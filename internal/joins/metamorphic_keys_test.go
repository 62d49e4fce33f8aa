package joins_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/decimal256"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// null is a NULL among values written as text.
const null = "NULL"

// family is a set of types whose values are compared with each other.
type family struct {
	name string
	// types draws the types of both sides; dict says that dictionaries can be stored.
	types func(r *rand.Rand, dict bool) (log, ids arrow.DataType)
	value func(r *rand.Rand) string // as text, see appendText
	holds func(dt arrow.DataType, v string) bool
	// text returns the type as which text IDs are read, given the log's type; nil: the
	// family has no text form.
	text func(log arrow.DataType) arrow.DataType
	// rule is the normalization rule that the family is for, if any.
	rule string
}

// always implements holds for families whose types have the same values.
func always(arrow.DataType, string) bool { return true }

func choose[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// coded sometimes wraps a type in a dictionary.
func coded(r *rand.Rand, dict bool, dt arrow.DataType) arrow.DataType {
	if !dict || r.IntN(3) > 0 {
		return dt
	}
	return &arrow.DictionaryType{IndexType: choose[arrow.DataType](r, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int32), ValueType: dt}
}

// plainType returns the type without its dictionary.
func plainType(dt arrow.DataType) arrow.DataType {
	if d, ok := dt.(*arrow.DictionaryType); ok {
		return d.ValueType
	}
	return dt
}

func itself(log arrow.DataType) arrow.DataType { return plainType(log) }

// families returns all classes of keys.
func families() []family {
	p, b := arrow.PrimitiveTypes, arrow.BinaryTypes
	bytesOf := func(r *rand.Rand, dict bool) arrow.DataType {
		return choose[arrow.DataType](r, coded(r, dict, b.String), b.String, b.LargeString, b.Binary, b.LargeBinary)
	}
	asString := func(arrow.DataType) arrow.DataType { return b.String }
	return []family{
		{name: "integer", value: drawInteger, holds: holdsInteger, types: func(r *rand.Rand, dict bool) (log, ids arrow.DataType) {
			draw := func() arrow.DataType {
				return choose(r, p.Int8, p.Int16, p.Int32, p.Int64, p.Int64, p.Uint8, p.Uint16, p.Uint32, p.Uint64)
			}
			return coded(r, dict, draw()), coded(r, dict, draw())
		}, text: func(log arrow.DataType) arrow.DataType {
			if plainType(log).ID() == arrow.UINT64 {
				return p.Uint64
			}
			return p.Int64
		}},
		{name: "bytes", value: drawWord, holds: always, text: asString, types: func(r *rand.Rand, dict bool) (log, ids arrow.DataType) {
			return bytesOf(r, dict), bytesOf(r, dict)
		}},
		{name: "fixed", value: func(r *rand.Rand) string { return strings.Repeat("x", 4) + string(rune('a'+r.IntN(20))) }, holds: always,
			types: func(*rand.Rand, bool) (log, ids arrow.DataType) {
				dt := &arrow.FixedSizeBinaryType{ByteWidth: 5}
				return dt, dt
			}},
		{name: "decimal", value: drawDecimal, holds: holdsDecimal, text: itself, types: func(r *rand.Rand, _ bool) (log, ids arrow.DataType) {
			draw := func() arrow.DataType {
				p := choose[int32](r, 3, 9, 10, 18, 19, 38)
				return &arrow.Decimal128Type{Precision: p, Scale: r.Int32N(min(p, 7))}
			}
			return draw(), draw()
		}},
		{name: "date", value: func(r *rand.Rand) string {
			return time.Unix(86400*int64(choose(r, r.IntN(20)-10, r.IntN(40_000)-20_000)), 0).UTC().Format(time.DateOnly)
		}, holds: always, text: func(arrow.DataType) arrow.DataType { return arrow.FixedWidthTypes.Date32 },
			types: func(r *rand.Rand, _ bool) (log, ids arrow.DataType) {
				f := arrow.FixedWidthTypes
				return choose[arrow.DataType](r, f.Date32, f.Date64), choose[arrow.DataType](r, f.Date32, f.Date64)
			}},
		{name: "timestamp", value: drawInstant, holds: holdsInstant, text: itself, types: func(r *rand.Rand, _ bool) (log, ids arrow.DataType) {
			zones := choose(r, []string{""}, []string{"UTC", "Europe/Rome", "+02:00"})
			draw := func() arrow.DataType {
				return &arrow.TimestampType{Unit: choose(r, arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond), TimeZone: choose(r, zones...)}
			}
			return draw(), draw()
		}},
		{name: "float", value: drawFloat, holds: holdsFloat, text: func(arrow.DataType) arrow.DataType { return p.Float64 },
			types: func(r *rand.Rand, _ bool) (log, ids arrow.DataType) {
				return choose(r, p.Float32, p.Float64), choose(r, p.Float32, p.Float64)
			}},
		{name: "number", value: drawNumber, holds: holdsNumber, types: func(r *rand.Rand, dict bool) (log, ids arrow.DataType) {
			draw := func() arrow.DataType {
				return choose[arrow.DataType](r, coded(r, dict, p.Int64), p.Int16, p.Uint64, p.Float32, p.Float64,
					&arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal128Type{Precision: 18}, &arrow.Decimal128Type{Precision: 38, Scale: 3})
			}
			log, ids = draw(), draw()
			for classOf(log) == classOf(ids) { // other families have these
				ids = draw()
			}
			return log, ids
		}},
		{name: "boolean", value: func(r *rand.Rand) string { return choose(r, "true", "false") }, holds: always, text: itself,
			types: func(*rand.Rand, bool) (log, ids arrow.DataType) {
				return arrow.FixedWidthTypes.Boolean, arrow.FixedWidthTypes.Boolean
			}},
		{name: "words", rule: "words", value: drawWord, holds: always, text: asString, types: func(r *rand.Rand, dict bool) (log, ids arrow.DataType) {
			return bytesOf(r, dict), bytesOf(r, dict)
		}},
		{name: "uuid", rule: "uuid", value: drawUUID, holds: always, text: asString, types: func(r *rand.Rand, dict bool) (log, ids arrow.DataType) {
			raw := &arrow.FixedSizeBinaryType{ByteWidth: 16}
			return choose[arrow.DataType](r, b.String, raw, bytesOf(r, dict)), choose[arrow.DataType](r, b.String, raw, bytesOf(r, dict))
		}},
	}
}

func drawInteger(r *rand.Rand) string {
	edges := []uint{0, 7, 8, 15, 16, 31, 32, 63, 64}
	v := new(big.Int)
	switch r.IntN(4) {
	case 0: // next to a power of two, of either sign
		v.Lsh(big.NewInt(1), choose(r, edges...))
		v.Add(v, big.NewInt(int64(r.IntN(3)-1)))
		if r.IntN(2) == 0 {
			v.Neg(v)
		}
	case 1:
		v.SetUint64(r.Uint64() >> choose(r, edges[:8]...))
	default:
		v.SetInt64(int64(r.IntN(120) - 20))
	}
	return v.String()
}

func holdsInteger(dt arrow.DataType, v string) bool {
	bits := uint(plainType(dt).(arrow.FixedWidthDataType).BitWidth())
	i, _ := new(big.Int).SetString(v, 10)
	lo, hi := new(big.Int), new(big.Int).Lsh(big.NewInt(1), bits)
	if !arrow.IsUnsignedInteger(plainType(dt).ID()) {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	return i.Cmp(lo) >= 0 && i.Cmp(hi) < 0
}

// drawWord draws strings, many of which differ only in case or in spaces around them.
func drawWord(r *rand.Rand) string {
	if r.IntN(4) == 0 {
		return fmt.Sprintf("user-%06d", r.IntN(3000))
	}
	core := choose(r, "", "a", "A", "ab", "anna", "ANNA", "Anna B", "Ä", "ä", "\u212a", "K", "k", "é", strings.Repeat("long ", 40))
	return choose(r, "", "", " ", "\t") + core + choose(r, "", "", "", " ", "\n", "\u00a0")
}

func drawUUID(r *rand.Rand) string {
	id := fmt.Sprintf("%08x-0000-4000-8000-%012X", r.IntN(12), r.IntN(12)*0xabcdef)
	return choose(r, id, id, strings.ToUpper(id), "{"+id+"}", "urn:uuid:"+id, strings.ReplaceAll(id, "-", ""))
}

// drawDecimal draws m/10^s, as "m/s".
func drawDecimal(r *rand.Rand) string {
	m := choose(r, int64(r.IntN(41)-20), r.Int64N(2e9)-1e9, r.Int64()>>r.IntN(60))
	return fmt.Sprintf("%d/%d", m, r.IntN(7))
}

// unscaled returns the decimal as the unscaled integer of a type.
func unscaled(scale int32, v string) (*big.Int, bool) {
	m, s, _ := strings.Cut(v, "/")
	i, _ := new(big.Int).SetString(m, 10)
	by, _ := strconv.Atoi(s)
	pow := func(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
	if d := int(scale) - by; d >= 0 {
		return i.Mul(i, pow(d)), true
	}
	q, rest := i.QuoRem(i, pow(by-int(scale)), new(big.Int))
	return q, rest.Sign() == 0
}

func holdsDecimal(dt arrow.DataType, v string) bool {
	d := dt.(arrow.DecimalType)
	i, ok := unscaled(d.GetScale(), v)
	return ok && len(new(big.Int).Abs(i).String()) <= int(d.GetPrecision())
}

// drawInstant draws seconds and nanoseconds, as "s.n".
func drawInstant(r *rand.Rand) string {
	secs := choose(r, int64(r.IntN(20)-10), r.Int64N(4e9)-2e9, -62135596800, 253402300799)
	return fmt.Sprintf("%d.%09d", secs, choose(r, 0, 0, r.IntN(3)*1e6, 999_999_999, 500_000_000, r.IntN(3)*1000))
}

// ticks returns the instant as the integer of a type.
func ticks(dt *arrow.TimestampType, v string) (int64, bool) {
	s, n, _ := strings.Cut(v, ".")
	secs, _ := strconv.ParseInt(s, 10, 64)
	nanos, _ := strconv.ParseInt(n, 10, 64)
	per := int64(dt.Unit.Multiplier())
	t := new(big.Int).Mul(big.NewInt(secs), big.NewInt(int64(time.Second)/per))
	t.Add(t, big.NewInt(nanos/per))
	return t.Int64(), nanos%per == 0 && t.IsInt64()
}

func holdsInstant(dt arrow.DataType, v string) bool {
	_, ok := ticks(dt.(*arrow.TimestampType), v)
	return ok
}

func drawFloat(r *rand.Rand) string {
	return choose(r, "0", "-0", "NaN", "-NaN", "Inf", "-Inf", "0.1", "1e300", "1.401298464324817e-45", "3.4028234663852886e+38",
		fmt.Sprint(float64(r.IntN(200)-100)/8), fmt.Sprint(r.NormFloat64()))
}

// drawNumber draws m/10^s as drawDecimal does, or a value that only floats have.
func drawNumber(r *rand.Rand) string {
	switch r.IntN(6) {
	case 0:
		return choose(r, "NaN", "Inf", "-Inf")
	case 1:
		return fmt.Sprintf("%d/%d", int64(1)<<53+int64(r.IntN(5)-2), r.IntN(2))
	case 2:
		return fmt.Sprintf("%d/2", 25*(r.IntN(40)-20))
	}
	return fmt.Sprintf("%d/0", choose(r, int64(r.IntN(41)-20), r.Int64()>>r.IntN(60), math.MinInt64, math.MaxInt64))
}

func holdsNumber(dt arrow.DataType, v string) bool {
	dt = plainType(dt)
	m, s, number := strings.Cut(v, "/")
	switch {
	case !number:
		return arrow.IsFloating(dt.ID())
	case arrow.IsDecimal(dt.ID()):
		return holdsDecimal(dt, v)
	case arrow.IsFloating(dt.ID()):
		f, exact := rational(v).Float64()
		return exact && (dt.ID() == arrow.FLOAT64 || float64(float32(f)) == f)
	}
	return s == "0" && holdsInteger(dt, m)
}

// rational parses a number written by drawDecimal.
func rational(v string) *big.Rat {
	i, ok := unscaled(6, v)
	if !ok {
		panic(v)
	}
	return new(big.Rat).SetFrac(i, big.NewInt(1_000_000))
}

// classOf returns the class of a numeric type.
func classOf(dt arrow.DataType) string {
	switch dt = plainType(dt); {
	case arrow.IsDecimal(dt.ID()):
		return "decimal"
	case arrow.IsFloating(dt.ID()):
		return "float"
	}
	return "integer"
}

func parseFloat(v string) float64 {
	if strings.Contains(v, "/") {
		f, _ := rational(v).Float64()
		return f
	}
	if v == "-NaN" { // with other bits
		return math.Float64frombits(0xfff8000000000001)
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		panic(err)
	}
	return f
}

func holdsFloat(dt arrow.DataType, v string) bool {
	f := parseFloat(v)
	return dt.ID() == arrow.FLOAT64 || math.IsNaN(f) || float64(float32(f)) == f
}

// arrayOf makes an array of values, written as their families write them.
func arrayOf(t testing.TB, dt arrow.DataType, values []string) arrow.Array {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	for _, v := range values {
		if v == null {
			b.AppendNull()
		} else if err := appendText(b, v); err != nil {
			t.Fatalf("%s: %q: %v", dt, v, err)
		}
	}
	return b.NewArray()
}

func appendText(b array.Builder, v string) error {
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(v)
	case *array.LargeStringBuilder:
		b.Append(v)
	case *array.BinaryBuilder:
		b.AppendString(v)
	case *array.FixedSizeBinaryBuilder:
		b.Append(fixedBytes(b.Type().(*arrow.FixedSizeBinaryType).ByteWidth, v))
	case *array.Decimal128Builder:
		i, _ := unscaled(b.Type().(*arrow.Decimal128Type).Scale, v)
		b.Append(decimal128.FromBigInt(i))
	case *array.Decimal256Builder:
		i, _ := unscaled(b.Type().(*arrow.Decimal256Type).Scale, v)
		b.Append(decimal256.FromBigInt(i))
	case *array.TimestampBuilder:
		n, _ := ticks(b.Type().(*arrow.TimestampType), v)
		b.Append(arrow.Timestamp(n))
	case *array.Float32Builder:
		b.Append(float32(parseFloat(v)))
	case *array.Float64Builder:
		b.Append(parseFloat(v))
	case *array.BinaryDictionaryBuilder:
		if plainType(b.Type()).ID() == arrow.STRING {
			return b.AppendString(v)
		}
		return b.Append([]byte(v))
	default:
		v = strings.TrimSuffix(v, "/0") // an integer, as drawNumber writes it
		return b.AppendValueFromString(v)
	}
	return nil
}

// fixedBytes returns the bytes of a value; for a UUID as text, the 16 bytes it denotes.
func fixedBytes(width int, v string) []byte {
	if width != 16 {
		return []byte(v)
	}
	b, err := hex.DecodeString(strings.NewReplacer("-", "", "{", "", "}", "", "urn:uuid:", "").Replace(v))
	if err != nil || len(b) != 16 {
		panic(fmt.Sprintf("%q is no UUID: %v", v, err))
	}
	return b
}

// asText writes a value as it appears in a text file.
func asText(dt arrow.DataType, v string) string {
	switch dt := dt.(type) {
	case *arrow.TimestampType:
		n, _ := ticks(dt, v)
		layout := "2006-01-02T15:04:05.999999999"
		if dt.TimeZone != "" {
			layout += "Z07:00"
		}
		return arrow.Timestamp(n).ToTime(dt.Unit).UTC().Format(layout)
	case *arrow.Decimal128Type:
		i, _ := unscaled(dt.Scale, v)
		return new(big.Rat).SetFrac(i, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(dt.Scale)), nil)).FloatString(int(dt.Scale))
	case *arrow.Float64Type:
		return strings.Replace(v, "-NaN", "NaN", 1)
	}
	return v
}
