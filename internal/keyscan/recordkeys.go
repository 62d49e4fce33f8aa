package keyscan

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// RecordKeys reads keys of any shape from Arrow records of a file. It must not be
// used concurrently.
type RecordKeys struct {
	File     *source.File
	from     source.Table // the file's reader
	Columns  []keys.Column
	Options  keys.Options
	Filtered bool  // the options' classes are a filter's
	ids      bool  // a value that is not an ID is an error
	failing  bool  // rows that fail the file's condition are passed on as rows without a key
	read     []int // columns to read
	Keys     *Keys // handed on

	enc    *keys.Encoder // of the records' schema; nil before the first one
	rows   []uint32
	filter *rowfilter.Records // of a file other than Parquet that has a condition
	kept   []uint32           // rows of a record that satisfy it
}

// each calls fn with the keys of the rows, or of some of them. For files other than
// Parquet, it reads the whole row group, and leaves out rows that fail the file's
// condition.
func (r *RecordKeys) each(ctx context.Context, rows tasks.Range, some []uint32, fn func() error) error {
	r.list(rows, some)
	first := int64(0) // of the record, within the row group
	picked := r.rows
	_, seeks := r.from.(*arrowparquet.Parquet)
	read := r.read
	if r.File.Partial() && !seeks {
		r.filter = rowfilter.NewRecords(r.File, read)
		read = r.filter.Read
	}
	if seeks {
		ctx = parquet.WithTurn(ctx, nil)
	}
	for rec, err := range source.ReadKeysOf(ctx, r.from, rows.Group, read, r.rows) {
		if err != nil {
			return err
		}
		n := rec.NumRows()
		for _, s := range within(r.rows, first, n, seeks) {
			at := Position{first: uint32(first + s[0])}
			if seeks && r.rows != nil {
				at.rows = picked[s[0]:]
			}
			some := rec.NewSlice(s[0], s[1])
			err := r.satisfying(some, at, fn)
			some.Release()
			if err != nil {
				return source.InGroup(err, r.File, rows.Group)
			}
		}
		if seeks && r.rows != nil {
			picked = picked[n:]
		}
		first += n
	}
	return nil
}

// satisfying passes on the keys of those rows of a record that satisfy the condition.
func (r *RecordKeys) satisfying(rec arrow.Record, at Position, fn func() error) error {
	if r.filter == nil {
		return r.Step(rec, at, fn)
	}
	rows, err := r.filter.Kept(rec)
	if err != nil {
		return err
	}
	if failing := int(rec.NumRows()) - len(rows); r.failing && failing > 0 {
		r.Keys.without(failing)
		if err := fn(); err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		return nil
	}
	r.kept = r.kept[:0]
	for _, row := range rows {
		r.kept = append(r.kept, at.first+uint32(row))
	}
	some, err := take.Record(memory.DefaultAllocator, rec, rows)
	if err != nil {
		return r.File.Failed(err)
	}
	defer some.Release()
	return r.Step(some, Position{rows: r.kept}, fn)
}

// list lists the rows, or some of them; nil for the whole row group.
func (r *RecordKeys) list(of tasks.Range, some []uint32) {
	total := r.File.GroupRows(of.Group)
	if some != nil {
		r.rows = append(r.rows[:0], some...)
		if r.rows == nil {
			r.rows = []uint32{}
		}
		return
	}
	if of.Hi < 0 || of.Lo == 0 && of.Hi == total {
		r.rows = nil
		return
	}
	if r.rows = of.Set(total).List(r.rows[:0]); r.rows == nil {
		r.rows = []uint32{}
	}
}

// Step passes on the keys of a record.
func (r *RecordKeys) Step(rec arrow.Record, at Position, fn func() error) (err error) {
	if r.enc == nil {
		if r.enc, err = NewEncoder(r.File.Name(), rec.Schema(), r.Columns, r.Options, r.Filtered); err != nil {
			return err
		}
	}
	encode := r.enc.EncodeKeys
	if r.ids {
		encode = r.enc.EncodeIDs
	}
	if err := encode(r.File.Name(), rec, r.Keys.Batch); err != nil {
		return err
	}
	r.Keys.place = at
	return fn()
}

// within returns the ranges of a record to take, counted from its first row: the
// part of rows that is in the record or, if rows is nil or only is set, the whole
// record in steps.
func within(list []uint32, first, n int64, only bool) (out rows.Set) {
	if list == nil || only {
		for lo := int64(0); lo < n || lo == 0; lo += source.StepRows {
			out = append(out, [2]int64{lo, min(lo+source.StepRows, n)})
		}
		return out
	}
	for i := 0; i < len(list); {
		k := i + 1
		for k < len(list) && list[k] == list[k-1]+1 {
			k++
		}
		lo, hi := max(int64(list[i])-first, 0), min(int64(list[k-1])+1-first, n)
		if lo < hi {
			out = append(out, [2]int64{lo, hi})
		}
		i = k
	}
	return out
}
