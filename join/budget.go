package join

import (
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
)

// account bounds the bytes that a join holds at one time. Whoever holds much
// has a share in it. It may be used from many goroutines.
type account struct {
	most int64 // 0: no bound
	held atomic.Int64
}

// share returns a share for what is named, as in "the table of IDs". It holds
// nothing yet.
func (a *account) share(what string) *share { return &share{of: a, what: what} }

// share is what one holder has of an account. It may be used from many
// goroutines.
type share struct {
	of   *account
	what string
	held atomic.Int64
}

// take adds n bytes to what the share holds, before they are allocated. If the
// account has no room for them it takes none, and the error wraps [ErrMemory].
func (s *share) take(n int64) error {
	if all := s.of.held.Add(n); s.of.most > 0 && all > s.of.most {
		s.of.held.Add(-n)
		own := s.held.Load()
		return fault.Errorf("%w of %s: %s needs %s, and the rest of the join %s (raise {Memory})",
			ErrMemory, fault.Size(s.of.most), s.what, fault.Size(own+n), fault.Size(all-own-n))
	}
	s.held.Add(n)
	return nil
}

// give takes n bytes back from what the share holds.
func (s *share) give(n int64) {
	s.held.Add(-n)
	s.of.held.Add(-n)
}

// giveAll ends what the share holds.
func (s *share) giveAll() { s.of.held.Add(-s.held.Swap(0)) }

// bytes returns what the share holds.
func (s *share) bytes() int64 { return s.held.Load() }
