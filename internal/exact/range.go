package exact

import (
	"math"
	"slices"
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
// in two's complement if signed, else uint64s. It takes a binary search.
func (s *Set) Any(lo, hi uint64, signed bool) bool {
	_, none := s.Within(lo, hi, signed, 0)
	return !none
}

// Within returns the members from lo to hi, inclusive, in ascending order. All are
// int64s in two's complement if signed, else uint64s. If there are more than most,
// it returns nil and false.
func (s *Set) Within(lo, hi uint64, signed bool, most int) (members []uint64, ok bool) {
	s = s.read()
	var buf [64]uint64
	for _, r := range spans(lo, hi, signed) {
		m := &s.natural
		if r.negative {
			m = &s.negative
		}
		for c := m.seek(r.lo); r.lo <= r.hi; {
			n := m.read(&c, buf[:min(len(buf)-1, most-len(members))+1])
			found, last := slices.BinarySearch(buf[:n], r.hi)
			if last {
				found++
			}
			if len(members)+found > most {
				return nil, false
			}
			members = append(members, buf[:found]...)
			if found < n || n == 0 {
				break
			}
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
