package join

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/partition"
)

// tableHash places keys in the table, and is the hash of every filter that
// this package builds.
var tableHash = bloom.Hash{ID: bloom.XXH3}

// prepare builds the filter and the ID side by the strategy.
func (j *Join) prepare(ctx context.Context) error {
	if err := j.prepareSide(ctx); err != nil {
		return err
	}
	// A mapped filter says so no more when all has been read.
	j.report.FPRAsked, j.report.FPRPredicted = j.filter.FPRAsked, j.filter.FPR()
	return nil
}

func (j *Join) prepareSide(ctx context.Context) error {
	j.filter = j.opts.Filter
	if j.filter != nil {
		if err := j.checkFilter(); err != nil {
			return err
		}
	}
	strategy := j.opts.Strategy
	var full error // why not Lookup
	if strategy != Broadcast {
		full = j.lookup(ctx)
		j.report.Strategy = Lookup
		if full == nil || strategy == Lookup || !errors.Is(full, ErrMemory) {
			return full
		}
		j.side.release()
		j.side, j.whole = nil, false
		j.idsTotal.Store(0)
	}
	for _, f := range j.ids {
		if f.Once() {
			again := fmt.Sprintf("the IDs are to be read more than once, which %s cannot be (name a file, or raise --memory)", f.Name)
			if full != nil {
				return fmt.Errorf("%w; for less, %s", full, again)
			}
			return errors.New(again)
		}
	}
	j.report.Strategy = Broadcast
	return j.broadcast(ctx)
}

// checkFilter compares a filter that was given with the IDs' key.
func (j *Join) checkFilter() error {
	var got []keys.Class
	for _, c := range j.filter.KeyClasses() {
		got = append(got, keys.Class(c))
	}
	rule, err := keys.RuleOf(j.filter.Normal())
	if err != nil {
		return err
	}
	if rule != j.rule {
		return fault.Mismatch(fault.At{File: "the filter"}, "--normalize, by which it was built", j.rule.Word()+" as the join's", rule.Word()).
			WithHint("build it with the join's --normalize, or say the filter's for the join, or leave --filter out")
	}
	return keys.Match(fault.At{File: "the filter"}, j.classes, got)
}

// holds returns an error if the filter lacks a key of the batch: it was built
// from other IDs, and would lose their rows.
func (j *Join) holds(batch *keys.Batch, file string) error {
	var passed int
	if set := j.filter.Exact(); set != nil {
		values, signed, _ := batch.Ints()
		passed = len(set.Probe(values, signed, nil))
	} else {
		bits := j.filter.Bloom()
		passed = len(bits.Probe(batch.Hash(bits.Params().Hash, nil), nil))
	}
	if passed == len(batch.Rows) {
		return nil
	}
	return fault.Mismatch(fault.At{File: file}, "filter", "one that holds every ID", fmt.Sprintf("one that lacks %d of %d", len(batch.Rows)-passed, len(batch.Rows))).
		WithHint("the filter was built from other IDs; build it again, or leave --filter out")
}

// eachID calls fn with every batch of ID rows, in order, and their keys. fn
// may keep the record by retaining it. Where the answer has the IDs' columns,
// the record has values in place of dictionaries.
func (j *Join) eachID(ctx context.Context, columns func(*partition.File) ([]int, error), fn func(f *partition.File, rec arrow.Record, batch *keys.Batch) error) error {
	paths, err := keys.ParsePaths(j.idKey)
	if err != nil {
		return err
	}
	pieces := partition.Split(j.ids, partition.Shard{})
	var at *partition.File
	var enc *keys.Encoder
	var batch keys.Batch
	var before int64 // rows of the file
	retain := func() (partition.Work, error) {
		return func(_ partition.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
			rec.Retain()
			return emit(rec)
		}, nil
	}
	for r, err := range partition.Map(ctx, pieces, partition.ReadOptions{Threads: j.opts.Threads, Columns: columns}, retain) {
		if err != nil {
			return err
		}
		f := pieces[r.Piece].File
		err = func() error {
			defer r.Record.Release()
			rec := r.Record
			if j.opts.Type.columnsOfIDs() {
				if rec, err = take.PlainRecord(j.opts.Mem, rec); err != nil {
					return fmt.Errorf("%s: %w", f.Name, err)
				}
				defer rec.Release()
			}
			if f != at {
				if enc, err = keys.NewEncoder(rec.Schema(), paths, j.rule); err != nil {
					return fmt.Errorf("%s: %w", f.Name, err)
				}
				at, before = f, 0
			}
			if err := enc.EncodeIDs(f.Name, rec, &batch); err != nil {
				return inGroup(err, f, before, &batch)
			}
			before += rec.NumRows()
			return fn(f, rec, &batch)
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// inGroup adds the row group to an error about the IDs of a batch, which has so
// many rows of the file before it.
func inGroup(err error, f *partition.File, before int64, batch *keys.Batch) error {
	var e *fault.Error
	if !errors.Is(err, keys.ErrNoUUID) || !errors.As(err, &e) {
		return err
	}
	row := before + int64(batch.Void()[0])
	for g := range f.NumGroups() {
		n := f.GroupRows(g)
		if n < 0 {
			break
		}
		if row < n {
			e.At.RowGroup = g + 1
			break
		}
		row -= n
	}
	return err
}

// idRead returns the columns to read of the ID files: all, or only the key.
func (j *Join) idRead(f *partition.File) ([]int, error) {
	if j.opts.Type.columnsOfIDs() {
		return nil, nil
	}
	return j.keyColumns(f)
}

func (j *Join) keyColumns(f *partition.File) ([]int, error) {
	paths, err := keys.ParsePaths(j.idKey)
	if err != nil {
		return nil, err
	}
	enc, err := keys.NewEncoder(f.Schema(), paths, j.rule)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return enc.Columns(), nil
}

// lookup reads all IDs into the table, and into the filter unless one was
// given.
func (j *Join) lookup(ctx context.Context) (err error) {
	j.side, j.whole = j.newSide(), true
	var worker *filterbuild.Worker
	var builder *filterbuild.Builder
	if j.filter == nil {
		if builder, err = j.plan.NewBuilder(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, builder.Close()) }()
	}
	if j.rowsOfLog() {
		if err := j.lookupKeys(ctx, builder); err != nil || builder == nil {
			return err
		}
		j.filter, _, err = builder.Finish(ctx)
		return err
	}
	if builder != nil {
		if worker, err = builder.Worker(); err != nil {
			return err
		}
	}
	err = j.eachID(ctx, j.idRead, func(f *partition.File, rec arrow.Record, batch *keys.Batch) error {
		j.idsTotal.Add(int64(len(batch.Rows)))
		if worker != nil {
			if err := worker.Add(batch); err != nil {
				return err
			}
		} else if err := j.holds(batch, f.Name); err != nil {
			return err
		}
		return j.side.addRows(rec, batch)
	})
	if err == nil {
		err = j.side.seal()
	}
	if err != nil || builder == nil {
		return err
	}
	j.filter, _, err = builder.Finish(ctx)
	return err
}

// lookupKeys reads the IDs' keys into the side, and into the filter if there is
// a builder: what is needed where the answer has none of their rows.
func (j *Join) lookupKeys(ctx context.Context, builder *filterbuild.Builder) error {
	var n int64
	for _, f := range j.ids {
		n += max(f.Rows(), 0)
	}
	j.side.reserve(n)
	threads := j.opts.Threads
	if builder != nil {
		threads = builder.Workers()
	}
	err := partition.MapKeys(ctx, partition.Split(j.ids, partition.Shard{}), j.idKey, j.rule, threads, func() (partition.KeyWork, error) {
		fill := j.holds
		if builder != nil {
			worker, err := builder.Worker()
			if err != nil {
				return nil, err
			}
			fill = func(b *keys.Batch, _ string) error { return worker.Add(b) }
		}
		return func(p partition.Piece, b *keys.Batch) error {
			if err := fill(b, p.File.Name); err != nil {
				return err
			}
			j.idsTotal.Add(int64(len(b.Rows)))
			return j.side.addKeys(b)
		}, nil
	})
	if err != nil {
		return err
	}
	return j.side.seal()
}

// newSide returns an ID side for what the answer needs.
func (j *Join) newSide() *idSide {
	return newIDSide(sideKind{
		integers: j.integers(), columns: j.opts.Type.columnsOfIDs(), threads: j.opts.Threads, mem: j.opts.Mem,
	}, j.account)
}

// integers reports whether the key is one column of integers.
func (j *Join) integers() bool { return len(j.classes) == 1 && j.classes[0] == keys.Integer }

// broadcast collects the keys of the candidates, and then the IDs that have
// one of them.
func (j *Join) broadcast(ctx context.Context) error {
	if j.filter == nil {
		if err := j.buildFilter(ctx); err != nil {
			return err
		}
	}
	wanted, err := j.candidateKeys(ctx)
	defer wanted.release() // held until all IDs are read
	if err != nil {
		return err
	}
	j.side = j.newSide()
	var all, keep, entries []uint32
	err = j.eachID(ctx, j.idRead, func(f *partition.File, rec arrow.Record, batch *keys.Batch) error {
		j.idsTotal.Add(int64(len(batch.Rows)))
		if err := j.holds(batch, f.Name); err != nil {
			return err
		}
		for len(all) < len(batch.Rows) {
			all = append(all, uint32(len(all)))
		}
		keep, entries = wanted.find(batch, all[:len(batch.Rows)], keep, entries)
		if j.rowsOfLog() {
			return j.side.addSomeKeys(batch, keep)
		}
		return j.side.addSomeRows(rec, batch, keep)
	})
	if err != nil {
		return err
	}
	return j.side.seal()
}

// buildFilter builds the filter in a pass of its own, after one that counts the
// IDs where the files do not tell their number.
func (j *Join) buildFilter(ctx context.Context) (err error) {
	if !j.plan.Sized() {
		var n uint64
		err := j.eachID(ctx, j.keyColumns, func(_ *partition.File, _ arrow.Record, batch *keys.Batch) error {
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
	j.filter, _, err = j.plan.Build(ctx)
	return err
}

// candidateKeys reads the log's keys and returns those that the filter lets
// through.
func (j *Join) candidateKeys(ctx context.Context) (*idSide, error) {
	wanted := newIDSide(sideKind{integers: j.integers(), threads: j.opts.Threads, mem: j.opts.Mem}, j.account)
	columns := func(f *partition.File) ([]int, error) {
		p, err := partition.NewProber(f.Name, f.Schema(), j.match())
		if err != nil {
			return nil, err
		}
		return p.Columns(), nil
	}
	opts := partition.ReadOptions{Threads: j.opts.Threads, Columns: columns}
	for _, err := range partition.Map(ctx, j.pieces, opts, func() (partition.Work, error) {
		var prober *partition.Prober
		var at *partition.File
		return func(p partition.Piece, rec arrow.Record, _ func(arrow.Record) error) error {
			if at != p.File {
				var err error
				if prober, err = partition.NewProber(p.File.Name, rec.Schema(), j.match()); err != nil {
					return err
				}
				at = p.File
			}
			hits, err := prober.Probe(rec)
			if err != nil {
				return err
			}
			return wanted.addSomeKeys(&prober.Keys, hits)
		}, nil
	}) {
		if err != nil {
			return wanted, err
		}
	}
	return wanted, wanted.seal()
}
