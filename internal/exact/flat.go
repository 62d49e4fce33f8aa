package exact

import "github.com/bloomjoin/bloomjoin/internal/hugepage"

// flat has one bit for each integer between the smallest and the largest member. It
// suits dense sets: if one in k of sequential IDs is a member, it takes k bits per
// member, and a probe is one load.
type flat struct {
	words []uint64
	views [2]view // for unsigned and for signed values
}

// view is a part of the bitmap, addressed by the two's complement of a value. The
// last word is zero and stands for all values outside the view.
type view struct {
	base  uint64 // value of the first bit, a multiple of 64
	words []uint64
}

// extent is the range of a set's members.
type extent struct {
	low, high uint64 // smallest and largest member, in two's complement
	negative  bool   // the smallest is negative
	natural   bool   // the largest is not negative
}

func extentOf(s *Set) (e extent) {
	e.negative, e.natural = !s.negative.empty(), !s.natural.empty()
	switch {
	case e.negative && e.natural:
		e.low, e.high = s.negative.least(), s.natural.greatest()
	case e.negative:
		e.low, e.high = s.negative.least(), s.negative.greatest()
	case e.natural:
		e.low, e.high = s.natural.least(), s.natural.greatest()
	}
	return e
}

// words returns the number of words in a flat bitmap. ok is false for sets with
// members on both sides of 2^63, whose values cannot be distinguished from negative
// ones by a 64-bit difference.
func (e extent) words() (n uint64, ok bool) {
	const top = 1 << 63
	switch {
	case !e.negative && !e.natural:
		return 1, true
	case e.natural && e.high >= top && (e.negative || e.low < top):
		return 0, false
	}
	return (e.high-e.low&^63)/64 + 2, true
}

func newFlat(s *Set, e extent, n uint64) *flat {
	words := hugepage.Words(n)
	base := e.low &^ 63
	for values := range s.Values {
		for _, v := range values {
			off := v - base
			words[off/64] |= 1 << (off % 64)
		}
	}
	all := view{base: base, words: words}
	none := view{words: words[n-1:]}
	f := &flat{words: words, views: [2]view{all, all}}
	switch {
	case e.negative && e.natural:
		f.views[0] = view{words: words[-base/64:]} // from zero up
	case e.negative:
		f.views[0] = none
	case e.low >= 1<<63:
		f.views[1] = none
	}
	return f
}

// probe sets the bits in found of the values that are members. The inner loop has
// no branch that depends on a value, so the cache misses of many values overlap.
func (f *flat) probe(values []uint64, signed uint64, found *bitset) {
	base, words := f.views[signed].base, f.views[signed].words
	for at := 0; len(values) > 0; at++ {
		some := values[:min(64, len(values))]
		members := uint64(0)
		for i, v := range some {
			off := v - base
			word := words[min(off/64, uint64(len(words)-1))]
			members |= word >> (off % 64) & 1 << (i & 63)
		}
		found[at%len(found)] = members
		values = values[len(some):]
	}
}
