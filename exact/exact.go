// Package exact holds sets of integers without error: the filter that beats a
// Bloom filter where the set is small or dense.
//
// A [Set] is two compressed bitmaps of 64-bit values, one of the negative
// integers and one of the others, so that -1 and 2^64-1 stay apart. A file has
// them in one of two forms, whichever is smaller ([Form]): the Roaring format's
// 64-bit extension (https://github.com/RoaringBitmap/RoaringFormatSpec), which
// other languages read, or Rice-coded gaps, which come close to the entropy of
// sets without structure. Both are canonical: equal sets give equal bytes,
// however they came about.
//
// Compressed bitmaps are slow to probe at random. So a set that is probed gets
// an index besides, a flat bitmap or a hash table, within a budget of memory:
// see [Set.Index].
//
// Reading methods, Probe among them, may run at the same time as each other.
// Methods that change a set need it for themselves.
package exact

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/bloomjoin/bloomjoin/fault"
)

// Set is a set of integers from -2^63 to 2^64-1. Make one with [New].
type Set struct {
	negative *roaring64.Bitmap // two's complement of the members below zero
	natural  *roaring64.Bitmap // the members from zero on

	index    atomic.Pointer[index] // nil: dropped, or never probed
	budget   uint64                // of the index, if budgeted
	budgeted bool

	held atomic.Pointer[blocks] // nil: dropped, or never asked for
}

// New returns an empty set.
func New() *Set {
	return &Set{negative: roaring64.New(), natural: roaring64.New()}
}

// Len returns the number of members.
func (s *Set) Len() uint64 {
	return s.negative.GetCardinality() + s.natural.GetCardinality()
}

// Bytes returns what the set takes in memory, with its index if it has one. Of
// the compressed bitmaps that is about, of the index to the byte.
func (s *Set) Bytes() uint64 {
	n := s.compressedBytes()
	if ix := s.index.Load(); ix != nil {
		n += ix.bytes()
	}
	return n
}

// Clone returns a copy that shares nothing with s and has no index, but the
// same budget for one.
func (s *Set) Clone() *Set {
	return &Set{negative: s.negative.Clone(), natural: s.natural.Clone(), budget: s.budget, budgeted: s.budgeted}
}

// Union adds the members of t to s: a value is in s afterwards if and only if
// it was in s or in t. Neither duplicates nor order matter, and t, which may
// be s, stays as it is; the two share nothing afterwards.
func (s *Set) Union(t *Set) {
	s.changed()
	s.negative.Or(t.negative)
	s.natural.Or(t.natural)
}

// Intersect removes from s what is not in t: a value is in s afterwards if and
// only if it was in both. t, which may be s, stays as it is.
func (s *Set) Intersect(t *Set) {
	s.changed()
	s.negative.And(t.negative)
	s.natural.And(t.natural)
}

// Difference removes from s what is in t: a value is in s afterwards if and
// only if it was in s and not in t. t stays as it is, unless it is s: then both
// are empty. Unlike that of Bloom filters the difference is without error.
func (s *Set) Difference(t *Set) {
	s.changed()
	if s == t {
		s.negative.Clear()
		s.natural.Clear()
		return
	}
	s.negative.AndNot(t.negative)
	s.natural.AndNot(t.natural)
}

// containerCost is what a container of 2^16 neighbouring values takes in
// memory when it holds few of them: the bitmap, array and slice headers.
const containerCost = 192

// MaxCostPerKey is the most that one key can add to the Cost of a set.
const MaxCostPerKey = containerCost

// Cost returns a measure in bytes of how sparse the set is. It never falls
// when members are added: of two sets, the union costs at least as much as
// either. (Neither the size in memory nor that of the marshalled bytes has
// that property: the even and the odd numbers together are one run.) So a
// worker that holds a part of a set can give up the exact form once Cost
// exceeds what the alternative takes for the whole, and whoever holds the
// whole comes to the same decision.
//
// A set with a Cost below the size of a Bloom filter at 1 % has some 150
// members or more to a container; below that an array of 16-bit offsets is
// larger than the Bloom filter anyhow.
func (s *Set) Cost() uint64 {
	return containerCost * (s.negative.Stats().Containers + s.natural.Stats().Containers)
}

// Values yields the members in ascending order in batches, the negative ones
// first. The slice is reused between calls of yield. Yield's second value says
// whether the batch is of negative integers in two's complement.
func (s *Set) Values(yield func(values []uint64, signed bool) bool) {
	buf := make([]uint64, 4096)
	for _, m := range []*roaring64.Bitmap{s.negative, s.natural} {
		it := m.ManyIterator()
		for n := it.NextMany(buf); n > 0; n = it.NextMany(buf) {
			if !yield(buf[:n], m == s.negative) {
				return
			}
		}
	}
}

// marshalRoaring returns the bytes of the negative and of the other members in
// the form Roaring.
func (s *Set) marshalRoaring() (negative, natural []byte, err error) {
	if negative, err = marshal(s.negative); err != nil {
		return nil, nil, err
	}
	natural, err = marshal(s.natural)
	return negative, natural, err
}

// marshal writes a copy of the bitmap with its containers brought to the
// smallest form. That this form is a function of the members is checked, as it
// is not the library's promise; if it is not, the bitmap is built anew in
// order.
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

// canonical changes the form of m's containers and returns m's bytes. It is an
// error if checkBitmaps refuses them.
func canonical(m *roaring64.Bitmap) ([]byte, error) {
	m.RunOptimize()
	b, err := m.ToBytes()
	if err != nil {
		return nil, err
	}
	_, err = checkBitmaps(b)
	return b, err
}

// rebuilt returns a bitmap with the members of m that has no other history
// than that they came in order.
func rebuilt(m *roaring64.Bitmap) *roaring64.Bitmap {
	c := roaring64.New()
	buf := make([]uint64, 4096)
	it := m.ManyIterator()
	for n := it.NextMany(buf); n > 0; n = it.NextMany(buf) {
		c.AddMany(buf[:n])
	}
	return c
}

// unmarshalRoaring is the inverse of marshalRoaring. Bytes that this would not
// have written are refused with an error that wraps fault.ErrCorrupt.
func unmarshalRoaring(negative, natural []byte) (s *Set, err error) {
	defer fault.Recovered(fault.At{}, &err)
	s = New()
	if err := unmarshal(s.negative, negative); err != nil {
		return nil, err
	}
	if err := unmarshal(s.natural, natural); err != nil {
		return nil, err
	}
	if !s.negative.IsEmpty() && int64(s.negative.Minimum()) >= 0 {
		return nil, fault.Corrupt(fault.At{}, "exact set: a natural number among the negative ones")
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
	e := fault.Corrupt(fault.At{}, "exact set")
	e.Err = err
	return e
}
