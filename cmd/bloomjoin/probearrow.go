package main

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// maskSchema is the schema of the answer with --mask.
var maskSchema = arrow.NewSchema([]arrow.Field{{Name: "may_match", Type: arrow.FixedWidthTypes.Boolean}}, nil)

// probeStep is how many rows of a batch are encoded at once.
const probeStep = 1 << 16

// arrow answers an Arrow stream with another one, batch for batch. Without a mask, batches
// of which no row passes are empty.
func (p *prober) arrow(ctx context.Context, in io.Reader) error {
	t, err := openArrow(in, p.name, p.memory)
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }() // nothing was written
	enc, err := p.encoder(t.Schema(), p.columns)
	if err != nil {
		return err
	}
	schema, columns := t.Schema(), []int(nil)
	if p.mask {
		schema, columns = maskSchema, enc.Columns()
		if enc, err = p.encoder(arrow.NewSchema(each.Slice(columns, t.Schema().Field), nil), p.columns); err != nil {
			return err
		}
	}
	w, err := arrowipc.NewStreamWriter(p.out, schema, arrowipc.WriterOptions{})
	if err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	for rec, err := range t.Read(ctx, 0, columns) {
		if err != nil {
			return err
		}
		if err := p.answer(w, enc, rec); err != nil {
			return err
		}
	}
	if _, _, err := w.Close(); err != nil {
		return err
	}
	return p.out.Flush()
}

// openArrow opens an Arrow stream that is read once.
func openArrow(in io.Reader, name string, memory int64) (*arrowipc.Table, error) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(in), nil }
	return arrowipc.OpenStream(open, name, nil, arrowipc.StreamOptions{Once: true, Memory: memory})
}

// encoder finds key columns in a schema, and compares their classes with the filter's.
func (p *prober) encoder(schema *arrow.Schema, columns []keys.Column) (*keys.Encoder, error) {
	enc, err := keys.NewEncoder(schema, columns, p.options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	at := fault.At{File: p.name, Column: keys.ColumnsString(columns)}
	return enc, keys.Match(at, keys.Side{Classes: p.options.Classes}, enc.Side())
}

// answer writes the answer to a batch, and flushes it.
func (p *prober) answer(w *arrowipc.Writer, enc *keys.Encoder, rec arrow.Record) error {
	if err := p.pass(enc, rec); err != nil {
		return err
	}
	if p.invert {
		p.rows = others(p.rows, int(rec.NumRows()))
	}
	var err error
	if p.mask {
		mask := maskOf(rec.NumRows(), p.rows)
		err = w.Write(mask)
		mask.Release()
	} else {
		err = writeRows(w, p.name, rec, p.rows)
	}
	if err != nil {
		return err
	}
	p.count(rec.NumRows(), int64(len(p.rows)))
	return p.out.Flush()
}

// pass sets rows to those of the batch that may match, ascending.
func (p *prober) pass(enc *keys.Encoder, rec arrow.Record) error {
	p.rows = p.rows[:0]
	for lo := int64(0); lo < rec.NumRows(); lo += probeStep {
		some := rec.NewSlice(lo, min(lo+probeStep, rec.NumRows()))
		err := enc.EncodeKeys(p.name, some, &p.batch)
		if err == nil {
			err = p.ask(int(lo))
		}
		some.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// ask adds to rows those of the encoded keys that may match. first is the number of the
// keys' first row.
func (p *prober) ask(first int) (err error) {
	if p.hits, err = p.filter.ProbeBatch(&p.batch, p.hits[:0]); err != nil {
		return err
	}
	for _, hit := range p.hits {
		p.rows = append(p.rows, first+int(p.batch.Rows[hit]))
	}
	p.keysNull += int64(p.batch.Nulls())
	return nil
}

// marked reports for each number below n whether rows has it.
func marked(rows []int, n int) []bool {
	has := make([]bool, n)
	for _, row := range rows {
		has[row] = true
	}
	return has
}

// others returns the numbers below n that rows has not.
func others(rows []int, n int) []int {
	not := make([]int, 0, n-len(rows))
	for i, has := range marked(rows, n) {
		if !has {
			not = append(not, i)
		}
	}
	return not
}

// writeRows writes some rows of a record, ascending. name is that of the input.
func writeRows(w *arrowipc.Writer, name string, rec arrow.Record, rows []int) error {
	if int64(len(rows)) == rec.NumRows() {
		return w.Write(rec)
	}
	some, err := take.Record(memory.DefaultAllocator, rec, rows)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer some.Release()
	return w.Write(some)
}

// maskOf returns a mask of n rows in which the given ones are true.
func maskOf(n int64, rows []int) arrow.Record {
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(marked(rows, int(n)), nil)
	mask := b.NewArray()
	defer mask.Release()
	return array.NewRecord(maskSchema, []arrow.Array{mask}, n)
}
