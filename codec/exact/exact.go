// Package exact is a compressed set of integers. A filter of package codec holds one in
// place of a Bloom filter's bits if that is smaller.
//
// A [Set] is two compressed bitmaps, of the negative integers and of the others, so that -1
// and 2^64-1 stay distinct. A set that is asked often builds itself an index.
//
// Methods that only read may run concurrently; those that change a set need exclusive access.
package exact

import (
	"iter"

	room "github.com/bloomjoin/bloomjoin/internal/exact"
)

// Set is a set of integers from -2^63 to 2^64-1. The zero value is an empty set, ready to
// use. A nil *Set is empty too, but cannot be changed. The set of a filter must not be
// changed.
type Set room.Set

func (s *Set) in() *room.Set { return (*room.Set)(s) }

// Add adds values: int64s in two's complement if signed, else uint64s. It does not keep the
// slice. Ascending values are added several times faster than others, and random ones are
// cheapest in batches of 2^16 to 2^20.
func (s *Set) Add(values []uint64, signed bool) { s.in().Add(values, signed) }

// Len returns the number of members.
func (s *Set) Len() uint64 { return s.in().Len() }

// Members yields the members in ascending order, and whether each is negative: an int64 in
// two's complement.
func (s *Set) Members() iter.Seq2[uint64, bool] {
	return func(yield func(uint64, bool) bool) {
		s.in().Values(func(values []uint64, signed bool) bool {
			for _, v := range values {
				if !yield(v, signed) {
					return false
				}
			}
			return true
		})
	}
}

// Probe appends to rows the positions in values of the members, in ascending order, and
// returns it. Values are int64s in two's complement if signed, else uint64s; there may be
// up to 2^32. If rows has the capacity, Probe allocates nothing except an index.
func (s *Set) Probe(values []uint64, signed bool, rows []uint32) []uint32 {
	return s.in().Probe(values, signed, rows)
}

// Union adds all members of t to s. t is unchanged.
func (s *Set) Union(t *Set) { s.in().Union(t.in()) }

// Intersect removes from s all values that are not in t. t is unchanged.
func (s *Set) Intersect(t *Set) { s.in().Intersect(t.in()) }

// Difference removes from s all values that are in t. t is unchanged, unless it is s.
func (s *Set) Difference(t *Set) { s.in().Difference(t.in()) }
