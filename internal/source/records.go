package source

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// RecordsOptions has the fields of partition.RecordsOptions, which documents them.
type RecordsOptions struct {
	Once bool
	Rows int64
}

// Records returns a File whose rows are the record batches that read yields. It
// serves as a log or as IDs wherever a File does. It has one row group, so one
// worker reads it: rows for several workers are several Files with different names.
//
// Package partition's Records describes read. The File has no size, no [File.Fingerprint] and so
// no identity. Close does nothing.
func Records(name string, schema *arrow.Schema, read func(context.Context) iter.Seq2[arrow.Record, error], opts RecordsOptions) *File {
	missing := ""
	switch {
	case schema == nil:
		missing, schema = "schema", arrow.NewSchema(nil, nil)
	case read == nil:
		missing = "read"
	}
	t := &recordTable{missing: missing, at: fault.At{File: name}, schema: schema, read: read, opts: opts}
	f := NewTable(name, dataset.RecordBatches, t)
	f.once = opts.Once
	return f
}

// recordTable is the table of Records.
type recordTable struct {
	at     fault.At
	schema *arrow.Schema
	read   func(context.Context) iter.Seq2[arrow.Record, error]
	opts   RecordsOptions
	begun  atomic.Bool

	missing string // an argument of Records that is nil
}

func (t *recordTable) Schema() *arrow.Schema { return t.schema }
func (t *recordTable) NumGroups() int        { return 1 }
func (t *recordTable) GroupBytes(int) int64  { return 0 } // so that all Files weigh the same where work is divided
func (t *recordTable) Close() error          { return nil }

func (t *recordTable) GroupRows(int) int64 {
	return cmp.Or(t.opts.Rows, -1)
}

// Read implements table. It checks the program's records, cuts them into records of
// a bounded number of rows, and selects the columns.
func (t *recordTable) Read(ctx context.Context, group int, columns []int) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		if t.missing != "" {
			yield(nil, fmt.Errorf("%s: Records was called with a nil %s", t.at, t.missing))
			return
		}
		if t.begun.Swap(true) && t.opts.Once {
			yield(nil, fmt.Errorf("%s: the records can be read only once (give a sequence that can be repeated)", t.at))
			return
		}
		p := &recordPass{recordTable: t, columns: columns, yield: yield, schema: t.schema}
		if columns != nil {
			md := t.schema.Metadata()
			fields := each.Slice(columns, t.schema.Field)
			p.schema = arrow.NewSchema(fields, &md)
		}
		if err := p.run(ctx); err != nil && !p.left {
			yield(nil, err)
		}
	}
}

// recordPass is one pass over the records.
type recordPass struct {
	*recordTable
	columns []int         // wanted; nil: all
	schema  *arrow.Schema // schema of the wanted columns
	yield   func(arrow.Record, error) bool
	inside  bool // yield is running; its panics are the reader's, not the sequence's
	left    bool // the reader has stopped
	records int
	rows    int64
}

// run hands on all records.
func (p *recordPass) run(ctx context.Context) (err error) {
	defer func() {
		if p.inside {
			return // the reader handles its own panics
		}
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: the sequence of records panicked: %v\n%s", p.here(), r, debug.Stack())
		}
	}()
	seq := p.read(ctx)
	if seq == nil {
		return fmt.Errorf("%s: no sequence of records was given", p.at)
	}
	for rec, err := range seq {
		p.records++
		if err == nil {
			err = stopped.Err(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.here(), err)
		}
		if err := p.check(rec); err != nil {
			return err
		}
		if p.pass(rec); p.left {
			return nil
		}
	}
	if err := stopped.Err(ctx); err != nil { // the sequence may have ended early because of it
		return fmt.Errorf("%s: %w", p.at, err)
	}
	if p.opts.Rows > 0 && p.rows != p.opts.Rows {
		return faults.Mismatch(p.at, "rows of the records", fmt.Sprintf("%d, as was said", p.opts.Rows), p.rows)
	}
	return nil
}

// here is the place of the current record.
func (p *recordPass) here() fault.At {
	at := p.at
	at.RowGroup = p.records
	return at
}

// check compares a record with the schema.
func (p *recordPass) check(rec arrow.Record) error {
	if rec == nil {
		return fmt.Errorf("%s: neither a record nor an error was yielded", p.here())
	}
	fields := p.recordTable.schema.Fields()
	if n := int(rec.NumCols()); n != len(fields) {
		return faults.Mismatch(p.here(), "columns of a record", fmt.Sprintf("%d as in the schema", len(fields)), n)
	}
	for i, f := range fields {
		at := p.here()
		at.Column = f.Name
		switch name, col := rec.ColumnName(i), rec.Column(i); {
		case name != f.Name:
			return faults.Mismatch(at, fmt.Sprintf("column %d of a record", i+1), f.Name+" as in the schema", name)
		case !arrow.TypeEqual(col.DataType(), f.Type):
			return faults.Mismatch(at, "type of a record's column", f.Type.String()+" as in the schema", col.DataType())
		case !f.Nullable && col.NullN() > 0:
			return faults.Mismatch(at, "column of a record", "no NULL, as the schema says", fmt.Sprintf("%d", col.NullN()))
		}
	}
	if p.rows += rec.NumRows(); p.opts.Rows > 0 && p.rows > p.opts.Rows {
		return faults.Mismatch(p.here(), "rows of the records", fmt.Sprintf("%d, as was said", p.opts.Rows), "more")
	}
	return nil
}

// pass hands on a record in steps, since the program's record may hold all rows.
func (p *recordPass) pass(rec arrow.Record) {
	cols := rec.Columns()
	if p.columns != nil {
		cols = each.Slice(p.columns, rec.Column)
	}
	whole := array.NewRecord(p.schema, cols, rec.NumRows())
	defer whole.Release()
	for from := int64(0); from < rec.NumRows() && !p.left; from += StepRows {
		some := whole.NewSlice(from, min(from+StepRows, rec.NumRows()))
		p.hand(some)
	}
}

func (p *recordPass) hand(rec arrow.Record) {
	defer rec.Release()
	p.inside = true
	p.left = !p.yield(rec, nil)
	p.inside = false
}
