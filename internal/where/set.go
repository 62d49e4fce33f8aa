package where

import (
	"slices"
	"sort"
)

// set is a set of values of an ordered type: some points, or an interval.
type set[T any] struct {
	cmp    func(a, b T) int
	points []T // ascending; nil: the interval
	lo, hi edge[T]
}

// edge is an end of an interval.
type edge[T any] struct {
	at   T
	open bool // at itself is outside
	none bool // unbounded
}

// pointsOf returns a set of points.
func pointsOf[T any](points []T, cmp func(a, b T) int) set[T] {
	points = slices.Clone(points)
	slices.SortFunc(points, cmp)
	points = slices.CompactFunc(points, func(a, b T) bool { return cmp(a, b) == 0 })
	return set[T]{cmp: cmp, points: slices.Grow(points, 1)} // not nil
}

// has reports whether the set contains a value.
func (s *set[T]) has(x T) bool {
	if s.points != nil {
		i := s.from(x)
		return i < len(s.points) && s.cmp(s.points[i], x) == 0
	}
	return s.above(x) && s.below(x)
}

// from returns the index of the first point that is at least x.
func (s *set[T]) from(x T) int {
	return sort.Search(len(s.points), func(i int) bool { return s.cmp(s.points[i], x) >= 0 })
}

// above reports whether x is not below the interval.
func (s *set[T]) above(x T) bool {
	c := 1
	if !s.lo.none {
		c = s.cmp(x, s.lo.at)
	}
	return c > 0 || c == 0 && !s.lo.open
}

// below reports whether x is not above the interval.
func (s *set[T]) below(x T) bool {
	c := -1
	if !s.hi.none {
		c = s.cmp(x, s.hi.at)
	}
	return c < 0 || c == 0 && !s.hi.open
}

// between reports whether values from lo to hi, inclusive, may be in the set, and
// whether they may be outside.
func (s *set[T]) between(lo, hi T) (in, out bool) {
	switch order := s.cmp(lo, hi); {
	case order > 0: // the bounds are in another order
		return true, true
	case order == 0:
		in = s.has(lo)
		return in, !in
	case s.points != nil:
		i := s.from(lo)
		return i < len(s.points) && s.cmp(s.points[i], hi) <= 0, true
	}
	in = s.below(lo) && s.above(hi)
	return in, !(s.has(lo) && s.has(hi))
}
