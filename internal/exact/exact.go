// Package exact holds sets of integers without error. For small or dense sets they
// beat a Bloom filter.
//
// A [Set] is two compressed bitmaps of 64-bit values, one of the negative integers
// and one of the others, so that -1 and 2^64-1 stay distinct. A file holds them in
// the smaller of two forms ([Form]): the 64-bit extension of the Roaring format
// (https://github.com/RoaringBitmap/RoaringFormatSpec), which other languages can
// read, or Rice-coded gaps, which come close to the entropy of sets without
// structure. Both forms are canonical: equal sets give equal bytes, however they
// were built.
//
// Random probes of compressed bitmaps are slow. A set that is probed therefore also
// gets an index, a flat bitmap or a hash table, within a memory budget; see
// [Set.Index].
//
// Methods that only read, including Probe, may run concurrently. Methods that
// change a set need exclusive access.
package exact

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// Set is a set of integers from -2^63 to 2^64-1. The zero value is an empty set,
// ready to use. A nil *Set is empty too, but cannot be changed.
type Set struct {
	negative roaring64.Bitmap // members below zero, in two's complement
	natural  roaring64.Bitmap // members from zero up

	index    atomic.Pointer[index] // nil: dropped or never probed
	budget   uint64                // of the index, valid if budgeted
	budgeted bool

	held atomic.Pointer[blocks] // nil: dropped or never needed
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
	return s.negative.GetCardinality() + s.natural.GetCardinality()
}

// Bytes returns the size of the set in memory, including its index if it has one.
// The size of the compressed bitmaps is approximate, that of the index exact.
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
	return &Set{negative: *s.negative.Clone(), natural: *s.natural.Clone(), budget: s.budget, budgeted: s.budgeted}
}

// Union adds the members of t to s. t, which may be s, is unchanged, and the two
// share no memory afterwards.
func (s *Set) Union(t *Set) {
	s.changed()
	t = t.read()
	s.negative.Or(&t.negative)
	s.natural.Or(&t.natural)
}

// Intersect removes from s all values that are not in t. t, which may be s, is
// unchanged.
func (s *Set) Intersect(t *Set) {
	s.changed()
	t = t.read()
	s.negative.And(&t.negative)
	s.natural.And(&t.natural)
}

// Difference removes from s all values that are in t. t is unchanged, unless it is
// s: then it becomes empty. Unlike the difference of Bloom filters, it has no
// error.
func (s *Set) Difference(t *Set) {
	s.changed()
	if s == t {
		s.negative.Clear()
		s.natural.Clear()
		return
	}
	t = t.read()
	s.negative.AndNot(&t.negative)
	s.natural.AndNot(&t.natural)
}

// containerCost is the memory taken by a container of 2^16 neighbouring values when
// it has few members: the bitmap, array and slice headers.
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
	return containerCost * (s.negative.Stats().Containers + s.natural.Stats().Containers)
}

// Values yields the members in batches, in ascending order, negative ones first.
// The slice is reused for the next batch. The second value is true if the batch is
// negative integers in two's complement.
func (s *Set) Values(yield func(values []uint64, signed bool) bool) {
	s = s.read()
	buf := make([]uint64, 4096)
	for _, m := range []*roaring64.Bitmap{&s.negative, &s.natural} {
		it := m.ManyIterator()
		for n := it.NextMany(buf); n > 0; n = it.NextMany(buf) {
			if !yield(buf[:n], m == &s.negative) {
				return
			}
		}
	}
}

// marshalRoaring returns the negative and the other members in the form Roaring.
func (s *Set) marshalRoaring() (negative, natural []byte, err error) {
	if negative, err = marshal(&s.negative); err != nil {
		return nil, nil, err
	}
	natural, err = marshal(&s.natural)
	return negative, natural, err
}

// marshal encodes a copy of the bitmap with each container in its smallest form.
// The library does not promise that this form depends on the members alone, so
// marshal checks it and, if it does not hold, rebuilds the bitmap in order.
func marshal(m *roaring64.Bitmap) ([]byte, error) {
	b, err := canonical(m.Clone())
	if errors.Is(err, fault.ErrCorrupt) {
		b, err = canonical(rebuilt(m))
	}
	if err != nil {
		return nil, fmt.Errorf("marshal an exact set: %w", err)
	}
	return b, nil
}

// canonical changes m's containers to their smallest form and returns m's bytes. It
// is an error if checkBitmaps refuses them.
func canonical(m *roaring64.Bitmap) ([]byte, error) {
	m.RunOptimize()
	b, err := m.ToBytes()
	if err != nil {
		return nil, err
	}
	_, err = checkBitmaps(b)
	return b, err
}

// rebuilt returns a new bitmap with the members of m, added in order.
func rebuilt(m *roaring64.Bitmap) *roaring64.Bitmap {
	c := roaring64.New()
	buf := make([]uint64, 4096)
	it := m.ManyIterator()
	for n := it.NextMany(buf); n > 0; n = it.NextMany(buf) {
		c.AddMany(buf[:n])
	}
	return c
}

// unmarshalRoaring is the inverse of marshalRoaring. It refuses bytes that
// marshalRoaring would not write with an error that wraps fault.ErrCorrupt.
func unmarshalRoaring(negative, natural []byte) (s *Set, err error) {
	defer panics.Recover(fault.At{}, &err)
	s = New()
	if err := unmarshal(&s.negative, negative); err != nil {
		return nil, err
	}
	if err := unmarshal(&s.natural, natural); err != nil {
		return nil, err
	}
	if !s.negative.IsEmpty() && int64(s.negative.Minimum()) >= 0 {
		return nil, faults.Corrupt(fault.At{}, "exact set: a natural number among the negative ones")
	}
	return s, nil
}

func unmarshal(m *roaring64.Bitmap, b []byte) error {
	if _, err := checkBitmaps(b); err != nil {
		return err
	}
	if err := m.UnmarshalBinary(b); err != nil {
		return corrupt(err)
	}
	return nil
}

func corrupt(err error) error {
	e := faults.Corrupt(fault.At{}, "exact set")
	e.Err = err
	return e
}
