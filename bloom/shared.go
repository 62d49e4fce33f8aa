package bloom

import (
	"math/bits"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/hugepage"
)

// Shared is a filter that several goroutines fill, each by an [Adder] of its
// own. The filter is cut into ranges of blocks; an Adder sorts its hashes by
// range, which their high bits say, and puts a range's in once there are many,
// while it holds the range's lock. So no two goroutines write to the same
// blocks at a time, there is one filter however many they are, and a range
// stays in the cache while it is written to.
//
// Source of the scheme: radix partitioning, as in Manegold, Boncz and Kersten,
// "Optimizing main-memory join on modern hardware", IEEE TKDE 14(4), 2002.
type Shared struct {
	filter *Filter
	shift  uint // of half a hash, to its range: at most 63
	room   int  // hashes of one range that an Adder collects
	locks  []rangeLock
}

// rangeLock has a cache line for itself.
type rangeLock struct {
	sync.Mutex
	_ [56]byte
}

// A range is about as large as leaves a level-2 cache room for the hashes, and
// there are not more of them than a first-level cache has lines for the ends
// of their buffers.
const (
	rangeBytes = 512 << 10
	maxRanges  = 512
)

// NewShared returns f to be filled by Adders of about buffer bytes each. f is
// not to be used otherwise until they all are flushed.
func NewShared(f *Filter, buffer uint64) *Shared {
	f.changes()
	ranges := f.params.ranges()
	room := max(buffer/8/ranges, 64)
	return &Shared{
		filter: f, shift: uint(63 - bits.TrailingZeros64(ranges)), room: int(room),
		locks: make([]rangeLock, ranges),
	}
}

// ranges returns how many ranges of equal size the blocks are cut into: a power
// of two that divides their number, so that the high bits of a hash tell its
// range.
func (p Params) ranges() uint64 {
	n := uint64(1)
	for n < maxRanges && p.Bytes()/n > rangeBytes && p.Blocks%(2*n) == 0 {
		n *= 2
	}
	return n
}

// Adder puts hashes into a Shared filter. One goroutine uses it at a time.
type Adder struct {
	s    *Shared
	buf  []uint64 // room hashes for each range
	used []int    // of the range's room
}

// Adder returns a new Adder.
func (s *Shared) Adder() *Adder {
	return &Adder{s: s, buf: hugepage.Words(uint64(s.room * len(s.locks))), used: make([]int, len(s.locks))}
}

// Add puts in the hashes, some of them not before Flush.
func (a *Adder) Add(hashes []uint64) {
	shift, room, buf, used := a.s.shift, a.s.room, a.buf, a.used
	for _, h := range hashes {
		r := h >> 1 >> (shift & 63)
		n := used[r]
		buf[int(r)*room+n] = h
		n++
		used[r] = n
		if n == room {
			a.put(r)
		}
	}
}

// Flush puts in what the Adder still holds.
func (a *Adder) Flush() {
	for r := range a.used {
		a.put(uint64(r))
	}
}

// put empties the buffer of a range into the filter.
func (a *Adder) put(r uint64) {
	f, lock := a.s.filter, &a.s.locks[r]
	hashes := a.buf[int(r)*a.s.room:][:a.used[r]]
	a.used[r] = 0
	lock.Lock()
	defer lock.Unlock()
	f.Add(hashes)
}
