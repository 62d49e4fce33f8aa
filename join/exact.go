package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/exact"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// errNotExact says that there is no exact filter of just these IDs, or none that
// can tell which of them have rows, and that another strategy is to be taken.
var errNotExact = errors.New("these IDs cannot be held exactly")

// exactly prepares for a join whose filter is exact: what it lets through is the
// answer, and the IDs need not be held beside it.
func (j *Join) exactly(ctx context.Context) error {
	if !j.rowsOfLog() || !j.integers() {
		return fault.Unsupported(fault.At{}, "strategy exact for a %s join on keys of class %s", j.opts.Type, strings.Join(j.plan.Spec.Classes, ", ")).
			WithHint("it needs a semi or anti join on one column of integers; leave {Strategy} out")
	}
	if err := j.again(j.ids); err != nil { // to count those that have rows, where keys repeat
		return err
	}
	err := j.exactFilter(ctx)
	if errors.Is(err, errNotExact) && j.opts.Strategy == Exact {
		return fault.Unsupported(fault.At{}, "strategy exact: %v", err).WithHint("leave {Strategy} out")
	}
	return err
}

// exactFilter builds the filter, or checks the one that was given.
func (j *Join) exactFilter(ctx context.Context) error {
	if j.filter != nil {
		return j.checkExact(ctx)
	}
	want := codec.WantExact
	if j.opts.Strategy == Auto {
		want = codec.WantAuto
	}
	room := j.account.Share("the exact filter")
	budget := j.opts.Memory / 2
	if err := room.Take(budget); err != nil {
		return err
	}
	defer room.GiveAll()
	opts := j.filterOptions(j.idKey)
	opts.Kind, opts.Threads, opts.Memory, opts.TempDir, opts.Mem = want, j.opts.Threads, budget, j.opts.TempDir, j.opts.Mem
	plan, err := filterbuild.NewPlan(j.ids, opts)
	if err != nil {
		return err
	}
	f, rep, err := plan.Build(ctx)
	if err != nil {
		return err
	}
	j.spilled += rep.Spilled
	if f.Exact() == nil {
		return errNotExact
	}
	room.GiveAll()
	if err := j.holdFilter(f); err != nil {
		return err
	}
	j.filter = f
	j.idsTotal.Store(int64(rep.Keys))
	j.marks, err = j.newMarks(f.Exact())
	return err
}

// newMarks returns marks for the members of a set. The error wraps errNotExact
// if they would take too much.
func (j *Join) newMarks(set *exact.Set) (*table.Marks, error) {
	m, err := table.NewMarks(set, j.account)
	if errors.Is(err, table.ErrTooFarApart) {
		err = fmt.Errorf("%w: %w", errNotExact, err)
	}
	return m, err
}

// checkExact compares an exact filter that was given with the IDs: each is to be
// in both.
func (j *Join) checkExact(ctx context.Context) error {
	set := j.filter.Exact()
	if set == nil {
		return fault.Mismatch(fault.At{File: "the filter"}, "kind of filter for strategy exact", "exact", "bloom").
			WithHint("build it with {Kind exact}, or leave {Strategy} out")
	}
	if err := j.holdFilter(j.filter); err != nil {
		return err
	}
	seen, err := j.newMarks(set)
	if err != nil {
		return err
	}
	err = j.eachIDKey(ctx, func(f *partition.File, k *key.Batch) error {
		if err := j.holds(k, f.Name); err != nil {
			return err
		}
		values, _ := k.Ints()
		for _, v := range values {
			seen.Mark(seen.Entry(v))
		}
		j.idsTotal.Add(int64(len(values) + len(k.Void())))
		return nil
	})
	if err != nil {
		return err
	}
	if n := uint64(seen.Count()); n != set.Len() && j.opts.Strategy == Auto {
		return errNotExact // it has more, which another strategy looks up
	} else if n != set.Len() {
		return fault.Mismatch(fault.At{File: "the filter"}, "number of distinct IDs in it", fmt.Sprint(n), fmt.Sprint(set.Len())).
			WithHint("it was built from other IDs; build it again, or leave {Filter} out")
	}
	seen.Reset()
	j.marks = seen
	return nil
}

// eachIDKey reads the IDs' keys with several workers, in no certain order.
func (j *Join) eachIDKey(ctx context.Context, fn func(f *partition.File, k *key.Batch) error) error {
	return partition.MapKeys(ctx, partition.Split(j.ids, partition.Shard{}), j.idKey, j.keyOptions(), j.opts.Threads, func() (partition.KeyWork, error) {
		return func(p partition.Piece, k *key.Batch) error { return fn(p.File, k) }, nil
	})
}

// exactMatched returns how many IDs have a row in the log.
func (j *Join) exactMatched(ctx context.Context) (int64, error) {
	n := j.marks.Count()
	if uint64(j.idsTotal.Load()) == j.filter.Exact().Len() {
		return n, nil
	}
	var all atomic.Int64 // of several IDs with one key, all
	err := j.eachIDKey(ctx, func(_ *partition.File, k *key.Batch) error {
		values, _ := k.Ints()
		for _, v := range values {
			if j.marks.Marked(j.marks.Entry(v)) {
				all.Add(1)
			}
		}
		return nil
	})
	return all.Load(), err
}
