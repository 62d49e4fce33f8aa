package rowfilter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/where"
)

// column evaluates the predicates of a column for the rows of maybe. It drops rows whose
// dictionary shows that they fail.
func (w *Filter) column(ctx context.Context, group int, c *filterColumn) (err error) {
	w.seen = w.seen[:0]
	if c.plain {
		err = w.pagesOf(ctx, group, c)
	} else {
		err = w.recordsOf(ctx, group, c)
	}
	if err != nil {
		return err
	}
	if len(w.seen) < len(w.maybe) {
		w.keep(w.seen)
	}
	for _, p := range c.preds {
		if len(w.truths[p]) != len(w.maybe) {
			return fmt.Errorf("%s: internal error: %d truth values for %d rows", fault.At{File: w.file.Name(), RowGroup: group + 1}, len(w.truths[p]), len(w.maybe))
		}
	}
	w.done = append(w.done, c.preds...)
	return nil
}

// pagesOf evaluates the predicates of a leaf for the rows of maybe, page by page; entries
// of a dictionary once. seen has the positions of rows whose page was decoded.
func (w *Filter) pagesOf(ctx context.Context, group int, c *filterColumn) error {
	f := w.file.Parquet().File()
	chunk := f.ChunkIn(w.buf, group, c.leaf.Index())
	defer w.buf.Rest()
	if a := w.Expected[c.leaf.Index()]; a != nil {
		delete(w.Expected, c.leaf.Index())
		chunk.Expect(a)
	}
	if int64(len(w.maybe)) < w.file.GroupRows(group) {
		chunk.Select(w.maybe)
	}
	dict, err := chunk.ReadDictionary(ctx)
	if err != nil {
		return err
	}
	if dict != nil {
		if err := w.entries(c, dict); err != nil {
			return err
		}
		if !w.hope(f, c, dict.Len) {
			chunk.SkipCoded()
		}
	}
	next := 0 // position in maybe
	for {
		p, err := chunk.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for int64(w.maybe[next]) < p.FirstRow { // in a page that was skipped
			next++
		}
		for range p.Values {
			w.seen = append(w.seen, uint32(next))
			next++
		}
		if err := w.page(c, p, uint8(f.Leaves[c.leaf.Index()].MaxDef)); err != nil {
			return err
		}
	}
	seen, skipped := chunk.Pages()
	w.Pages, w.Skipped = w.Pages+seen, w.Skipped+skipped
	return nil
}

// entries evaluates the predicates of a leaf for the entries of its dictionary.
func (w *Filter) entries(c *filterColumn, dict *parquet.Dictionary) error {
	values, err := c.leaf.ArrayIn(&w.arrays, &parquet.Page{Values: dict.Len, NonNull: dict.Len, Plain: dict.Plain}, nil)
	if err != nil {
		return err
	}
	defer values.Release()
	for _, p := range c.preds {
		w.tables[p] = w.where.Preds()[p].Eval(w.tables[p][:0], values)
	}
	return nil
}

// hope reports whether the condition may be true for an entry of the dictionary, or for
// NULL.
func (w *Filter) hope(f *parquet.File, c *filterColumn, entries int) bool {
	sets := slices.Clone(w.sets)
	if f.Leaves[c.leaf.Index()].MaxDef > 0 {
		for _, p := range c.preds {
			sets[p] = w.where.Preds()[p].OfNull().Set()
		}
		if w.where.Possible(sets).Has(where.True) {
			return true
		}
	}
	if len(c.preds) > maxKnown {
		return true
	}
	var conclusions known
	for e := range entries {
		if w.hopeful(&conclusions, sets, c.preds, w.tables, e) {
			return true
		}
	}
	return false
}

// page evaluates the predicates of a leaf for the entries of a page. full is the
// definition level of a value.
func (w *Filter) page(c *filterColumn, p *parquet.Page, full uint8) error {
	if !p.Coded {
		values, err := c.leaf.ArrayIn(&w.arrays, p, nil)
		if err != nil {
			return err
		}
		defer values.Release()
		for _, i := range c.preds {
			pred := w.where.Preds()[i]
			w.values = pred.Eval(w.values[:0], values)
			w.truths[i] = spread(w.truths[i], p, full, w.values, pred.OfNull())
		}
		return nil
	}
	for _, i := range c.preds {
		w.values = w.values[:0]
		for _, e := range p.Indices[:p.NonNull] {
			w.values = append(w.values, w.tables[i][e])
		}
		w.truths[i] = spread(w.truths[i], p, full, w.values, w.where.Preds()[i].OfNull())
	}
	return nil
}

// spread appends the truth of each entry of a page, given those of its values.
func spread(dst []where.Truth, p *parquet.Page, full uint8, values []where.Truth, ofNull where.Truth) []where.Truth {
	if p.NonNull == p.Values {
		return append(dst, values...)
	}
	for _, d := range p.Def {
		t := ofNull
		if d == full {
			t, values = values[0], values[1:]
		}
		dst = append(dst, t)
	}
	return dst
}

// recordsOf evaluates the predicates of a column that is not a leaf for the rows of
// maybe.
func (w *Filter) recordsOf(ctx context.Context, group int, c *filterColumn) error {
	for rec, err := range w.file.Parquet().ReadKeys(parquet.WithTurn(ctx, nil), group, c.field.Index[:1], w.maybe) {
		if err != nil {
			return err
		}
		for _, p := range c.preds {
			if w.truths[p], err = evaluate(w.where.Preds()[p], w.truths[p], rec.Column(0), c.field.Index[1:]); err != nil {
				return err
			}
		}
		for range rec.NumRows() {
			w.seen = append(w.seen, uint32(len(w.seen)))
		}
	}
	return nil
}
