package joins

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// Join is a join of files. It runs once, by Run, Write or Count; a second use is an error. Plan,
// Parts, PathOf and Report may be called at any time, concurrently. The files must stay open
// until it has run; others may use them meanwhile.
type Join struct {
	used atomic.Bool

	mu      sync.Mutex // of what follows
	task    *task
	report  Report
	scanner *keyscan.Scanner // nil: it has not begun
	why     string           // pairs are made of arrays, not of pages
}

// begin begins the one run, during which the files stay open. Rows are made unless they
// are counted.
func (j *Join) begin(ctx context.Context, count bool) (held context.Context, release func() error, err error) {
	t, err := j.prepared()
	if err != nil {
		return nil, nil, err
	}
	if t.answer.Counts && !count {
		return nil, nil, errNoColumns
	}
	if j.used.Swap(true) {
		return nil, nil, errors.New("the Join has run already: it runs once (make another with New)")
	}
	return t.open(ctx)
}

// open keeps the files of both sides open.
func (t *task) open(ctx context.Context) (held context.Context, release func() error, err error) {
	stopped.Needs(ctx, "join")
	return source.KeepOpen(ctx, slices.Concat(t.ids, t.logs)...)
}

// prepared returns the task.
func (j *Join) prepared() (*task, error) {
	if j == nil {
		return nil, errNotNew
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.task == nil {
		return nil, errNotNew
	}
	return j.task, nil
}

var errNotNew = errors.New("a Join that New has not made")

// note records what PathOf, Report and Parts return, while others may call them.
func (j *Join) note(set func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	set()
}

// New examines the inputs: it finds the keys, compares their classes and determines
// the schema of the answer for each log file. It reads footers only.
func New(ids, logs []*source.File, opts Options) (*Join, error) {
	t, err := newTask(ids, logs, opts, opts.Columns != nil && len(opts.Columns) == 0)
	if err != nil {
		return nil, err
	}
	return &Join{task: t}, nil
}

// Plan estimates the answer's size and the cost of each strategy. It reads footers, indexes,
// samples of the log's keys, and the IDs' keys, unless these can be read only once. It writes
// nothing; the join can run afterwards. The strategy is the one that the join will take, which
// samples less; the advice in the plan's JSON says if another one should be faster.
func (j *Join) Plan(ctx context.Context, opts PlanOptions) (*Plan, error) {
	t, err := j.prepared()
	if err != nil {
		return nil, err
	}
	ctx, release, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	p, err := t.plan(ctx, opts.Filled())
	if err = errors.Join(err, release()); err != nil {
		return nil, err
	}
	return p, nil
}

// Parts returns the parts of the answer, in order: one for each piece of the log, and for right
// and full joins one for the IDs without a log row. [arraycopy.Rows].Piece is an index into them.
func (j *Join) Parts() []output.Part {
	t, err := j.prepared()
	if err != nil {
		return nil
	}
	return t.parts()
}

// errNoColumns says that there is nothing to make rows of.
var errNoColumns = errors.New("no column of the answer is named (name some, leave Columns nil for all, or call Count)")

// Run yields the rows of the answer. An error ends the sequence; requirements are
// checked when all rows have been yielded. The sequence can be used once.
func (j *Join) Run(ctx context.Context) iter.Seq2[arraycopy.Rows, error] {
	return func(yield func(arraycopy.Rows, error) bool) {
		ctx, release, err := j.begin(ctx, false)
		if err != nil {
			yield(arraycopy.Rows{}, err)
			return
		}
		ended := true // the consumer has stopped, got an error or panicked
		defer func() {
			if err := release(); err != nil && !ended {
				yield(arraycopy.Rows{}, err)
			}
		}()
		for rows, err := range j.run(ctx) {
			if !yield(rows, err) || err != nil {
				return
			}
		}
		ended = false
	}
}

// run is Run once it has begun.
func (j *Join) run(ctx context.Context) iter.Seq2[arraycopy.Rows, error] {
	return func(yield func(arraycopy.Rows, error) bool) {
		if j.task.united() {
			yield(arraycopy.Rows{}, j.task.notUnited("the join yields records"))
			return
		}
		r, err := j.task.start(ctx)
		if err != nil {
			yield(arraycopy.Rows{}, err)
			return
		}
		defer r.held.release()
		scan := keyscan.Options{ScanOptions: keyscan.ScanOptions{Limit: r.opts.Limit}}
		to := &records{r.task, yield, func(s *keyscan.Scanner) { j.note(func() { j.scanner = s }) }, scan.Left()}
		if err = r.write(ctx, to); err == nil {
			err = j.conclude(ctx, r, nil)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(arraycopy.Rows{}, err)
		}
	}
}

// conclude is called when all input has been read: it makes the report, checks the
// requirements, and calls end.
func (j *Join) conclude(ctx context.Context, r *running, end func() error) (err error) {
	rep, err := r.conclude(ctx)
	j.note(func() { j.report = rep })
	if err != nil || end == nil {
		return err
	}
	return end()
}

// Write joins and writes the answer to the output. Nothing becomes visible unless Options.Require is
// met. After an error the output is as [output.Destination.WriteScan] leaves it. end, if not nil, is
// called when all input has been read, before a file becomes visible; its error is the join's.
func (j *Join) Write(ctx context.Context, out output.Destination, end func() error) (_ dataset.Written, err error) {
	if _, err := j.prepared(); err != nil {
		return dataset.Written{}, err
	}
	if err := out.CheckSchemas(ctx, keyscan.Options{}, nil); err != nil { // before IDs are read
		return dataset.Written{}, err
	}
	if err := out.Apart(ctx, j.task.ids...); err != nil {
		return dataset.Written{}, err
	}
	ctx, release, err := j.begin(ctx, false)
	if err != nil {
		return dataset.Written{}, err
	}
	defer faults.Join(&err, release)
	t := j.task
	dir := out.IsDir(ctx)
	if dir {
		var err error
		if t, err = t.mirrored(); err != nil {
			return dataset.Written{}, err
		}
		t = t.required(&out)
		j.note(func() { j.task = t })
	} else if t.apart != nil {
		return dataset.Written{}, t.apart
	}
	if t.answer.RowsOfLog() || t.opts.Schema == dataset.Strict {
		if err := out.CheckSchemas(ctx, t.answer.ScanOptions(t.logs[0]), t.logs); err != nil {
			return dataset.Written{}, err
		}
	}
	if !t.answer.RowsOfLog() {
		paged, why := t.byPages(ctx, out)
		j.note(func() { j.why = why })
		switch {
		case why == "":
			t = paged
		case t.united():
			return dataset.Written{}, t.notUnited(why)
		}
	}
	r, err := t.start(ctx)
	if err != nil {
		return dataset.Written{}, err
	}
	defer r.held.release()
	scanner, err := r.scanner(partitionRound{}) // which says what is kept
	if err != nil {
		return dataset.Written{}, err
	}
	j.note(func() { j.scanner = scanner })
	out.Counts = func(inputs []dataset.WrittenInput, pieces []source.Piece) (idsMatched, idsTotal int64) {
		if t.makesPairs() {
			r.tally.describe(inputs, pieces, t.opts.Type)
		}
		return j.report.IDsMatched, j.report.IDsTotal
	}
	each := func(w *output.ScanWriter) error {
		if err := r.write(ctx, w); err != nil {
			return err
		}
		return j.conclude(ctx, r, end)
	}
	return out.WriteScan(ctx, scanner, t.pieces, t.logs, &output.Scans{Pairs: r.pairs(partitionRound{}), Each: each})
}

// required returns the task without its requirements, which the directory checks over all
// inputs and shards.
func (t *task) required(out *output.Destination) *task {
	if t.opts.Require == (dataset.Require{}) {
		return t
	}
	out.Require = t.opts.Require
	without := *t
	without.opts.Require = dataset.Require{}
	return &without
}

// Count joins and returns the number of rows of the answer without making any. It
// reads nothing but the keys of both sides. Options.Require holds.
func (j *Join) Count(ctx context.Context) (_ int64, err error) {
	ctx, release, err := j.begin(ctx, true)
	if err != nil {
		return 0, err
	}
	defer faults.Join(&err, release)
	r, err := j.task.counting().start(ctx)
	if err != nil {
		return 0, err
	}
	defer r.held.release()
	err = r.eachScan(ctx, func(s *keyscan.Scanner, part partitionRound) error {
		j.note(func() { j.scanner = s })
		return output.Count(ctx, s, part.pieces)
	})
	if err == nil {
		err = j.conclude(ctx, r, nil)
	}
	if err != nil {
		return 0, err
	}
	return j.report.RowsOut, nil
}

// PathOf returns how the rows of a log file were processed, see
// [keyscan.Scanner.PathOf]. It is known once Write has returned.
func (j *Join) PathOf(f *source.File) (path, why string) {
	if j == nil {
		return "", ""
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	path, why = "generic", "all rows are joined as Arrow records"
	if j.scanner != nil {
		path, why = j.scanner.PathOf(f)
	}
	if j.why != "" {
		why += ", since " + j.why
	}
	return path, why
}

// Report returns the figures of the join. It is complete when Write or Count has
// returned, or the sequence of Run has ended.
func (j *Join) Report() Report {
	if j == nil {
		return Report{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.report
}
