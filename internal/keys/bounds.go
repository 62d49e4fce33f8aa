package keys

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Bounds are the smallest and the largest value of each key column. They depend on
// the set of keys alone, not on its order or on how it was divided among workers.
// Columns whose class has no order have no bounds. Bounds are not safe for
// concurrent use.
type Bounds struct {
	classes []Class
	columns []extent
}

// maxBound is the longest bound, in bytes, of a string column. Longer bounds are
// shortened: the lower one to its prefix, the upper one to the smallest string
// above every string with its prefix. Both shortenings preserve order (a ≤ b gives
// a' ≤ b'), so it does not matter whether they happen before or after a merge.
const maxBound = 64

// extent is one column's bounds as parts of composite keys, nil before the first
// value. Once lost is set, nothing is known about the column.
type extent struct {
	lo, hi []byte
	lost   bool
}

// NewBounds returns the bounds of an empty set of keys.
func NewBounds(classes []Class) *Bounds {
	b := &Bounds{classes: classes, columns: make([]extent, len(classes))}
	for i, c := range classes {
		w, fixed := FixedWidth(c)
		b.columns[i].lost = OrderOf(c) == Unordered || fixed && w > maxBound
	}
	return b
}

// Column returns the inclusive bounds of column i, each as a part of a composite
// key. ok is false if there are no keys or the bounds are unknown.
func (b *Bounds) Column(i int) (lo, hi []byte, ok bool) {
	if b == nil || i < 0 || i >= len(b.columns) {
		return nil, nil, false
	}
	e := b.columns[i]
	return e.lo, e.hi, !e.lost && e.lo != nil
}

// Widen extends the bounds of column i to include the key parts lo and hi. If known
// is false, the column's bounds become unknown. A column that is not there is ignored.
func (b *Bounds) Widen(i int, lo, hi []byte, known bool) {
	if b == nil || i < 0 || i >= len(b.columns) {
		return
	}
	if !known {
		b.columns[i] = extent{lost: true}
		return
	}
	b.put(i, lo)
	b.put(i, hi)
}

// Merge extends b to include the keys of c, which must have the same classes and
// stays unchanged. A nil c has no keys.
func (b *Bounds) Merge(c *Bounds) {
	if c == nil {
		return
	}
	for i, e := range c.columns {
		if e.lost || e.lo != nil {
			b.Widen(i, e.lo, e.hi, !e.lost)
		}
	}
}

// Intersect returns bounds of the keys that are in both sets.
// They must have the same classes; columns that only one of them has stay unknown. If
// either is nil, so is the result.
func (b *Bounds) Intersect(c *Bounds) *Bounds {
	if b == nil || c == nil {
		return nil
	}
	out := NewBounds(b.classes)
	for i, class := range b.classes {
		if i >= len(c.columns) {
			out.columns[i].lost = true
			continue
		}
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

// Add extends the bounds to include the keys of a batch.
// The zero value has no columns and stays as it is.
func (b *Bounds) Add(batch *Batch) {
	if b == nil || batch == nil || len(b.columns) == 0 {
		return
	}
	n := len(batch.Rows)
	switch {
	case n == 0:
	case batch.isInt:
		_ = batch.BySign(func(values []uint64, signed bool, _ []uint32) error { // fn returns no error
			lo, hi := minAndGreatest(values, signed)
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

// addStrings is Add for keys of one string column. It compares the first eight
// bytes first: they place nearly all keys between the current bounds.
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

// head returns the first eight bytes as a big-endian number, padded with zeros. If
// head(a) < head(b), then a < b.
func head(s []byte) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64(s)
	}
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}

// minAndGreatest returns the minimum and the maximum of integers that are all
// signed or all unsigned. In either case v lies outside [lo, hi] exactly if v-lo >
// hi-lo modulo 2^64, so the loop needs one branch, which is seldom taken.
func minAndGreatest(values []uint64, signed bool) (lo, hi uint64) {
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

// put extends the bounds of column i to include one value.
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

// raised returns the upper bound that is stored for b: b itself if it is short,
// else the smallest string above all strings that share its prefix, or nil if there
// is none. It modifies b.
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

// compareParts compares two values of a class that has an order, given as parts of
// composite keys.
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

// compareDecimals compares two decimals. It avoids big numbers when both unscaled
// values fit 64 bits.
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
	// Both have the same sign. Rescale the one with the smaller scale to the larger
	// scale; if it then overflows 64 bits, it is farther from zero.
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
