package exact

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// Least returns the smallest member, in two's complement if it is negative. ok is
// false if the set is empty.
func (s *Set) Least() (v uint64, negative, ok bool) {
	e := extentOf(s.read())
	return e.low, e.negative, e.negative || e.natural
}

// Greatest returns the largest member, in two's complement if it is negative. ok is
// false if the set is empty.
func (s *Set) Greatest() (v uint64, negative, ok bool) {
	e := extentOf(s.read())
	return e.high, e.negative && !e.natural, e.negative || e.natural
}

// Any reports whether there is a member from lo to hi, inclusive. Both are int64s
// in two's complement if signed, else uint64s.
//
// It takes a binary search among the blocks of 2^16 neighbouring integers that have
// members, and a lookup in at most two of them. The first call lists the blocks,
// eight bytes each; a change of the set drops the list.
func (s *Set) Any(lo, hi uint64, signed bool) bool {
	s = s.read()
	b := s.blocks()
	for _, r := range spans(lo, hi, signed) {
		if b.any(s, r) {
			return true
		}
	}
	return false
}

// Within returns the members from lo to hi, inclusive, in ascending order. All are
// int64s in two's complement if signed, else uint64s. If there are more than most,
// it returns nil and false. It lists the blocks as [Set.Any] does.
func (s *Set) Within(lo, hi uint64, signed bool, most int) (members []uint64, ok bool) {
	s = s.read()
	b := s.blocks()
	for _, r := range spans(lo, hi, signed) {
		if members, ok = b.within(s, r, members, most); !ok {
			return nil, false
		}
	}
	return members, true
}

// span is an inclusive range of values of the same sign. It is empty if lo is above
// hi.
type span struct {
	lo, hi   uint64
	negative bool
}

// spans divides a range by sign.
func spans(lo, hi uint64, signed bool) [2]span {
	none := span{lo: 1}
	switch {
	case !signed || int64(lo) >= 0 && int64(hi) >= 0:
		return [2]span{{lo: lo, hi: hi}, none}
	case int64(hi) < 0:
		if int64(lo) >= 0 {
			return [2]span{none, none}
		}
		return [2]span{{lo: lo, hi: hi, negative: true}, none}
	}
	return [2]span{{lo: lo, hi: math.MaxUint64, negative: true}, {hi: hi}}
}

// blockBits is the number of low bits that locate a value within a block.
const blockBits = 16

// blocks lists, in ascending order, the blocks of neighbouring integers that have
// members: first of the natural, then of the negative ones.
type blocks [2][]uint64

func (s *Set) blocks() *blocks {
	if b := s.held.Load(); b != nil {
		return b
	}
	b := new(blocks)
	for i, m := range []*roaring64.Bitmap{&s.natural, &s.negative} {
		for it := m.Iterator(); it.HasNext(); {
			at := it.PeekNext() >> blockBits
			b[i] = append(b[i], at)
			if at == math.MaxUint64>>blockBits {
				break
			}
			it.AdvanceIfNeeded((at + 1) << blockBits)
		}
	}
	s.held.Store(b)
	return b
}

func (s *Set) half(r span) *roaring64.Bitmap {
	if r.negative {
		return &s.negative
	}
	return &s.natural
}

// overlap returns the blocks that overlap the span.
func (b *blocks) overlap(r span) []uint64 {
	list := b[sign(r.negative)]
	if r.lo > r.hi {
		return nil
	}
	from, _ := slices.BinarySearch(list, r.lo>>blockBits)
	to, last := slices.BinarySearch(list, r.hi>>blockBits)
	if last {
		to++
	}
	return list[from:to]
}

// any reports whether there is a member in the span. A listed block that lies
// entirely within the span has one.
func (b *blocks) any(s *Set, r span) bool {
	for _, at := range b.overlap(r) {
		part := r.in(at)
		if part.hi-part.lo == 1<<blockBits-1 || s.half(r).Intersects(part.bitmap()) {
			return true
		}
	}
	return false
}

// within appends the members in the span.
func (b *blocks) within(s *Set, r span, members []uint64, most int) ([]uint64, bool) {
	list := b.overlap(r)
	if len(list) > most-len(members)+2 { // every block but the first and the last has members in the span
		return nil, false
	}
	for _, at := range list {
		for it := roaring64.And(s.half(r), r.in(at).bitmap()).Iterator(); it.HasNext(); {
			if len(members) == most {
				return nil, false
			}
			members = append(members, it.Next())
		}
	}
	return members, true
}

// in returns the part of the span within a block that it overlaps.
func (r span) in(block uint64) span {
	first := block << blockBits
	return span{lo: max(r.lo, first), hi: min(r.hi, first+1<<blockBits-1), negative: r.negative}
}

// bitmap returns the values of a span that lies within one block.
func (r span) bitmap() *roaring64.Bitmap {
	m := roaring64.New()
	m.AddRange(r.lo, r.hi)
	m.Add(r.hi) // AddRange excludes its end, and hi+1 may overflow
	return m
}
