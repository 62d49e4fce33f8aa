package meta

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

// MaxBound is the number of bytes of a bound in a chunk's statistics. Longer byte
// arrays are shortened.
const MaxBound = 1 << 10

// Bounds are the smallest and the largest of some values, PLAIN encoded, byte
// arrays without their length. lo is nil if there are none: there was no value, or,
// if broken is set, a value without an order.
type Bounds struct {
	Lo, Hi []byte
	Broken bool
}

// BoundsOf returns the bounds of n values in PLAIN encoding. They may share plain's
// memory.
func (o Order) BoundsOf(plain []byte, n int) (Bounds, error) {
	if n == 0 {
		return Bounds{}, nil
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
	return Bounds{Broken: true}, nil
}

// Add widens b to include o. It copies what it keeps.
func (b *Bounds) Add(by Order, o Bounds) {
	b.Broken = b.Broken || o.Broken
	if o.Lo == nil || b.Broken {
		return
	}
	if b.Lo == nil || by.Compare(o.Lo, b.Lo) < 0 {
		b.Lo = bytes.Clone(o.Lo)
	}
	if b.Hi == nil || by.Compare(o.Hi, b.Hi) > 0 {
		b.Hi = bytes.Clone(o.Hi)
	}
}

// Widen returns bounds that Admits allows, as BoundsOf would: a zero may have either sign.
func (o Order) Widen(b Bounds) Bounds {
	if o.by == floats {
		return floatBounds(slices.Concat(b.Lo, b.Hi), o.width)
	}
	return b
}

// WithoutNaN returns the floats of the given size in plain that are numbers.
func WithoutNaN(plain []byte, width int) (numbers []byte) {
	for v := range slices.Chunk(plain, width) {
		if !isNaN(v) {
			numbers = append(numbers, v...)
		}
	}
	return numbers
}

// Text returns bounds for messages.
func (o Order) Text(b Bounds) string {
	switch {
	case o.by == integers && o.signed && len(b.Lo) == o.width && len(b.Hi) == o.width:
		return fmt.Sprintf("%d to %d", orderKey(b.Lo, o), orderKey(b.Hi, o))
	case o.ByteArrays():
		return fmt.Sprintf("%.40q to %.40q", b.Lo, b.Hi)
	}
	return fmt.Sprintf("0x%.40x to 0x%.40x", b.Lo, b.Hi)
}

func boolBounds(plain []byte, n int) Bounds {
	ones := 0
	for _, c := range plain[:n/8] {
		ones += bits.OnesCount8(c)
	}
	if n%8 > 0 {
		ones += bits.OnesCount8(plain[n/8] << (8 - n%8))
	}
	b := Bounds{Lo: []byte{0}, Hi: []byte{0}}
	if ones == n {
		b.Lo[0] = 1
	}
	if ones > 0 {
		b.Hi[0] = 1
	}
	return b
}

func intBounds(plain []byte, width int, signed bool) Bounds {
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
		return Bounds{Lo: le.AppendUint32(nil, uint32(lo)^flip), Hi: le.AppendUint32(nil, uint32(hi)^flip)}
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
	return Bounds{Lo: le.AppendUint64(nil, uint64(lo)^flip), Hi: le.AppendUint64(nil, uint64(hi)^flip)}
}

// floatBounds widens zero bounds to -0 and 0, as the format requires of writers. A
// NaN breaks the bounds.
func floatBounds(plain []byte, width int) Bounds {
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
		return Bounds{Broken: true}
	}
	a, b := uint64(floatKey(lo)), uint64(floatKey(hi)) // floatKey is its own inverse
	if lo == 0 {
		a = sign
	}
	if hi == -1 {
		b = 0
	}
	return Bounds{Lo: le.AppendUint64(nil, a)[:width], Hi: le.AppendUint64(nil, b)[:width]}
}

// fixedBounds compares bytewise. flip is 1<<63 if the first bit is a sign.
func fixedBounds(plain []byte, width int, flip uint64) Bounds {
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
	return Bounds{Lo: lo, Hi: hi}
}

// headKey returns the first eight bytes of v as a big-endian number, padded with
// zeros.
func headKey(v []byte) uint64 {
	if len(v) >= 8 {
		return binary.BigEndian.Uint64(v)
	}
	var b [8]byte
	copy(b[:], v)
	return binary.BigEndian.Uint64(b[:])
}

func byteArrayBounds(plain []byte, n int) (Bounds, error) {
	var lo, hi []byte
	var in between
	pos := 0
	for i := 0; i < n; i++ {
		v, next, err := enc.ByteArrayAt(plain, pos)
		if err != nil {
			return Bounds{}, err
		}
		under, over := i == 0 || bytes.Compare(v, lo) < 0, i == 0 || bytes.Compare(v, hi) > 0
		if under {
			lo = v
		}
		if over {
			hi = v
		}
		if under || over {
			p := enc.SharedPrefix(lo, hi)
			in = between{lo[:p], headKey(lo[p:]), headKey(hi[p:])}
		}
		skipped, next := in.skip(plain, next, n-1-i)
		i, pos = i+skipped, next
	}
	if pos < len(plain) {
		return Bounds{}, enc.ErrTrailing
	}
	return Bounds{Lo: lo, Hi: hi}, nil
}

// between recognises byte arrays that surely lie between two others: they begin with the prefix
// that the two share, and their next eight bytes, padded with zeros, lie between those of the two.
type between struct {
	prefix []byte
	lo, hi uint64
}

// skip steps over at most n such values.
func (b between) skip(plain []byte, pos, n int) (skipped, next int) {
	p := len(b.prefix)
	for skipped < n && len(plain)-pos >= 4+p+8 {
		v := plain[pos+4:]
		size := int(binary.LittleEndian.Uint32(plain[pos:]))
		k := binary.BigEndian.Uint64(v[p:])
		if left := size - p; left < 8 {
			k &= ^uint64(0) << (64 - 8*max(left, 0))
		}
		if k <= b.lo || k >= b.hi || size > len(v) || p > 0 && string(v[:p]) != string(b.prefix) {
			break
		}
		pos += 4 + size
		skipped++
	}
	return skipped, pos
}

// decimalBounds returns the bounds of two's complement numbers of any length. An
// empty value is not a number.
func decimalBounds(plain []byte, n int) (Bounds, error) {
	var b Bounds
	pos := 0
	for range n {
		v, next, err := enc.ByteArrayAt(plain, pos)
		if err != nil {
			return Bounds{}, err
		}
		pos = next
		if len(v) == 0 {
			b.Broken = true
			continue
		}
		if b.Lo == nil || compareDecimals(v, b.Lo) < 0 {
			b.Lo = v
		}
		if b.Hi == nil || compareDecimals(v, b.Hi) > 0 {
			b.Hi = v
		}
	}
	switch {
	case pos < len(plain):
		return Bounds{}, enc.ErrTrailing
	case b.Broken:
		return Bounds{Broken: true}, nil
	}
	return b, nil
}

// Shorten returns bounds of at most limit bytes that include b, and whether they are
// exact. It returns none if b cannot be shortened.
func (o Order) Shorten(b Bounds, limit int) (lo, hi []byte, exactLo, exactHi bool) {
	if b.Lo == nil || b.Broken {
		return nil, nil, false, false
	}
	lo, hi = b.Lo, b.Hi
	exactLo, exactHi = len(lo) <= limit, len(hi) <= limit
	if exactLo && exactHi {
		return lo, hi, true, true
	}
	if o.by != bytewise || o.width > 0 { // shortening would change the length or the number
		if max(len(lo), len(hi)) > MaxBound {
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

// Statistics returns a chunk's statistics.
func (o Order) Statistics(b Bounds, nulls int64) Statistics {
	s := Statistics{NullCount: thrift.New(nulls)}
	lo, hi, exactLo, exactHi := o.Shorten(b, MaxBound)
	if lo == nil {
		return s
	}
	s.MinValue, s.MaxValue = thrift.New(lo), thrift.New(hi)
	if o.by != floats { // zeros may have been widened
		s.IsMinValueExact, s.IsMaxValueExact = thrift.New(exactLo), thrift.New(exactHi)
	}
	return s
}

// Clone returns a copy with its own memory.
func (b Bounds) Clone() Bounds {
	return Bounds{Lo: bytes.Clone(b.Lo), Hi: bytes.Clone(b.Hi), Broken: b.Broken}
}

// OpenEnded reports whether an upper bound of byte arrays may have been truncated
// without being raised, because no value of its length is above it.
func OpenEnded(b []byte) bool {
	for _, x := range b {
		if x != 0xff {
			return false
		}
	}
	return len(b) > 0
}
