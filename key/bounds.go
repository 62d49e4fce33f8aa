package key

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Bounds are the least and the greatest value that keys have in each of their
// columns. They follow from the set of keys alone: neither order nor division
// of the keys matters. Columns of classes without an order have none. One
// goroutine uses Bounds at a time.
type Bounds struct {
	classes []Class
	columns []extent
}

// maxBound is the length of the longest bound of a column of byte strings.
// Longer ones are cut off: the lower one to its prefix, the upper one to the
// least string that is above all those with its prefix. Of a ≤ b that makes
// a' ≤ b' in either way, so that it does not matter when it is done.
const maxBound = 64

// extent is one column's bounds, as parts of composite keys; nil before the
// first value. Once lost, nothing is known any more.
type extent struct {
	lo, hi []byte
	lost   bool
}

// NewBounds returns the bounds of no keys.
func NewBounds(classes []Class) *Bounds {
	b := &Bounds{classes: classes, columns: make([]extent, len(classes))}
	for i, c := range classes {
		w, fixed := FixedWidth(c)
		b.columns[i].lost = OrderOf(c) == Unordered || fixed && w > maxBound
	}
	return b
}

// Column returns the inclusive bounds of column i, each as a part of a
// composite key. ok is false if there are no keys, or nothing is known.
func (b *Bounds) Column(i int) (lo, hi []byte, ok bool) {
	e := b.columns[i]
	return e.lo, e.hi, !e.lost && e.lo != nil
}

// Widen makes the bounds of column i include lo and hi, two parts of keys. If
// not known, anything may be among the values of the column.
func (b *Bounds) Widen(i int, lo, hi []byte, known bool) {
	if !known {
		b.columns[i] = extent{lost: true}
		return
	}
	b.put(i, lo)
	b.put(i, hi)
}

// Merge includes the keys of c, which has the same classes and stays as it is.
func (b *Bounds) Merge(c *Bounds) {
	for i, e := range c.columns {
		if e.lost || e.lo != nil {
			b.Widen(i, e.lo, e.hi, !e.lost)
		}
	}
}

// Intersect returns bounds of the keys that are in both of two sets.
func (b *Bounds) Intersect(c *Bounds) *Bounds {
	out := NewBounds(b.classes)
	for i, class := range b.classes {
		d, e := b.columns[i], c.columns[i]
		switch {
		case d.lost:
			d = e
		case !e.lost && d.lo != nil && e.lo != nil:
			if compareParts(class, d.lo, e.lo) < 0 {
				d.lo = e.lo
			}
			if compareParts(class, d.hi, e.hi) > 0 {
				d.hi = e.hi
			}
			if compareParts(class, d.lo, d.hi) > 0 {
				d = extent{}
			}
		case !e.lost:
			d = extent{}
		}
		out.columns[i] = d
	}
	return out
}

// Add includes the keys of a batch.
func (b *Bounds) Add(batch *Batch) {
	n := len(batch.Rows)
	switch {
	case n == 0:
	case batch.isInt:
		_ = batch.BySign(func(values []uint64, signed bool, _ []uint32) error { // which does not fail
			lo, hi := leastAndGreatest(values, signed)
			b.put(0, appendInt(nil, lo, signed && int64(lo) < 0))
			b.put(0, appendInt(nil, hi, signed && int64(hi) < 0))
			return nil
		})
	case len(b.columns) == 1:
		if OrderOf(b.classes[0]) == ByBytes {
			b.addStrings(batch)
			return
		}
		for i := range n {
			b.put(0, batch.bytes(i))
		}
	default:
		for i := range n {
			key := batch.bytes(i)
			for c := range b.columns {
				size, at := binary.Uvarint(key)
				b.put(c, key[at:at+int(size)])
				key = key[at+int(size):]
			}
		}
	}
}

// addStrings is Add for keys that are one column of byte strings. Nearly all of
// them lie between the bounds so far by their first eight bytes.
func (b *Bounds) addStrings(batch *Batch) {
	e := &b.columns[0]
	if e.lost {
		return
	}
	lo, hi := head(e.lo), head(e.hi)
	for i := range batch.Rows {
		key := batch.bytes(i)
		if e.lo != nil {
			if h := head(key); h > lo && h < hi || bytes.Compare(key, e.lo) >= 0 && bytes.Compare(key, e.hi) <= 0 {
				continue
			}
		}
		b.put(0, key)
		lo, hi = head(e.lo), head(e.hi)
	}
}

// head returns the first eight bytes as a number, missing ones as zero: of two
// strings, the one with the smaller head is the smaller.
func head(s []byte) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64(s)
	}
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}

// leastAndGreatest of integers that are all signed or none. In either case a
// value is outside of the range so far if it is farther from its lower end than
// the upper end is, round the circle of 64 bits: one branch, which is seldom
// taken.
func leastAndGreatest(values []uint64, signed bool) (lo, hi uint64) {
	lo, hi = values[0], values[0]
	for _, v := range values {
		if v-lo > hi-lo {
			if v < lo && !signed || signed && int64(v) < int64(lo) {
				lo = v
			} else {
				hi = v
			}
		}
	}
	return lo, hi
}

// put includes one value of a column.
func (b *Bounds) put(i int, part []byte) {
	e, class := &b.columns[i], b.classes[i]
	if class == Decimal && !expandable(part) {
		e.lost = true
	}
	if e.lost {
		return
	}
	if e.lo == nil || compareParts(class, part, e.lo) < 0 {
		lo := part
		if class == Bytes {
			lo = lo[:min(len(lo), maxBound)]
		}
		e.lo = append([]byte{}, lo...)
	}
	if e.hi == nil || compareParts(class, part, e.hi) > 0 {
		hi := append([]byte{}, part...)
		if class == Bytes {
			hi = raised(hi)
		}
		if *e = (extent{lo: e.lo, hi: hi}); hi == nil {
			*e = extent{lost: true}
		}
	}
}

// raised returns the upper bound that stands for b: b itself, if it is short,
// else the least string above all that begin as b does; nil if there is none. It
// changes b.
func raised(b []byte) []byte {
	if len(b) <= maxBound {
		return b
	}
	for end := maxBound; end > 0; end-- {
		if b[end-1] != 0xff {
			b[end-1]++
			return b[:end:end]
		}
	}
	return nil
}

// compareParts compares two values of a class that has an order, given as parts
// of composite keys.
func compareParts(c Class, a, b []byte) int {
	switch c {
	case Integer:
		if a[8] != b[8] {
			return int(b[8]) - int(a[8])
		}
		return compare(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b))
	case Date, Instant, Timestamp, Time, Duration:
		n := compare(int64(binary.LittleEndian.Uint64(a)), int64(binary.LittleEndian.Uint64(b)))
		if n == 0 && c != Date && c != Time {
			n = compare(binary.LittleEndian.Uint32(a[8:]), binary.LittleEndian.Uint32(b[8:]))
		}
		return n
	case Decimal:
		return compareDecimals(a, b)
	}
	return bytes.Compare(a, b)
}

func compare[T int64 | uint64 | uint32](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// compareDecimals goes without big numbers for those whose digits have 64 bits.
func compareDecimals(a, b []byte) int {
	if len(a) > 12 || len(b) > 12 {
		x, _ := Number(Decimal, a)
		y, _ := Number(Decimal, b)
		return x.Cmp(y)
	}
	v, w := digits(a[4:]), digits(b[4:])
	if v < 0 != (w < 0) || v == 0 || w == 0 {
		return compare(v, w)
	}
	// Of two with one sign, the one of the lesser scale takes on the other's.
	// If that leaves 64 bits, it is the one farther from zero.
	far := 1
	if v < 0 {
		far = -1
	}
	p, q := magnitude(v), magnitude(w)
	scale := int64(int32(binary.LittleEndian.Uint32(a))) - int64(int32(binary.LittleEndian.Uint32(b)))
	for ; scale > 0; scale-- {
		over := uint64(0)
		if over, q = bits.Mul64(q, 10); over > 0 {
			return -far
		}
	}
	for ; scale < 0; scale++ {
		over := uint64(0)
		if over, p = bits.Mul64(p, 10); over > 0 {
			return far
		}
	}
	return far * compare(p, q)
}

// digits reads up to eight bytes of big-endian two's complement.
func digits(b []byte) (v int64) {
	if b[0] >= 0x80 {
		v = -1
	}
	for _, x := range b {
		v = v<<8 | int64(x)
	}
	return v
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}
