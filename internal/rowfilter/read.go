package rowfilter

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
	"github.com/bloomjoin/bloomjoin/internal/where"
)

// To all of its readers, a file with a condition ([source.OpenOptions].Where) has only the
// rows that satisfy it: rows that fail have no key and cause no error. Rows keep their
// numbers in the stored row group. A [Filter] finds the rows in Parquet files, a [Records]
// in others.

// MostRows returns an upper bound on the number of rows in the piece. With a condition, it
// leaves out row groups in which no row satisfies it according to the footer. It returns
// -1 if the number is unknown before the rows are read.
func MostRows(p source.Piece) (n int64) {
	for _, rows := range GroupsMost(p) {
		if rows < 0 {
			return -1
		}
		n += rows
	}
	return n
}

// GroupsMost is MostRows for each row group.
func GroupsMost(p source.Piece) (rows []int64) {
	var w *Filter
	if p.File.Partial() && p.File.Parquet() != nil {
		w = New(p.File, nil)
	}
	for g := p.Lo; g < p.Hi; g++ {
		n := p.File.LiveRows(g)
		if w != nil && !w.Group(g).Has(where.True) {
			n = 0
		}
		rows = append(rows, n)
	}
	return rows
}

// Read yields the rows of a row group with the given top-level columns, in that order;
// nil means all. A record is valid until yield returns, unless it is retained.
func Read(ctx context.Context, f *source.File, group int, columns []int) iter.Seq2[arrow.Record, error] {
	return f.Reading(ctx, group, columns, func(ctx context.Context) iter.Seq2[arrow.Record, error] {
		return ReadFrom(ctx, f, f.Table(), group, columns, func(int64, int64) {})
	})
}

// ReadFrom is Read by a reader of the file. over receives the number of rows read in each step,
// without and with those that are deleted.
func ReadFrom(ctx context.Context, f *source.File, from source.Table, group int, columns []int, over func(live, rows int64)) iter.Seq2[arrow.Record, error] {
	p, _ := from.(*arrowparquet.Parquet)
	switch {
	case !f.Partial():
		return func(yield func(arrow.Record, error) bool) {
			for rec, err := range from.Read(ctx, group, columns) {
				if err == nil {
					over(rec.NumRows(), rec.NumRows())
				}
				if !yield(rec, err) {
					return
				}
			}
		}
	case p != nil:
		return readParquet(ctx, f, p, group, columns, over)
	}
	return readRecords(ctx, f, from, group, columns, over)
}

// readParquet is ReadFrom for a Parquet file with a condition.
func readParquet(ctx context.Context, f *source.File, p *arrowparquet.Parquet, group int, columns []int, over func(live, rows int64)) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		w := New(f, new(parquet.Buffers))
		defer w.buf.Close()
		for r := range tasks.RangesIn(p.File(), group) {
			chosen, all, err := w.Rows(parquet.WithTurn(ctx, nil), r, nil)
			if err != nil {
				yield(nil, err)
				return
			}
			over(f.LiveIn(group, r.Lo, r.Hi), r.Hi-r.Lo)
			if all {
				chosen = r.Set(p.GroupRows(group)).List([]uint32{})
			}
			for rec, err := range p.ReadRows(ctx, group, columns, chosen) {
				if !yield(rec, err) || err != nil {
					return
				}
			}
		}
	}
}

// readRecords is ReadFrom for another file with a condition.
func readRecords(ctx context.Context, f *source.File, from source.Table, group int, columns []int, over func(live, rows int64)) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		w := NewRecords(f, columns)
		for rec, err := range from.Read(ctx, group, w.Read) {
			if err != nil {
				yield(nil, err)
				return
			}
			over(rec.NumRows(), rec.NumRows())
			kept, err := w.record(rec)
			if err != nil {
				yield(nil, err)
				return
			}
			more := kept == nil || yield(kept, nil)
			if kept != nil {
				kept.Release()
			}
			if !more {
				return
			}
		}
	}
}

// Records drops the rows of records that fail the condition of a file, or are not in its sample. It must
// not be used concurrently.
type Records struct {
	file    *source.File
	where   *where.Bound
	wanted  int   // of the columns that are read: the first ones; -1: all
	Read    []int // top-level columns to read; nil: all
	columns []int // by column of the condition: where it is in a record
	truths  [][]where.Truth
	whole   []where.Truth
	rows    []int

	sample   *sampler // nil: rows with any key
	sampleAt []int    // where its columns are in a record
}

// NewRecords returns a filter of records with the given columns of the file; nil:
// all. They must be read with the columns that the condition needs, see read.
func NewRecords(f *source.File, columns []int) *Records {
	w := &Records{file: f, where: f.Where(), sample: newSampler(f), wanted: -1}
	if columns != nil {
		w.wanted, w.Read = len(columns), slices.Clone(columns)
	}
	place := func(column int) int {
		if columns == nil {
			return column
		}
		if at := slices.Index(w.Read, column); at >= 0 {
			return at
		}
		w.Read = append(w.Read, column)
		return len(w.Read) - 1
	}
	if w.where != nil {
		w.truths = make([][]where.Truth, len(w.where.Preds()))
		for _, c := range w.where.Columns() {
			w.columns = append(w.columns, place(c.Index[0]))
		}
	}
	if w.sample != nil {
		for _, c := range w.sample.read {
			w.sampleAt = append(w.sampleAt, place(c))
		}
	}
	if w.Read == nil && columns != nil {
		w.Read = []int{}
	}
	return w
}

// record returns the rows of a record that satisfy the condition, with the wanted
// columns, or nil if there are none. The caller releases it.
func (w *Records) record(rec arrow.Record) (arrow.Record, error) {
	rows, err := w.Kept(rec)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	own := rec
	if w.wanted >= 0 {
		own = array.NewRecord(source.Project(rec.Schema(), source.UpTo(w.wanted)), rec.Columns()[:w.wanted], rec.NumRows())
		defer own.Release()
	}
	if int64(len(rows)) == rec.NumRows() {
		own.Retain()
		return own, nil
	}
	kept, err := take.Record(memory.DefaultAllocator, own, rows)
	if err != nil {
		return nil, w.file.Failed(err)
	}
	return kept, nil
}

// Kept returns the rows of a record that satisfy the condition, ascending. They are
// valid until the next call.
func (w *Records) Kept(rec arrow.Record) (rows []int, err error) {
	n := int(rec.NumRows())
	w.rows = w.rows[:0]
	for row := range n {
		w.rows = append(w.rows, row)
	}
	if w.where != nil {
		err = w.satisfying(rec)
	}
	if err == nil && w.sample != nil && len(w.rows) > 0 {
		err = w.sampled(rec)
	}
	return w.rows, err
}

// satisfying reduces rows to those that satisfy the condition.
func (w *Records) satisfying(rec arrow.Record) (err error) {
	fields := w.where.Columns()
	for i, p := range w.where.Preds() {
		c := p.Column()
		if w.truths[i], err = evaluate(p, w.truths[i][:0], rec.Column(w.columns[c]), fields[c].Index[1:]); err != nil {
			return fmt.Errorf("%s: %w", fault.At{File: w.file.Name(), Column: fields[c].Names.String()}, err)
		}
	}
	w.whole = w.where.Combine(w.whole[:0], w.truths)
	w.rows = slices.DeleteFunc(w.rows, func(row int) bool {
		if len(w.truths) == 0 { // a condition without columns
			row = 0
		}
		return w.whole[row] != where.True
	})
	return nil
}

// evaluate appends the truth of a predicate for each row. path leads from the column to
// the predicate's, through structs.
func evaluate(p *where.Pred, dst []where.Truth, column arrow.Array, path []int) ([]where.Truth, error) {
	var above []arrow.Array
	for _, i := range path {
		if e, ok := column.(array.ExtensionArray); ok {
			column = e.Storage()
		}
		s, ok := column.(*array.Struct)
		if !ok {
			return nil, fmt.Errorf("internal error: a field of a column of type %s", column.DataType())
		}
		above, column = append(above, s), s.Field(i)
	}
	from := len(dst)
	dst = p.Eval(dst, column)
	for _, s := range above {
		if s.NullN() == 0 {
			continue
		}
		for i := range s.Len() {
			if s.IsNull(i) {
				dst[from+i] = p.OfNull()
			}
		}
	}
	return dst, nil
}
