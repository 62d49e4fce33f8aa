package join

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// eachID calls fn with every batch of ID rows, in order, and their keys. The
// record has the columns of j.idCols.schema, with values in place of
// dictionaries, if rows is true, else only those of the key. fn may keep it by
// retaining it.
func (j *Join) eachID(ctx context.Context, rows bool, fn func(f *partition.File, rec arrow.Record, batch *key.Batch) error) error {
	pieces := partition.Split(j.ids, partition.Shard{})
	enc := idEncoder{j: j, rows: rows}
	opts := partition.ReadOptions{Threads: j.opts.Threads, Columns: j.keyColumns, Keys: true}
	if rows {
		opts.Columns, opts.Keys = j.idCols.read, false
	}
	var before int64 // rows of the file
	retain := func() (partition.Work, error) {
		return func(_ partition.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
			rec.Retain()
			return emit(rec)
		}, nil
	}
	for r, err := range partition.Map(ctx, pieces, opts, retain) {
		if err != nil {
			return err
		}
		f := pieces[r.Piece].File
		if f != enc.file {
			before = 0
		}
		err = enc.with(f, r.Record, func(rec arrow.Record, k *key.Batch) error {
			before += rec.NumRows()
			return fn(f, rec, k)
		})
		r.Record.Release()
		if err != nil {
			return inGroup(err, f, before, &enc.batch)
		}
	}
	return nil
}

// inGroup adds the row group to an error about the IDs of a batch, which has so
// many rows of the file before it.
func inGroup(err error, f *partition.File, before int64, batch *key.Batch) error {
	var e *fault.Error
	first, faulty := batch.Faulty()
	if !faulty || !errors.As(err, &e) {
		return err
	}
	row := before + int64(first)
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

func (j *Join) keyColumns(f *partition.File) ([]int, error) {
	enc, err := key.NewEncoder(f.Schema(), j.right, j.keyOptions())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return enc.Columns(), nil
}

// newSide returns an ID side for what the answer needs.
func (j *Join) newSide() *table.Side {
	return table.New(table.Kind{
		Integers: j.integers(), Rows: j.idCols.rows, Held: j.idCols.held, Threads: j.opts.Threads, Mem: j.opts.Mem,
	}, j.account)
}

// integers reports whether the key is one column of integers.
func (j *Join) integers() bool { return len(j.classes) == 1 && j.classes[0] == key.Integer }
