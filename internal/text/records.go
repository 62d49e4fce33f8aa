package text

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// Sizes of batches.
const (
	batchRows  = 64 << 10
	batchBytes = 16 << 20
	rangeBatch = 4 << 20 // of a range among several, which are read at the same time
)

// cellBytes is the size of a NULL, and of a value in addition to its own bytes.
const cellBytes = 9

// Read returns the rows in batches of 65,536 rows or about 16 MiB, including NULLs,
// or less if Options.Memory requires it or the input has several ranges. columns are indices into
// the schema in the wanted order; nil means all, and an empty list gives records
// without columns but with a number of rows. A record is released when yield
// returns; retain it, or a column of it, to keep it. The sequence ends after the
// first error. Errors about the input are *fault.Error. ctx is checked every few
// thousand rows.
func (t *Table) Read(ctx context.Context, group int, columns []int) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		b, err := t.batcher(group, columns)
		if err != nil {
			yield(nil, err)
			return
		}
		defer b.rb.Release()
		p, err := t.begin(ctx, group, group+1)
		if err != nil {
			yield(nil, err)
			return
		}
		defer p.close()
		p.texts = t.skipTexts()
		for {
			rec, err := b.next(ctx, p)
			if err != nil {
				yield(nil, t.numbered(ctx, p, p.explain(err)))
				return
			}
			if rec == nil || !each.Lend(rec, yield) {
				return
			}
		}
	}
}

// batcher builds records of the wanted columns.
type batcher struct {
	t       *Table
	columns []int
	rb      *array.RecordBuilder
	schema  *arrow.Schema
	most    int // bytes of a batch

	at    []int // by column of the input: 1 + its position in columns, or 0
	every []int // positions in columns
	some  []int // memory for addObject
}

func (t *Table) batcher(group int, columns []int) (*batcher, error) {
	if err := cmp.Or(t.err, t.doubt); err != nil {
		return nil, err
	}
	if err := t.checkGroups(group, group+1); err != nil {
		return nil, err
	}
	if columns == nil {
		columns = make([]int, t.schema.NumFields())
		for i := range columns {
			columns[i] = i
		}
	}
	if err := t.Fits(len(columns)); err != nil {
		return nil, err
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		if c < 0 || c >= t.schema.NumFields() {
			return nil, fmt.Errorf("%s: column %d of %d", t.at, c, t.schema.NumFields())
		}
		fields[i] = t.schema.Field(c)
	}
	about := t.schema.Metadata()
	s := arrow.NewSchema(fields, &about)
	most := int(t.opts.part(batchShare, batchBytes))
	if t.ranges() > 1 {
		most = int(t.opts.part(rangeShare, rangeBatch))
	}
	b := &batcher{t: t, columns: columns, rb: array.NewRecordBuilder(t.opts.Mem, s), schema: s, most: most, at: make([]int, t.schema.NumFields())}
	for i, c := range columns {
		b.at[c], b.every = i+1, append(b.every, i)
	}
	return b, nil
}

// parses reports whether a text is a value of the first column.
func (b *batcher) parses(s string) bool {
	if len(b.columns) == 0 {
		return true
	}
	out := array.NewBuilder(b.t.opts.Mem, b.schema.Field(0).Type)
	defer out.Release()
	return b.t.parse[b.columns[0]](out, s)
}

// next reads a batch, nil at the end. The caller releases it.
func (b *batcher) next(ctx context.Context, p *pass) (arrow.Record, error) {
	for {
		rec, err := b.batch(ctx, p)
		if rec == nil || rec.NumRows() > 0 {
			return rec, err
		}
		rec.Release() // all of its lines were bad
	}
}

func (b *batcher) batch(ctx context.Context, p *pass) (arrow.Record, error) {
	var out []int // rows to be removed
	rows, size := 0, 0
	for ; size < b.most && rows < batchRows; rows++ {
		if rows%4096 == 0 && ctx.Err() != nil {
			return nil, stopped.Err(ctx)
		}
		err := p.next()
		if err == io.EOF {
			if err := b.t.end(ctx, p, b.parses); err != nil {
				return nil, err
			}
			break
		}
		if err != nil {
			return nil, err
		}
		n, good, err := b.add(p, rows)
		if err != nil {
			return nil, err
		}
		if !good {
			out = append(out, rows)
		}
		size += n
	}
	if rows == 0 {
		return nil, nil
	}
	cols, err := b.arrays(rows)
	if err != nil {
		return nil, err
	}
	rec := array.NewRecord(b.schema, cols, int64(rows))
	for _, c := range cols {
		c.Release()
	}
	if len(out) == 0 {
		return rec, nil
	}
	defer rec.Release()
	return take.Record(b.t.opts.Mem, rec, others(rows, out))
}

// others returns the numbers below n that are not in out, which is ascending.
func others(n int, out []int) []int {
	in := make([]int, 0, n-len(out))
	for i := range n {
		if len(out) > 0 && out[0] == i {
			out = out[1:]
			continue
		}
		in = append(in, i)
	}
	return in
}

// arrays returns the columns of a batch, which the caller releases. Those without a value share
// their NULLs.
func (b *batcher) arrays(rows int) ([]arrow.Array, error) {
	cols := make([]arrow.Array, len(b.columns))
	var none arrow.Array
	for i, f := range b.rb.Fields() {
		switch t := b.schema.Field(i).Type; {
		case f.Len() > 0:
			f.AppendNulls(rows - f.Len())
			cols[i] = f.NewArray()
			continue
		case none == nil || !arrow.TypeEqual(none.DataType(), t):
			var err error
			if none, err = take.Nulls(b.t.opts.Mem, t, rows); err != nil {
				return nil, err
			}
			cols[i] = none
			continue
		}
		none.Retain()
		cols[i] = none
	}
	return cols, nil
}

// add appends row number row of the batch and returns its size. good is false if a value does
// not parse; the row must then be removed.
func (b *batcher) add(p *pass, row int) (size int, good bool, err error) {
	if objects, ok := p.rows.(*ndjson); ok {
		return b.addObject(p, objects.there, row)
	}
	good = true
	size = cellBytes * len(b.columns)
	for i, c := range b.columns {
		f := b.rb.Field(i)
		v, ok := p.rows.value(c)
		if !good || !ok {
			f.AppendNull()
			continue
		}
		size += len(v)
		if b.t.parse[c](f, view(v)) {
			continue
		}
		field := b.schema.Field(i)
		if err := p.refuse(c, field.Name, b.t.wanted(c), b.parses); err != nil {
			return 0, false, err
		}
		good = false
		f.AppendNull()
	}
	return size, good, nil
}

// addObject is add for an object that has the given columns. A column's NULLs are appended before
// its next value, so that objects with few of many columns take little time.
func (b *batcher) addObject(p *pass, there []int, row int) (size int, good bool, err error) {
	order := b.every
	if len(there) < len(order)/2 {
		b.some = b.some[:0]
		for _, c := range there {
			if i := b.at[c]; i > 0 {
				b.some = append(b.some, i-1)
			}
		}
		slices.Sort(b.some)
		order = b.some
	}
	size = cellBytes * len(b.columns)
	for _, i := range order {
		f, c := b.rb.Field(i), b.columns[i]
		v, ok := p.rows.value(c)
		if !ok {
			continue
		}
		size += len(v)
		if absent := row - f.Len(); absent > 0 {
			f.AppendNulls(absent)
		}
		if !b.t.parse[c](f, view(v)) {
			return size, false, p.refuse(c, b.schema.Field(i).Name, b.t.wanted(c), b.parses)
		}
	}
	return size, true, nil
}
