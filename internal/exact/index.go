package exact

import (
	"math/bits"
	"sync/atomic"
)

// index is what Probe searches: a flat bitmap, a table, or, if both are nil, the
// compressed bitmaps.
type index struct {
	flat  *flat
	table *table
	// wait is the number of values still to be probed before an index is built.
	// Below zero, a goroutine is building it. settled is set if no other index will
	// replace this one.
	wait    atomic.Int64
	settled bool
}

const (
	// indexFloor and indexFactor define the default budget of an index.
	indexFloor  = 16 << 20
	indexFactor = 8
	// A flat bitmap of up to flatFloor bytes counts as small, whatever the number
	// of members. flatFactor is the number of bytes per member up to which a flat
	// bitmap is preferred to a table, which takes up to 32.
	flatFloor  = 32 << 10
	flatFactor = 16
	// patience is the number of members per probed value before an index is built:
	// a lookup in the compressed bitmaps takes about as long as adding that many
	// members to an index.
	patience = 16
)

// SetIndexBudget drops the index and sets the largest size, in bytes, of the one that Probe
// builds by itself once a sixteenth as many values have been probed as the set has members. By
// default that is eight times the size of the compressed bitmaps or 16 MiB, whichever is more.
// A change of the set drops the index but not the budget. It counts as a method that changes
// the set.
func (s *Set) SetIndexBudget(maxBytes uint64) {
	s.changed()
	s.budget, s.budgeted = maxBytes, true
}

// newIndex builds an index within the budget: the first of these that fits.
//
//   - A flat bitmap from the smallest to the largest member, negative ones
//     included: one bit per integer. It suits dense sets and is skipped if it takes
//     more than 16 bytes per member (and more than 32 KiB).
//   - A hash table of that bitmap's non-zero words: up to 32 bytes per member, less
//     if members are close together.
//   - Nothing: values are looked up in the compressed bitmaps.
//
// It takes one pass over the members, two for a table: a few nanoseconds per
// member, a few tens for a large table.
func (s *Set) newIndex() *index {
	budget := s.budget
	if !s.budgeted {
		budget = max(indexFloor, indexFactor*s.compressedBytes())
	}
	ix := &index{settled: true}
	e := extentOf(s)
	if n, ok := s.flatWords(e, budget); ok {
		ix.flat = newFlat(s, e, n)
	} else if n, ok := s.tableEntries(budget); ok {
		ix.table = newTable(s, n)
	}
	return ix
}

// flatWords returns the number of words in a flat bitmap. ok reports whether that
// is the form to use.
func (s *Set) flatWords(e extent, budget uint64) (n uint64, ok bool) {
	n, ok = e.words()
	return n, ok && 8*n <= min(budget, max(flatFloor, flatFactor*s.Len()))
}

// tableEntries returns the number of entries in a table. ok reports whether it fits
// the budget.
func (s *Set) tableEntries(budget uint64) (n uint64, ok bool) {
	most := budget / bucketBytes * bucketFill
	n = s.entries(most)
	return n, n <= most && bucketBytes*tableBuckets(n) <= budget
}

// Indexable reports whether Index(maxBytes) would build an index, that is, whether
// the set can be probed fast in that much memory. It takes a pass over the members,
// none if a flat bitmap fits.
func (s *Set) Indexable(maxBytes uint64) bool {
	s = s.read()
	if _, ok := s.flatWords(extentOf(s), maxBytes); ok {
		return true
	}
	_, ok := s.tableEntries(maxBytes)
	return ok
}

// Probe appends to sel the positions in values of the members, in ascending order,
// and returns the extended slice. Values are int64s in two's complement if signed,
// else uint64s; there may be up to 2^32. The answer has no false positives. If sel
// has the capacity, Probe allocates nothing except an index; see [Set.SetIndexBudget].
func (s *Set) Probe(values []uint64, signed bool, sel []uint32) []uint32 {
	s = s.read()
	ix := s.lookup(len(values))
	sign := sign(signed)
	var found bitset
	for from := 0; from < len(values); from += blockSize {
		block := values[from:min(from+blockSize, len(values))]
		switch {
		case ix.flat != nil:
			ix.flat.probe(block, sign, &found)
		case ix.table != nil:
			ix.table.probe(block, sign, &found)
		default:
			s.probeCompressed(block, sign, &found)
		}
		sel = found.appendTo(sel, from, len(block))
	}
	return sel
}

// blockSize is the number of values looked up before any result is written. Writing
// results branches on them, and a mispredicted branch discards the loads that were
// started after it.
const blockSize = 1024

// bitset has a bit for each value of a block.
type bitset [blockSize / 64]uint64

// appendTo appends the positions, offset by from, of the set bits among the first
// n.
func (b *bitset) appendTo(sel []uint32, from, n int) []uint32 {
	for at := range (n + 63) / 64 {
		for m := b[at]; m != 0; m &= m - 1 {
			sel = append(sel, uint32(from+at*64+bits.TrailingZeros64(m)))
		}
	}
	return sel
}

// probeCompressed sets the bits in found of the values that are members.
func (s *Set) probeCompressed(values []uint64, signed uint64, found *bitset) {
	*found = bitset{}
	for i, v := range values {
		m := &s.natural
		if v>>63&signed != 0 {
			m = &s.negative
		}
		if m.has(v) {
			found[i/64] |= 1 << (i % 64)
		}
	}
}

// lookup returns the index for probing n values. Among concurrent callers, the one
// that exhausts the patience builds the index while the others continue without it.
func (s *Set) lookup(n int) *index {
	ix := s.index.Load()
	if ix == nil {
		ix = &index{}
		ix.wait.Store(int64(s.Len() / patience))
		if !s.index.CompareAndSwap(nil, ix) {
			ix = s.index.Load()
		}
	}
	if ix.settled {
		return ix
	}
	if left := ix.wait.Add(-int64(n)); left < 0 && left+int64(n) >= 0 {
		ix = s.newIndex()
		s.index.Store(ix)
	}
	return ix
}

// changed drops everything derived from the members.
func (s *Set) changed() {
	s.index.Store(nil)
}

// sign returns 1 if negative, else 0.
func sign(negative bool) uint64 {
	if negative {
		return 1
	}
	return 0
}

func (ix *index) bytes() uint64 {
	switch {
	case ix.flat != nil:
		return 8 * uint64(cap(ix.flat.words))
	case ix.table != nil:
		return bucketBytes * uint64(cap(ix.table.buckets))
	}
	return 0
}

// compressedBytes returns the size of the compressed bitmaps in memory.
func (s *Set) compressedBytes() uint64 { return s.negative.bytes() + s.natural.bytes() }
