package keys

import (
	"encoding/binary"
	"math/big"
	"strconv"
	"strings"
)

// Order is how values of a class compare, for the purpose of bounds.
type Order uint8

// The orders. Booleans, floats and NULLs are Unordered: bounds of two values are
// useless, and NaN and the two zeros make float bounds unsafe.
const (
	Unordered Order = iota
	ByNumber        // by the rational number that [Number] returns
	ByBytes         // unsigned, byte by byte; a prefix sorts before longer strings
)

// OrderOf returns how values of the class compare.
func OrderOf(c Class) Order {
	switch c {
	case Integer, Date, Instant, Timestamp, Decimal, Time, Duration:
		return ByNumber
	case Bytes:
		return ByBytes
	}
	if _, ok := FixedWidth(c); ok {
		return ByBytes
	}
	return Unordered
}

// IntegerPart returns an integer as a part of a composite key. v is in two's
// complement if negative.
func IntegerPart(v uint64, negative bool) []byte { return appendInt(nil, v, negative) }

const (
	// Limits of decimals that Number expands: the absolute scale, and the size in
	// bytes.
	maxDecimalScale = 1 << 10
	maxDecimalBytes = 1 << 7
)

// Number returns a value of a class with order ByNumber, given as a part of a
// composite key, as a number: days (Date), seconds (since 1970, since midnight, or
// of a duration), or the number itself. ok is false for malformed bytes and for
// decimals that would need excessive memory.
func Number(c Class, part []byte) (n *big.Rat, ok bool) {
	switch {
	case c == Integer && len(part) == 9:
		v := new(big.Int).SetUint64(binary.LittleEndian.Uint64(part))
		if part[8] != 0 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), 64))
		}
		return new(big.Rat).SetInt(v), true
	case c == Date && len(part) == 8:
		return new(big.Rat).SetInt64(int64(binary.LittleEndian.Uint64(part))), true
	case c == Time && len(part) == 8: // seconds since midnight
		return new(big.Rat).SetFrac64(int64(binary.LittleEndian.Uint64(part)), 1e9), true
	case (c == Instant || c == Timestamp || c == Duration) && len(part) == 12:
		n := new(big.Rat).SetFrac64(int64(binary.LittleEndian.Uint32(part[8:])), 1e9)
		return n.Add(n, new(big.Rat).SetInt64(int64(binary.LittleEndian.Uint64(part)))), true
	case c == Decimal && expandable(part):
		return decimalNumber(int32(binary.LittleEndian.Uint32(part)), part[4:]), true
	}
	return nil, false
}

// expandable reports whether a decimal's number takes a reasonable amount of
// memory.
func expandable(decimal []byte) bool {
	if len(decimal) < 5 || len(decimal) > maxDecimalBytes {
		return false
	}
	scale := int32(binary.LittleEndian.Uint32(decimal))
	return scale >= -maxDecimalScale && scale <= maxDecimalScale
}

func decimalNumber(scale int32, unscaled []byte) *big.Rat {
	v := new(big.Int).SetBytes(unscaled)
	if unscaled[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(unscaled))))
	}
	if scale <= 0 {
		return new(big.Rat).SetInt(v.Mul(v, Pow10(int(-scale))))
	}
	return new(big.Rat).SetFrac(v, Pow10(int(scale)))
}

// Pow10 returns 10^n for n ≥ 0, and 0 for negative n.
func Pow10(n int) *big.Int {
	if n < 0 {
		return new(big.Int)
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// FixedWidth returns the width in bytes of a class made by [Fixed]. ok is false for
// other classes.
func FixedWidth(c Class) (w int, ok bool) {
	digits, ok := strings.CutPrefix(string(c), "fixed[")
	if !ok {
		return 0, false
	}
	w, err := strconv.Atoi(strings.TrimSuffix(digits, "]"))
	return w, err == nil && w >= 0 && c == Fixed(w)
}
