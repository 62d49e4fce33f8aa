package countmin

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Point is an integer from -2^63 to 2^64-1, with a weight.
type Point struct {
	Value    uint64 // in two's complement if negative
	Negative bool
	Weight   uint64
}

// compare orders points by value.
func (p Point) compare(q Point) int {
	if p.Negative != q.Negative {
		if p.Negative {
			return -1
		}
		return 1
	}
	return cmp.Compare(p.Value, q.Value)
}

// Ranges counts integers so that ranges of them can be estimated: a dyadic hierarchy of tables.
// Level l counts the intervals of 2^l integers, the negative ones apart from the others. The lowest
// level that has no more intervals than a table has counters is the last, and counts each interval
// exactly. For concurrent use it is as a Table.
type Ranges struct {
	levels []*Table // from 0, below the exact level: one or more
	exact  []uint64 // of the intervals of 2^len(levels) integers: those that are not negative come first
}

// levelsOf returns the number of levels with tables.
func levelsOf(p Params) int {
	n := 0
	for ; n < 62 && intervals(n) > p.Width*uint64(p.Depth); n++ {
	}
	return n
}

// intervals returns the number of intervals of a level.
func intervals(level int) uint64 { return positive(level) + positive(level)/2 }

// positive returns the number of intervals that are not negative. Level 0 has 2^64, which does not
// fit: half of it is returned, which is still more than any table has.
func positive(level int) uint64 { return 1 << (63 - max(level-1, 0)) }

// RangesBytes returns the size of the counters of a hierarchy.
func RangesBytes(p Params) uint64 {
	n := levelsOf(p)
	return uint64(n)*p.Bytes() + 8*intervals(n)
}

// NewRanges returns an empty hierarchy of tables with these parameters.
func NewRanges(p Params, seed uint64) *Ranges {
	n := levelsOf(p)
	r := &Ranges{exact: make([]uint64, intervals(n))}
	for l := range n {
		r.levels = append(r.levels, NewTable(p, seed+uint64(l)+1))
	}
	return r
}

// cell returns the exact counter of an interval.
func (r *Ranges) cell(interval uint64, negative bool) *uint64 {
	if n := positive(len(r.levels)); negative {
		return &r.exact[n+interval-n/2] // negative numbers have the upper half of all bit patterns
	}
	return &r.exact[interval]
}

// Add adds points, and sorts them. The error is ErrOverflow.
func (r *Ranges) Add(points []Point) error {
	slices.SortFunc(points, Point.compare)
	total := r.levels[0].total
	for _, p := range points {
		var over uint64
		if total, over = bits.Add64(total, p.Weight, 0); over != 0 {
			return ErrOverflow
		}
	}
	for _, t := range r.levels {
		points = joined(points)
		for i := range points {
			p := &points[i]
			if err := t.Add(p.Value, p.Negative, p.Weight); err != nil {
				return err
			}
			p.Value >>= 1
		}
	}
	for _, p := range points {
		*r.cell(p.Value, p.Negative) += p.Weight
	}
	return nil
}

// joined adds up neighbours that are equal, in place.
func joined(points []Point) []Point {
	n := 0
	for _, p := range points {
		if n > 0 && points[n-1].compare(p) == 0 {
			points[n-1].Weight += p.Weight
			continue
		}
		points[n] = p
		n++
	}
	return points[:n]
}

// Estimate returns an upper bound on the weight of the integers from lo to hi, inclusive, whose
// weights are ignored. It exceeds the true one by more than nodes·ε·total with probability δ at
// most (theorem 4 of the paper): nodes is the number of intervals that were estimated.
func (r *Ranges) Estimate(lo, hi Point) (most uint64, nodes int) {
	switch {
	case lo.compare(hi) > 0:
		return 0, 0
	case lo.Negative && !hi.Negative:
		below, n := r.within(lo.Value, math.MaxUint64, true)
		above, m := r.within(0, hi.Value, false)
		most, nodes = capped(below, above), n+m
	default:
		most, nodes = r.within(lo.Value, hi.Value, lo.Negative)
	}
	return min(most, r.levels[0].total), nodes
}

// within estimates a range of integers of one sign.
func (r *Ranges) within(lo, hi uint64, negative bool) (most uint64, nodes int) {
	for _, t := range r.levels {
		take := func(interval uint64) {
			most = capped(most, t.Estimate(interval, negative))
			nodes++
		}
		if lo&1 == 1 { // its neighbour to the left, the other half of its parent, is outside
			take(lo)
			if lo == hi {
				return most, nodes
			}
			lo++
		}
		if hi&1 == 0 {
			take(hi)
			if lo == hi {
				return most, nodes
			}
			hi--
		}
		if lo > hi {
			return most, nodes
		}
		lo, hi = lo>>1, hi>>1
	}
	for x := lo; x <= hi; x++ {
		most = capped(most, *r.cell(x, negative))
	}
	return most, nodes
}

// capped returns the sum of two weights, or the largest weight.
func capped(a, b uint64) uint64 {
	if sum, over := bits.Add64(a, b, 0); over == 0 {
		return sum
	}
	return math.MaxUint64
}

// Heavy returns the integers whose estimated weight is at least the threshold, with that
// estimate, in ascending order. They include all whose weight is at least the threshold. Another
// one is among them only if its weight is above threshold-ε·total or, with probability δ, by
// mistake. ok is false if there are more than most in a level, as with a threshold below ε·total.
func (r *Ranges) Heavy(threshold uint64, most int) (found []Point, ok bool) {
	n := positive(len(r.levels))
	for i, c := range r.exact {
		if c < threshold || c == 0 {
			continue
		}
		p := Point{Value: uint64(i), Weight: c}
		if p.Value >= n {
			p.Value, p.Negative = p.Value-n+n/2, true
		}
		found = append(found, p)
	}
	for l := len(r.levels) - 1; l >= 0; l-- {
		if len(found) > most {
			return nil, false
		}
		parents := found
		found = nil
		for _, p := range parents {
			for half := range uint64(2) {
				x := p.Value<<1 | half
				if c := r.levels[l].Estimate(x, p.Negative); c >= threshold && c > 0 {
					found = append(found, Point{x, p.Negative, c})
				}
			}
		}
	}
	slices.SortFunc(found, Point.compare)
	return found, len(found) <= most
}

// Merge adds all weights of another hierarchy of the same parameters and seed. The error is
// ErrOverflow; nothing is changed then.
func (r *Ranges) Merge(s *Ranges) error {
	for l, t := range r.levels { // all have the same total
		if err := t.Merge(s.levels[l]); err != nil {
			return err
		}
	}
	for i, c := range s.exact {
		r.exact[i] += c
	}
	return nil
}

// Counters returns the counters of each level, from 0, and the exact ones, for a file.
func (r *Ranges) Counters() (all [][]uint64) {
	for _, t := range r.levels {
		all = append(all, t.counters)
	}
	return append(all, r.exact)
}

// SetTotal is that of a Table, for all levels.
func (r *Ranges) SetTotal(total uint64) (ok bool) {
	for _, t := range r.levels {
		if !t.SetTotal(total) {
			return false
		}
	}
	sum, fits := sumOf(r.exact)
	return fits && sum == total
}
