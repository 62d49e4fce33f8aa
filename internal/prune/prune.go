// Package prune decides, before any page is read, which rows of a Parquet file
// cannot hold a member of a set of keys. It prunes rows if
//
//   - the bounds of their row group or page do not overlap those of the members,
//   - an exact set has no member between the bounds, or
//   - Parquet's own Bloom filter of the column chunk rejects all members within the
//     bounds.
//
// A row that holds a member is never pruned. The package relies on statistics only
// where they are known to be right: order.go defines the meaning of bounds, and
// package parquet lists programs that wrote wrong ones. A key column whose
// statistics are not reliable prunes nothing.
package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// Members is what is known about a set of keys.
type Members interface {
	// Empty reports whether the set is certain to be empty.
	Empty() bool
	// KeyRange returns inclusive bounds of the values of a key column, counted
	// from 0, in normal form as a part of a composite key. ok is false if they
	// are unknown.
	KeyRange(column int) (lo, hi []byte, ok bool)
	// Exact returns the set itself, or nil if it is unknown.
	Exact() *exact.Set
}

// Pruner prunes one file. Its methods may be called concurrently.
type Pruner struct {
	// Doubt, if not nil, receives errors about damaged parts of the file that can
	// be ignored, because the rows can be found without them.
	Doubt func(error)

	file  *parquet.File
	parts []column
	none  bool // no row of the file can hold a member

	// nullable are the leaves of all key columns, pruned or not, that may be NULL.
	// unclear is set if a key column is not a leaf of the file.
	nullable []int
	unclear  bool
}

// New returns a Pruner for the file, or nil if nothing can be pruned. columns are
// resolved in schema: the file's own, or one that has a column of the same name and
// key class for each of the file's. The options hold the rule and the classes of
// the members.
func New(f *parquet.File, schema *arrow.Schema, columns []keys.Column, o keys.Options, m Members) (*Pruner, error) {
	if slices.ContainsFunc(columns, func(c keys.Column) bool { return c.Cast != nil }) {
		return nil, nil // a value that does not fit its cast must be found everywhere
	}
	p := &Pruner{file: f}
	for i, c := range columns {
		field, err := c.Resolve(schema, o.IgnoreCase)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		class, err := keys.ClassOf(field.Type)
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
		if o.Rule.Of(class) != 0 {
			continue // statistics describe the stored values
		}
		if i >= len(o.Classes) {
			continue // the comparison of classes reports this error
		}
		if of := o.Classes[i]; of == class || of.Numeric() && class.Numeric() {
			p.add(leaf, class, i, of, m)
		}
	}
	if !p.none && len(p.parts) == 0 {
		return nil, nil
	}
	return p, nil
}

// Of returns the Pruner for another file with the same schema and writer. nil stays nil.
func (p *Pruner) Of(f *parquet.File, doubt func(error)) *Pruner {
	if p == nil {
		return nil
	}
	q := *p
	q.file, q.Doubt = f, doubt
	return &q
}

// Leaf returns the index of the first leaf that is used for pruning. ok is false if
// no row can hold a member.
func (p *Pruner) Leaf() (leaf int, ok bool) {
	if len(p.parts) == 0 {
		return 0, false
	}
	return p.parts[0].leaf.Index, true
}

// add adds a key column, with members of class of, if it can be used for pruning.
func (p *Pruner) add(l *meta.Leaf, class keys.Class, number int, of keys.Class, m Members) {
	members, ok := membersOf(m, number)
	switch {
	case !ok:
		return
	case members.empty:
		p.none = true
		return
	}
	part, ok := newColumn(p.file, l, class, of, members)
	switch {
	case ok && part.order.empty:
		p.none = true
	case ok:
		p.parts = append(p.parts, part)
	}
}

// leafAt returns the leaf at a path if it is unambiguous: one field of each name,
// in structs that are not repeated.
func leafAt(f *parquet.File, path keys.Path) (*meta.Leaf, bool) {
	node := f.Root
	for _, name := range path {
		var next *meta.Node
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

// Rows returns the rows of row group g that may hold a member, as ascending pairs
// [lo, hi); none if the row group has no member. nulls is the number of other rows
// whose key is NULL, or -1 if that is unknown. It reads indexes and Bloom filters,
// but no pages. The error wraps fault.ErrCorrupt if one of these contradicts the
// format.
func (p *Pruner) Rows(ctx context.Context, g int) (ranges rows.Set, nulls int64, err error) {
	if err := stopped.Err(ctx); err != nil {
		return nil, 0, err
	}
	n := p.file.RowGroups[g].Rows
	if n == 0 {
		return nil, 0, nil
	}
	if !p.none {
		ranges = rows.Range(0, n)
	}
	group := &rowGroup{file: p.file, group: g, rows: n, doubt: p.Doubt}
	for i := 0; i < len(p.parts) && len(ranges) > 0; i++ {
		found, err := p.parts[i].rows(group)
		if err != nil {
			return nil, 0, err
		}
		ranges = ranges.And(found)
	}
	nulls, err = p.nullsOutside(group, ranges)
	return ranges, nulls, err
}

// rowGroup is a row group while it is pruned.
type rowGroup struct {
	file  *parquet.File
	group int
	rows  int64
	index map[int]*pageIndex // by leaf
	doubt func(error)
}

// pageIndex is the page index of a column chunk; empty if there is none.
type pageIndex struct {
	offsets *parquet.OffsetIndex
	columns *parquet.ColumnIndex
}

func (g *rowGroup) pages(leaf int) (*pageIndex, error) {
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

// nullsOutside counts the rows outside the ranges in which a part of the key is
// NULL.
func (p *Pruner) nullsOutside(g *rowGroup, ranges rows.Set) (int64, error) {
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
		case n < 0 || n > 0 && total != 0: // both parts may be NULL in the same rows
			total = -1
		case total == 0:
			total = n
		}
	}
	return total, nil
}

// nullsOutside counts the NULLs of one leaf outside the ranges. It returns -1 if
// their number is unknown.
func (g *rowGroup) nullsOutside(leaf int, ranges rows.Set, outside int64) (int64, error) {
	switch n := g.file.Nulls(g.group, leaf); {
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

// slim joins adjacent ranges.
func slim(ranges rows.Set) rows.Set {
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
