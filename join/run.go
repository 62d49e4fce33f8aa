package join

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/partition"
)

// leg is a stretch of the log, and the IDs that it is joined with.
type leg struct {
	partition.Stage             // without filters
	side            *table.Side // nil: the filter is exact and has all that there is to know
	block           *block      // nil: side has all IDs that a row of the stretch could have
}

// legs yields the legs of the join: one, unless it is shuffled.
func (j *Join) legs(ctx context.Context) iter.Seq2[leg, error] {
	if j.shuffled != nil {
		return j.shuffled.legs(ctx)
	}
	return func(yield func(leg, error) bool) {
		yield(leg{Stage: partition.Stage{Pieces: j.pieces}, side: j.side}, nil)
	}
}

// Run yields the rows of the answer. An error ends the sequence; what Require
// wants is known only when all rows were yielded.
func (j *Join) Run(ctx context.Context) iter.Seq2[partition.Rows, error] { return j.run(ctx, nil) }

// run is Run, with end called when all has been read.
func (j *Join) run(ctx context.Context, end func() error) iter.Seq2[partition.Rows, error] {
	return func(yield func(partition.Rows, error) bool) {
		defer j.release()
		if j.counts {
			yield(partition.Rows{}, errNoColumns)
			return
		}
		if err := j.prepare(ctx); err != nil {
			yield(partition.Rows{}, err)
			return
		}
		for r, err := range j.rows(ctx) {
			if !yield(r, err) || err != nil {
				return
			}
		}
		if err := j.conclude(ctx, end); err != nil {
			yield(partition.Rows{}, err)
		}
	}
}

// errNoColumns says that there is nothing to make rows of.
var errNoColumns = errors.New("no column of the answer is named (name some, leave Columns nil for all, or call Count)")

// rows yields the rows of the answer, once all is prepared.
func (j *Join) rows(ctx context.Context) iter.Seq2[partition.Rows, error] {
	return func(yield func(partition.Rows, error) bool) {
		matched := j.everyRow
		if !j.opts.Type.keepsLog() || j.rowsOfLog() {
			matched = j.passing
		}
		for r, err := range matched(ctx) {
			if !yield(r, err) || err != nil {
				return
			}
		}
		if !j.opts.Type.keepsIDs() {
			return
		}
		for r, err := range j.unmatched(ctx) {
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// passing yields what becomes of log rows that have an ID, of which nothing else
// is read than their keys; or, in an anti join, of those that have none.
func (j *Join) passing(ctx context.Context) iter.Seq2[partition.Rows, error] {
	return func(yield func(partition.Rows, error) bool) {
		s, err := j.scanner(ctx)
		if err != nil {
			yield(partition.Rows{}, err)
			return
		}
		for r, err := range s.Scan(ctx, j.pieces) {
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// everyRow yields what becomes of all log rows.
func (j *Join) everyRow(ctx context.Context) iter.Seq2[partition.Rows, error] {
	return func(yield func(partition.Rows, error) bool) {
		for l, err := range j.legs(ctx) {
			if err != nil {
				yield(partition.Rows{}, err)
				return
			}
			j.enter(l)
			opts := partition.ReadOptions{
				Threads: j.opts.Threads,
				Columns: func(f *partition.File) ([]int, error) { return j.layouts[f].read, nil },
			}
			for r, err := range partition.Map(ctx, l.Pieces, opts, j.newWorker) {
				if err == nil {
					r.Piece, err = partition.PieceOf(j.pieces, l.Pieces[r.Piece])
				}
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// enter makes a leg the one that workers find.
func (j *Join) enter(l leg) {
	j.side, j.block = l.side, l.block
}

// Write joins and writes the answer to the output. End, if not nil, is called
// when all has been read and Options.Require is met, before anything is visible;
// its error is the join's. With Options.Require, that holds for the files of a
// directory, too: see [partition.Output].Hold.
func (j *Join) Write(ctx context.Context, out partition.Output, end func() error) (partition.Written, error) {
	if j.counts {
		return partition.Written{}, errNoColumns
	}
	if j.rowsOfLog() || j.opts.Schema == partition.Strict {
		if err := out.CheckSchemas(ctx, j.kept(), j.logs); err != nil {
			return partition.Written{}, err
		}
	}
	out.Hold = out.Hold || j.opts.Require.any()
	if !j.rowsOfLog() {
		return out.Write(ctx, j.Parts(), j.run(ctx, end))
	}
	defer j.release()
	if err := j.prepare(ctx); err != nil {
		return partition.Written{}, err
	}
	s, err := j.scanner(ctx)
	if err != nil {
		return partition.Written{}, err
	}
	j.end = end
	return out.WriteScan(ctx, s, j.pieces, j.logs)
}

// PathOf returns the way that the rows of a log file went, see
// [partition.Scanner.PathOf]. It is known once Write has returned.
func (j *Join) PathOf(f *partition.File) (path, why string) {
	if j.scanned == nil {
		return "generic", "all rows are joined as Arrow records"
	}
	return j.scanned.PathOf(f)
}

// rowsOfLog reports whether the answer is rows of the log as they are. Then the
// scan itself makes it, and copies pages where it can: each candidate is looked
// up among the IDs while the page with its key is at hand.
func (j *Join) rowsOfLog() bool { return !j.opts.Type.columnsOfIDs() }

// scanner returns the scan that makes the answer, or finds the rows that it is
// made of.
func (j *Join) scanner(ctx context.Context) (*partition.Scanner, error) {
	m := j.match()
	m.NoMatch = j.opts.Type == Anti
	m.Verifier = j.newVerifier
	opts := j.kept()
	opts.Match, opts.Normalize = []partition.Match{m}, j.opts.Normalize
	if j.rowsOfLog() || j.counts {
		opts.End = func() error { return j.conclude(ctx, j.end) }
	} else {
		opts.Work = j.newPairer
		opts.Columns = j.logNames(true)
	}
	if j.shuffled != nil {
		opts.Stages = func(ctx context.Context, _ []partition.Piece) iter.Seq2[partition.Stage, error] {
			return j.stages(ctx, m)
		}
	}
	var err error
	j.scanned, err = partition.NewScanner(opts)
	return j.scanned, err
}

// stages yields the legs as stages of a scan.
func (j *Join) stages(ctx context.Context, m partition.Match) iter.Seq2[partition.Stage, error] {
	return func(yield func(partition.Stage, error) bool) {
		for l, err := range j.legs(ctx) {
			if err == nil {
				j.enter(l)
				l.Match = []partition.Match{m}
			}
			if !yield(l.Stage, err) || err != nil {
				return
			}
		}
	}
}

// kept is what the scan does with the rows that pass.
func (j *Join) kept() partition.ScanOptions {
	o := &j.opts
	return partition.ScanOptions{
		Columns: j.logNames(false), IgnoreCase: o.IgnoreCase, Schema: o.Schema, Pinned: o.Pinned,
		Threads: o.Threads, Mem: o.Mem, Progress: o.Progress,
	}
}

// Report returns what the join came to, once Run's sequence has ended.
func (j *Join) Report() Report { return j.report }

// conclude fills the report when all has been read, compares it with what is
// required, and calls end.
func (j *Join) conclude(ctx context.Context, end func() error) error {
	if s := j.scanned; s != nil {
		st := s.Stats
		j.rowsIn.Store(st.RowsIn.Load())
		j.keysNull.Store(st.KeysNull.Load())
		if j.rowsOfLog() {
			j.rowsOut.Store(st.RowsOut.Load())
		}
		j.report.RowGroupsSkipped = st.RowGroupsSkipped.Load()
		j.report.Pages, j.report.PagesSkipped = st.Pages.Load(), st.PagesSkipped.Load()
	}
	if err := j.finish(ctx); err != nil {
		return err
	}
	// Both sides may have been read several times.
	for _, files := range [][]*partition.File{j.ids, j.logs} {
		if err := partition.Unchanged(partition.Split(files, partition.Shard{})); err != nil {
			return err
		}
	}
	if err := j.opts.Require.check(j.opts.Type, &j.report); err != nil || end == nil {
		return err
	}
	return end()
}

// finish fills the report.
func (j *Join) finish(ctx context.Context) (err error) {
	r := &j.report
	r.RowsIn, r.RowsOut = j.rowsIn.Load(), j.rowsOut.Load()
	r.KeysNull, r.Candidates = j.keysNull.Load(), j.candidates.Load()
	for _, p := range j.pieces {
		r.RowGroups += int64(p.Hi - p.Lo)
	}
	r.SpilledBytes = j.spilled
	switch r.IDsTotal = j.idsTotal.Load(); {
	case j.shuffled != nil:
		r.IDsMatched, r.DiskBytes = j.shuffled.IDsMatched.Load(), j.shuffled.Disk()
		r.SpilledBytes += j.shuffled.Written()
	case j.marks != nil:
		if r.IDsMatched, err = j.exactMatched(ctx); err != nil {
			return err
		}
	default:
		r.IDsMatched = j.side.Matched()
	}
	strangers := newSpread()
	for _, s := range j.spreads {
		strangers.merge(s)
	}
	r.FPRMeasured = measure(r.FPRPredicted, j.falsePositives.Load(), strangers)
	r.RowsMatched, r.RowsUnasked = j.matched.Load(), j.unasked.Load()
	if j.counts && !j.rowsOfLog() {
		if r.RowsOut, err = j.counted(r); err != nil {
			return err
		}
	}
	r.scanned = !slices.ContainsFunc(j.logs, neverScanned)
	return nil
}

// release gives back what the join holds.
func (j *Join) release() {
	j.side.Release()
	if j.shuffled != nil {
		_ = j.shuffled.Close() // of files that nobody needs any more
	}
}
