package builds

import (
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/exact"
)

// scout holds the first keys of an exact set until it is known whether they are
// dense enough. A set of distant keys, which becomes a Bloom filter in the end,
// is slow to build and takes twenty times the memory of the keys alone.
type scout struct {
	keys       [2][]uint64         // unsigned, signed
	containers map[uint64]struct{} // that the set would have: see [exact.Set.Cost]
}

// A scout is done once it has enough keys, in total and per container.
const (
	scoutKeys  = 1 << 16
	denseAbove = 24 // with fewer, a key and its container take more memory in a set
)

func newScout() *scout { return &scout{containers: map[uint64]struct{}{}} }

func (s *scout) add(values []uint64, signed bool) {
	which, last := 0, ^uint64(0)
	if signed {
		which = 1
	}
	s.keys[which] = append(s.keys[which], values...)
	for _, v := range values {
		c := v >> 16
		if signed && int64(v) < 0 {
			c |= 1 << 48
		}
		if c != last {
			s.containers[c] = struct{}{}
			last = c
		}
	}
}

// cost returns the Cost of a set of the keys.
func (s *scout) cost() uint64 { return uint64(len(s.containers)) * exact.MaxCostPerKey }

// bytes returns the approximate memory of the scout.
func (s *scout) bytes() uint64 {
	return 8*uint64(cap(s.keys[0])+cap(s.keys[1])) + 16*uint64(len(s.containers))
}

// dense reports whether the keys should go into a set.
func (s *scout) dense() bool {
	n := len(s.keys[0]) + len(s.keys[1])
	return n >= scoutKeys && n >= denseAbove*len(s.containers)
}

// into adds the keys to a set in ascending order, which is fast even if they
// are far apart.
func (s *scout) into(set *exact.Set) {
	for which, values := range s.keys {
		slices.Sort(values)
		set.Add(values, which == 1)
	}
}
