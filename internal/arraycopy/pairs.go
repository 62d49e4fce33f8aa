package arraycopy

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// batchRows is the maximum number of rows in a batch of pairs: a log row may have many
// partners.
const batchRows = 1 << 16

// A row that has many partners is repeated in the answer, so a batch may be far
// larger than the input rows. It is therefore bounded in bytes too: batches of more
// than one row have at most about batchBytes, or less if the bytes in flight are
// bounded, but not less than minBatchBytes.
const (
	batchBytes    = 16 << 20
	minBatchBytes = 1 << 20
	batchPart     = 16 // of the bytes in flight
)

// batchBytesOf returns the bound on the bytes of a batch, given that on the bytes
// in flight; 0: none.
func batchBytesOf(inFlight int64) int64 {
	if inFlight == 0 {
		return batchBytes
	}
	return min(max(inFlight/batchPart, minBatchBytes), batchBytes)
}

// pairWriter makes records of log rows and their partners. One goroutine uses it.
type pairWriter struct {
	pairs *tables.Pairs
	mem   memory.Allocator
	most  int64 // bytes of a batch

	// Of the file at hand:
	schema  *arrow.Schema
	columns []tables.PairColumn
	at      []int // by column: its position in a record; -1: it is the table's
	least   int64 // bytes of a row's partner, even if it is none

	log []int // rows of the record, by row of the batch
}

// begin prepares for records with the given columns of a log file; nil: all.
func (w *pairWriter) begin(f *source.File, read []int) {
	w.schema, w.columns, w.at, w.least = w.pairs.Schema(f), w.pairs.Columns(f), w.at[:0], 0
	position := map[int]int{}
	for i, c := range read {
		position[c] = i
	}
	for i, c := range w.columns {
		at := c.Log
		switch {
		case c.Log < 0:
			w.least += arrowparquet.MinBytes(w.schema.Field(i).Type)
		case read != nil:
			at = position[c.Log]
		}
		w.at = append(w.at, at)
	}
}

// write emits the pairs of the rows of a record, which are those of a selection.
func (w *pairWriter) write(rec arrow.Record, s *rows.Selection, emit func(arrow.Record) error) error {
	sizes := func(int) int64 { return 0 } // rows that are not repeated are no larger than the input
	if s.Times != nil {
		var err error
		if sizes, err = arrowparquet.RowSizes(rec); err != nil {
			return err
		}
	}
	first := 0
	for _, part := range s.Divided(batchRows) {
		if err := w.part(rec, first, part, sizes, emit); err != nil {
			return err
		}
		first += part.Len()
	}
	return nil
}

// part emits the pairs of some rows of a record, from row first on: at most batchRows, or
// those of one row.
func (w *pairWriter) part(rec arrow.Record, first int, s *rows.Selection, sizes func(row int) int64, emit func(arrow.Record) error) error {
	var partners []uint32
	if w.pairs.Table != nil {
		partners = s.Partners(&w.pairs.Partners)
	}
	if s.Times == nil && s.Len() == int(rec.NumRows()) && w.fits(partners) {
		return w.emit(rec, nil, partners, emit)
	}
	row, left, bytes := 0, s.TimesOf(0), int64(0)
	w.log = w.log[:0]
	for n := range int(s.Count) {
		size := sizes(first + row)
		if partners != nil {
			size += w.least + w.pairs.Table.Store.RowBytes(partners[n])
		}
		if bytes += size; len(w.log) == batchRows || bytes > w.most && len(w.log) > 0 {
			if err := w.emit(rec, w.log, before(partners, n, len(w.log)), emit); err != nil {
				return err
			}
			w.log, bytes = w.log[:0], size
		}
		w.log = append(w.log, first+row)
		if left--; left == 0 && row+1 < s.Len() {
			row++
			left = s.TimesOf(row)
		}
	}
	return w.emit(rec, w.log, before(partners, int(s.Count), len(w.log)), emit)
}

// before returns the last n partners before position at.
func before(partners []uint32, at, n int) []uint32 {
	if partners == nil {
		return nil
	}
	return partners[at-n : at]
}

// fits reports whether partners surely fit in a batch.
func (w *pairWriter) fits(partners []uint32) bool {
	return partners == nil || int64(len(partners))*(w.least+w.pairs.Table.Store.WidestRow()) <= w.most
}

// emit emits rows of a record, nil: all of them once, beside their partners.
func (w *pairWriter) emit(rec arrow.Record, log []int, partners []uint32, emit func(arrow.Record) error) error {
	n := len(log)
	if log == nil {
		n = int(rec.NumRows())
	}
	var b builder
	defer b.release()
	for i, c := range w.columns {
		t := w.schema.Field(i).Type
		switch {
		case c.Log < 0:
			b.add(ofTable(w.pairs, w.mem, w.pairs.Table, c, partners, w.schema.Field(i)))
		case rec.Column(w.at[i]).DataType().ID() == arrow.NULL && t.ID() != arrow.NULL: // a shared key
			b.add(take.Nulls(w.mem, t, n))
		default:
			b.add(w.ofLog(rec.Column(w.at[i]), log))
		}
	}
	out, err := b.record(w.schema, n)
	if err != nil {
		return err
	}
	return emit(out)
}

// ofLog returns rows of a column of the log; nil: all. Dictionaries have no entry for the
// key of a row of the table without a log row, so their values replace them.
func (w *pairWriter) ofLog(col arrow.Array, log []int) (a arrow.Array, err error) {
	if a = col; log == nil {
		a.Retain()
	} else if a, err = take.Array(w.mem, col, log); err != nil {
		return nil, err
	}
	if !w.pairs.KeepTable {
		return a, nil
	}
	defer a.Release()
	return take.Plain(w.mem, a)
}

// ofTable returns rows of a column of the table as the answer has it: keys of the log's type, or
// without field ids.
func ofTable(p *tables.Pairs, mem memory.Allocator, t *tables.Table, c tables.PairColumn, rows []uint32, f arrow.Field) (arrow.Array, error) {
	a, err := p.Of.Array(mem, t, c.Table, rows)
	if err != nil {
		return nil, err
	}
	defer a.Release()
	if c.Log >= 0 { // a shared key
		return tables.CastKey(mem, a, f)
	}
	return take.As(a, f.Type), nil
}

// Unmatched passes rows of the table without a log row to emit, as rows of the answer for a log
// file, in batches. emit releases them.
func Unmatched(p *tables.Pairs, f *source.File, mem memory.Allocator, t *tables.Table, unmatched []uint32, emit func(arrow.Record) error) error {
	schema, columns, least, most := p.Schema(f), p.Columns(f), int64(0), batchBytesOf(f.InFlight())
	for _, f := range schema.Fields() {
		least += arrowparquet.MinBytes(f.Type)
	}
	for len(unmatched) > 0 {
		n, bytes := 0, int64(0)
		for n < min(len(unmatched), batchRows) && (n == 0 || bytes <= most) {
			bytes += least + t.Store.RowBytes(unmatched[n])
			n++
		}
		var b builder
		for i, c := range columns {
			if c.Table < 0 {
				b.add(take.Nulls(mem, schema.Field(i).Type, n))
				continue
			}
			b.add(ofTable(p, mem, t, c, unmatched[:n], schema.Field(i)))
		}
		rec, err := b.record(schema, n)
		b.release()
		if err == nil {
			err = emit(rec)
		}
		if err != nil {
			return err
		}
		unmatched = unmatched[n:]
	}
	return nil
}

// builder collects the columns of a record, up to the first error.
type builder struct {
	cols []arrow.Array
	err  error
}

func (b *builder) add(a arrow.Array, err error) {
	switch {
	case err == nil:
		b.cols = append(b.cols, a)
	case b.err == nil:
		b.err = err
	}
}

// record returns the columns as a record of n rows, with a reference of its own.
func (b *builder) record(schema *arrow.Schema, n int) (arrow.Record, error) {
	if b.err != nil {
		return nil, b.err
	}
	return array.NewRecord(schema, b.cols, int64(n)), nil
}

func (b *builder) release() {
	for _, a := range b.cols {
		a.Release()
	}
}
