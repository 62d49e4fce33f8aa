package exact

import "github.com/bloomjoin/bloomjoin/internal/hugepage"

// Dense collects natural numbers that lie close together before they go to a [Set].
// It is a flat bitmap over their range, which takes random numbers ten times faster
// than compressed bitmaps do. It is not safe for concurrent use.
type Dense struct {
	most  uint64   // limit in bytes
	first uint64   // number of the first container, of 2^16 values
	words []uint64 // 1,024 for each container
}

// NewDense returns an empty collection of at most most bytes.
func NewDense(most uint64) *Dense { return &Dense{most: most} }

// Bytes returns the size of the collection in memory.
func (d *Dense) Bytes() uint64 { return 8 * uint64(len(d.words)) }

// Add adds values: int64s in two's complement if signed, else uint64s. If one is
// negative, or the range would take too many bytes, it changes nothing and returns
// false.
func (d *Dense) Add(values []uint64, signed bool) bool {
	if len(values) == 0 {
		return true
	}
	lo, hi := values[0], values[0]
	for _, v := range values {
		lo, hi = min(lo, v), max(hi, v)
	}
	if signed && int64(hi) < 0 || !d.cover(lo>>16, hi>>16) {
		return false
	}
	words, from := d.words, d.first<<16
	for _, v := range values {
		at := v - from
		words[at>>6] |= 1 << (at & 63)
	}
	return true
}

// cover makes room for containers lo to hi and reports whether they fit the limit.
func (d *Dense) cover(lo, hi uint64) bool {
	n := uint64(len(d.words)) / containerWords
	if n > 0 && lo >= d.first && hi-d.first < n {
		return true
	}
	if n > 0 {
		lo, hi = min(lo, d.first), max(hi, d.first+n-1)
	}
	most := d.most / (8 * containerWords)
	need := hi - lo + 1 // at most 2^48
	if need > most {
		return false
	}
	// Double the room, because ascending values keep asking for more.
	room := min(max(need, 2*n), most)
	if lo < d.first && n > 0 {
		lo -= min(lo, room-need)
	}
	words := hugepage.Words(room * containerWords)
	copy(words[(d.first-lo)*containerWords*min(n, 1):], d.words)
	d.first, d.words = lo, words
	return true
}

// Into adds the values to s.
func (d *Dense) Into(s *Set) {
	s.changed()
	var m bitmap
	for at := 0; at < len(d.words); at += containerWords {
		if c := packed((*words)(d.words[at:])); c.len() > 0 {
			m.keys, m.held = append(m.keys, d.first+uint64(at/containerWords)), append(m.held, c)
		}
	}
	s.natural.or(&m)
}
