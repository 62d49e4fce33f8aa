// Package budget accounts for the memory that a join holds, against the bound in its
// Options.Memory. Each holder of a large amount (the table of IDs, a filter, the
// buffers of a shuffle) has a [Share] and charges it before it allocates.
package budget

import (
	"math"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// Account bounds the bytes that a join holds at one time. Each holder of a large
// amount has a share of it. The zero account has no bound. It is safe for
// concurrent use.
type Account struct {
	most int64 // 0: no bound
	held atomic.Int64
}

// New returns an account of most bytes; 0: no bound.
func New(most int64) *Account { return &Account{most: most} }

// Limit returns the bound in bytes; 0: none.
func (a *Account) Limit() int64 { return a.most }

// InUse returns the bytes held by all shares.
func (a *Account) InUse() int64 { return a.held.Load() }

// Share returns an empty share. what describes its holder in errors, as in
// "the table of IDs".
func (a *Account) Share(what string) *Share { return &Share{of: a, what: what} }

// Share is one holder's part of an account. It is safe for concurrent use.
type Share struct {
	of   *Account
	what string
	held atomic.Int64
}

// Take adds n bytes to the share; call it before allocating them. If they exceed
// the account's bound, the share stays as it is and the error wraps
// [fault.ErrMemory].
func (s *Share) Take(n int64) error {
	if all := s.of.held.Add(n); s.of.most > 0 && all > s.of.most {
		s.of.held.Add(-n)
		own := s.held.Load()
		return faults.Errorf("%w of %s: %s needs %s, and the rest of the join %s (raise {Memory})",
			fault.ErrMemory, show.Size(s.of.most), s.what, show.Size(own+n), show.Size(all-own-n))
	}
	s.held.Add(n)
	return nil
}

// Give returns n bytes to the account.
func (s *Share) Give(n int64) {
	s.held.Add(-n)
	s.of.held.Add(-n)
}

// Left returns the bytes that can still be taken, as far as is known.
func (s *Share) Left() int64 {
	if s.of.most == 0 {
		return math.MaxInt64
	}
	return s.of.most - s.of.InUse()
}

// GiveAll returns everything that the share holds.
func (s *Share) GiveAll() { s.of.held.Add(-s.held.Swap(0)) }

// Bytes returns the bytes that the share holds.
func (s *Share) Bytes() int64 { return s.held.Load() }
