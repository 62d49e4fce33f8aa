package keyscan

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/progress"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// ReadOptions says which keys [Read] reads.
type ReadOptions struct {
	// Key names the key columns as [keys.ParseColumns] reads them.
	Key string
	// Options says how values become keys. With a Filter, its rule and classes
	// replace those given here.
	keys.Options
	// IDs makes a value that is not an ID under the rule an error. Otherwise
	// such a value has no key.
	IDs bool
	// Filter, if not nil, is used by [Keys.Probe]. Pages that cannot hold a member
	// may be skipped, so their keys are not passed on.
	Filter *filters.Filter
	// CountNulls reads skipped pages whose number of NULLs is unknown, so that
	// the number of NULLs is exact.
	CountNulls bool
	// Distinct passes on the keys of a dictionary once for each row group, with
	// their number of rows in Times. Large row groups are divided, and each part
	// counts separately. Entries without rows are passed on with zero rows.
	Distinct bool
	// FirstPages, if not 0, reads only the first page of up to that many row groups,
	// which are spread evenly over the pieces. Only keys of one column of a Parquet
	// file without a condition are sampled; other files are not read.
	FirstPages int
	// Runs, if not 0, reads only that many runs of RunRows consecutive rows each,
	// spread at random over the pieces so that each row of a row group is equally
	// likely to be read. The sample depends on the pieces alone. A run that reaches
	// the end of its row group continues at the row group's beginning. If the pieces
	// have no more than Runs·RunRows rows, each row group is one run, and all rows
	// are read. The number of rows must be known beforehand; see [source.File.Rows]. Runs
	// and FirstPages exclude each other. Rows that fail a file's condition count as rows
	// without a key. Row groups in which no row can satisfy it, according to the
	// footer, are left out: see [rowfilter.MostRows].
	Runs    int
	RunRows int64
	// Threads is the number of workers; 0 means GOMAXPROCS.
	Threads int
}

// Read reads the keys of the pieces with several workers, and nothing else.
// newWork is called once by each worker; the function that it returns receives
// the worker's batches, one at a time. Within a row group, batches come in the
// order of the rows, except those with Times. Row groups come in any order
// unless Threads is 1.
//
// A key that is one column of a Parquet file, or of integers or strings in
// text, is read without Arrow records. If several workers fail, the error of
// the earliest row group is returned.
//
// rows is the number of rows that were read or skipped, and nulls that of the rows
// among them that have a NULL in the key.
func Read(ctx context.Context, pieces []source.Piece, o ReadOptions, newWork func() (func(*Keys) error, error)) (rows, nulls int64, err error) {
	ctx, release, err := source.OpenPieces(ctx, pieces)
	if err != nil {
		return 0, 0, err
	}
	defer faults.Join(&err, release)
	if newWork == nil {
		return 0, 0, errors.New("newWork is nil: ReadKeys needs work to pass the keys to")
	}
	columns, err := keys.ParseColumns(o.Key)
	if err != nil {
		return 0, 0, err
	}
	if o.Filter != nil {
		of, err := o.Filter.KeyOptions()
		if err != nil {
			return 0, 0, err
		}
		o.Rule, o.Classes = of.Rule, of.Classes
	}
	if err := options.AtLeastZero("Threads", o.Threads, "GOMAXPROCS"); err != nil {
		return 0, 0, err
	}
	all, err := o.tasks(pieces)
	if err != nil {
		return 0, 0, err
	}
	way := tasks.NewFlight(tasks.InFlight(pieces), tasks.Processors(o.Threads), func() int64 { return keyNeed(pieces, columns, o.Options) })
	if o.Runs == 0 && o.FirstPages == 0 && slices.ContainsFunc(pieces, func(p source.Piece) bool { return source.IsText(p.File.Format()) }) {
		all = tasks.TextRuns(all, way.Workers)
	}
	shared := &keyReading{options: o, columns: columns, way: way, parsers: way.Workers / max(min(len(all), way.Workers), 1), progress: progress.Of(ctx)}
	if slices.ContainsFunc(pieces, func(p source.Piece) bool { return p.File.Remote() }) {
		shared.ahead = shared.lookAhead(ctx, all)
		defer shared.ahead.stop()
	}
	if o.Runs > 0 {
		shared.rows = rowsOfPieces(pieces)
	}
	for _, err := range tasks.Map(ctx, all, way, func() (tasks.Work[nothing], error) {
		work, err := newWork()
		return newKeyWorker(shared, new(parquet.Buffers), work).read, err
	}) {
		if err != nil {
			return 0, 0, err
		}
	}
	return shared.read.Load(), shared.nulls.Load(), nil
}

// tasks divides the work of reading the pieces.
func (o *ReadOptions) tasks(pieces []source.Piece) ([]tasks.Task, error) {
	switch {
	case o.Runs > 0:
		return RunsOf(pieces, o.Runs, o.RunRows)
	case o.FirstPages > 0:
		return firstPagesOf(pieces, o.FirstPages), nil
	case o.narrowed():
		return tasks.Ranges(pieces), nil
	}
	return tasks.Groups(pieces), nil
}

// narrowed reports whether batches may have fewer rows than are read.
func (o *ReadOptions) narrowed() bool { return o.Distinct || o.Filter != nil }

// keyReading is what the workers of one Read call share.
type keyReading struct {
	options ReadOptions
	columns []keys.Column
	way     tasks.Flight
	parsers int         // goroutines that parse a text file
	rows    int64       // of all pieces, for shares of runs
	ahead   *tasksAhead // nil: no file is over a network

	read, nulls atomic.Int64
	progress    func(rows int64) // may be nil
}

// keyWorker reads keys in one goroutine.
type keyWorker struct {
	*keyReading
	work  func(*Keys) error
	buf   *parquet.Buffers
	batch keys.Batch
	keys  Keys

	file    *source.File // that enc, leaf and records belong to
	enc     *keys.Encoder
	leaf    *leafKeys         // nil: the key is not one leaf
	records *RecordKeys       // nil: not needed so far
	where   *rowfilter.Filter // nil: the file has no condition, or is not Parquet
}

func newKeyWorker(r *keyReading, buf *parquet.Buffers, work func(*Keys) error) *keyWorker {
	w := &keyWorker{keyReading: r, work: work, buf: buf}
	if r.progress != nil && !r.options.narrowed() {
		w.work = func(k *Keys) error {
			r.progress(int64(k.Batch.Len))
			return work(k)
		}
	}
	w.keys = Keys{Batch: &w.batch, Filter: r.options.Filter}
	return w
}

// open finds the key in a file, unless it is the file that was read last.
func (w *keyWorker) open(f *source.File) (err error) {
	if w.file == f {
		return nil
	}
	if w.enc, err = NewEncoder(f.Name(), f.Schema(), w.columns, w.options.Options, w.options.Filter != nil); err != nil {
		return err
	}
	w.leaf, w.records, w.where = nil, nil, nil
	if p := f.Parquet(); p != nil {
		if f.Partial() {
			w.where = rowfilter.New(f, w.buf)
		}
		if leaf, ok := p.Leaf(w.enc.Index()); ok {
			if w.leaf, err = w.newLeaf(f, leaf); err != nil {
				return err
			}
		}
	}
	w.file = f
	return nil
}

// newLeaf returns a reader of keys that are one leaf of a Parquet file.
func (w *keyWorker) newLeaf(f *source.File, leaf arrowparquet.LeafValues) (*leafKeys, error) {
	o := &w.options
	l := &leafKeys{
		file: f, columns: w.columns, leaf: leaf.Keys(w.columns[0].Cast, o.Options), buf: w.buf,
		keys: &w.keys, work: w.work, ids: o.IDs, countNulls: o.CountNulls,
	}
	if o.Filter == nil {
		return l, nil
	}
	return l, l.prune(Predicate{Match: dataset.Match{Filter: (*codec.Filter)(o.Filter), Key: o.Key, IgnoreCase: o.IgnoreCase, NullMisfits: o.NullMisfits}})
}

// nothing is what tasks make whose keys go to a function.
type nothing struct{}

func (nothing) Release() {}

// read implements Work.
func (w *keyWorker) read(ctx context.Context, t tasks.Task, _ func(nothing) error) error {
	expected, err := w.ahead.begin(ctx, t.Number)
	if err != nil {
		return err
	}
	defer expected.release()
	if err := w.open(t.File); err != nil {
		return err
	}
	w.keys.Piece = source.Piece{File: t.File, Lo: t.Group, Hi: t.After()}
	w.keys.Run, w.keys.Share, w.keys.Times = t.Number, t.Stands/float64(max(w.rows, 1)), nil
	if text, column, ok := w.plainText(t.File); ok {
		return w.text(ctx, text, t, column)
	}
	if w.options.FirstPages > 0 && t.File.Partial() {
		return nil
	}
	some, err := w.satisfying(ctx, t.Range)
	if err != nil {
		return err
	}
	if w.leaf == nil {
		return w.readRecords(ctx, t.File, t, some)
	}
	w.leaf.expected = expected
	read := w.leaf.values
	switch {
	case w.options.FirstPages > 0:
		read = w.leaf.firstPage
	case w.options.Distinct:
		read = w.leaf.entries
	}
	rows, nulls, err := read(ctx, t.Range, some)
	w.leaf.expected = nil
	w.count(rows, nulls)
	return err
}

// satisfying returns the rows of a range of a Parquet file that satisfy its condition; nil: all
// do, or the rows are read as records. In a sample, the others count as rows without a key.
func (w *keyWorker) satisfying(ctx context.Context, r tasks.Range) (some []uint32, err error) {
	if w.where == nil {
		return nil, nil
	}
	rows, all, err := w.where.Rows(ctx, r, nil)
	if err != nil || all {
		return nil, err
	}
	if some = slices.Clone(rows); some == nil {
		some = []uint32{}
	}
	if w.options.Runs > 0 {
		w.keys.without(int(r.Hi-r.Lo) - len(some))
		return some, w.work(&w.keys)
	}
	return some, nil
}

func (w *keyWorker) count(rows, nulls int64) {
	w.keyReading.read.Add(rows)
	w.nulls.Add(nulls)
	if w.progress != nil && w.options.narrowed() {
		w.progress(rows)
	}
}

// pass passes on the keys of lines or records.
func (w *keyWorker) pass() error {
	w.count(int64(w.batch.Len), int64(w.batch.Nulls()))
	return w.work(&w.keys)
}

func (w *keyWorker) readRecords(ctx context.Context, f *source.File, t tasks.Task, some []uint32) error {
	if w.options.FirstPages > 0 {
		return nil
	}
	if w.records == nil {
		w.records = &RecordKeys{
			File: f, from: w.way.Table(f), Columns: w.columns, Options: w.options.Options,
			Filtered: w.options.Filter != nil, ids: w.options.IDs, read: w.enc.Columns(), Keys: &w.keys,
			failing: w.options.Runs > 0,
		}
	}
	for last := t.After(); t.Group < last; t.Group++ {
		w.keys.Piece.Lo, w.keys.Piece.Hi = t.Group, t.Group+1
		if err := w.records.each(ctx, t.Range, some, w.pass); err != nil {
			return err
		}
	}
	return nil
}

// without makes the batch one of n rows without a key.
func (k *Keys) without(n int) {
	k.Batch.SetInts(nil, 0, 8, false)
	k.Batch.Len = n
}

// plainText returns the table of a text file and the column that is the whole key,
// if its lines can be parsed directly into keys.
func (w *keyWorker) plainText(f *source.File) (t *text.Table, column int, ok bool) {
	t, ok = source.Stored(f.Table()).(*text.Table)
	index := w.enc.Index()
	if !ok || f.Partial() || len(index) != 1 || index[0] >= t.Schema().NumFields() || !w.enc.AsStored() || t.Kind(index[0]) == text.Other {
		return nil, 0, false
	}
	return t, index[0], true
}

// text passes on the keys of row groups of a text file.
func (w *keyWorker) text(ctx context.Context, t *text.Table, groups tasks.Task, column int) error {
	if w.options.FirstPages > 0 {
		return nil
	}
	kind := t.Kind(column)
	for v, err := range t.ReadPlain(ctx, groups.Group, groups.After(), column, w.parsers) {
		if err != nil {
			return err
		}
		if kind == text.Bytes {
			w.batch.SetBytes(v.Plain, v.NonNull, w.options.Rule)
		} else {
			w.batch.SetInts(v.Plain, v.NonNull, 8, kind == text.Signed)
		}
		w.batch.Len = v.Rows
		if err := Fit(&w.batch, w.file.Name(), w.columns, w.options.IDs); err != nil {
			return err
		}
		if err := w.pass(); err != nil {
			return err
		}
	}
	return nil
}

// keyNeed is need for the key columns, plus the steps in which keys are passed on.
func keyNeed(pieces []source.Piece, columns []keys.Column, o keys.Options) int64 {
	const steps = 8 * stepBytes
	return steps + tasks.Need(pieces, func(f *source.File) ([]int, error) {
		enc, err := keys.NewEncoder(f.Schema(), columns, o)
		if err != nil {
			return []int{}, err
		}
		return enc.Columns(), nil
	})
}
