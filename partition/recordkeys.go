package partition

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/key"
)

// recordKeys reads keys of any shape from Arrow records of a file. It must not be
// used concurrently.
type recordKeys struct {
	file     *File
	from     table // the file's reader
	columns  []key.Column
	options  key.Options
	filtered bool  // the options' classes are a filter's
	ids      bool  // a value that is not an ID is an error
	read     []int // columns to read
	keys     *Keys // handed on

	enc  *key.Encoder // of the records' schema; nil before the first one
	rows []uint32
}

// stepRows is how many rows of a record are passed on at once, because a record
// batch of an Arrow file may contain the whole file.
const stepRows = 1 << 16

// each calls fn with the keys of the rows. For files other than Parquet, it reads
// the whole row group.
func (r *recordKeys) each(ctx context.Context, rows rowRange, fn func() error) error {
	r.list(rows)
	first := int64(0) // of the record, within the row group
	picked := r.rows
	_, seeks := r.from.(*arrowparquet.Parquet)
	for rec, err := range readKeysOf(parquet.WithTurn(ctx, nil), r.from, rows.group, r.read, r.rows) {
		if err != nil {
			return err
		}
		n := rec.NumRows()
		for _, s := range within(r.rows, first, n, seeks) {
			at := position{known: true, first: uint32(first + s[0])}
			if seeks && r.rows != nil {
				at.rows = picked[s[0]:]
			}
			some := rec.NewSlice(s[0], s[1])
			err := r.step(some, at, fn)
			some.Release()
			if err != nil {
				return inGroup(err, r.file, rows.group)
			}
		}
		if seeks && r.rows != nil {
			picked = picked[n:]
		}
		first += n
	}
	return nil
}

// list lists the rows; nil for the whole row group.
func (r *recordKeys) list(rows rowRange) {
	total := r.file.GroupRows(rows.group)
	if rows.hi < 0 || rows.lo == 0 && rows.hi == total {
		r.rows = nil
		return
	}
	r.rows = r.rows[:0]
	for _, s := range rows.spans(total) {
		for row := s[0]; row < s[1]; row++ {
			r.rows = append(r.rows, uint32(row))
		}
	}
	if r.rows == nil {
		r.rows = []uint32{}
	}
}

// step passes on the keys of a record.
func (r *recordKeys) step(rec arrow.Record, at position, fn func() error) (err error) {
	if r.enc == nil {
		if r.enc, err = newKeyEncoder(r.file.Name, rec.Schema(), r.columns, r.options, r.filtered); err != nil {
			return err
		}
	}
	encode := r.enc.EncodeKeys
	if r.ids {
		encode = r.enc.EncodeIDs
	}
	if err := encode(r.file.Name, rec, r.keys.Batch); err != nil {
		return err
	}
	r.keys.place = at
	return fn()
}

// within returns the ranges of a record to take, counted from its first row: the
// part of rows that is in the record or, if rows is nil or only is set, the whole
// record in steps.
func within(rows []uint32, first, n int64, only bool) (out [][2]int64) {
	if rows == nil || only {
		for lo := int64(0); lo < n || lo == 0; lo += stepRows {
			out = append(out, [2]int64{lo, min(lo+stepRows, n)})
		}
		return out
	}
	for i := 0; i < len(rows); {
		k := i + 1
		for k < len(rows) && rows[k] == rows[k-1]+1 {
			k++
		}
		lo, hi := max(int64(rows[i])-first, 0), min(int64(rows[k-1])+1-first, n)
		if lo < hi {
			out = append(out, [2]int64{lo, hi})
		}
		i = k
	}
	return out
}

// readKeys is Read for columns that are used only as keys.
func readKeys(ctx context.Context, from table, group int, columns []int) iter.Seq2[arrow.Record, error] {
	return readKeysOf(ctx, from, group, columns, nil)
}

// readKeysOf is readKeys for the given rows of a Parquet file (nil: all), and for
// all rows of other files.
func readKeysOf(ctx context.Context, from table, group int, columns []int, rows []uint32) iter.Seq2[arrow.Record, error] {
	if p, ok := from.(*arrowparquet.Parquet); ok {
		return p.ReadKeys(ctx, group, columns, rows)
	}
	return from.Read(ctx, group, columns)
}
