// Package exact holds sets of integers without error. For small or dense sets they
// beat a Bloom filter.
//
// A [Set] is two compressed bitmaps of 64-bit values, one of the negative integers
// and one of the others, so that -1 and 2^64-1 stay distinct. A file holds their
// members as Rice-coded gaps, which come close to the entropy of sets without
// structure. Equal sets give equal bytes, however they were built.
//
// Random probes of compressed bitmaps are slow. A set that is probed therefore also
// gets an index, a flat bitmap or a hash table, within a memory budget; see
// [Set.SetIndexBudget].
//
// Methods that only read, including Probe, may run concurrently. Methods that
// change a set need exclusive access.
package exact

import "sync/atomic"

// Set is a set of integers from -2^63 to 2^64-1. The zero value is an empty set,
// ready to use. A nil *Set is empty too, but cannot be changed.
type Set struct {
	negative bitmap // members below zero, in two's complement
	natural  bitmap // members from zero up

	index    atomic.Pointer[index] // nil: dropped or never probed
	budget   uint64                // of the index, valid if budgeted
	budgeted bool
}

// New returns an empty set.
func New() *Set {
	return new(Set)
}

// read returns the set itself, or an empty one for nil.
func (s *Set) read() *Set {
	if s == nil {
		return New()
	}
	return s
}

// Len returns the number of members.
func (s *Set) Len() uint64 {
	s = s.read()
	return s.negative.len() + s.natural.len()
}

// Bytes returns the size of the set in memory, including its index if it has one.
func (s *Set) Bytes() uint64 {
	s = s.read()
	n := s.compressedBytes()
	if ix := s.index.Load(); ix != nil {
		n += ix.bytes()
	}
	return n
}

// Clone returns a copy that shares no memory with s. It has the same index budget,
// but no index.
func (s *Set) Clone() *Set {
	s = s.read()
	return &Set{negative: s.negative.clone(), natural: s.natural.clone(), budget: s.budget, budgeted: s.budgeted}
}

// Union adds the members of t to s. t, which may be s, is unchanged, and the two
// share no memory afterwards.
func (s *Set) Union(t *Set) {
	s.changed()
	t = t.read()
	s.negative.or(&t.negative)
	s.natural.or(&t.natural)
}

// Intersect removes from s all values that are not in t. t, which may be s, is
// unchanged.
func (s *Set) Intersect(t *Set) {
	s.changed()
	t = t.read()
	s.negative.keep(&t.negative, true)
	s.natural.keep(&t.natural, true)
}

// Difference removes from s all values that are in t. t is unchanged, unless it is
// s: then it becomes empty. Unlike the difference of Bloom filters, it has no
// error.
func (s *Set) Difference(t *Set) {
	s.changed()
	if s == t {
		s.negative, s.natural = bitmap{}, bitmap{}
		return
	}
	t = t.read()
	s.negative.keep(&t.negative, false)
	s.natural.keep(&t.natural, false)
}

// containerCost is the memory taken by a container of 2^16 neighbouring values when
// it has few members, rounded up.
const containerCost = 192

// MaxCostPerKey is the most by which one key can increase the Cost of a set.
const MaxCostPerKey = containerCost

// Cost returns a measure, in bytes, of how sparse the set is. It never falls when
// members are added, so a union costs at least as much as either of its sets.
// (Neither the size in memory nor that of the marshalled bytes has that property:
// the even and the odd numbers together are one run.) A worker that holds part of a
// set can therefore give up the exact kind once Cost exceeds the size of the
// alternative for the whole set; a process that holds the whole set decides the
// same.
//
// A set whose Cost is below the size of a Bloom filter at 1 % has about 150 members
// or more per container. With fewer, an array of 16-bit offsets is larger than the
// Bloom filter anyway.
func (s *Set) Cost() uint64 {
	s = s.read()
	return containerCost * uint64(len(s.negative.keys)+len(s.natural.keys))
}

// Values yields the members in batches, in ascending order, negative ones first.
// The slice is reused for the next batch. The second value is true if the batch is
// negative integers in two's complement.
func (s *Set) Values(yield func(values []uint64, signed bool) bool) {
	s = s.read()
	buf := make([]uint64, 4096)
	for _, m := range []*bitmap{&s.negative, &s.natural} {
		var c cursor
		for n := m.read(&c, buf); n > 0; n = m.read(&c, buf) {
			if !yield(buf[:n], m == &s.negative) {
				return
			}
		}
	}
}

// Has reports whether v is a member that is not negative. It is for single values; see
// [Set.Probe] for many.
func (s *Set) Has(v uint64) bool {
	s = s.read()
	return s.natural.has(v)
}
