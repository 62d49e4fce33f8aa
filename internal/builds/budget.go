package builds

import (
	"math"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// budget limits the bytes that the workers of a build hold together.
type budget struct {
	most    uint64 // 0: no limit
	workers uint64
	held    atomic.Uint64
}

// beside returns how many bytes may be held beside a filter.
func (b *budget) beside(p bloom.Params) uint64 {
	if b == nil || b.most == 0 {
		return math.MaxUint64
	}
	return b.most - min(b.most, p.Bytes())
}

// share is what one worker holds of a budget. The zero share has no limit.
type share struct {
	of   *budget
	held uint64
}

// hold sets what the worker holds to n and returns how much more it might hold.
func (s *share) hold(n uint64) (room uint64, ok bool) {
	if s.of == nil || s.of.most == 0 {
		return math.MaxInt64, true
	}
	all := s.of.held.Add(n - s.held)
	s.held = n
	if all > s.of.most {
		return 0, false
	}
	return (s.of.most - all) / s.of.workers, true
}

func (s *share) release() { s.hold(0) }

// set accounts for an exact set of n bytes.
func (s *share) set(n uint64) (room uint64, err error) {
	room, ok := s.hold(n)
	if !ok {
		err = faults.Errorf("%w of %s: the exact set takes more (raise {Memory}, or use {Kind bloom})", fault.ErrMemory, show.Size(int64(s.of.most)))
	}
	return room, err
}

// bits holds the bits of a Bloom filter. It no longer counts a set from which they are
// filled, although that is released only afterwards: the budget counts what is kept.
func (s *share) bits(p bloom.Params) error {
	if _, ok := s.hold(p.Bytes()); !ok {
		return overBudget(s.of.most, p.Bytes())
	}
	return nil
}

func overBudget(most, need uint64) error {
	return faults.Errorf("%w of %s: the filter takes %s, sized for {Expect} or the rows of the ID files (raise {Memory} or {FPR}, or bound the filter with {MaxSize})", fault.ErrMemory, show.Size(int64(most)), show.Size(int64(need)))
}
