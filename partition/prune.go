package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/parquet-go/parquet-go/format"
)

// Pruning is knowing, before anything is read, that rows cannot hold a member
// of a filter: because the bounds of their row group or page are apart from
// those of the members, because no member of an exact set lies between them, or
// because Parquet's own Bloom filter of the column chunk denies all members
// there are in its range. A row that holds a member is never outside; that a row
// is inside means nothing.
//
// All that is believed is listed here, with prune_order.go for what bounds mean
// and prune_writers.go for those who got them wrong. What is not surely right is
// not believed: such a part of the key prunes nothing.

// pruner prunes one file for one match. Its methods may be called from many
// goroutines at once.
type pruner struct {
	file  *parquet.File
	parts []prunedPart
	none  bool // the filter has no member that a row of the file could hold

	// nullable are the leaves of all key columns, pruned or not, that may be
	// NULL; unclear if a key column is none of the file's leaves.
	nullable []int
	unclear  bool

	// doubt, if not nil, is told what is damaged and is therefore not used.
	doubt func(error)
}

// newPruner returns what can be pruned of the file by what is known of the
// filter's keys; nil if nothing can. schema is what the match's columns are
// found in: the file's own or one that has a column for each of the file's, of
// the same name and key class.
func newPruner(f *parquet.File, schema *arrow.Schema, m Match) (*pruner, error) {
	columns, options, err := m.key()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(columns, func(c key.Column) bool { return c.Cast != nil }) {
		return nil, nil // a value that does not fit must be found wherever it stands
	}
	p := &pruner{file: f}
	for i, c := range columns {
		field, err := c.Resolve(schema, m.IgnoreCase)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		class, err := key.ClassOf(field.Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		leaf, ok := leafAt(f, field.Names)
		if !ok {
			p.unclear = true
			continue
		}
		if leaf.MaxDef > 0 {
			p.nullable = append(p.nullable, leaf.Index)
		}
		if options.Rule.Of(class) != 0 {
			continue // statistics are of the values as they are stored
		}
		if i >= len(options.Classes) {
			continue // the prober says what is wrong
		}
		if of := options.Classes[i]; of == class || of.Numeric() && class.Numeric() {
			p.add(leaf, class, i, of, m.Filter)
		}
	}
	if !p.none && len(p.parts) == 0 {
		return nil, nil
	}
	return p, nil
}

// add finds out what is known of a key column's members, which are of class of,
// and what can be pruned by that.
func (p *pruner) add(l *parquet.Leaf, class key.Class, column int, of key.Class, f *codec.Filter) {
	members, ok := membersOf(f, column)
	switch {
	case !ok:
		return
	case members.empty:
		p.none = true
		return
	}
	part, ok := newPrunedPart(p.file, l, class, of, members)
	switch {
	case ok && part.order.empty:
		p.none = true
	case ok:
		p.parts = append(p.parts, part)
	}
}

// leafAt returns the leaf of that path, if there is no doubt about it: a field
// of each name, in structs that are not repeated.
func leafAt(f *parquet.File, path key.Path) (*parquet.Leaf, bool) {
	node := f.Root
	for _, name := range path {
		var next *parquet.Node
		for _, child := range node.Children {
			if child.Name != name {
				continue
			}
			if next != nil {
				return nil, false
			}
			next = child
		}
		if next == nil || next.Repetition == format.Repeated {
			return nil, false
		}
		node = next
	}
	if node.Leaf < 0 || f.Leaves[node.Leaf].MaxRep > 0 {
		return nil, false
	}
	return &f.Leaves[node.Leaf], true
}

// rows returns the stretches of row group g in which a member may be, in
// ascending order, as pairs of rows [lo, hi) of the row group; none: the group
// has no member. nulls is the number of rows outside of them whose key is NULL,
// -1 if that is unknown. It reads indexes and Bloom filters, no pages. An error
// wraps fault.ErrCorrupt if one of these contradicts the format.
func (p *pruner) rows(ctx context.Context, g int) (ranges [][2]int64, nulls int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, context.Cause(ctx)
	}
	rows := p.file.RowGroups[g].Rows
	if rows == 0 {
		return nil, 0, nil
	}
	if !p.none {
		ranges = [][2]int64{{0, rows}}
	}
	group := &prunedGroup{file: p.file, group: g, rows: rows, doubt: p.doubt}
	for i := 0; i < len(p.parts) && len(ranges) > 0; i++ {
		found, err := p.parts[i].rows(group)
		if err != nil {
			return nil, 0, err
		}
		ranges = intersect(ranges, found)
	}
	nulls, err = p.nullsOutside(group, ranges)
	return ranges, nulls, err
}

// intersect returns the rows in both of two lists of ranges.
func intersect(a, b [][2]int64) (out [][2]int64) {
	for len(a) > 0 && len(b) > 0 {
		if lo, hi := max(a[0][0], b[0][0]), min(a[0][1], b[0][1]); lo < hi {
			out = append(out, [2]int64{lo, hi})
		}
		if a[0][1] < b[0][1] {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// prunedGroup is a row group while it is pruned.
type prunedGroup struct {
	file  *parquet.File
	group int
	rows  int64
	index map[int]*pageIndex // by leaf
	doubt func(error)
}

// pageIndex is the page index of a column chunk; empty where there is none.
type pageIndex struct {
	offsets *parquet.OffsetIndex
	columns *parquet.ColumnIndex
}

func (g *prunedGroup) pages(leaf int) (*pageIndex, error) {
	if x, ok := g.index[leaf]; ok {
		return x, nil
	}
	x := new(pageIndex)
	if g.index == nil {
		g.index = map[int]*pageIndex{}
	}
	offsets, ok, err := g.file.OffsetIndex(g.group, leaf)
	if ok && err == nil {
		var columns *parquet.ColumnIndex
		if columns, ok, err = g.file.ColumnIndex(g.group, leaf, offsets); ok {
			x.offsets, x.columns = offsets, columns
		}
	}
	if err != nil && !errors.Is(err, fault.ErrUnsupported) {
		return nil, err
	}
	g.index[leaf] = x
	return x, nil
}

// nullCount returns how many NULLs the chunk of a leaf has, -1 if that is
// unknown.
func (g *prunedGroup) nullCount(leaf int) int64 {
	n, ok := g.file.Metadata.RowGroups[g.group].Columns[leaf].MetaData.Statistics.NullCount.Get()
	if !ok || n < 0 || n > g.rows {
		return -1
	}
	return n
}

// nullsOutside counts the rows outside of the ranges in which a part of the key
// is NULL.
func (p *pruner) nullsOutside(g *prunedGroup, ranges [][2]int64) (int64, error) {
	outside := g.rows
	for _, r := range ranges {
		outside -= r[1] - r[0]
	}
	if outside == 0 {
		return 0, nil
	}
	if p.unclear {
		return -1, nil
	}
	total := int64(0)
	for _, leaf := range p.nullable {
		n, err := g.nullsOutside(leaf, ranges, outside)
		switch {
		case err != nil:
			return -1, err
		case n == outside:
			return outside, nil // whatever the other parts are
		case n < 0 || n > 0 && total != 0: // two parts may be NULL in the same rows
			total = -1
		case total == 0:
			total = n
		}
	}
	return total, nil
}

// nullsOutside counts the NULLs of one leaf, -1 if that is unknown.
func (g *prunedGroup) nullsOutside(leaf int, ranges [][2]int64, outside int64) (int64, error) {
	switch n := g.nullCount(leaf); {
	case n == 0 || n > 0 && len(ranges) == 0:
		return n, nil
	case n == g.rows:
		return outside, nil
	}
	x, err := g.pages(leaf)
	if err != nil || x.columns == nil || x.columns.NullCounts == nil {
		return -1, err
	}
	total := int64(0)
	for i, page := range x.offsets.Pages {
		n, end := x.columns.NullCounts[i], x.offsets.End(i)
		out := end - page.FirstRow
		for _, r := range ranges {
			out -= max(min(r[1], end)-max(r[0], page.FirstRow), 0)
		}
		switch {
		case out == 0 || n == 0:
		case out == end-page.FirstRow && n > 0:
			total += n
		case n == end-page.FirstRow:
			total += out
		default:
			return -1, nil
		}
	}
	return total, nil
}

// slim joins ranges that touch.
func slim(ranges [][2]int64) [][2]int64 {
	out := ranges[:0]
	for _, r := range ranges {
		if n := len(out); n > 0 && out[n-1][1] == r[0] {
			out[n-1][1] = r[1]
		} else {
			out = append(out, r)
		}
	}
	return slices.Clip(out)
}
