package parquet

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

const (
	maxIndexBound = 64      // bytes of a bound in a column index; longer byte arrays are shortened
	maxChunkBound = 1 << 10 // the same in a chunk's statistics
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

// valueOrder is the order used for the bounds of a leaf's values.
type valueOrder struct {
	by     comparison
	signed bool // for integers
	width  int  // bytes of a value, 0 for byte arrays
	text   bool // UTF-8
}

// valueOrders returns the order of each leaf. Leaves under a group with its own
// interpretation, such as a variant, are unordered.
func valueOrders(root *Node, leaves []Leaf) []valueOrder {
	out := make([]valueOrder, len(leaves))
	var walk func(n *Node, defined bool)
	walk = func(n *Node, defined bool) {
		if n.Leaf >= 0 {
			if defined {
				out[n.Leaf] = orderOf(&leaves[n.Leaf])
			}
			return
		}
		defined = defined && (n.Logical.Kind == None || n.Logical.Kind == List || n.Logical.Kind == Map)
		for _, child := range n.Children {
			walk(child, defined)
		}
	}
	walk(root, true)
	return out
}

func orderOf(l *Leaf) valueOrder {
	o := valueOrder{width: l.Width(), signed: true}
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

// bounds are the smallest and the largest of some values, PLAIN encoded, byte
// arrays without their length. lo is nil if there are none: there was no value, or,
// if broken is set, a value without an order.
type bounds struct {
	lo, hi []byte
	broken bool
}

// boundsOf returns the bounds of n values in PLAIN encoding. They may share plain's
// memory.
func (o valueOrder) boundsOf(plain []byte, n int, l *Leaf) (bounds, error) {
	if n == 0 {
		return bounds{}, nil
	}
	switch o.by {
	case booleans:
		return boolBounds(plain, n), nil
	case integers:
		return intBounds(plain, o.width, o.signed), nil
	case floats:
		return floatBounds(plain, o.width), nil
	case bytewise:
		if o.width == 0 {
			return byteArrayBounds(plain, n)
		}
		return fixedBounds(plain, o.width, 0), nil
	case bigEndianInt:
		if o.width == 0 {
			return decimalBounds(plain, n)
		}
		return fixedBounds(plain, o.width, 1<<63), nil
	}
	return bounds{broken: true}, nil
}

// add widens b to include o. It copies what it keeps.
func (b *bounds) add(by valueOrder, o bounds) {
	b.broken = b.broken || o.broken
	if o.lo == nil || b.broken {
		return
	}
	if b.lo == nil || by.compare(o.lo, b.lo) < 0 {
		b.lo = bytes.Clone(o.lo)
	}
	if b.hi == nil || by.compare(o.hi, b.hi) > 0 {
		b.hi = bytes.Clone(o.hi)
	}
}

// compare compares two values that have a place in the order.
func (o valueOrder) compare(a, b []byte) int {
	switch o.by {
	case integers, floats:
		x, y := orderKey(a, o), orderKey(b, o)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	case bigEndianInt:
		return compareDecimals(a, b)
	default:
		return bytes.Compare(a, b)
	}
}

// orderKey returns a number that has the same order as v.
func orderKey(v []byte, o valueOrder) int64 {
	switch len(v) {
	case 2:
		return int64(floatKey(int64(int16(binary.LittleEndian.Uint16(v)))))
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

func boolBounds(plain []byte, n int) bounds {
	ones := 0
	for _, c := range plain[:n/8] {
		ones += int(bitCount[c>>4] + bitCount[c&15])
	}
	if n%8 > 0 {
		c := plain[n/8] & (1<<(n%8) - 1)
		ones += int(bitCount[c>>4] + bitCount[c&15])
	}
	b := bounds{lo: []byte{0}, hi: []byte{0}}
	if ones == n {
		b.lo[0] = 1
	}
	if ones > 0 {
		b.hi[0] = 1
	}
	return b
}

var bitCount = [16]uint8{0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4}

func intBounds(plain []byte, width int, signed bool) bounds {
	le := binary.LittleEndian
	if width == 4 {
		flip := uint32(0)
		if !signed {
			flip = 1 << 31
		}
		lo, hi := int32(math.MaxInt32), int32(math.MinInt32)
		for ; len(plain) >= 8; plain = plain[8:] {
			x := le.Uint64(plain)
			a, b := int32(uint32(x)^flip), int32(uint32(x>>32)^flip)
			lo, hi = min(lo, min(a, b)), max(hi, max(a, b))
		}
		if len(plain) >= 4 {
			a := int32(le.Uint32(plain) ^ flip)
			lo, hi = min(lo, a), max(hi, a)
		}
		return bounds{lo: le.AppendUint32(nil, uint32(lo)^flip), hi: le.AppendUint32(nil, uint32(hi)^flip)}
	}
	flip := uint64(0)
	if !signed {
		flip = 1 << 63
	}
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	for ; len(plain) >= 16; plain = plain[16:] {
		a, b := int64(le.Uint64(plain)^flip), int64(le.Uint64(plain[8:])^flip)
		lo, hi = min(lo, min(a, b)), max(hi, max(a, b))
	}
	if len(plain) >= 8 {
		a := int64(le.Uint64(plain) ^ flip)
		lo, hi = min(lo, a), max(hi, a)
	}
	return bounds{lo: le.AppendUint64(nil, uint64(lo)^flip), hi: le.AppendUint64(nil, uint64(hi)^flip)}
}

// floatBounds widens zero bounds to -0 and 0, as the format requires of writers. A
// NaN breaks the bounds.
func floatBounds(plain []byte, width int) bounds {
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	var inf, sign uint64
	le := binary.LittleEndian
	greatest := uint64(0) // largest magnitude
	switch width {
	case 2:
		inf, sign = 0x7c00, 1<<15
		for ; len(plain) >= 2; plain = plain[2:] {
			x := int64(int16(le.Uint16(plain)))
			k := floatKey(x)
			lo, hi, greatest = min(lo, k), max(hi, k), max(greatest, uint64(x)&math.MaxInt16)
		}
	case 4:
		inf, sign = 0x7f800000, 1<<31
		for ; len(plain) >= 4; plain = plain[4:] {
			x := int64(int32(le.Uint32(plain)))
			k := floatKey(x)
			lo, hi, greatest = min(lo, k), max(hi, k), max(greatest, uint64(x)&math.MaxInt32)
		}
	default:
		inf, sign = 0x7ff0000000000000, 1<<63
		for ; len(plain) >= 8; plain = plain[8:] {
			x := int64(le.Uint64(plain))
			k := floatKey(x)
			lo, hi, greatest = min(lo, k), max(hi, k), max(greatest, uint64(x)&math.MaxInt64)
		}
	}
	if greatest > inf {
		return bounds{broken: true}
	}
	a, b := uint64(floatKey(lo)), uint64(floatKey(hi)) // floatKey is its own inverse
	if lo == 0 {
		a = sign
	}
	if hi == -1 {
		b = 0
	}
	return bounds{lo: le.AppendUint64(nil, a)[:width], hi: le.AppendUint64(nil, b)[:width]}
}

// fixedBounds compares bytewise. flip is 1<<63 if the first bit is a sign.
func fixedBounds(plain []byte, width int, flip uint64) bounds {
	lo, hi := plain[:width], plain[:width]
	kl := headKey(lo) ^ flip
	kh := kl
	for v := plain[width:]; len(v) >= width; v = v[width:] {
		k := headKey(v[:width]) ^ flip
		switch {
		case k > kl && k < kh:
		case k < kl || k == kl && width > 8 && bytes.Compare(v[8:width], lo[8:]) < 0:
			lo, kl = v[:width], k
		case k > kh || k == kh && width > 8 && bytes.Compare(v[8:width], hi[8:]) > 0:
			hi, kh = v[:width], k
		}
	}
	return bounds{lo: lo, hi: hi}
}

// headKey returns the first eight bytes of v as a big-endian number, padded with
// zeros.
func headKey(v []byte) uint64 {
	if len(v) >= 8 {
		return binary.BigEndian.Uint64(v)
	}
	k := uint64(0)
	for i, c := range v {
		k |= uint64(c) << (56 - 8*i)
	}
	return k
}

// byteArrayBounds first compares the eight bytes after the prefix that the current
// bounds share, padded with zeros. If they lie between those of the bounds, so does
// the value. Only other values are compared in full.
func byteArrayBounds(plain []byte, n int) (bounds, error) {
	var lo, hi []byte
	var kl, kh uint64 // keys of the eight bytes after the prefix of lo and hi
	prefix, pos := 0, 0
	for i := range n {
		v, next, err := enc.ByteArrayAt(plain, pos)
		if err != nil {
			return bounds{}, err
		}
		at := pos + 4 + prefix
		pos = next
		if left := next - at; left >= 0 && at+8 <= len(plain) && i > 0 {
			k := binary.BigEndian.Uint64(plain[at:])
			if left < 8 {
				k &= ^uint64(0) << (64 - 8*left)
			}
			if k > kl && k < kh && string(v[:prefix]) == string(lo[:prefix]) {
				continue
			}
		}
		switch {
		case i == 0:
			lo, hi = v, v
		case bytes.Compare(v, lo) < 0:
			lo = v
		case bytes.Compare(v, hi) > 0:
			hi = v
		default:
			continue
		}
		prefix = enc.SharedPrefix(lo, hi)
		kl, kh = headKey(lo[prefix:]), headKey(hi[prefix:])
	}
	if pos < len(plain) {
		return bounds{}, enc.ErrTrailing
	}
	return bounds{lo: lo, hi: hi}, nil
}

// decimalBounds returns the bounds of two's complement numbers of any length. An
// empty value is not a number.
func decimalBounds(plain []byte, n int) (bounds, error) {
	var b bounds
	pos := 0
	for range n {
		v, next, err := enc.ByteArrayAt(plain, pos)
		if err != nil {
			return bounds{}, err
		}
		pos = next
		if len(v) == 0 {
			b.broken = true
			continue
		}
		if b.lo == nil || compareDecimals(v, b.lo) < 0 {
			b.lo = v
		}
		if b.hi == nil || compareDecimals(v, b.hi) > 0 {
			b.hi = v
		}
	}
	switch {
	case pos < len(plain):
		return bounds{}, enc.ErrTrailing
	case b.broken:
		return bounds{broken: true}, nil
	}
	return b, nil
}

// compareDecimals compares non-empty big-endian two's complement numbers.
func compareDecimals(a, b []byte) int {
	negative := a[0] >= 0x80
	if negative != (b[0] >= 0x80) {
		if negative {
			return -1
		}
		return 1
	}
	a, b = significant(a), significant(b)
	switch {
	case len(a) == len(b):
		return bytes.Compare(a, b) // the signs are equal
	case (len(a) < len(b)) != negative:
		return -1
	}
	return 1
}

// significant removes leading bytes that only repeat the sign.
func significant(v []byte) []byte {
	for len(v) > 1 && (v[0] == 0 && v[1] < 0x80 || v[0] == 0xff && v[1] >= 0x80) {
		v = v[1:]
	}
	return v
}

// within returns bounds of at most limit bytes that include b, and whether they are
// exact. It returns none if b cannot be shortened.
func (o valueOrder) within(b bounds, limit int) (lo, hi []byte, exactLo, exactHi bool) {
	if b.lo == nil || b.broken {
		return nil, nil, false, false
	}
	lo, hi = b.lo, b.hi
	exactLo, exactHi = len(lo) <= limit, len(hi) <= limit
	if exactLo && exactHi {
		return lo, hi, true, true
	}
	if o.by != bytewise || o.width > 0 { // shortening would change the length or the number
		if max(len(lo), len(hi)) > maxChunkBound {
			return nil, nil, false, false
		}
		return lo, hi, true, true
	}
	if !exactLo {
		lo = cut(lo, limit, o.text)
	}
	if !exactHi {
		if hi = above(cut(hi, limit, o.text), o.text); hi == nil {
			return nil, nil, false, false
		}
	}
	return lo, hi, exactLo, exactHi
}

// cut returns the first limit bytes of v, which is longer, or fewer if that would
// split a character of text.
func cut(v []byte, limit int, text bool) []byte {
	if text {
		for n := limit; n > limit-utf8.UTFMax; n-- {
			if utf8.RuneStart(v[n]) && utf8.Valid(v[:n]) {
				return v[:n:n]
			}
		}
	}
	return v[:limit:limit]
}

// above returns bytes that are greater than everything that starts with v, and not
// longer. They are text if v is. It returns nil if there are none.
func above(v []byte, text bool) []byte {
	if text && utf8.Valid(v) {
		for n := len(v); n > 0; {
			r, size := utf8.DecodeLastRune(v[:n])
			n -= size
			next := r + 1
			if next == 0xd800 { // skip the surrogates, which are not characters
				next = 0xe000
			}
			if next <= utf8.MaxRune && utf8.RuneLen(next) == size {
				return utf8.AppendRune(v[:n:n], next)
			}
		}
		return nil
	}
	for n := len(v); n > 0; n-- {
		if c := v[n-1]; c != 0xff {
			return append(v[:n-1:n-1], c+1)
		}
	}
	return nil
}

// statistics returns a chunk's statistics.
func (o valueOrder) statistics(b bounds, nulls int64) Statistics {
	s := Statistics{NullCount: thrift.New(nulls)}
	lo, hi, exactLo, exactHi := o.within(b, maxChunkBound)
	if lo == nil {
		return s
	}
	s.MinValue, s.MaxValue = thrift.New(lo), thrift.New(hi)
	if o.by != floats { // zeros may have been widened
		s.IsMinValueExact, s.IsMaxValueExact = thrift.New(exactLo), thrift.New(exactHi)
	}
	return s
}
