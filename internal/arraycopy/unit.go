package arraycopy

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// unit is rows of a row group that are scanned together.
type unit interface {
	// passing returns the rows to keep; in a scan of pairs, with their partners.
	passing(ctx context.Context) (*rows.Selection, error)
	// read yields the columns to keep of the rows, in order, without repeating a row. A
	// record is valid until the next one.
	read(ctx context.Context, s *rows.Selection) iter.Seq2[arrow.Record, error]
}

// worker makes records of the rows that pass, in one goroutine.
type worker struct {
	scanner *keyscan.Scanner
	pairs   *tables.Pairs // nil: no row is repeated
	beside  *pairWriter   // of pairs
	way     tasks.Flight
	checks  []keyscan.Check
	buf     *parquet.Buffers

	file    *source.File // that the rest belongs to
	columns []int        // to keep; nil: all
	ranges  *keyscan.Finder
	records *keyscan.RecordFinder
}

func newWorker(s *keyscan.Scanner, pairs *tables.Pairs, way tasks.Flight, inFlight int64) *worker {
	w := &worker{scanner: s, pairs: pairs, way: way, checks: s.Checks(), buf: new(parquet.Buffers)}
	w.records = keyscan.NewRecordFinder(s, w.checks)
	if pairs != nil {
		w.beside = &pairWriter{pairs: pairs, mem: s.Options.Mem, most: batchBytesOf(inFlight)}
	}
	return w
}

// enter prepares for a file.
func (w *worker) enter(f *source.File) (err error) {
	if w.file == f {
		return nil
	}
	if w.columns, err = w.scanner.Options.ColumnsOf(f); err != nil {
		return err
	}
	if w.ranges = nil; f.Parquet() != nil {
		if w.ranges, err = keyscan.NewFinder(w.scanner, f, w.buf, w.checks, nil); err != nil {
			return err
		}
	}
	if w.beside != nil {
		w.beside.begin(f, w.columns)
	}
	w.file = f
	return nil
}

// group scans a row group. In Parquet files it reads the keys first and then the
// rows that pass, in others all rows.
func (w *worker) group(ctx context.Context, f *source.File, group int, emit func(made) error) error {
	if err := w.enter(f); err != nil || w.scanner.Enough() {
		return err
	}
	if w.ranges != nil {
		for r := range tasks.RangesIn(f.Parquet().File(), group) {
			if err := w.unit(ctx, &rangeUnit{w, r}, emit); err != nil {
				return err
			}
		}
		return nil
	}
	read, err := w.scanner.ReadColumns(f)
	if err != nil {
		return err
	}
	over := func(live, rows int64) {
		w.scanner.Stats.RowsIn.Add(live)
		if w.scanner.Options.Progress != nil {
			w.scanner.Options.Progress(rows)
		}
	}
	first := int64(0)
	for rec, err := range rowfilter.ReadFrom(ctx, f, w.way.Table(f), group, read, over) {
		if err != nil {
			return err
		}
		if err := w.unit(ctx, &recordUnit{w, rec, group, first}, emit); err != nil {
			return source.InGroup(err, f, group)
		}
		first += rec.NumRows()
	}
	return nil
}

// unit emits the rows of a unit that pass, or pairs.
func (w *worker) unit(ctx context.Context, u unit, emit func(made) error) error {
	s, err := u.passing(ctx)
	if err != nil || s.Count == 0 || w.scanner.Counted {
		return err
	}
	if w.pairs != nil {
		w.scanner.Stats.RowsOut.Add(s.Count)
		w.pairs.Join(s)
	}
	kept, cut := s.Kept, s.Cutter()
	emitOne := func(rec arrow.Record) error {
		m := made{rec, kept}
		kept = 0
		return emit(m)
	}
	for rec, err := range u.read(ctx, s) {
		if err != nil {
			return err
		}
		if w.pairs == nil {
			rec.Retain()
			err = emitOne(rec)
		} else {
			err = w.beside.write(rec, cut.Cut(int(rec.NumRows())), emitOne)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// selected returns the selection of rows that pass.
func (w *worker) selected(lo, hi int64, find func() (rows.Matched, error)) (*rows.Selection, error) {
	m, err := find()
	if err != nil {
		return nil, err
	}
	return w.pairs.Select(lo, hi, m)
}

// rangeUnit is a range of rows of a Parquet file.
type rangeUnit struct {
	*worker
	tasks.Range
}

func (u *rangeUnit) passing(ctx context.Context) (*rows.Selection, error) {
	if u.pairs != nil {
		return u.selected(u.Lo, u.Hi, func() (rows.Matched, error) { return u.ranges.Pairs(ctx, u.Range) })
	}
	chosen, err := u.ranges.Scan(ctx, u.Range, nil)
	return rows.Of(u.Lo, u.Hi, chosen), err
}

func (u *rangeUnit) read(ctx context.Context, s *rows.Selection) iter.Seq2[arrow.Record, error] {
	chosen := s.Rows
	if chosen == nil {
		chosen = s.Slice(0, s.Len())
	}
	return u.way.Table(u.file).(*arrowparquet.Parquet).ReadRows(ctx, u.Group, u.columns, chosen)
}

// recordUnit is a record of another file, with the columns to keep and then those that only
// keys need.
type recordUnit struct {
	*worker
	rec   arrow.Record
	group int
	first int64 // number of its first row in the row group
}

func (u *recordUnit) passing(context.Context) (*rows.Selection, error) {
	n, st := u.rec.NumRows(), u.scanner.Stats
	st.RowsWhere.Add(n)
	if u.pairs != nil {
		return u.selected(u.first, u.first+n, func() (rows.Matched, error) {
			return u.records.Pairs(u.file, u.group, u.rec, uint32(u.first))
		})
	}
	if find := u.scanner.Options.Rows; find != nil {
		chosen := find(u.file, u.group, u.first, u.first+n, nil)
		st.RowsOut.Add(int64(len(chosen)))
		return rows.Of(u.first, u.first+n, chosen), nil
	}
	passed, err := u.records.Pass(u.file, u.group, u.rec)
	if err != nil {
		return nil, err
	}
	st.RowsOut.Add(int64(len(passed)))
	chosen := make([]uint32, len(passed))
	for i, row := range passed {
		chosen[i] = uint32(u.first) + uint32(row)
	}
	return rows.Of(u.first, u.first+n, chosen), nil
}

// read yields one record, without offsets, which not every writer handles.
func (u *recordUnit) read(_ context.Context, s *rows.Selection) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		rec := u.rec
		if n := len(u.columns); u.columns != nil {
			rec = array.NewRecord(u.scanner.Options.SchemaWith(u.file, u.columns), rec.Columns()[:n], rec.NumRows())
			defer rec.Release()
		}
		at := make([]int, s.Len())
		for i, row := range s.Slice(0, s.Len()) {
			at[i] = int(row) - int(u.first)
		}
		kept, err := take.Record(u.scanner.Options.Mem, rec, at)
		if err != nil {
			yield(nil, u.file.Failed(err))
			return
		}
		defer kept.Release()
		yield(kept, nil)
	}
}
