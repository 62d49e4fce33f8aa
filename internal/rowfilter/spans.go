package rowfilter

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
	"github.com/bloomjoin/bloomjoin/internal/where"
)

// Look finds the rows of a row group that may satisfy the condition. It reads page indexes, but no pages.
func (w *Filter) Look(ctx context.Context, group int) error {
	if w.at == group {
		return nil
	}
	if err := stopped.Err(ctx); err != nil {
		return err
	}
	w.at, w.Possible, w.certain, w.open = -1, nil, nil, nil
	if w.keys == nil {
		var err error
		if w.keys, err = w.file.Keyed(w.buf); err != nil {
			return err
		}
	}
	total := w.file.GroupRows(group)
	possible := w.Group(group)
	switch {
	case total == 0 || !possible.Has(where.True):
	case possible.Only(where.True):
		w.add(0, total, true)
	default:
		if err := w.byPages(group, total); err != nil {
			return err
		}
	}
	if live, all := w.file.Live(group); !all && w.certain.All(total) {
		w.Possible, w.certain = live, live
	} else if !all {
		w.Possible, w.certain, w.open = w.Possible.And(live), w.certain.And(live), w.open.And(live)
	}
	if err := w.lookForKeys(ctx, group); err != nil {
		return err
	}
	w.at = group
	return nil
}

// lookForKeys makes rows that may have a deleted key, or one outside the sample, undecided.
func (w *Filter) lookForKeys(ctx context.Context, group int) (err error) {
	for _, k := range w.keys {
		may, err := k.May(ctx, group)
		if err != nil {
			return err
		}
		w.certain = w.certain.Minus(may)
	}
	if w.sample != nil {
		w.certain = nil
	}
	if len(w.keys) > 0 || w.sample != nil {
		w.open = w.Possible.Minus(w.certain)
	}
	return nil
}

// Group sets the possible truth values of each predicate according to the statistics of a
// row group, and returns those of the condition.
func (w *Filter) Group(group int) where.Truths {
	if w.at != group {
		w.at = -1
	}
	if w.where == nil {
		return where.True.Set()
	}
	states := make([]columnState, len(w.columns))
	for i := range w.columns {
		c := &w.columns[i]
		var facts prune.Facts
		if c.stats != nil {
			facts = c.stats.Group(group)
		}
		states[i] = w.state(c, facts)
		for k, p := range c.preds {
			w.sets[p] = states[i].all(k)
		}
	}
	return w.possible(states)
}

// columnState has the possible truth values of a column's predicates in a range of rows.
type columnState struct {
	preds []where.Truths // by predicate of the column
	empty []where.Truths // additional ones, for empty values; nil: preds has all
}

// all returns the possible truth values of predicate k of the column.
func (s *columnState) all(k int) where.Truths {
	if s.empty == nil {
		return s.preds[k]
	}
	return s.preds[k] | s.empty[k]
}

// state returns the state of a column given facts about its values.
func (w *Filter) state(c *filterColumn, of prune.Facts) (s columnState) {
	facts := where.Facts{NoNulls: of.NoNulls, AllNulls: of.AllNulls, NaN: of.NaN}
	if of.Least != nil {
		if facts.Range = c.pair(of.Least, of.Most); facts.Range != nil {
			defer facts.Range.Release()
		}
	}
	for _, p := range c.preds {
		s.preds = append(s.preds, w.where.Preds()[p].Possible(facts))
	}
	if !of.Empty || facts.Range == nil {
		return s
	}
	none := where.Facts{Range: c.pair(nil, nil), NoNulls: true}
	if none.Range != nil {
		defer none.Range.Release()
	}
	for _, p := range c.preds {
		s.empty = append(s.empty, w.where.Preds()[p].Possible(none))
	}
	return s
}

// pair returns two stored values of a leaf as an array, or nil if they are none.
func (c *filterColumn) pair(a, b []byte) arrow.Array {
	var plain []byte
	for _, v := range [][]byte{a, b} {
		if c.stats.Sized() {
			plain = binary.LittleEndian.AppendUint32(plain, uint32(len(v)))
		}
		plain = append(plain, v...)
	}
	values, err := c.leaf.Array(&parquet.Page{Values: 2, NonNull: 2, Plain: plain}, nil)
	if err != nil {
		return nil // a bound that is not a value of the type proves nothing
	}
	return values
}

// maxEmpty is the maximum number of columns whose empty values are considered separately.
const maxEmpty = 4

// possible returns the possible truth values of the condition, given those of each column. A
// value is either empty or within its column's bounds; each case is evaluated for all
// predicates of the column together.
func (w *Filter) possible(states []columnState) (out where.Truths) {
	sets := make([]where.Truths, len(w.sets))
	var apart []int // columns with empty values
	for i := range states {
		for k, p := range w.columns[i].preds {
			sets[p] = states[i].all(k)
		}
		if states[i].empty != nil {
			apart = append(apart, i)
		}
	}
	if len(apart) == 0 || len(apart) > maxEmpty {
		return w.where.Possible(sets)
	}
	for choice := range 1 << len(apart) {
		for bit, i := range apart {
			of := states[i].preds
			if choice>>bit&1 != 0 {
				of = states[i].empty
			}
			for k, p := range w.columns[i].preds {
				sets[p] = of[k]
			}
		}
		out |= w.where.Possible(sets)
	}
	return out
}

// columnPages walks the pages of a column of a row group.
type columnPages struct {
	index *parquet.OffsetIndex // nil: one page
	facts []prune.Facts
	at    int
	end   int64 // of the page's rows

	noNulls bool // in the whole row group
}

// byPages is Look by page indexes, for columns that the row group's statistics leave undecided.
func (w *Filter) byPages(group int, total int64) error {
	states, walks := make([]columnState, len(w.columns)), make([]columnPages, len(w.columns))
	for i := range w.columns {
		c, x := &w.columns[i], &walks[i]
		settled := true
		for _, p := range c.preds {
			states[i].preds = append(states[i].preds, w.sets[p])
			settled = settled && single(w.sets[p])
		}
		x.at, x.end = -1, math.MaxInt64
		if settled || c.stats == nil {
			continue
		}
		var err error
		if x.index, x.facts, err = c.stats.Pages(group); err != nil {
			return err
		}
		whole := c.stats.Group(group)
		if x.index == nil {
			states[i] = w.state(c, whole)
			continue
		}
		x.end, x.noNulls = 0, whole.NoNulls
	}
	for row := int64(0); row < total; {
		end := total
		for i := range walks {
			x := &walks[i]
			for x.end <= row {
				x.at++
				x.end = x.index.End(x.at)
				if x.end > row {
					facts := x.facts[x.at]
					facts.NoNulls = facts.NoNulls || x.noNulls
					states[i] = w.state(&w.columns[i], facts)
				}
			}
			end = min(end, x.end)
		}
		if possible := w.possible(states); possible.Has(where.True) {
			w.add(row, end, possible.Only(where.True))
		}
		row = end
	}
	return nil
}

// Candidates returns the rows of a range that may satisfy the condition. For within, see
// Rows.
func (w *Filter) Candidates(ctx context.Context, r tasks.Range, within rows.Set) (spans rows.Set, err error) {
	if within != nil && len(within) == 0 {
		return nil, nil
	}
	if err := w.Look(ctx, r.Group); err != nil {
		return nil, err
	}
	total := w.file.GroupRows(r.Group)
	if within == nil {
		within = rows.Range(0, total)
	}
	return w.Possible.And(within).And(r.Set(total)), nil
}

// Announce announces what evaluating the condition for a range may read from a file over a
// network, and returns the rows that may satisfy it. It announces each column for all of
// these rows, although rows that fail by another column will not need it.
func (w *Filter) Announce(ctx context.Context, r tasks.Range, within rows.Set) (ahead map[int]*parquet.Ahead, spans rows.Set, err error) {
	if spans, err = w.Candidates(ctx, r, within); err != nil {
		return nil, nil, err
	}
	unsure := w.open.And(spans)
	if len(spans) == 0 || len(unsure) == 0 {
		return nil, spans, nil
	}
	var leaves []int
	if w.where != nil {
		for _, c := range w.undecided(r.Group) {
			if c.plain {
				leaves = append(leaves, c.leaf.Index())
			}
		}
	}
	for _, k := range w.keys {
		leaves = append(leaves, k.Leaf())
	}
	ahead = map[int]*parquet.Ahead{}
	for _, l := range leaves {
		if l >= 0 && ahead[l] == nil {
			ahead[l] = w.file.Parquet().File().AheadOf(r.Group, l, unsure)
		}
	}
	return ahead, spans, nil
}

// add adds rows that may satisfy the condition, or all do if sure is set. They come after
// the rows added before.
func (w *Filter) add(lo, hi int64, sure bool) {
	w.Possible = w.Possible.Add(lo, hi)
	if sure {
		w.certain = w.certain.Add(lo, hi)
	} else {
		w.open = w.open.Add(lo, hi)
	}
}
