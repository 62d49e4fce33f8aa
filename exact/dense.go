package exact

import (
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/bloomjoin/bloomjoin/internal/hugepage"
)

// Dense collects natural numbers that lie close together on their way to a
// [Set]: as a flat bitmap over their range, into which random numbers go ten
// times faster than into compressed bitmaps. One goroutine uses it at a time.
type Dense struct {
	most  uint64   // bytes
	first uint64   // the number of the first container of 2^16 values
	words []uint64 // 1,024 for each container
}

// NewDense returns an empty collection that takes up to most bytes.
func NewDense(most uint64) *Dense { return &Dense{most: most} }

// containerWords is the number of words of a container's bitmap.
const containerWords = 1 << 16 / 64

// Bytes returns what the collection takes in memory.
func (d *Dense) Bytes() uint64 { return 8 * uint64(len(d.words)) }

// Add puts in values, in two's complement if signed. It reports false, having
// changed nothing, if one is negative, or their range takes too many bytes.
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

// cover makes room for the containers from lo to hi.
func (d *Dense) cover(lo, hi uint64) bool {
	n := uint64(len(d.words)) / containerWords
	if n > 0 && lo >= d.first && hi-d.first < n {
		return true
	}
	if n > 0 {
		lo, hi = min(lo, d.first), max(hi, d.first+n-1)
	}
	most := d.most / (8 * containerWords)
	need := hi - lo + 1 // of 2^48 at most
	if need > most {
		return false
	}
	// Values that come in order ask for more again and again.
	room := min(max(need, 2*n), most)
	if lo < d.first && n > 0 {
		lo -= min(lo, room-need)
	}
	words := hugepage.Words(room * containerWords)
	copy(words[(d.first-lo)*containerWords*min(n, 1):], d.words)
	d.first, d.words = lo, words
	return true
}

// Into puts the values into s.
func (d *Dense) Into(s *Set) {
	s.changed()
	const containers = 1 << 16 // in a bitmap of 2^32 values
	for words, at := d.words, d.first; len(words) > 0; {
		n := min(containers-at%containers, uint64(len(words))/containerWords)
		addDense(s.natural, at, words[:n*containerWords])
		words, at = words[n*containerWords:], at+n
	}
}

// addDense puts a flat bitmap that begins at the given container into m. It
// does not cross a multiple of 2^32.
func addDense(m *roaring64.Bitmap, first uint64, words []uint64) {
	if first < 1<<16 { // for others the library has no way
		flat := roaring.AddOffset64(roaring.FromDense(words, false), int64(first<<16))
		m.Or(roaring64.Roaring32AsRoaring64(flat))
		return
	}
	var values []uint64
	for i, w := range words {
		for base := first<<16 + uint64(i)<<6; w != 0; w &= w - 1 {
			values = append(values, base+uint64(bits.TrailingZeros64(w)))
		}
		if len(values) >= addPiece || i == len(words)-1 && len(values) > 0 {
			m.AddMany(values)
			values = values[:0]
		}
	}
}
