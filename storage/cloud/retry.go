package cloud

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
)

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 20 * time.Second
	// patience ends the attempts to send a request, counted from its first failure or
	// last progress.
	patience = 2 * time.Minute
	// refusedTries and refusedPause are for connections that a host refuses before it has
	// answered any request: as a rule its address is wrong, or nothing is running there.
	refusedTries = 3
	refusedPause = time.Second
)

// do sends a request of an SDK, again if it has failed for a reason that may pass.
func (s *store) do(ctx context.Context, b *bucket, k kind, key string, f func(context.Context) error) error {
	var since time.Time
	for attempt := 0; ; attempt++ {
		err := s.once(ctx, b, k, key, attempt, f)
		if err == nil {
			return nil
		}
		if attempt == 0 {
			since = time.Now()
		}
		if err := s.again(ctx, err, attempt, since); err != nil {
			return err
		}
	}
}

// once sends a request when fewer than Options.Requests are under way.
func (s *store) once(ctx context.Context, b *bucket, k kind, key string, attempt int, f func(context.Context) error) error {
	if !b.free {
		if err := s.queue.Acquire(ctx); err != nil {
			return err
		}
		defer s.queue.Release()
	}
	switch k {
	case list, head, del: // short, so one that does not end is sent again
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, mostLimit)
		defer cancel()
	}
	ctx, c := withCall(ctx, k, attempt)
	s.note(b, k)
	err := f(ctx)
	if without := (*credentialsError)(nil); errors.As(err, &without) {
		return without
	}
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return b.failed(c, key, err)
}

// again waits until a request should be sent again. It returns the final error if it
// should not be.
func (s *store) again(ctx context.Context, err error, attempt int, since time.Time) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var f *failure
	var without *credentialsError // a catalog was asked several times, if need be
	if errors.As(err, &without) || !errors.As(err, &f) {
		return err
	}
	if !f.transient() && !f.renew() || attempt >= s.opts.Retries {
		return f.report()
	}
	pause := max(rand.N(min(firstPause<<min(attempt, 16), maxPause)), f.after)
	if f.refused != nil {
		if time.Since(*f.refused) >= (refusedTries-1)*refusedPause { // also if that was in other calls
			return f.report()
		}
		pause = refusedPause
	}
	wait, _ := s.budget.spend(1, true)
	pause = max(pause, wait)
	if time.Since(since)+pause > patience {
		return f.report()
	}
	s.stats.retries.Add(1)
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// budget limits the requests that are sent again, so that a service in trouble does not get many
// more: a tenth of all requests, some each second, and some at once.
type budget struct {
	mu   sync.Mutex
	left float64 // below 0: so many retries wait
	at   time.Time
}

const (
	budgetShare  = 0.1
	budgetRate   = 10 // a second
	budgetAtOnce = 100
)

// spend takes n from the budget, if it has them or they are a must, and returns how long a retry
// has to wait.
func (b *budget) spend(n float64, must bool) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.left = min(b.left+budgetRate*now.Sub(b.at).Seconds(), budgetAtOnce)
	b.at = now
	if b.left < n && !must {
		return 0, false
	}
	b.left -= n
	return min(time.Duration(-b.left/budgetRate*float64(time.Second)), maxPause), true
}
