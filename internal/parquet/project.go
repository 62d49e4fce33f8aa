package parquet

import (
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Projection is the part of a file that consists of some of its top-level columns.
type Projection struct {
	Schema []meta.Element       // depth first, as in a footer
	Orders []format.ColumnOrder // one per leaf
	Leaves []int                // the file's leaves, in the order of Schema
}

// Project returns the projection to the top-level columns at the given positions,
// in that order; nil: all.
func (f *File) Project(columns []int) Projection {
	var p Projection
	elements := f.Metadata.Schema
	if columns == nil {
		p.Schema = slices.Clone(elements)
		for l := range f.Leaves {
			p.Leaves = append(p.Leaves, l)
		}
	} else {
		root := elements[0]
		root.NumChildren.V, root.NumChildren.Valid = int32(len(columns)), true
		p.Schema = append(p.Schema, root)
		at, leaf := 1, 0
		starts, leaves := []int{}, []int{} // of each top-level column
		for range f.Root.Children {
			starts, leaves = append(starts, at), append(leaves, leaf)
			at, leaf = span(elements, at, leaf)
		}
		for _, c := range columns {
			end, last := span(elements, starts[c], leaves[c])
			p.Schema = append(p.Schema, elements[starts[c]:end]...)
			for l := leaves[c]; l < last; l++ {
				p.Leaves = append(p.Leaves, l)
			}
		}
	}
	for _, l := range p.Leaves {
		order := format.ColumnOrder{Value: &format.TypeDefinedOrder{}}
		if l < len(f.Metadata.ColumnOrders) && f.Metadata.ColumnOrders[l].Value != nil {
			order = f.Metadata.ColumnOrders[l]
		}
		p.Orders = append(p.Orders, order)
	}
	return p
}

// span returns the position after the subtree at element at, and the leaf number
// there.
func span(elements []meta.Element, at, leaf int) (int, int) {
	e := &elements[at]
	at++
	if e.Type.Valid && e.NumChildren.V <= 0 {
		return at, leaf + 1
	}
	for range e.NumChildren.V {
		at, leaf = span(elements, at, leaf)
	}
	return at, leaf
}

// AppendValues appends the PLAIN values of the entries with the given indices, all
// in range, until dst has at least most bytes. It returns the number of entries
// appended, at least one unless indices is empty. width is [meta.Leaf.Width]; the leaf
// must not be boolean.
func (d *Dictionary) AppendValues(dst []byte, indices []uint32, width, most int) (_ []byte, n int) {
	for _, i := range indices {
		if width > 0 {
			dst = append(dst, d.Plain[int(i)*width:(int(i)+1)*width]...)
		} else {
			dst = append(dst, d.Plain[d.offsets[i]-4:d.offsets[i+1]-4]...)
		}
		if n++; len(dst) >= most {
			break
		}
	}
	return dst, n
}
