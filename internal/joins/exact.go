package joins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// errNotExact means that the IDs have no exact filter, or none whose members can be marked:
// another strategy is needed.
var errNotExact = errors.New("these IDs cannot be held exactly")

// exactly builds an exact filter of the IDs, whose members are the answer.
func (a *attempt) exactly(ctx context.Context) (*joinTable, error) {
	if !a.answer.RowsOfLog() || !a.keys.Integers() {
		return nil, faults.Unsupported(fault.At{}, "strategy exact for a join of type %s on keys of class %s", a.opts.Type, strings.Join(a.idPlan.Spec.Classes, ", ")).
			WithHint("it needs a semi or anti join on one column of integers; leave {Strategy} out")
	}
	if err := a.rereadable(a.ids...); err != nil { // a second reading counts the IDs that have rows, if keys repeat
		return nil, err
	}
	read := a.buildExact
	if a.opts.Filter != nil {
		read = a.checkExact
	}
	h, err := read(ctx)
	if errors.Is(err, errNotExact) && a.opts.Strategy == Exact {
		return nil, faults.Unsupported(fault.At{}, "strategy exact: %v", err).WithHint("leave {Strategy} out")
	}
	return h, err
}

// canMark returns the error of newMarks for the IDs if number and range in the footers
// show it. A filter may have fewer members, never more.
func (a *attempt) canMark() error {
	const rounded = 1 << 12 // of bounds, which are floating-point numbers
	n, sure := a.idRows()
	lo, hi, ok := a.rangeOfIDs(nil)
	if !ok || !sure || slices.ContainsFunc(a.ids, (*source.File).Uncounted) {
		return nil
	}
	if span := hi - lo - rounded; span > table.MostSpan(uint64(n)) {
		return fmt.Errorf("%w: %w: up to %d IDs in a range of %.3g", errNotExact, table.ErrTooFarApart, n, span)
	}
	marks := a.account.Share("marks of the IDs")
	defer marks.GiveAll()
	return marks.Take(int64(max(hi-lo-rounded, 0) / 8))
}

// buildExact builds the filter.
func (a *attempt) buildExact(ctx context.Context) (*joinTable, error) {
	if err := a.canMark(); err != nil {
		return nil, err
	}
	room := a.account.Share("the exact filter")
	budget := a.opts.Memory / 2
	if err := room.Take(budget); err != nil {
		return nil, err
	}
	defer room.GiveAll()
	opts := keyOptions(a.keys, a.keys.IDsText)
	opts.Kind, opts.Threads, opts.Memory, opts.TempDir, opts.Mem = codec.KindExact, a.opts.Threads, budget, a.opts.TempDir, a.opts.Mem
	opts.Progress = a.prepares(true)
	if a.opts.Strategy == Auto {
		opts.Kind = codec.Kind(filters.KindAuto)
	}
	plan, err := builds.NewPlan(a.ids, opts)
	if err != nil {
		return nil, err
	}
	f, rep, err := plan.Build(ctx)
	if err != nil {
		return nil, err
	}
	a.spilled += rep.Spilled
	if f.Exact() == nil {
		return nil, errNotExact
	}
	room.GiveAll()
	if err := a.holdFilter(f); err != nil {
		return nil, err
	}
	marks, err := a.newMarks(f.Exact())
	return &joinTable{filter: f, marks: marks, idsTotal: int64(rep.Keys)}, err
}

// newMarks returns marks for the members of a set. The error wraps errNotExact if
// they would take too much memory.
func (a *attempt) newMarks(set *exact.Set) (*table.Marks, error) {
	m, err := table.NewMarks(set, a.account)
	if errors.Is(err, table.ErrTooFarApart) {
		err = fmt.Errorf("%w: %w", errNotExact, err)
	}
	return m, err
}

// checkExact compares the given filter with the IDs: both must have the same keys.
func (a *attempt) checkExact(ctx context.Context) (*joinTable, error) {
	set := a.opts.Filter.Exact()
	if set == nil {
		return nil, faults.Of(cause.NotExact, faults.Mismatch(fault.At{File: "the filter"}, "kind of filter for strategy exact", "exact", "bloom")).
			WithHint("build it with {Kind exact}, or leave {Strategy} out")
	}
	if err := a.holdFilter(a.opts.Filter); err != nil {
		return nil, err
	}
	seen, err := a.newMarks(set)
	if err != nil {
		return nil, err
	}
	var total atomic.Int64
	err = a.eachExactKey(ctx, func(f *source.File, k *keys.Batch) error {
		if err := hasAll(a.opts.Filter, k, nil, f.Name()); err != nil {
			return err
		}
		values, _ := k.Ints()
		for _, v := range values {
			seen.Mark(seen.Entry(v))
		}
		total.Add(int64(len(values) + len(k.Void())))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if n := uint64(seen.Count()); n != set.Len() && a.opts.Strategy == Auto {
		return nil, errNotExact // the filter has more keys, so the IDs must be looked up
	} else if n != set.Len() {
		return nil, faults.Of(cause.OtherIDs, faults.Mismatch(fault.At{File: "the filter"}, "number of distinct IDs in it", n, set.Len())).
			WithHint("it was built from other IDs; build it again, or leave {Filter} out")
	}
	seen.Reset()
	return &joinTable{filter: a.opts.Filter, marks: seen, idsTotal: total.Load()}, nil
}

// eachExactKey reads the IDs' keys with several workers, in any order.
func (t *task) eachExactKey(ctx context.Context, fn func(f *source.File, k *keys.Batch) error) error {
	return t.eachIDKey(ctx, 0, func() (func(*keyscan.Keys) error, error) {
		return func(k *keyscan.Keys) error { return fn(k.Piece.File, k.Batch) }, nil
	})
}

// exactMatched returns how many IDs have a row in the log, by the marks.
func (t *task) exactMatched(ctx context.Context, h *joinTable) (int64, error) {
	n := h.marks.Count()
	if uint64(h.idsTotal) == h.filter.Exact().Len() {
		return n, nil
	}
	var all atomic.Int64 // IDs that share a key all count
	err := t.eachExactKey(ctx, func(_ *source.File, k *keys.Batch) error {
		values, _ := k.Ints()
		for _, v := range values {
			if h.marks.Marked(h.marks.Entry(v)) {
				all.Add(1)
			}
		}
		return nil
	})
	return all.Load(), err
}
