package where

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// ints is a set of values that map to 64-bit integers in their order: integers,
// dates, times, timestamps, booleans and floats. See ordered.
type ints struct{ set[int64] }

// block is the number of values that are mapped at a time.
const block = 1024

func (s *ints) eval(dst []Truth, a arrow.Array, in, out Truth) bool {
	var buffer [block]int64
	for at := 0; at < a.Len(); at += block {
		x := buffer[:min(block, a.Len()-at)]
		if !ordered(x, a, at) {
			return false
		}
		s.evalInts(dst[at:at+len(x)], x, in, out)
	}
	return true
}

func (s *ints) evalInts(dst []Truth, values []int64, in, out Truth) {
	lo, hi := s.lo.at, s.hi.at
	switch {
	case len(s.points) == 1:
		lo, hi = s.points[0], s.points[0]
	case s.points != nil:
		for i, x := range values {
			t := out
			if _, found := slices.BinarySearch(s.points, x); found {
				t = in
			}
			dst[i] = t
		}
		return
	}
	for i, x := range values {
		t := out
		if uint64(x)-uint64(lo) <= uint64(hi)-uint64(lo) { // lo <= x && x <= hi
			t = in
		}
		dst[i] = t
	}
}

func (s *ints) possible(bounds arrow.Array, nan bool) (in, out bool) {
	var x [2]int64
	if !ordered(x[:], bounds, 0) {
		return true, true
	}
	switch bounds.(type) {
	case *array.Float16, *array.Float32, *array.Float64:
		if x[0] == floatNaN || x[1] == floatNaN {
			return true, true
		}
	}
	in, out = s.between(x[0], x[1])
	if nan {
		has := s.has(floatNaN)
		in, out = in || has, out || !has
	}
	return in, out
}

// floatNaN is the integer that NaN maps to: NaN is the greatest float.
const floatNaN = math.MaxInt64

// orderedFloat maps a float to an integer. Both zeros map to 0.
func orderedFloat(f float64) int64 {
	switch b := int64(math.Float64bits(f)); {
	case f != f:
		return floatNaN
	case b < 0:
		return -(b & math.MaxInt64)
	default:
		return b
	}
}

// flip is added to 64-bit unsigned integers, modulo 2^64, to map them to signed ones.
const flip = 1 << 63

// ordered maps the values of a from an index on to integers in their order, as many
// as dst has. It returns false for types without such a map.
func ordered(dst []int64, a arrow.Array, at int) bool {
	switch a := a.(type) {
	case *array.Int8:
		widen(dst, a.Int8Values()[at:])
	case *array.Int16:
		widen(dst, a.Int16Values()[at:])
	case *array.Int32:
		widen(dst, a.Int32Values()[at:])
	case *array.Int64:
		copy(dst, a.Int64Values()[at:])
	case *array.Uint8:
		widen(dst, a.Uint8Values()[at:])
	case *array.Uint16:
		widen(dst, a.Uint16Values()[at:])
	case *array.Uint32:
		widen(dst, a.Uint32Values()[at:])
	case *array.Uint64:
		for i, x := range a.Uint64Values()[at : at+len(dst)] {
			dst[i] = int64(x ^ flip)
		}
	case *array.Date32:
		widen(dst, a.Date32Values()[at:])
	case *array.Date64:
		widen(dst, a.Date64Values()[at:])
	case *array.Time32:
		widen(dst, a.Time32Values()[at:])
	case *array.Time64:
		widen(dst, a.Time64Values()[at:])
	case *array.Timestamp:
		widen(dst, a.TimestampValues()[at:])
	case *array.Float16:
		for i := range dst {
			dst[i] = orderedFloat(keys.Half(a.Value(at + i).Uint16()))
		}
	case *array.Float32:
		for i, x := range a.Float32Values()[at : at+len(dst)] {
			dst[i] = orderedFloat(float64(x))
		}
	case *array.Float64:
		for i, x := range a.Float64Values()[at : at+len(dst)] {
			dst[i] = orderedFloat(x)
		}
	case *array.Boolean:
		for i := range dst {
			dst[i] = 0
			if a.Value(at + i) {
				dst[i] = 1
			}
		}
	default:
		return false
	}
	return true
}

func widen[T ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32](dst []int64, src []T) {
	for i, x := range src[:len(dst)] {
		dst[i] = int64(x)
	}
}

// wide is a number of 256 bits in two's complement, highest word first.
type wide [4]uint64

func compareWide(a, b wide) int {
	if c := cmp.Compare(int64(a[0]), int64(b[0])); c != 0 {
		return c
	}
	for i := 1; i < len(a); i++ {
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// signExtended returns a number of 128 bits.
func signExtended(high int64, low uint64) wide {
	return wide{uint64(high >> 63), uint64(high >> 63), uint64(high), low}
}

// wideOf converts a number of at most 256 bits.
func wideOf(n *big.Int) (w wide) {
	var b [32]byte
	new(big.Int).And(n, wideMask).FillBytes(b[:])
	for i := range w {
		w[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return w
}

var (
	wideMask = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	wideMax  = new(big.Int).Rsh(wideMask, 1)
	wideMin  = new(big.Int).Not(wideMax)
	int64Max = big.NewInt(math.MaxInt64)
	int64Min = big.NewInt(math.MinInt64)
)

// wides is a set of decimals, or of stored INT96 timestamps in nanoseconds.
type wides struct{ set[wide] }

func (s *wides) eval(dst []Truth, a arrow.Array, in, out Truth) bool {
	value, ok := wideValues(a)
	if !ok {
		return false
	}
	for i := range dst {
		dst[i] = out
		if s.has(value(i)) {
			dst[i] = in
		}
	}
	return true
}

func (s *wides) possible(bounds arrow.Array, _ bool) (in, out bool) {
	value, ok := wideValues(bounds)
	if !ok {
		return true, true
	}
	return s.between(value(0), value(1))
}

// wideValues returns a function that returns value i of an array.
func wideValues(a arrow.Array) (value func(i int) wide, ok bool) {
	switch a := a.(type) {
	case *array.Decimal128:
		return func(i int) wide {
			n := a.Value(i)
			return signExtended(n.HighBits(), n.LowBits())
		}, true
	case *array.Decimal256:
		return func(i int) wide {
			w := a.Value(i).Array() // lowest word first
			return wide{w[3], w[2], w[1], w[0]}
		}, true
	case *keys.Int96Array:
		b, ok := a.Storage().(*array.FixedSizeBinary)
		return func(i int) wide { return int96Nanos(b.Value(i)) }, ok
	}
	return nil, false
}

// int96Nanos returns the nanoseconds since 1970 of a stored INT96 timestamp.
func int96Nanos(b []byte) wide {
	sec, nanos := keys.SplitInt96(b)
	magnitude := uint64(sec)
	if sec < 0 {
		magnitude = -magnitude
	}
	high, low := bits.Mul64(magnitude, 1_000_000_000)
	if sec < 0 {
		var borrow uint64
		low, borrow = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	low, carry := bits.Add64(low, uint64(nanos), 0)
	return signExtended(int64(high+carry), low)
}
