package bloom

import (
	"math/bits"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/hugepage"
)

// Shared is a filter that several goroutines fill, each through its own [Adder].
// The filter is divided into ranges of blocks. An Adder sorts its hashes by range,
// using their high bits, and once it has collected enough for a range it adds them
// while holding the range's lock. Goroutines thus never write to the same blocks at
// the same time, they share one filter, and a range stays in the cache while it is
// written.
//
// Source: radix partitioning, as in Manegold, Boncz and Kersten, "Optimizing
// main-memory join on modern hardware", IEEE TKDE 14(4), 2002.
type Shared struct {
	filter *Filter
	shift  uint // shifts the upper 63 bits of a hash to its range; at most 63
	room   int  // hashes that an Adder collects per range
	locks  []rangeLock
}

// rangeLock fills a cache line.
type rangeLock struct {
	sync.Mutex
	_ [56]byte
}

// A range leaves room for the hashes in a level-2 cache, and there are no more
// ranges than a first-level cache has lines for the ends of their buffers.
const (
	rangeBytes = 512 << 10
	maxRanges  = 512
)

// NewShared returns a Shared that fills f through Adders of about buffer bytes each,
// or nil if f is nil or has no bits. f must not be used otherwise until all Adders
// are flushed.
func NewShared(f *Filter, buffer uint64) *Shared {
	if f.blank() {
		return nil
	}
	f.changes()
	ranges := f.params.ranges()
	room := max(buffer/8/ranges, 64)
	return &Shared{
		filter: f, shift: uint(63 - bits.TrailingZeros64(ranges)), room: int(room),
		locks: make([]rangeLock, ranges),
	}
}

// ranges returns the number of equal ranges of blocks: a power of two that divides
// their number, so that the high bits of a hash select its range.
func (p Params) ranges() uint64 {
	n := uint64(1)
	for n < maxRanges && p.Bytes()/n > rangeBytes && p.Blocks%(2*n) == 0 {
		n *= 2
	}
	return n
}

// Adder adds hashes to a Shared filter. The zero Adder drops them. It is not safe
// for concurrent use.
type Adder struct {
	s    *Shared
	buf  []uint64 // room hashes for each range
	used []int    // hashes in each range's buffer
}

// Adder returns a new Adder.
func (s *Shared) Adder() *Adder {
	if s == nil || s.filter == nil {
		return new(Adder)
	}
	return &Adder{s: s, buf: hugepage.Words(uint64(s.room * len(s.locks))), used: make([]int, len(s.locks))}
}

// Add adds the hashes. Some of them reach the filter only at Flush.
func (a *Adder) Add(hashes []uint64) {
	if a == nil || a.s == nil {
		return
	}
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

// Flush adds all hashes that the Adder still buffers.
func (a *Adder) Flush() {
	if a == nil || a.s == nil {
		return
	}
	for r := range a.used {
		a.put(uint64(r))
	}
}

// put moves a range's buffered hashes to the filter.
func (a *Adder) put(r uint64) {
	f, lock := a.s.filter, &a.s.locks[r]
	hashes := a.buf[int(r)*a.s.room:][:a.used[r]]
	a.used[r] = 0
	lock.Lock()
	defer lock.Unlock()
	f.Add(hashes)
}
