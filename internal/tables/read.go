package tables

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/progress"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// ReadOptions says which rows [Read] reads. Key and Options are those of
// [keyscan.ReadOptions].
type ReadOptions struct {
	Key string
	keys.Options
	// Match, if not nil, selects the rows whose key passes its Filter or, if set, its Check;
	// rows without a key are dropped, too. Nil: all rows are read, with and without a key.
	Match *keyscan.Predicate
	// Threads is the number of workers; 0 means GOMAXPROCS.
	Threads int
}

// Read calls fn with the rows of the pieces, in order, on the calling goroutine. The pieces
// belong to the files that c was made with. Values that are not IDs under the rule are an error.
// rows counts the rows that were read or skipped, nulls the ones with a NULL in the key.
func Read(ctx context.Context, pieces []source.Piece, c *Columns, o ReadOptions, fn func(*Batch) error) (rows, nulls int64, err error) {
	ctx, release, err := source.MapPieces(ctx, pieces)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if e := release(); err == nil {
			err = e
		}
	}()
	if c == nil || fn == nil {
		return 0, 0, errors.New("ReadRows needs TableColumns and a function for the rows: one is nil")
	}
	r := &rowReading{table: c, options: o, progress: progress.Of(ctx)}
	if r.columns, err = keys.ParseColumns(o.Key); err != nil {
		return 0, 0, err
	}
	for _, p := range pieces {
		if c.Sources[p.File] == nil {
			return 0, 0, fmt.Errorf("%s: not one of the files of these columns", p.File.Name())
		}
	}
	if o.Match != nil {
		if r.scanner, err = r.newScanner(*o.Match); err != nil {
			return 0, 0, err
		}
	}
	r.way = tasks.NewFlight(tasks.InFlight(pieces)/tasks.ForRecords, tasks.Workers(pieces, o.Threads), func() int64 { return tasks.Need(pieces, r.needed) + keyscan.RowsNeed(pieces) })
	for got, err := range tasks.Map(ctx, tasks.Ranges(pieces), r.way, r.newWorker) {
		if err == nil {
			err = fn(got.Value)
		}
		if got.Value != nil {
			got.Value.Release()
		}
		if err != nil {
			return 0, 0, err
		}
	}
	if r.scanner != nil {
		return r.scanner.Stats.RowsWhere.Load(), r.scanner.Stats.KeysNull.Load(), nil
	}
	return r.read.Load(), r.nulls.Load(), nil
}

// rowReading is what the workers of one Read call share.
type rowReading struct {
	table   *Columns
	options ReadOptions
	columns []keys.Column
	way     tasks.Flight
	scanner *keyscan.Scanner // nil: all rows are read

	progress    func(rows int64) // may be nil
	read, nulls atomic.Int64     // rows that were read; without a scanner, which counts its own
}

// newScanner returns a scanner whose match also checks that the keys are IDs.
func (r *rowReading) newScanner(m keyscan.Predicate) (*keyscan.Scanner, error) {
	newCheck := func() func(*keyscan.Keys) ([]uint32, error) {
		members := (*keyscan.Keys).Probe
		if m.Check != nil {
			members = m.Check()
		}
		return func(k *keyscan.Keys) ([]uint32, error) {
			if !k.Undecided() {
				if err := k.Batch.IDs(keyscan.AtColumns(k.Piece.File.Name(), r.columns)); err != nil {
					return nil, err
				}
			}
			return members(k)
		}
	}
	return keyscan.New(keyscan.Options{
		ScanOptions: keyscan.ScanOptions{
			Match:      []dataset.Match{m.Match},
			Normalize:  r.options.Rule.String(),
			IgnoreCase: r.options.IgnoreCase,
			CountNulls: true,
			Threads:    r.options.Threads,
			Progress:   r.progress,
		},
		Check: newCheck,
	})
}

// needed returns the columns to read of a file: the table's, then the ones that only the key
// needs.
func (r *rowReading) needed(f *source.File) ([]int, error) {
	enc, err := keyscan.NewEncoder(f.Name(), f.Schema(), r.columns, r.options.Options, false)
	if err != nil {
		return []int{}, err
	}
	columns := append([]int{}, r.table.Sources[f].columns...)
	for _, c := range enc.Columns() {
		if !slices.Contains(columns, c) {
			columns = append(columns, c)
		}
	}
	return columns, nil
}

// rowWorker reads rows in one goroutine.
type rowWorker struct {
	*rowReading
	buf     *parquet.Buffers
	builder *leaves.Builder
	shred   *arrowparquet.Shredder // nil: not needed so far
	scan    *keyscan.RecordFinder  // finds the rows that pass; nil: all rows pass
	checks  []keyscan.Check
	rows    []uint32

	file   *source.File // to which the rest belongs
	source *tableSource
	enc    *keys.Encoder
	leaf   *arrowparquet.LeafKeys // the key is one leaf whose values need no conversion; else nil
	keys   *keyscan.Finder        // nil: all rows pass, or the file is not Parquet
	where  *rowfilter.Filter      // nil: keys, or the file has no condition or is not Parquet
	ids    *keys.Encoder          // of records with the key's columns; nil before the first one
}

func (r *rowReading) newWorker() (tasks.Work[*Batch], error) {
	w := &rowWorker{rowReading: r, buf: new(parquet.Buffers), builder: leaves.NewBuilder(r.table.Leaves)}
	if r.scanner != nil {
		w.checks = r.scanner.Checks()
		w.scan = keyscan.NewRecordFinder(r.scanner, w.checks)
	}
	return w.work, nil
}

// work implements Work.
func (w *rowWorker) work(ctx context.Context, t tasks.Task, emit func(*Batch) error) error {
	if err := w.open(t.File); err != nil {
		return err
	}
	if t.File.Parquet() == nil {
		return w.fromRecords(ctx, t.Group, emit)
	}
	return w.fromLeaves(ctx, t.Range, emit)
}

// open finds the key in a file, unless it is the file that was read last.
func (w *rowWorker) open(f *source.File) (err error) {
	if w.file == f {
		return nil
	}
	if w.enc, err = keyscan.NewEncoder(f.Name(), f.Schema(), w.columns, w.options.Options, false); err != nil {
		return err
	}
	w.source, w.leaf, w.keys, w.where, w.ids = w.table.Sources[f], nil, nil, nil, nil
	if p := f.Parquet(); p != nil {
		if leaf, ok := p.Leaf(w.enc.Index()); ok {
			if l := leaf.Keys(w.columns[0].Cast, w.options.Options); l.Int > 0 || l.Strings {
				w.leaf = l
			}
		}
		if w.scan != nil {
			if w.keys, err = keyscan.NewFinder(w.scanner, f, w.buf, w.checks, nil); err != nil {
				return err
			}
		} else if f.Partial() {
			w.where = rowfilter.New(f, w.buf)
		}
	}
	w.file = f
	return nil
}

// count counts rows that were read.
func (w *rowWorker) count(rows, nulls int64) {
	w.read.Add(rows)
	w.nulls.Add(nulls)
	if w.progress != nil {
		w.progress(rows)
	}
}

// fromRecords emits the rows of a row group of a file that is not Parquet.
func (w *rowWorker) fromRecords(ctx context.Context, group int, emit func(*Batch) error) error {
	columns, err := w.needed(w.file)
	if err != nil {
		return err
	}
	for rec, err := range rowfilter.Read(ctx, w.file, group, columns) {
		if err != nil {
			return err
		}
		for lo := int64(0); lo < rec.NumRows(); lo += source.StepRows {
			some := rec.NewSlice(lo, min(lo+source.StepRows, rec.NumRows()))
			b, err := w.record(group, some)
			some.Release()
			if err != nil {
				return source.InGroup(err, w.file, group)
			}
			if b == nil {
				continue
			}
			if err := emit(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// record returns the rows of a record that pass, as a batch, or nil if there are none. The
// record has the columns that needed returns.
func (w *rowWorker) record(group int, rec arrow.Record) (*Batch, error) {
	before := rec.NumRows()
	if w.scan != nil {
		kept, err := w.passing(group, rec)
		if err != nil || kept == nil {
			return nil, err
		}
		defer kept.Release()
		rec = kept
	}
	plain, err := take.PlainRecord(memory.DefaultAllocator, rec)
	if err != nil {
		return nil, w.file.Failed(err)
	}
	b := w.batchOf(group)
	b.record = plain
	if err = w.encode(plain, b.Keys); err != nil {
		b.Release()
		return nil, err
	}
	if w.scan == nil {
		w.count(before, int64(b.Keys.Nulls()))
	}
	n := len(w.source.columns)
	own := array.NewRecord(source.Project(plain.Schema(), source.UpTo(n)), plain.Columns()[:n], plain.NumRows())
	defer own.Release()
	if err = w.shredded(own, w.builder.Add); err == nil {
		b.Block, err = w.builder.Block(int(plain.NumRows()))
	}
	if err != nil {
		w.builder = leaves.NewBuilder(w.table.Leaves)
		b.Release()
		return nil, w.placed(group, err)
	}
	return b, nil
}

// passing returns the rows of a record that pass, or nil if there are none.
func (w *rowWorker) passing(group int, rec arrow.Record) (arrow.Record, error) {
	rows, err := w.scan.Pass(w.file, group, rec)
	if err != nil {
		return nil, err
	}
	w.scanner.Stats.RowsWhere.Add(rec.NumRows())
	if w.progress != nil {
		w.progress(rec.NumRows())
	}
	if len(rows) == 0 {
		return nil, nil
	}
	kept, err := take.Record(memory.DefaultAllocator, rec, rows)
	if err != nil {
		return nil, w.file.Failed(err)
	}
	return kept, nil
}

// encode sets b to the keys of a record, which must be IDs.
func (w *rowWorker) encode(rec arrow.Record, b *keys.Batch) (err error) {
	if w.ids == nil {
		if w.ids, err = keyscan.NewEncoder(w.file.Name(), rec.Schema(), w.columns, w.options.Options, false); err != nil {
			return err
		}
	}
	return w.ids.EncodeIDs(w.file.Name(), rec, b)
}

// shredded passes the leaves of a record's rows to add.
func (w *rowWorker) shredded(rec arrow.Record, add func(leaf int, p *parquet.Page, _ *parquet.Dictionary) error) (err error) {
	if w.shred == nil {
		if w.shred, err = w.table.newShredder(); err != nil {
			return err
		}
	}
	return w.shred.Shred(rec, func(leaf int, p *parquet.Page) error { return add(leaf, p, nil) })
}

// batchOf returns a batch of rows of a row group, without rows.
func (w *rowWorker) batchOf(group int) *Batch {
	return &Batch{Piece: source.Piece{File: w.file, Lo: group, Hi: group + 1}, Keys: new(keys.Batch)}
}

// placed adds the place of a row group to an error, unless it has one.
func (w *rowWorker) placed(group int, err error) error {
	at := fault.At{File: w.file.Name()}
	if w.file.GroupRows(group) >= 0 {
		at.RowGroup = group + 1
	}
	var e *fault.Error
	if err == nil || errors.As(err, &e) && e.At.File != "" {
		return err
	}
	return fmt.Errorf("%s: %w", at, err)
}
