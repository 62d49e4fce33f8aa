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
	open := func() (io.ReadCloser, error) { return io.NopCloser(in), nil }
	t, err := arrowipc.OpenStream(open, p.name, nil, arrowipc.StreamOptions{Once: true, Memory: p.memory})
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
		if enc, err = p.encoder(projected(t.Schema(), columns), p.columns); err != nil {
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

// encoder finds key columns in a schema, and compares their classes with the filter's.
func (p *prober) encoder(schema *arrow.Schema, columns []keys.Column) (*keys.Encoder, error) {
	enc, err := keys.NewEncoder(schema, columns, p.options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	at := fault.At{File: p.name, Column: keys.ColumnsString(columns)}
	return enc, keys.Match(at, keys.Side{Classes: p.options.Classes}, enc.Side())
}

// projected returns the schema of some top-level columns.
func projected(s *arrow.Schema, columns []int) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = s.Field(c)
	}
	return arrow.NewSchema(fields, nil)
}

// answer writes the answer to a batch, and flushes it.
func (p *prober) answer(w *arrowipc.Writer, enc *keys.Encoder, rec arrow.Record) error {
	if err := p.pass(enc, rec); err != nil {
		return err
	}
	if p.invert {
		p.rows = others(p.rows, int(rec.NumRows()))
	}
	answer, err := p.answerOf(rec)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	defer answer.Release()
	if err := w.Write(answer); err != nil {
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

// answerOf returns the answer to a batch: the rows that may match, or the mask. The caller
// releases it.
func (p *prober) answerOf(rec arrow.Record) (arrow.Record, error) {
	switch {
	case p.mask:
		return maskOf(rec.NumRows(), p.rows), nil
	case int64(len(p.rows)) == rec.NumRows():
		rec.Retain()
		return rec, nil
	}
	return take.Record(memory.DefaultAllocator, rec, p.rows)
}

// others returns the numbers below n that rows, which is ascending, has not.
func others(rows []int, n int) []int {
	not := make([]int, 0, n-len(rows))
	for i := range n {
		if len(rows) > 0 && rows[0] == i {
			rows = rows[1:]
			continue
		}
		not = append(not, i)
	}
	return not
}

// writeKept writes a record without some rows.
func writeKept(w *arrowipc.Writer, rec arrow.Record, drop []uint32) error {
	if len(drop) == 0 {
		return w.Write(rec)
	}
	gone := make([]int, len(drop))
	for i, row := range drop {
		gone[i] = int(row)
	}
	kept, err := take.Record(memory.DefaultAllocator, rec, others(gone, int(rec.NumRows())))
	if err != nil {
		return err
	}
	defer kept.Release()
	return w.Write(kept)
}

// maskOf returns a mask of n rows in which the given ones are true.
func maskOf(n int64, rows []int) arrow.Record {
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.Reserve(int(n))
	next := 0
	for row := range int(n) {
		hit := next < len(rows) && rows[next] == row
		if hit {
			next++
		}
		b.UnsafeAppend(hit)
	}
	mask := b.NewArray()
	defer mask.Release()
	return array.NewRecord(maskSchema, []arrow.Array{mask}, n)
}
