package meta

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// comparison is the order that the format defines for a type's values.
type comparison uint8

const (
	unordered    comparison = iota // undefined or unknown
	booleans                       // false, true
	integers                       // of 4 or 8 bytes
	floats                         // of 2, 4 or 8 bytes; NaN is unordered
	bytewise                       // unsigned bytes, prefixes first
	bigEndianInt                   // big-endian two's complement numbers
)

// Order is the order used for the bounds of a leaf's values.
type Order struct {
	by     comparison
	signed bool // for integers
	width  int  // bytes of a value, 0 for byte arrays
	text   bool // UTF-8
}

// Defined reports whether values have an order.
func (o Order) Defined() bool { return o.by != unordered }

// ByteArrays reports whether the order is that of byte arrays, bytewise.
func (o Order) ByteArrays() bool { return o.by == bytewise && o.width == 0 }

// Orders returns the order of each leaf. Leaves under a group with its own
// interpretation, such as a variant, are unordered.
func (s *Schema) Orders() []Order {
	out := make([]Order, len(s.Leaves))
	var walk func(n *Node, defined bool)
	walk = func(n *Node, defined bool) {
		if n.Leaf >= 0 {
			if defined {
				out[n.Leaf] = OrderOf(&s.Leaves[n.Leaf])
			}
			return
		}
		defined = defined && (n.Logical.Kind == None || n.Logical.Kind == List || n.Logical.Kind == Map)
		for _, child := range n.Children {
			walk(child, defined)
		}
	}
	walk(s.Root, true)
	return out
}

// OrderOf returns the order of a leaf that is in no group with its own interpretation.
func OrderOf(l *Leaf) Order {
	o := Order{width: l.Width(), signed: true}
	switch l.Logical.Kind {
	case Interval, Geometry, Geography, Variant, Unknown, Null, List, Map:
		return o
	case Float16:
		o.by = floats
		return o
	case Int:
		o.signed = l.Logical.Signed
	case String, Enum, JSON:
		o.text = true
	case None, BSON, UUID, Decimal, Date, Time, Timestamp:
	}
	switch l.Type {
	case format.Boolean:
		o.by = booleans
	case format.Int32, format.Int64:
		o.by = integers
	case format.Float, format.Double:
		o.by = floats
	case format.ByteArray, format.FixedLenByteArray:
		o.by = bytewise
		if l.Logical.Kind == Decimal {
			o.by = bigEndianInt
		}
	case format.Int96:
	}
	return o
}

// Compare compares two values that have a place in the order.
func (o Order) Compare(a, b []byte) int {
	switch o.by {
	case integers, floats:
		return cmp.Compare(orderKey(a, o), orderKey(b, o))
	case bigEndianInt:
		return compareDecimals(a, b)
	default:
		return bytes.Compare(a, b)
	}
}

// orderKey returns a number that has the same order as v.
func orderKey(v []byte, o Order) int64 {
	switch len(v) {
	case 2:
		return floatKey(int64(int16(binary.LittleEndian.Uint16(v))))
	case 4:
		x := int64(int32(binary.LittleEndian.Uint32(v)))
		if o.by == floats {
			return floatKey(x)
		}
		if !o.signed {
			return x & math.MaxUint32
		}
		return x
	}
	x := int64(binary.LittleEndian.Uint64(v))
	if o.by == floats {
		return floatKey(x)
	}
	if !o.signed {
		return x ^ math.MinInt64
	}
	return x
}

// floatKey maps the sign-extended bits of a float to a number of the same order,
// with -0 just below 0.
func floatKey(x int64) int64 { return x ^ x>>63&math.MaxInt64 }

// compareDecimals compares non-empty big-endian two's complement numbers.
func compareDecimals(a, b []byte) int {
	negative := a[0] >= 0x80
	if negative != (b[0] >= 0x80) {
		if negative {
			return -1
		}
		return 1
	}
	a, b = Significant(a), Significant(b)
	switch {
	case len(a) == len(b):
		return bytes.Compare(a, b) // the signs are equal
	case (len(a) < len(b)) != negative:
		return -1
	}
	return 1
}

// Significant removes leading bytes of a big-endian number that only repeat its sign.
func Significant(v []byte) []byte {
	for len(v) > 1 && (v[0] == 0 && v[1] < 0x80 || v[0] == 0xff && v[1] >= 0x80) {
		v = v[1:]
	}
	return v
}

// Admits reports whether b has values that the order can compare, the smallest
// first.
func (o Order) Admits(b Bounds) bool {
	fits := func(v []byte) bool {
		switch o.by {
		case booleans:
			return len(v) == 1 && v[0] <= 1
		case integers:
			return len(v) == o.width
		case floats:
			return len(v) == o.width && !isNaN(v)
		case bytewise:
			return o.width == 0 || len(v) == o.width
		case bigEndianInt:
			return len(v) > 0 && (o.width == 0 || len(v) == o.width)
		}
		return false
	}
	return fits(b.Lo) && fits(b.Hi) && o.Compare(b.Lo, b.Hi) <= 0
}

// isNaN reports whether v is a float of 2, 4 or 8 bytes that is not a number.
func isNaN(v []byte) bool {
	switch len(v) {
	case 2:
		return binary.LittleEndian.Uint16(v)&math.MaxInt16 > 0x7c00
	case 4:
		return binary.LittleEndian.Uint32(v)&math.MaxInt32 > 0x7f800000
	}
	return binary.LittleEndian.Uint64(v)&math.MaxInt64 > 0x7ff0000000000000
}
