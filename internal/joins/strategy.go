package joins

import (
	"context"
	"errors"
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
)

// hold reads the IDs by the strategy that was asked for or planned; if its memory does not
// suffice, by one that needs less. It returns the strategy that succeeded.
func (t *task) hold(ctx context.Context, planned Strategy) (*joinTable, Strategy, error) {
	strategy, less := t.opts.Strategy, []plan.Strategy(nil)
	if strategy == Auto {
		strategy = planned
		less = plan.Fallbacks(strategy, t.opts.Filter != nil)
	}
	h, spilled, err := t.try(ctx, strategy)
	for _, next := range less {
		if !errors.Is(err, fault.ErrMemory) && !errors.Is(err, errNotExact) {
			break
		}
		if again := t.bothRereadable(); again != nil {
			return nil, strategy, fmt.Errorf("%w; for less, %w", err, again)
		}
		strategy = Strategy(next)
		var more int64
		h, more, err = t.try(ctx, strategy)
		spilled += more
	}
	if err != nil {
		return nil, strategy, err
	}
	h.spilled = spilled
	return h, strategy, nil
}

// try attempts a strategy. It returns what was written to disk to size filters, even
// if the attempt fails.
func (t *task) try(ctx context.Context, s Strategy) (h *joinTable, spilled int64, err error) {
	a := &attempt{task: t, account: budget.New(t.opts.Memory)}
	switch s {
	case Exact:
		h, err = a.exactly(ctx)
	case Lookup:
		h, err = a.lookup(ctx)
	case Broadcast, Reverse:
		err = t.bothRereadable()
		if s == Reverse && !t.opts.Type.keepsIDs() {
			err = t.rereadable(t.logs...) // IDs are read once
		}
		if err == nil {
			h, err = a.reduce(ctx, s)
		}
	case Shuffle:
		if err = t.bothRereadable(); err == nil {
			h, err = a.shuffle(ctx)
		}
	default:
		err = fmt.Errorf("strategy %q", s)
	}
	if err != nil {
		h.release()
		return nil, a.spilled, err
	}
	h.account = a.account
	return h, a.spilled, nil
}
