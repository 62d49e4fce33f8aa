package joins

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// idRows receives a batch of ID rows in the form of task.idForm. The batch is valid
// until it returns.
type idRows = func(f *source.File, b table.Batch, k *keys.Batch) error

// idForm returns the form in which rows of the IDs are held.
func (t *task) idForm() (table.Form, error) {
	ids := t.answer.IDs
	switch {
	case !ids.Rows:
		return nil, nil
	case t.answer.Pages:
		return leafForm{ids.Leaves}, nil
	}
	return t.recordForm()
}

func (t *task) recordForm() (*table.RecordForm, error) {
	ids := t.answer.IDs
	enc, err := keys.NewEncoder(ids.Schema, t.keys.IDs, t.keys.Options())
	return &table.RecordForm{Schema: ids.Schema, Held: ids.Held, Encoder: enc, Mem: t.opts.Mem}, err
}

// eachIDRow calls fn with the rows of the IDs, in order: those that m selects, if it
// is not nil, else all. rows is the number of rows that were read or skipped, and
// nulls that of the rows among them that have a NULL in the key.
func (t *task) eachIDRow(ctx context.Context, m *keyscan.Predicate, fn idRows) (rows, nulls int64, err error) {
	switch {
	case t.answer.Pages:
		return t.eachIDLeaves(ctx, m, fn)
	case m != nil:
		return t.eachPassing(ctx, *m, fn)
	}
	return t.eachIDRecord(ctx, fn)
}

// eachIDLeaves is eachIDRow for an answer of pages.
func (t *task) eachIDLeaves(ctx context.Context, m *keyscan.Predicate, fn idRows) (rows, nulls int64, err error) {
	o := tables.ReadOptions{Key: t.keys.IDsText, Options: t.keys.Options(), Match: m, Threads: t.opts.Threads}
	return tables.Read(t.readIDs(ctx), t.idPieces, t.answer.IDs.Leaves, o, func(b *tables.Batch) error {
		return fn(b.Piece.File, leafBatch{b}, b.Keys)
	})
}

// eachIDRecord is eachIDRow for all rows, as records with the columns of
// IDColumns.Schema and values in place of dictionaries.
func (t *task) eachIDRecord(ctx context.Context, fn idRows) (rows, nulls int64, err error) {
	enc, err := t.newIDEncoder()
	if err != nil {
		return 0, 0, err
	}
	var before int64 // rows of the file
	retain := func() (keyscan.Work, error) {
		return func(_ source.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
			rec.Retain()
			return emit(rec)
		}, nil
	}
	for r, err := range arraycopy.Map(ctx, t.idPieces, t.opts.Threads, t.answer.IDs.Read, retain) {
		if err != nil {
			return 0, 0, err
		}
		f := t.idPieces[r.Piece].File
		if f != enc.file {
			before = 0
		}
		err = enc.with(f, r.Record, func(b table.Batch, k *keys.Batch) error {
			before += int64(k.Len)
			if t.opts.Prepares != nil {
				t.opts.Prepares(true, int64(k.Len))
			}
			rows, nulls = rows+int64(k.Len), nulls+int64(k.Nulls())
			return fn(f, b, k)
		})
		r.Record.Release()
		if err != nil {
			return 0, 0, inGroup(err, f, before, &enc.batch)
		}
	}
	return rows, nulls, nil
}

// eachPassing is eachIDRow for the rows that pass, as records.
func (t *task) eachPassing(ctx context.Context, m keyscan.Predicate, fn idRows) (rows, nulls int64, err error) {
	enc, err := t.newIDEncoder()
	if err != nil {
		return 0, 0, err
	}
	s, err := keyscan.New(keyscan.Options{
		ScanOptions: keyscan.ScanOptions{
			Match:      []dataset.Match{m.Match},
			Normalize:  t.opts.Normalize,
			Columns:    t.answer.IDs.Names,
			CountNulls: true,
			IgnoreCase: t.opts.IgnoreCase,
			Threads:    t.opts.Threads,
			Mem:        t.opts.Mem,
			Progress:   t.prepares(true),
		},
		Check: m.Check,
	})
	if err != nil {
		return 0, 0, err
	}
	for r, err := range arraycopy.Scan(ctx, s, t.idPieces) {
		if err != nil {
			return 0, 0, err
		}
		f := t.idPieces[r.Piece].File
		err = enc.with(f, r.Record, func(b table.Batch, k *keys.Batch) error { return fn(f, b, k) })
		r.Record.Release()
		if err != nil {
			return 0, 0, err
		}
	}
	return s.Stats.RowsIn.Load(), s.Stats.KeysNull.Load(), nil
}

// inGroup adds the row group to an error about the keys of a batch that has before
// rows of the file before it.
func inGroup(err error, f *source.File, before int64, batch *keys.Batch) error {
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
	form  *table.RecordForm
	file  *source.File
	enc   *keys.Encoder
	batch keys.Batch
}

func (t *task) newIDEncoder() (*idEncoder, error) {
	form, err := t.recordForm()
	return &idEncoder{task: t, form: form}, err
}

// with calls fn with the record, dictionaries replaced by values, and its keys.
func (e *idEncoder) with(f *source.File, rec arrow.Record, fn func(table.Batch, *keys.Batch) error) error {
	plain, err := take.PlainRecord(e.opts.Mem, rec)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	defer plain.Release()
	if e.file != f {
		if e.enc, err = keys.NewEncoder(plain.Schema(), e.keys.IDs, e.keys.Options()); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		e.file = f
	}
	if err := e.enc.EncodeIDs(f.Name(), plain, &e.batch); err != nil {
		return err
	}
	b := e.form.Batch(plain, &e.batch)
	defer b.Release()
	return fn(b, &e.batch)
}
