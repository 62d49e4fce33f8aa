package joins

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// If there are too many IDs to hold, the log determines which are needed:
//
//	the log's keys, or those that pass a filter of the IDs ──► filter of the log
//	IDs ── filter of the log ──► IDs that are kept
//
// This is a semi-join reduction (Bernstein and Chiu, "Using semi-joins to solve
// relational queries", JACM 1981) by a filter instead of keys. Its false positives
// are held needlessly; they do not change the answer.

// logSeed is the seed of the hash of a filter of the log. A filter of the IDs that pass it uses
// another seed, see [builds.Options]; otherwise both would share their false positives.
const logSeed = 1

// reduce holds the IDs that the log needs. Broadcast: a filter of all IDs selects the log's
// candidates, whose keys make the filter of the log; the scan uses the filter of the IDs.
// Reverse: the filter of the log has all of its keys; the scan uses a filter of the IDs held.
func (a *attempt) reduce(ctx context.Context, s Strategy) (*joinTable, error) {
	filter := a.opts.Filter
	if s == Broadcast && filter == nil {
		var err error
		if filter, err = a.idFilter(ctx); err != nil {
			return nil, err
		}
	}
	ofLog, err := a.logFilter(ctx, filter)
	if err != nil {
		return nil, err
	}
	side := a.newSide()
	h, err := a.keep(ctx, ofLog, filter, heldIDs{side})
	if err == nil {
		err = side.Seal()
	}
	if err != nil {
		side.Release()
		return nil, err
	}
	h.side = side
	return h, nil
}

// idFilter builds the filter of all IDs in a pass of its own, after one that counts
// the IDs if the files do not say how many there are.
func (a *attempt) idFilter(ctx context.Context) (*filters.Filter, error) {
	plan := a.idPlan
	if !plan.Sized() {
		var n atomic.Uint64
		err := a.eachIDKey(ctx, 0, func() (func(*keyscan.Keys) error, error) {
			return func(k *keyscan.Keys) error {
				n.Add(uint64(len(k.Batch.Rows)))
				return nil
			}, nil
		})
		if err != nil {
			return nil, err
		}
		if plan, err = a.newIDPlan(max(n.Load(), 1)); err != nil {
			return nil, err
		}
	}
	f, rep, err := plan.Build(ctx)
	if err != nil {
		return nil, err
	}
	a.spilled += rep.Spilled
	return f, a.holdFilter(f)
}

// logFilter returns a filter of the log's keys, or only of the keys that pass ofIDs if that is
// not nil.
func (a *attempt) logFilter(ctx context.Context, ofIDs *filters.Filter) (*filters.Filter, error) {
	opts, err := a.logFilterOptions()
	if err != nil {
		return nil, err
	}
	return a.buildBloom(ctx, a.logs, opts, func(b *builds.Builder) error {
		return a.eachLogKey(ctx, ofIDs, b.Workers(), func() (func(*keyscan.Keys) error, error) {
			add, err := newFilterAdder(b)
			return func(k *keyscan.Keys) error {
				hits, err := usedHits(k)
				if err != nil {
					return err
				}
				return add(k.Batch, hits)
			}, err
		})
	})
}

// logFilterOptions returns how the filter of the log is built.
func (t *task) logFilterOptions() (builds.Options, error) {
	opts := t.filterOptions(t.keys.LogText)
	opts.FPR, opts.Seed = plan.LogFPR, logSeed
	// IDs outside the range of the log's keys must be read all the same if each is
	// checked: against the given filter, by the rule, or by a cast.
	cast := slices.ContainsFunc(t.keys.IDs, func(c keys.Column) bool { return c.Cast != nil })
	opts.NoKeyRange = t.opts.Filter != nil || t.keys.Rule != 0 || cast
	for _, f := range t.logs {
		n := rowfilter.MostRows(source.Piece{File: f, Hi: f.NumGroups()})
		if n < 0 {
			var err error
			if n, err = f.CountRows(); err != nil {
				return opts, err
			}
		}
		if n < 0 {
			opts.Expect, opts.Uncounted = 0, true
			return opts, nil
		}
		opts.Expect += uint64(n)
	}
	opts.Expect = max(opts.Expect, 1)
	g, most := bloom.GeometryFor(plan.LogFPR), uint64(t.filterBudget())
	if most > 0 && g.Blocks(opts.Expect, plan.LogFPR)*uint64(g.BlockBytes()) > most {
		opts.FPR, opts.MaxSize = 0, most // enough if keys repeat
	}
	return opts, nil
}

// filterBudget returns the bytes of memory that one filter may take; 0: no bound.
func (t *task) filterBudget() int64 { return t.opts.Memory / plan.FilterPart }
