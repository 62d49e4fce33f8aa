package keys

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
)

// convert converts a value, given as a part of a composite key, to another class or
// type and appends the result to dst. ok is false if the value has no equal there;
// out is then meaningless. A convert is not safe for concurrent use.
type convert func(dst, value []byte) (out []byte, ok bool)

// converter returns the exact conversion between two numeric classes, nil if they
// are the same.
func converter(from, to Class) convert {
	if from == to {
		return nil
	}
	if to == AnyNumber { // all decimals, and in addition the infinities and NaN
		if from == Decimal {
			return nil
		}
		return number(converter(from, Decimal))
	}
	switch from {
	case Integer:
		if to == Float {
			return integerToFloat
		}
		return integerToDecimal
	case Float:
		if to == Integer {
			return floatToInteger
		}
		return floatToDecimal
	}
	if to == Float {
		return decimalToFloat
	}
	return decimalToInteger
}

// number converts to decimal and keeps values without a decimal, the infinities and
// NaN, as the 8 bytes of a float. Read as a decimal, those bytes would have
// redundant leading zeros, so they differ from every decimal's bytes.
func number(toDecimal convert) convert {
	return func(dst, value []byte) ([]byte, bool) {
		if out, ok := toDecimal(dst, value); ok {
			return out, true
		}
		return append(dst, value...), true
	}
}

// integerOf reads an integer that is a part of a composite key.
func integerOf(value []byte) (v uint64, negative bool) {
	return binary.LittleEndian.Uint64(value), value[8] != 0
}

func floatOf(value []byte) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(value))
}

// decimalOf reads a decimal. ok is false if its unscaled value does not fit 64
// bits.
func decimalOf(value []byte) (v int64, scale int32, ok bool) {
	scale = int32(binary.LittleEndian.Uint32(value))
	if len(value) > 12 {
		return 0, scale, false
	}
	return digits(value[4:]), scale, true
}

func integerToFloat(dst, value []byte) ([]byte, bool) {
	v, negative := integerOf(value)
	m := v
	if negative {
		m = -v
	}
	if bits.Len64(m)-bits.TrailingZeros64(m) > 53 {
		return dst, false
	}
	f := float64(m) // exact
	if negative {
		f = -f
	}
	return putFloat(dst, f), true
}

func integerToDecimal(dst, value []byte) ([]byte, bool) {
	v, negative := integerOf(value)
	if negative || v <= math.MaxInt64 {
		return putSmallDecimal(dst, int64(v), 0), true
	}
	return putDecimal(dst, new(big.Int).SetUint64(v), 0), true
}

// wholeFloat returns f as an integer. ok is false if f is not an integer of 64
// bits.
func wholeFloat(f float64) (v uint64, negative, ok bool) {
	switch {
	case f >= -1<<63 && f < 1<<63:
		n := int64(f)
		return uint64(n), n < 0, float64(n) == f
	case f >= 1<<63 && f < 1<<64:
		return uint64(f), false, true // at this magnitude every float is an integer
	}
	return 0, false, false
}

func floatToInteger(dst, value []byte) ([]byte, bool) {
	v, negative, ok := wholeFloat(floatOf(value))
	if !ok {
		return dst, false
	}
	return appendInt(dst, v, negative), true
}

// floatToDecimal relies on every finite float being m·2^e, and 2^-k being 5^k/10^k.
func floatToDecimal(dst, value []byte) ([]byte, bool) {
	f := floatOf(value)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, false
	}
	if n := int64(f); f >= -1<<63 && f < 1<<63 && float64(n) == f {
		return putSmallDecimal(dst, n, 0), true
	}
	frac, exp := math.Frexp(f)
	m, e := int64(math.Ldexp(frac, 53)), exp-53
	for m&1 == 0 {
		m, e = m>>1, e+1
	}
	n := big.NewInt(m)
	if e >= 0 {
		return putDecimal(dst, n.Lsh(n, uint(e)), 0), true
	}
	five := new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(-e)), nil)
	return putDecimal(dst, n.Mul(n, five), int32(-e)), true
}

// decimalToInteger refuses a scale above zero, which means a fraction, since
// trailing zeros were stripped.
func decimalToInteger(dst, value []byte) ([]byte, bool) {
	v, scale, ok := decimalOf(value)
	if scale > 0 || scale < -20 {
		return dst, false
	}
	if ok {
		n, negative := magnitude(v), v < 0
		for ; scale < 0; scale++ {
			over, low := bits.Mul64(n, 10)
			if over > 0 {
				return dst, false
			}
			n = low
		}
		if !negative {
			return appendInt(dst, n, false), true
		}
		return appendNegative(dst, n)
	}
	n := decimalNumber(scale, value[4:]).Num()
	if n.Sign() < 0 {
		if !new(big.Int).Neg(n).IsUint64() {
			return dst, false
		}
		return appendNegative(dst, new(big.Int).Neg(n).Uint64())
	}
	if !n.IsUint64() {
		return dst, false
	}
	return appendInt(dst, n.Uint64(), false), true
}

// appendNegative appends the integer -n, for n > 0.
func appendNegative(dst []byte, n uint64) ([]byte, bool) {
	if n > 1<<63 {
		return dst, false
	}
	return appendInt(dst, -n, true), true
}

func decimalToFloat(dst, value []byte) ([]byte, bool) {
	if v, scale, ok := decimalOf(value); ok && scale <= 0 && scale > -4 {
		f := float64(v)
		for ; scale < 0; scale++ {
			f *= 10
		}
		if math.Abs(f) < 1<<53 {
			return putFloat(dst, f), true
		}
	}
	if !expandable(value) {
		return dst, false
	}
	f, exact := decimalNumber(int32(binary.LittleEndian.Uint32(value)), value[4:]).Float64()
	if !exact || math.IsInf(f, 0) {
		return dst, false
	}
	return putFloat(dst, f), true
}
