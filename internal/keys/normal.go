package keys

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/bloomjoin/bloomjoin/internal/decimal"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// intsOf returns functions that read an integer array's values as 64-bit two's complement,
// and whether they are signed. get reads one value; gather reads those at ascending rows, into
// dst's memory if it is large enough. Both are nil for arrays of other types.
func intsOf(a arrow.Array) (get func(i int) uint64, gather func(dst []uint64, rows []uint32) []uint64, signed bool) {
	switch a := a.(type) {
	case *array.Int8:
		return ints(a.Int8Values(), true)
	case *array.Int16:
		return ints(a.Int16Values(), true)
	case *array.Int32:
		return ints(a.Int32Values(), true)
	case *array.Int64:
		return ints(a.Int64Values(), true)
	case *array.Uint8:
		return ints(a.Uint8Values(), false)
	case *array.Uint16:
		return ints(a.Uint16Values(), false)
	case *array.Uint32:
		return ints(a.Uint32Values(), false)
	case *array.Uint64:
		return ints(a.Uint64Values(), false)
	}
	return nil, nil, false
}

func ints[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](values []T, signed bool) (func(i int) uint64, func(dst []uint64, rows []uint32) []uint64, bool) {
	return func(i int) uint64 { return uint64(values[i]) }, func(dst []uint64, rows []uint32) []uint64 {
		dst = slices.Grow(dst, len(rows))[:len(rows)]
		if len(rows) == len(values) {
			for i := range dst {
				dst[i] = uint64(values[i])
			}
			return dst
		}
		for i, row := range rows {
			dst[i] = uint64(values[row])
		}
		return dst
	}, signed
}

// putOf returns a function that appends the normal form of value i of an array of
// any class but Integer. It is nil for types that cannot be keys.
func putOf(a arrow.Array) func(dst []byte, i int) []byte {
	if value := take.Text(a); value != nil {
		return func(dst []byte, i int) []byte { return append(dst, value(i)...) }
	}
	switch a := a.(type) {
	case *array.Boolean:
		return func(dst []byte, i int) []byte {
			return putBool(dst, a.Value(i))
		}
	case *array.Date32:
		return func(dst []byte, i int) []byte { return putDays(dst, int64(a.Value(i))) }
	case *array.Date64:
		return func(dst []byte, i int) []byte {
			days, _ := floorDiv(int64(a.Value(i)), 86_400_000)
			return putDays(dst, days)
		}
	case *array.Float16:
		return func(dst []byte, i int) []byte { return putFloat(dst, Half(a.Value(i).Uint16())) }
	case *array.Float32:
		return func(dst []byte, i int) []byte { return putFloat(dst, float64(a.Value(i))) }
	case *array.Float64:
		return func(dst []byte, i int) []byte { return putFloat(dst, a.Value(i)) }
	case *array.Timestamp:
		return putUnits(nanosIn(a.DataType()), func(i int) int64 { return int64(a.Value(i)) })
	case *array.Time32:
		unit := nanosIn(a.DataType())
		return func(dst []byte, i int) []byte { return putDays(dst, int64(a.Value(i))*unit) }
	case *array.Time64:
		unit := nanosIn(a.DataType())
		return func(dst []byte, i int) []byte { return putDays(dst, int64(a.Value(i))*unit) }
	case *array.Duration:
		return putUnits(nanosIn(a.DataType()), func(i int) int64 { return int64(a.Value(i)) })
	case *array.Decimal128:
		scale := a.DataType().(*arrow.Decimal128Type).Scale
		return func(dst []byte, i int) []byte { return putDecimal128(dst, a.Value(i), scale) }
	case *array.Decimal256:
		scale := a.DataType().(*arrow.Decimal256Type).Scale
		return func(dst []byte, i int) []byte { return putDecimal(dst, decimal.Big256(a.Value(i)), scale) }
	case *array.Null:
		return func(dst []byte, _ int) []byte { return dst }
	}
	return nil
}

// floorDiv returns the quotient, rounded down, and the remainder, which is never
// negative.
func floorDiv(a, b int64) (q, r int64) {
	q, r = a/b, a%b
	if r < 0 {
		q, r = q-1, r+b
	}
	return q, r
}

func putBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func putDays(dst []byte, days int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(days))
}

// putFloat appends the bits of v. All NaNs are equal, and so are both zeros.
func putFloat(dst []byte, v float64) []byte {
	b := math.Float64bits(v)
	switch {
	case v == 0:
		b = 0
	case v != v:
		b = 0x7ff8000000000000
	}
	return binary.LittleEndian.AppendUint64(dst, b)
}

// Half converts the bits of a half-precision float to a float64. (The conversion in
// arrow/go v15 is wrong for subnormal values.)
func Half(b uint16) float64 {
	exp, frac := int(b>>10&0x1f), float64(b&0x3ff)
	v := math.Ldexp(1024+frac, exp-25)
	switch {
	case exp == 0:
		v = math.Ldexp(frac, -24)
	case exp == 0x1f && frac != 0:
		return math.NaN()
	case exp == 0x1f:
		v = math.Inf(1)
	}
	if b>>15 != 0 {
		v = -v
	}
	return v
}

// nanosIn returns the number of nanoseconds in the type's unit.
func nanosIn(t arrow.DataType) int64 {
	return int64(t.(arrow.TemporalWithUnit).TimeUnit().Multiplier())
}

// putUnits returns a function that appends a value as seconds and nanoseconds, so
// that no unit overflows.
func putUnits(nanos int64, value func(i int) int64) func(dst []byte, i int) []byte {
	perSecond := 1_000_000_000 / nanos
	return func(dst []byte, i int) []byte {
		sec, frac := floorDiv(value(i), perSecond)
		return putSeconds(dst, sec, uint32(frac*nanos))
	}
}

func putSeconds(dst []byte, sec int64, nanos uint32) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(sec))
	return binary.LittleEndian.AppendUint32(dst, nanos)
}

// putDecimal128 is putDecimal without big numbers where the unscaled value fits 64
// bits, as nearly all do.
func putDecimal128(dst []byte, n decimal128.Num, scale int32) []byte {
	v := int64(n.LowBits())
	if n.HighBits() != v>>63 {
		return putDecimal(dst, decimal.Big128(n), scale)
	}
	return putSmallDecimal(dst, v, scale)
}

// putSmallDecimal is putDecimal for an unscaled value of 64 bits.
func putSmallDecimal(dst []byte, v int64, scale int32) []byte {
	for v != 0 && v%10 == 0 {
		v, scale = v/10, scale-1
	}
	if v == 0 {
		scale = 0
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(scale))
	size := 1 // bytes of minimal two's complement
	for w := v; w < math.MinInt8 || w > math.MaxInt8; w >>= 8 {
		size++
	}
	for i := size - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

// putDecimal appends the scale and the unscaled value in minimal big-endian two's
// complement, without trailing zeros, so that 1.5 and 1.50 are equal.
func putDecimal(dst []byte, v *big.Int, scale int32) []byte {
	v = new(big.Int).Set(v)
	ten, rem := big.NewInt(10), new(big.Int)
	for v.Sign() != 0 {
		q, r := new(big.Int).QuoRem(v, ten, rem)
		if r.Sign() != 0 {
			break
		}
		v, scale = q, scale-1
	}
	if v.Sign() == 0 {
		scale = 0
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(scale))
	if v.Sign() >= 0 {
		b := v.Bytes()
		if len(b) == 0 || b[0] >= 0x80 {
			dst = append(dst, 0)
		}
		return append(dst, b...)
	}
	// For negative v, ^v = -v-1 is not negative and has the complemented bytes.
	b := new(big.Int).Not(v).Bytes()
	if len(b) == 0 || b[0] >= 0x80 {
		dst = append(dst, 0xff)
	}
	for _, x := range b {
		dst = append(dst, ^x)
	}
	return dst
}
