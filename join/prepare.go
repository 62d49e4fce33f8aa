package join

import (
	"context"
	"errors"
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/join/internal/budget"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// prepare finds out, by the strategy, what the log is joined with: a filter, and
// the IDs that are held, or the legs of a shuffled join.
func (j *Join) prepare(ctx context.Context) error {
	j.filter = j.opts.Filter
	if j.filter != nil {
		if err := j.checkFilter(); err != nil {
			return err
		}
	}
	if err := j.carryOut(ctx); err != nil {
		return err
	}
	// A mapped filter says so no more when all has been read.
	j.report.FPRAsked, j.report.FPRPredicted = j.filter.FPRAsked, j.filter.FPR()
	return nil
}

// carryOut takes the strategy that was asked for, or the planned one, and, where
// that turns out to need more memory than there is, one that needs less.
func (j *Join) carryOut(ctx context.Context) error {
	plan, s, err := j.choosePlan(ctx)
	if err != nil {
		return err
	}
	j.report.Plan, j.model = plan, model{s, j.limits()}
	strategy, less := j.opts.Strategy, []Strategy(nil)
	if strategy == Auto {
		strategy = plan.Strategy
		less = lesser(strategy, j.filter != nil)
	}
	err = j.by(ctx, strategy)
	for _, next := range less {
		if !errors.Is(err, fault.ErrMemory) && !errors.Is(err, errNotExact) {
			break
		}
		if again := j.rereadable(); again != nil {
			return fmt.Errorf("%w; for less, %w", err, again)
		}
		j.restart()
		err = j.by(ctx, next)
	}
	return err
}

// lesser returns the strategies that take less memory, in the order in which to
// try them.
func lesser(s Strategy, filtered bool) []Strategy {
	switch {
	case s == Exact:
		return append([]Strategy{Lookup}, lesser(Lookup, filtered)...)
	case s == Lookup && filtered:
		return []Strategy{Broadcast, Shuffle}
	case s == Lookup:
		return []Strategy{Reverse, Shuffle}
	case s == Shuffle:
		return nil
	}
	return []Strategy{Shuffle}
}

// by prepares for a strategy.
func (j *Join) by(ctx context.Context, s Strategy) error {
	j.report.Strategy = s
	switch s {
	case Exact:
		return j.exactly(ctx)
	case Lookup:
		return j.lookup(ctx)
	case Broadcast, Reverse:
		err := j.rereadable()
		if s == Reverse && !j.opts.Type.keepsIDs() {
			err = j.again(j.logs) // IDs are read once
		}
		if err != nil {
			return err
		}
		return j.reduce(ctx, s)
	case Shuffle:
		if err := j.rereadable(); err != nil {
			return err
		}
		return j.shuffle(ctx)
	}
	return fmt.Errorf("strategy %q", s)
}

// restart forgets what a strategy has begun.
func (j *Join) restart() {
	j.release()
	j.side, j.whole, j.marks, j.shuffled, j.filter = nil, false, nil, nil, j.opts.Filter
	j.account = budget.New(j.opts.Memory)
	j.idsTotal.Store(0)
	j.idsNull.Store(0)
}

// rereadable returns an error if IDs or log can be read only once.
func (j *Join) rereadable() error {
	if err := j.again(j.ids); err != nil {
		return err
	}
	return j.again(j.logs)
}

// again returns an error if a file cannot be read again, as the strategy needs.
func (j *Join) again(files []*partition.File) error {
	for _, f := range files {
		switch {
		case !f.Once():
		case j.opts.Strategy != Auto:
			return fault.Errorf("%s: it can be read only once, but strategy %s reads it more than once (leave {Strategy} out, or name a file)", f.Name, j.opts.Strategy)
		default:
			return fault.Errorf("%s: it can be read only once, but this join reads it more than once (name a file, or raise {Memory})", f.Name)
		}
	}
	return nil
}

// checkFilter compares the rule of a filter that was given with the join's.
func (j *Join) checkFilter() error {
	rule, err := key.RuleOf(j.filter.Normal())
	if err != nil {
		return err
	}
	if rule != j.rule {
		return fault.Mismatch(fault.At{File: "the filter"}, "", j.rule.Word()+", as in the join", rule.Word()).About("{Normalize}").
			WithHint("build the filter with the join's {Normalize}, or give the join the filter's, or leave {Filter} out")
	}
	return nil
}

// holds returns an error if the filter lacks a key of the batch: it was built
// from other IDs, and would lose their rows.
func (j *Join) holds(batch *key.Batch, file string) error {
	var passed int
	if set := j.filter.Exact(); set != nil {
		_ = batch.BySign(func(values []uint64, signed bool, _ []uint32) error { // which does not fail
			passed += len(set.Probe(values, signed, nil))
			return nil
		})
	} else {
		bits := j.filter.Bloom()
		passed = len(bits.Probe(batch.Hash(bits.Params().Hash, nil), nil))
	}
	all := len(batch.Rows) + len(batch.Void()) // which have no equal in the filter's class
	if passed == all {
		return nil
	}
	return fault.Mismatch(fault.At{File: file}, "the filter", "every ID in it", fmt.Sprintf("%d of %d missing", all-passed, all)).
		WithHint("it was built from other IDs; build it again, or leave {Filter} out")
}
