// Package rowfilter finds the rows that satisfy the condition of a file; without one, all do.
//
//	file, condition ─► statistics (spans) ─► columns of the condition, the smallest first ─► rows
//
// In come a file of package source, which has its bound condition, and ranges of row groups;
// out come row numbers, ascending, or records of the rows. Statistics only leave out what
// cannot satisfy the condition; a value decides in any case. A [Filter] is one worker's.
//
// Rooms that find keys or make records may use it.
package rowfilter

import (
	"cmp"
	"context"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/lake/deletes"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
	"github.com/bloomjoin/bloomjoin/internal/where"
)

// Filter finds the rows of a Parquet file that satisfy its condition. Statistics of
// row groups and pages decide as many rows as possible (rowspans.go). The columns of the
// condition are then read for the remaining rows, one column after the other, the
// smallest one first. Rows that have already failed are skipped in the remaining
// columns. It must not be used concurrently.
type Filter struct {
	file    *source.File
	where   *where.Bound
	columns []filterColumn
	keys    []*deletes.Checker // of rows that are deleted by their keys
	sample  *sampler           // nil: rows with any key
	buf     *parquet.Buffers

	Expected map[int]*parquet.Ahead // announced ranges, by leaf

	at            int            // the row group that the sets below belong to; -1: none
	Possible      rows.Set       // rows of it that may satisfy the condition
	certain, open rows.Set       // of these, rows that do, and the others
	sets          []where.Truths // by predicate: its possible truth values there

	sure, maybe, found []uint32
	done               []int // predicates evaluated for maybe
	truths             [][]where.Truth
	whole              []where.Truth
	seen               []uint32 // positions of rows that were read
	tables             [][]where.Truth
	values             []where.Truth // of a page, without NULLs
	arrays             recycler      // for the values of a page
	Pages, Skipped     int           // of the condition's columns, since they were taken
}

// filterColumn is a column of a condition.
type filterColumn struct {
	field keys.Field
	leaf  arrowparquet.LeafValues // if plain
	plain bool                    // the column is one leaf, not repeated
	preds []int
	stats *prune.Statistics // nil: none
}

// New returns a filter of the rows of a Parquet file, which is partial.
func New(f *source.File, buf *parquet.Buffers) *Filter {
	w := &Filter{file: f, where: f.Where(), sample: newSampler(f), buf: buf, at: -1}
	if w.where == nil {
		return w
	}
	for _, field := range w.where.Columns() {
		c := filterColumn{field: field}
		if c.leaf, c.plain = f.Parquet().Leaf(field.Index); c.plain {
			c.stats = prune.NewStatistics(f.Parquet().File(), c.leaf.Index(), c.leaf.Type())
		}
		w.columns = append(w.columns, c)
	}
	for i, p := range w.where.Preds() {
		c := &w.columns[p.Column()]
		c.preds = append(c.preds, i)
	}
	n := len(w.where.Preds())
	w.truths, w.tables, w.sets = make([][]where.Truth, n), make([][]where.Truth, n), make([]where.Truths, n)
	return w
}

// OnlyDeleted reports whether rows are left out only because they are deleted.
func (w *Filter) OnlyDeleted() bool { return w.where == nil && w.sample == nil }

// Size returns the bytes of memory that are kept between row groups.
func (w *Filter) Size() int64 {
	n := 4*(cap(w.sure)+cap(w.maybe)+cap(w.found)+cap(w.seen)) + cap(w.whole) + cap(w.values)
	for i := range w.truths {
		n += cap(w.truths[i]) + cap(w.tables[i])
	}
	for _, k := range w.keys {
		n += k.Size()
	}
	return int64(n) + w.arrays.size()
}

// Shed releases the memory that Size counts.
func (w *Filter) Shed() {
	w.sure, w.maybe, w.found, w.seen, w.whole, w.values = nil, nil, nil, nil, nil, nil
	clear(w.truths)
	clear(w.tables)
	w.arrays = recycler{}
	for _, k := range w.keys {
		k.Shed()
	}
}

// Rows returns the rows of a range that satisfy the condition, ascending. If all do, it
// returns all instead of a list. within, if not nil, are ascending ranges: rows outside
// them are not needed. The slice is valid until the next call.
func (w *Filter) Rows(ctx context.Context, r tasks.Range, within rows.Set) (chosen []uint32, all bool, err error) {
	if within != nil && len(within) == 0 {
		return nil, r.Lo == r.Hi, nil
	}
	if err := w.Look(ctx, r.Group); err != nil {
		return nil, false, err
	}
	total := w.file.GroupRows(r.Group)
	if within == nil {
		within = rows.Range(0, total)
	}
	if w.certain.All(total) && within.All(total) {
		return nil, true, nil
	}
	within = within.And(r.Set(total))
	w.sure, w.maybe = w.certain.And(within).List(w.sure[:0]), w.open.And(within).List(w.maybe[:0])
	chosen, err = w.evaluateUndecided(ctx, r.Group)
	return chosen, err == nil && int64(len(chosen)) == r.Hi-r.Lo, err
}

// Among returns the rows of list, in a row group, that satisfy the condition. list and the
// result are ascending. The result is valid until the next call.
func (w *Filter) Among(ctx context.Context, group int, list []uint32) ([]uint32, error) {
	if err := w.Look(ctx, group); err != nil {
		return nil, err
	}
	w.sure, w.maybe = w.certain.Of(w.sure[:0], list), w.open.Of(w.maybe[:0], list)
	return w.evaluateUndecided(ctx, group)
}

// evaluateUndecided returns all rows of sure, and those of maybe that satisfy the condition, have no deleted key
// and are in the sample.
func (w *Filter) evaluateUndecided(ctx context.Context, group int) (_ []uint32, err error) {
	if len(w.maybe) == 0 {
		return w.sure, nil
	}
	if w.where != nil {
		if err := w.evaluate(ctx, group); err != nil {
			return nil, err
		}
	}
	for _, k := range w.keys {
		if w.maybe, err = k.Live(ctx, group, w.maybe, w.Expected); err != nil {
			return nil, source.InGroup(err, w.file, group)
		}
		w.Pages, w.Skipped = w.Pages+k.Pages, w.Skipped+k.Skipped
		k.Pages, k.Skipped = 0, 0
	}
	if w.sample != nil && len(w.maybe) > 0 {
		if err := w.sampled(ctx, group); err != nil {
			return nil, err
		}
	}
	if len(w.sure) == 0 {
		return w.maybe, nil
	}
	w.found = rows.Merged(w.found[:0], w.sure, w.maybe)
	return w.found, nil
}

// evaluate reduces maybe to the rows that satisfy the condition.
func (w *Filter) evaluate(ctx context.Context, group int) error {
	w.done = w.done[:0]
	for i := range w.truths {
		w.truths[i] = w.truths[i][:0]
	}
	todo := w.undecided(group)
	for i, c := range todo {
		if len(w.maybe) == 0 {
			return nil
		}
		if err := w.column(ctx, group, c); err != nil {
			return source.InGroup(err, w.file, group)
		}
		if i < len(todo)-1 {
			w.dropHopeless()
		}
	}
	for i, set := range w.sets {
		if !slices.Contains(w.done, i) {
			w.truths[i] = repeated(w.truths[i][:0], theOnly(set), len(w.maybe))
		}
	}
	w.whole = w.where.Combine(w.whole[:0], w.truths)
	n := 0
	for i, row := range w.maybe {
		if w.whole[i] == where.True {
			w.maybe[n] = row
			n++
		}
	}
	w.maybe = w.maybe[:n]
	return nil
}

// undecided returns the columns that statistics of the row group do not settle, the
// smallest one first.
func (w *Filter) undecided(group int) (todo []*filterColumn) {
	for i := range w.columns {
		c := &w.columns[i]
		if slices.ContainsFunc(c.preds, func(p int) bool { return !single(w.sets[p]) }) {
			todo = append(todo, c)
		}
	}
	slices.SortStableFunc(todo, func(a, b *filterColumn) int { return cmp.Compare(w.bytes(group, a), w.bytes(group, b)) })
	return todo
}

// bytes returns the compressed size of a column of a row group.
func (w *Filter) bytes(group int, c *filterColumn) (n int64) {
	p := w.file.Parquet()
	leaves := p.Below(c.field.Index[:1])
	if c.plain {
		leaves = []int{c.leaf.Index()}
	}
	for _, l := range leaves {
		n += min(p.File().Metadata.RowGroups[group].Columns[l].MetaData.TotalCompressedSize, 1<<40)
	}
	return n
}

// Cost returns the compressed bytes of the columns that must be read from a row group after Look.
func (w *Filter) Cost(group int) (n int64) {
	if len(w.open) == 0 {
		return 0
	}
	if w.where != nil {
		for _, c := range w.undecided(group) {
			n += w.bytes(group, c)
		}
	}
	for _, k := range w.keys {
		n += k.Bytes(group)
	}
	return n
}

// single reports whether a set has one truth value.
func single(s where.Truths) bool {
	return s.Only(where.False) || s.Only(where.Null) || s.Only(where.True)
}

// theOnly returns the truth value of a set that has one.
func theOnly(s where.Truths) where.Truth {
	switch {
	case s.Only(where.False):
		return where.False
	case s.Only(where.Null):
		return where.Null
	}
	return where.True
}

func repeated(dst []where.Truth, t where.Truth, n int) []where.Truth {
	dst = slices.Grow(dst, n)
	for range n {
		dst = append(dst, t)
	}
	return dst
}

// keep reduces maybe, and the truth values of its rows, to the given positions.
func (w *Filter) keep(positions []uint32) {
	for i, at := range positions {
		w.maybe[i] = w.maybe[at]
	}
	w.maybe = w.maybe[:len(positions)]
	for _, p := range w.done {
		t := w.truths[p]
		for i, at := range positions {
			t[i] = t[at]
		}
		w.truths[p] = t[:len(positions)]
	}
}

// known caches what hopeful concludes from the truth of up to maxKnown predicates; 0: nothing yet.
type known [1 << (2 * maxKnown)]int8

const maxKnown = 6

// hopeful reports whether a row may satisfy the condition, given the truth of some
// predicates for it and the possible truth values of the others. k caches the answers.
func (w *Filter) hopeful(k *known, sets []where.Truths, preds []int, truths [][]where.Truth, row int) bool {
	code := 0
	for _, p := range preds {
		code = code<<2 | int(truths[p][row])
	}
	if k[code] == 0 {
		for _, p := range preds {
			sets[p] = truths[p][row].Set()
		}
		k[code] = -1
		if w.where.Possible(sets).Has(where.True) {
			k[code] = 1
		}
	}
	return k[code] > 0
}

// dropHopeless drops the rows of maybe that fail for every value of the columns that
// were not read yet.
func (w *Filter) dropHopeless() {
	if len(w.done) > maxKnown {
		return
	}
	w.seen = w.seen[:0]
	sets := slices.Clone(w.sets)
	var conclusions known
	for i := range w.maybe {
		if w.hopeful(&conclusions, sets, w.done, w.truths, i) {
			w.seen = append(w.seen, uint32(i))
		}
	}
	if len(w.seen) < len(w.maybe) {
		w.keep(w.seen)
	}
}
