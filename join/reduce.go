package join

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Where the IDs are too many to hold, the log tells which of them are needed:
//
//	the log's keys, or those of them that a filter of the IDs lets through ──► filter of the log
//	IDs ── filter of the log ──► IDs that are kept
//
// That is a semi-join reduction (Bernstein and Chiu, "Using semi-joins to solve
// relational queries", JACM 1981) by a filter instead of keys: what it lets
// through in vain is held in vain, and changes nothing in the answer.

// logFPR is the rate of a filter of the log: an ID that is held in vain
// costs some thirty times as much memory as the bits of a key of the log.
const logFPR = 0.004

// logSeed is the seed of the hash of a filter of the log. That of the IDs that it
// lets through has another, see [filterbuild.Options].
const logSeed = 1

// filterPart is the part of the memory budget that a filter of the log may take.
const filterPart = 3

// reduce holds the IDs that the log needs. With Broadcast the log is a filter of
// the IDs' candidates, and that filter stays the one by which the log is
// scanned; with Reverse it is all of the log, and a filter of the IDs that are
// held takes that part.
func (j *Join) reduce(ctx context.Context, s Strategy) error {
	if s == Broadcast && j.filter == nil {
		if err := j.buildFilter(ctx); err != nil {
			return err
		}
	}
	ofLog, err := j.logFilter(ctx)
	if err != nil {
		return err
	}
	j.side = j.newSide()
	if err := j.keep(ctx, ofLog, heldIDs{j.side}); err != nil {
		return err
	}
	return j.side.Seal()
}

// buildFilter builds the filter in a pass of its own, after one that counts the
// IDs where the files do not tell their number.
func (j *Join) buildFilter(ctx context.Context) (err error) {
	if !j.plan.Sized() {
		var n uint64
		err := j.eachID(ctx, false, func(_ *partition.File, _ arrow.Record, batch *key.Batch) error {
			n += uint64(len(batch.Rows))
			return nil
		})
		if err != nil {
			return err
		}
		if j.plan, err = j.newPlan(max(n, 1)); err != nil {
			return err
		}
	}
	var rep filterbuild.Report
	if j.filter, rep, err = j.plan.Build(ctx); err != nil {
		return err
	}
	j.spilled += rep.Spilled
	return j.holdFilter(j.filter)
}

// logFilter returns a filter of the log's keys: of those of candidates, if there
// is a filter of the IDs.
func (j *Join) logFilter(ctx context.Context) (*codec.Filter, error) {
	opts, err := j.logFilterOptions()
	if err != nil {
		return nil, err
	}
	return j.filterFrom(ctx, j.logs, opts, func(b *filterbuild.Builder) error {
		return j.eachLogKey(ctx, j.pieces, b.Workers(), func() (keyWork, error) {
			add, err := adder(b)
			return func(_ *partition.File, _ int, k *key.Batch, hits, rows []uint32) error {
				return add(k, used(hits, rows))
			}, err
		})
	})
}

// logFilterOptions says how the filter of the log is built.
func (j *Join) logFilterOptions() (filterbuild.Options, error) {
	opts := j.filterOptions(j.logKey)
	opts.FPR, opts.Seed = logFPR, logSeed
	// IDs out of the range of the log's keys are read all the same where each is
	// to be checked: against the filter that was given, by the rule, or a cast.
	cast := slices.ContainsFunc(j.right, func(c key.Column) bool { return c.Cast != nil })
	opts.NoKeyRange = j.opts.Filter != nil || j.rule != 0 || cast
	for _, f := range j.logs {
		n, err := f.CountRows()
		if err != nil {
			return opts, err
		}
		if n < 0 {
			opts.Capacity, opts.Uncounted = 0, true
			return opts, nil
		}
		opts.Capacity += uint64(n)
	}
	opts.Capacity = max(opts.Capacity, 1)
	g, most := bloom.GeometryFor(logFPR), uint64(j.filterBudget())
	if most > 0 && g.Blocks(opts.Capacity, logFPR)*uint64(g.BlockBytes()) > most {
		opts.FPR, opts.MaxSize = 0, most // which is enough if keys repeat
	}
	return opts, nil
}

// filterBudget is what one filter may take of the memory; 0: no bound.
func (j *Join) filterBudget() int64 { return j.opts.Memory / filterPart }

// filterFrom builds a Bloom filter of keys that fill puts in, which are the
// files', or some of them. What the filter may take is on the account while it
// is built, and then what it takes, until the join ends.
func (j *Join) filterFrom(ctx context.Context, files []*partition.File, opts filterbuild.Options, fill func(*filterbuild.Builder) error) (_ *codec.Filter, err error) {
	opts.Normalize, opts.Kind = j.opts.Normalize, codec.WantBloom
	opts.Threads, opts.Memory, opts.TempDir, opts.Mem = j.opts.Threads, j.filterBudget(), j.opts.TempDir, j.opts.Mem
	plan, err := filterbuild.NewPlan(files, opts)
	if err != nil {
		return nil, err
	}
	return j.build(ctx, plan, fill)
}

// build is filterFrom for a plan.
func (j *Join) build(ctx context.Context, plan *filterbuild.Plan, fill func(*filterbuild.Builder) error) (_ *codec.Filter, err error) {
	room := j.account.Share("a filter")
	if err := room.Take(j.filterBudget()); err != nil {
		return nil, err
	}
	defer room.GiveAll()
	b, err := plan.NewBuilder(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := fill(b); err != nil {
		return nil, err
	}
	f, rep, err := b.Finish(ctx)
	j.spilled += rep.Spilled
	return f, err
}

// adder returns what puts keys into a filter, from one goroutine: those at the
// positions in some; nil: all.
func adder(b *filterbuild.Builder) (func(k *key.Batch, some []uint32) error, error) {
	w, err := b.Worker()
	var picked key.Batch
	return func(k *key.Batch, some []uint32) error {
		if some == nil || len(some) == len(k.Rows) {
			return w.AddBatch(k)
		}
		k.Select(&picked, some)
		return w.AddBatch(&picked)
	}, err
}

// holdFilter puts a filter on the account until the join ends.
func (j *Join) holdFilter(f *codec.Filter) error {
	return j.account.Share("the filter").Take(bytesOf(f))
}

// used returns those of hits that some row has.
func used(hits, rows []uint32) []uint32 {
	if rows == nil {
		return hits
	}
	var some []uint32
	for _, h := range hits {
		if rows[h] > 0 {
			some = append(some, h)
		}
	}
	return some
}

// keyWork is called with keys of one row group: hits are the positions of those
// that a filter lets through, rows says how many rows have each key; nil: one.
// One goroutine calls it.
type keyWork func(f *partition.File, group int, k *key.Batch, hits, rows []uint32) error

// eachLogKey reads the keys of pieces of the log with several workers, through the filter of
// the IDs if there is one.
func (j *Join) eachLogKey(ctx context.Context, pieces []partition.Piece, threads int, newWork func() (keyWork, error)) error {
	m := j.matchOf(j.plan.Spec.Header(), j.logKey) // which lets everything through
	if j.filter != nil {
		m.Filter = j.filter
	}
	_, err := j.readKeys(ctx, m, pieces, partition.ScanOptions{Threads: threads}, newWork)
	return err
}

// readKeys reads the keys of the pieces and passes them on with what the
// match's filter says of them.
func (j *Join) readKeys(ctx context.Context, m partition.Match, pieces []partition.Piece, opts partition.ScanOptions, newWork func() (keyWork, error)) (*partition.ScanStats, error) {
	m.Verifier = func() partition.Verifier {
		work, err := newWork()
		return &reader{work: work, err: err}
	}
	opts.Match, opts.Normalize, opts.Mem = []partition.Match{m}, j.opts.Normalize, j.opts.Mem
	s, err := partition.NewScanner(opts)
	if err != nil {
		return nil, err
	}
	return s.Stats, s.Count(ctx, pieces)
}

// reader is a Verifier that hands on keys.
type reader struct {
	work  keyWork
	err   error // of making work
	file  *partition.File
	group int
}

func (r *reader) Begin(f *partition.File, group int)          { r.file, r.group = f, group }
func (r *reader) Filter() bool                                { return true }
func (r *reader) Verify(_ *key.Batch, hits []uint32) []uint32 { return hits }
func (r *reader) Count(k *key.Batch, hits, _, rows []uint32) error {
	if r.err != nil {
		return r.err
	}
	return r.work(r.file, r.group, k, hits, rows)
}
