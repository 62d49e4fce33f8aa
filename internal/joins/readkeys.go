package joins

import (
	"context"
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/progress"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// keyWork returns a worker's function for batches of keys, see
// [keyscan.Read].
type keyWork = func() (func(*keyscan.Keys) error, error)

// keysOf returns the options for reading key columns, t.keys.LogText or
// t.keys.IDsText. 0 threads: those of the join.
func (t *task) keysOf(columns string, threads int) keyscan.ReadOptions {
	if threads == 0 {
		threads = t.opts.Threads
	}
	return keyscan.ReadOptions{Key: columns, Options: t.keys.Options(), Threads: threads}
}

// prepares returns a function for progress in reading the IDs, or keys of the log; nil
// if nothing is to be reported.
func (t *task) prepares(ids bool) func(rows int64) {
	if t.opts.Prepares == nil {
		return nil
	}
	return func(rows int64) { t.opts.Prepares(ids, rows) }
}

// readIDs returns a context for reading IDs, whose progress is reported.
func (t *task) readIDs(ctx context.Context) context.Context {
	return progress.With(ctx, t.prepares(true))
}

// eachLogKey reads the keys of the log, each key of a dictionary once. A filter of the
// IDs, if not nil, answers Keys.Probe.
func (t *task) eachLogKey(ctx context.Context, filter *filters.Filter, threads int, work keyWork) error {
	ctx = progress.With(ctx, t.prepares(false))
	_, _, err := keyscan.Read(ctx, t.pieces, t.logKeys(filter, threads), work)
	return err
}

func (t *task) logKeys(filter *filters.Filter, threads int) keyscan.ReadOptions {
	o := t.keysOf(t.keys.LogText, threads)
	o.Filter, o.Distinct = filter, true
	return o
}

// eachIDKey reads the keys of all IDs, in any order.
func (t *task) eachIDKey(ctx context.Context, threads int, work keyWork) error {
	o := t.keysOf(t.keys.IDsText, threads)
	o.IDs = true
	_, _, err := keyscan.Read(t.readIDs(ctx), t.idPieces, o, work)
	return err
}

// eachIDRow calls fn with the rows of the IDs, in order: all, or the rows that m selects if it is
// not nil. A batch is valid until fn returns. n counts the rows that were read or skipped, nulls the
// ones with a NULL in the key.
func (t *task) eachIDRow(ctx context.Context, m *keyscan.Predicate, fn func(*tables.Batch) error) (n, nulls int64, err error) {
	o := tables.ReadOptions{Key: t.keys.IDsText, Options: t.keys.Options(), Match: m, Threads: t.opts.Threads}
	return tables.Read(t.readIDs(ctx), t.idPieces, t.answer.IDs.Held, o, fn)
}

// usedHits returns the positions of keys that may be members of the filter and that
// some row has.
func usedHits(k *keyscan.Keys) ([]uint32, error) {
	hits, err := k.Probe()
	if k.Times != nil {
		hits = slices.DeleteFunc(hits, func(h uint32) bool { return k.Times[h] == 0 })
	}
	return hits, err
}

// hasAll returns an error if a key of the batch is missing in the filter: it was built from
// other IDs, and would lose their rows. times, if not nil, has the number of rows of each key,
// which may be none.
func hasAll(filter *filters.Filter, batch *keys.Batch, times []uint32, file string) error {
	passed, err := filter.ProbeBatch(batch, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	all := len(batch.Rows) + len(batch.Void()) // void keys have no equal in the filter's class
	if times != nil {
		passed = slices.DeleteFunc(passed, func(i uint32) bool { return times[i] == 0 })
		for _, n := range times {
			if n == 0 {
				all--
			}
		}
	}
	if len(passed) == all {
		return nil
	}
	return faults.Of(cause.OtherIDs, faults.Mismatch(fault.At{File: file}, "the filter", "every ID in it", fmt.Sprintf("%d of %d missing", all-len(passed), all))).
		WithHint("it was built from other IDs; build it again, or leave {Filter} out")
}
