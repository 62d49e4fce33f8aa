package exact

import (
	"math/bits"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// index is what Probe looks values up in: a flat bitmap, a table, or, where
// both are nil, the compressed bitmaps.
type index struct {
	flat  *flat
	table *table
	// wait is how many values are still to be probed before an index is built;
	// below zero it is being built. Settled if this index is the last word.
	wait    atomic.Int64
	settled bool
}

const (
	// indexFloor and indexFactor make the default budget of an index.
	indexFloor  = 16 << 20
	indexFactor = 8
	// flatFloor is a size below which a flat bitmap is small, whatever the
	// number of members; flatFactor the bytes per member up to which it is
	// built rather than a table, which takes up to 32.
	flatFloor  = 32 << 10
	flatFactor = 16
	// patience is how many members the set has for each value that is probed
	// before an index is built: looking up a value in the compressed bitmaps
	// takes as long as putting so many members into an index, about.
	patience = 16
)

// Index builds what Probe looks values up in, of at most maxBytes bytes: the
// first of these that fits.
//
//   - A flat bitmap from the least to the greatest member, of the negative and
//     of the other integers: one bit for each integer between. It is the form
//     of dense sets, and passed over if it takes more than 16 bytes per member
//     (and than 32 KiB).
//   - A hash table of the words of that bitmap that are not zero: up to 32
//     bytes per member, less where members are near to each other.
//   - Nothing: values are looked up in the compressed bitmaps.
//
// The work is a pass over the members, two for a table: some nanoseconds per
// member, some tens for a large table.
//
// A set is ready without Index. When a sixteenth as many values have been
// probed as there are members, Probe builds an index by itself, of at most
// eight times the size of the compressed bitmaps or 16 MiB, whichever is more.
// Index sets another budget and spares the first probes; Index(0) leaves
// nothing but the compressed bitmaps. A change of the set drops the index, but
// not the budget.
//
// Index counts as a method that changes the set.
func (s *Set) Index(maxBytes uint64) {
	s.SetIndexBudget(maxBytes)
	s.index.Store(s.newIndex())
}

// SetIndexBudget drops the index and sets the most bytes of that which Probe
// will build by itself. It counts as a method that changes the set.
func (s *Set) SetIndexBudget(maxBytes uint64) {
	s.changed()
	s.budget, s.budgeted = maxBytes, true
}

// newIndex builds an index within the budget.
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

// flatWords returns how many words a flat bitmap has, if it is the form to take.
func (s *Set) flatWords(e extent, budget uint64) (n uint64, ok bool) {
	n, ok = e.words()
	return n, ok && 8*n <= min(budget, max(flatFloor, flatFactor*s.Len()))
}

// tableEntries returns how many entries a table has, if it fits.
func (s *Set) tableEntries(budget uint64) (n uint64, ok bool) {
	most := budget / bucketBytes * bucketFill
	n = s.entries(most)
	return n, n <= most && bucketBytes*tableBuckets(n) <= budget
}

// Indexable reports whether Index(maxBytes) builds an index: whether the set
// can be probed fast in so much memory. It takes a pass over the members, none
// where a flat bitmap will do.
func (s *Set) Indexable(maxBytes uint64) bool {
	if _, ok := s.flatWords(extentOf(s), maxBytes); ok {
		return true
	}
	_, ok := s.tableEntries(maxBytes)
	return ok
}

// Probe appends to sel the positions in values of the members, ascending, and
// returns it. The answer has no error. If signed, values are int64s in two's
// complement, else uint64s; there may be up to 2^32. Probe allocates nothing
// if sel has the capacity, but for the index, which see [Set.Index].
func (s *Set) Probe(values []uint64, signed bool, sel []uint32) []uint32 {
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

// blockSize is how many values are looked up before any is put out. Putting
// out branches on what was found, and a branch that is predicted wrong throws
// away the loads begun behind it.
const blockSize = 1024

// bitset is a bit for each value of a block.
type bitset [blockSize / 64]uint64

// appendTo appends the positions of the bits that are set, of the first n,
// counted from the given one.
func (b *bitset) appendTo(sel []uint32, from, n int) []uint32 {
	for at := range (n + 63) / 64 {
		for m := b[at]; m != 0; m &= m - 1 {
			sel = append(sel, uint32(from+at*64+bits.TrailingZeros64(m)))
		}
	}
	return sel
}

// probeCompressed sets in found the bits of the values that are members.
func (s *Set) probeCompressed(values []uint64, signed uint64, found *bitset) {
	*found = bitset{}
	for i, v := range values {
		m := s.natural
		if v>>63&signed != 0 {
			m = s.negative
		}
		if m.Contains(v) {
			found[i/64] |= 1 << (i % 64)
		}
	}
}

// lookup returns the index for n values. Of several goroutines the one that
// uses up the patience builds it, while the others go on without.
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

// changed drops what was made of the members.
func (s *Set) changed() {
	s.index.Store(nil)
	s.held.Store(nil)
}

// sign returns the place of a sign in an array.
func sign(negative bool) uint64 {
	if negative {
		return 1
	}
	return 0
}

func (ix *index) bytes() uint64 {
	switch {
	case ix.flat != nil:
		return ix.flat.bytes()
	case ix.table != nil:
		return ix.table.bytes()
	}
	return 0
}

// What the headers of a container and of a 32-bit bitmap take in memory, beside
// what the library counts: six words and thirteen.
const (
	wordBytes      = bits.UintSize / 8
	containerBytes = 6 * wordBytes
	highBytes      = 13 * wordBytes
)

// compressedBytes returns what the compressed bitmaps take in memory, about.
func (s *Set) compressedBytes() (n uint64) {
	for _, m := range []*roaring64.Bitmap{s.negative, s.natural} {
		n += m.GetSizeInBytes() + containerBytes*m.Stats().Containers + highBytes*highs(m)
	}
	return n
}

// highs counts the 32-bit high keys of a bitmap.
func highs(m *roaring64.Bitmap) (n uint64) {
	for it := m.Iterator(); it.HasNext(); n++ {
		next := (it.PeekNext()>>32 + 1) << 32
		if next == 0 {
			return n + 1
		}
		it.AdvanceIfNeeded(next)
	}
	return n
}
