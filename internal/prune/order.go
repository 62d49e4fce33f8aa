package prune

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// members is what is known about the values of a filter's members in one key
// column.
type members struct {
	lo, hi []byte     // in normal form as a part of a key, inclusive
	set    *exact.Set // all members, or nil if not known
	empty  bool       // there are no members
}

// membersOf returns what is known about a key column's members.
func membersOf(m Members, column int) (members, bool) {
	if m.Empty() {
		return members{empty: true}, true
	}
	lo, hi, ok := m.KeyRange(column)
	return members{lo: lo, hi: hi, set: m.Exact()}, ok
}

// order describes how statistics order the values of a leaf, and where the members
// are in that order. Values are converted to bytes that compare like the values:
// numbers to fixed-width big-endian bytes, with the highest bit flipped if signed.
type order struct {
	lo, hi []byte // bounds of the members that the leaf can hold
	empty  bool   // it can hold none of them

	size   int  // bytes of a value; 0: byte arrays
	number bool // false: bytes
	float  bool // stored as a float of 4 or 8 bytes
	signed bool
	little bool     // stored as little-endian
	least  *big.Int // range of the values that the column's type allows; numbers only
	most   *big.Int
}

// newOrder returns the order of a leaf's values and converts the bounds of the
// members, whose class is of, to it. ok is false if the order is not defined or
// statistics in that order are not reliable.
func newOrder(l *meta.Leaf, class, of keys.Class, m members) (o order, ok bool) {
	if class == keys.Float {
		return newFloatOrder(l, of, m)
	}
	switch keys.OrderOf(class) {
	case keys.ByBytes:
		return newByteOrder(l, class, m)
	case keys.ByNumber:
		perOne, ok := o.numbers(l, class)
		if !ok {
			return o, false
		}
		return o, o.place(of, m, perOne)
	}
	return o, false
}

func newByteOrder(l *meta.Leaf, class keys.Class, m members) (o order, ok bool) {
	switch l.Logical.Kind {
	case meta.None, meta.String, meta.Enum, meta.JSON, meta.BSON, meta.UUID:
	default:
		return o, false
	}
	o.lo, o.hi = m.lo, m.hi
	if class == keys.Bytes {
		// Several writers ignore empty values when they compute the minimum, so the
		// empty value may be anywhere.
		return o, l.Type == format.ByteArray && len(m.lo) > 0
	}
	o.size = l.TypeLength
	width, fixed := keys.FixedWidth(class)
	return o, fixed && l.Type == format.FixedLenByteArray && width == o.size
}

// maxDecimalWidth is the width of the widest decimals that can be keys.
const maxDecimalWidth = 32

// numbers fills in how the leaf stores numbers, and returns the stored value of the
// number one.
func (o *order) numbers(l *meta.Leaf, class keys.Class) (perOne *big.Int, ok bool) {
	o.number, o.little, o.signed = true, true, true
	bits := 0
	switch l.Type {
	case format.Int32:
		o.size, bits = 4, 32
	case format.Int64:
		o.size, bits = 8, 64
	case format.FixedLenByteArray:
		o.size, bits, o.little = l.TypeLength, 8*l.TypeLength, false
		if l.Logical.Kind != meta.Decimal || o.size > maxDecimalWidth {
			return nil, false
		}
	default: // INT96 has no order; decimals of variable length are ordered in several ways
		return nil, false
	}
	perOne = big.NewInt(1)
	switch kind := l.Logical.Kind; {
	case class == keys.Integer && kind == meta.None:
	case class == keys.Integer && kind == meta.Int:
		o.signed, bits = l.Logical.Signed, l.Logical.BitWidth
	case class == keys.Date && kind == meta.Date:
	case class == keys.Time && kind == meta.Time:
		perOne = keys.Pow10(3 * (int(l.Logical.Unit) + 1))
	case (class == keys.Instant || class == keys.Timestamp) && kind == meta.Timestamp:
		perOne = keys.Pow10(3 * (int(l.Logical.Unit) + 1))
	case class == keys.Decimal && kind == meta.Decimal && l.Logical.Scale <= l.Logical.Precision && l.Logical.Precision <= 8*maxDecimalWidth:
		perOne = keys.Pow10(l.Logical.Scale)
	default:
		return nil, false
	}
	o.least, o.most = new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(bits))
	if o.signed {
		o.most.Rsh(o.most, 1)
		o.least.Neg(o.most)
	}
	o.most.Sub(o.most, big.NewInt(1))
	return perOne, true
}

// place converts the bounds of the members to the leaf's unit. It rounds the lower
// one up and the upper one down, because the leaf has no values in between.
func (o *order) place(class keys.Class, m members, perOne *big.Int) bool {
	lo, ok := keys.Number(class, m.lo)
	hi, fine := keys.Number(class, m.hi)
	if !ok || !fine {
		return false
	}
	unit := new(big.Rat).SetInt(perOne)
	least, most := ceil(lo.Mul(lo, unit)), floor(hi.Mul(hi, unit))
	if least.Cmp(o.least) < 0 {
		least = o.least
	}
	if most.Cmp(o.most) > 0 {
		most = o.most
	}
	if o.empty = least.Cmp(most) > 0; !o.empty {
		o.lo, o.hi = o.bytes(least), o.bytes(most)
	}
	return true
}

func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) } // Euclidean division by a positive divisor

func ceil(r *big.Rat) *big.Int {
	n := floor(new(big.Rat).Neg(r))
	return n.Neg(n)
}

// bytes converts a number that the leaf can hold to the form of the order.
func (o *order) bytes(n *big.Int) []byte {
	if o.signed {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*o.size-1)))
	}
	return n.FillBytes(make([]byte, o.size))
}

// bound converts a bound from statistics to the form of the order. ok is false if
// the column cannot store such a value.
func (o *order) bound(stored []byte) (b []byte, ok bool) {
	if o.size > 0 && len(stored) != o.size {
		return nil, false
	}
	if !o.number {
		return stored, true
	}
	if o.float {
		return floatBound(stored)
	}
	b = slices.Clone(stored)
	if o.little {
		slices.Reverse(b)
	}
	if o.signed {
		b[0] ^= 0x80
	}
	return b, bytes.Compare(b, o.bytes(o.least)) >= 0 && bytes.Compare(b, o.bytes(o.most)) <= 0
}

// integer is the inverse of bytes, for leaves of up to 64 bits. For a signed leaf
// it returns 64-bit two's complement.
func (o *order) integer(b []byte) uint64 {
	v := binary.BigEndian.Uint64(append(make([]byte, 8-len(b)), b...))
	if o.signed {
		v -= 1 << (8*len(b) - 1)
	}
	return v
}

// clip returns the range in which members may be among values that, according to
// statistics, lie from least to most; nil: no bound. ok is false if there is no
// such range. Invalid bounds are ignored.
func (o *order) clip(least, most []byte) (lo, hi []byte, ok bool) {
	lo, hi = o.lo, o.hi
	if o.size == 0 && meta.OpenEnded(most) {
		most = nil
	}
	for _, b := range []*[]byte{&least, &most} {
		if *b == nil {
			continue
		}
		var fits bool
		if *b, fits = o.bound(*b); !fits {
			return lo, hi, true
		}
	}
	if least != nil && most != nil && bytes.Compare(least, most) > 0 {
		return lo, hi, true // the writer used another order
	}
	if least != nil && bytes.Compare(least, lo) > 0 {
		lo = least
	}
	if most != nil && bytes.Compare(most, hi) < 0 {
		hi = most
	}
	return lo, hi, bytes.Compare(lo, hi) <= 0
}

// covers reports whether all values from least to most are between the members'
// bounds.
func (o *order) covers(least, most []byte) bool {
	a, ok := o.bound(least)
	b, fine := o.bound(most)
	return least != nil && most != nil && ok && fine && bytes.Compare(o.lo, a) <= 0 && bytes.Compare(b, o.hi) <= 0
}

// apart reports whether no member is among values from least to most, as in clip.
// set, if not nil, contains all members.
func (o *order) apart(least, most []byte, set *exact.Set) bool {
	lo, hi, ok := o.clip(least, most)
	return !ok || set != nil && !set.Any(o.integer(lo), o.integer(hi), o.signed)
}
