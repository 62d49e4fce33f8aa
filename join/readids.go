package join

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// eachIDRow calls fn with the rows of the IDs, in order, and their keys. The
// record has the columns of idColumns.schema, with values in place of
// dictionaries. fn retains what it keeps.
func (t *task) eachIDRow(ctx context.Context, fn func(f *partition.File, rec arrow.Record, batch *key.Batch) error) error {
	enc := idEncoder{task: t}
	var before int64 // rows of the file
	retain := func() (partition.Work, error) {
		return func(_ partition.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
			rec.Retain()
			return emit(rec)
		}, nil
	}
	for r, err := range partition.Map(ctx, t.idPieces, t.opts.Threads, t.answer.ids.read, retain) {
		if err != nil {
			return err
		}
		f := t.idPieces[r.Piece].File
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

// inGroup adds the row group to an error about the keys of a batch that has before
// rows of the file before it.
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

// idEncoder makes keys of records of ID rows, file after file. One goroutine uses
// it.
type idEncoder struct {
	*task
	file  *partition.File
	enc   *key.Encoder
	batch key.Batch
}

// with calls fn with the record, dictionaries replaced by values, and its keys.
func (e *idEncoder) with(f *partition.File, rec arrow.Record, fn func(rec arrow.Record, k *key.Batch) error) error {
	plain, err := take.PlainRecord(e.opts.Mem, rec)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	defer plain.Release()
	if e.file != f {
		if e.enc, err = key.NewEncoder(plain.Schema(), e.keys.ids, e.keys.options()); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		e.file = f
	}
	if err := e.enc.EncodeIDs(f.Name, plain, &e.batch); err != nil {
		return err
	}
	return fn(plain, &e.batch)
}
