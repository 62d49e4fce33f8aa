package parquet

import (
	"reflect"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
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

// Share replaces f's schema and metadata by those of another file if they are
// equal, apart from the other's constants, and reports whether they are. It saves
// memory for logs of many files, whose footers consist mostly of these.
func (f *File) Share(like *File) bool {
	a, b := f.Metadata, like.decoded()
	if f.Root != nil && f.Root == b.Root {
		return true
	}
	if len(a.Schema) != len(b.elements) || !reflect.DeepEqual(a.KeyValueMetadata, b.entries) ||
		!reflect.DeepEqual(a.Schema, b.elements) || !reflect.DeepEqual(a.ColumnOrders, b.orders) {
		return false
	}
	f.share(like)
	return true
}

// share is Share for files that are known to have the same.
func (f *File) share(like *File) {
	a, b := f.Metadata, like.decoded()
	a.Schema, a.KeyValueMetadata, a.ColumnOrders = b.elements, b.entries, b.orders
	f.Schema, f.described = b.Schema, like.described
	if a.CreatedBy == like.Metadata.CreatedBy {
		a.CreatedBy = like.Metadata.CreatedBy // one string
	}
	bytes := meta.ElementBytes * int64(len(a.Schema))
	for _, kv := range a.KeyValueMetadata {
		bytes += int64(len(kv.Key) + len(kv.Value))
	}
	_ = f.charge(fault.At{}, -min(bytes, f.footer)) // returning memory does not fail
}

// SchemaFile checks a schema and returns it as that of a file without rows.
func SchemaFile(schema []meta.Element, name string) (*File, error) {
	m := &meta.Footer{Schema: schema}
	tree, err := m.Tree(fault.At{File: name})
	if err != nil {
		return nil, err
	}
	return &File{Name: name, Metadata: m, Schema: tree}, nil
}

// CheckShapes compares the shapes of leaves that were read for the same rows of a
// row group, counted from 0. shapes is keyed by leaf and need not have all leaves;
// a nil shape is ignored.
func (f *File) CheckShapes(rowGroup int, shapes map[int]meta.Shape) error {
	if l, before, ok := f.OtherShape(shapes); !ok {
		return faults.Corrupt(f.at(rowGroup, l), "the column repeats otherwise than column %s, which is in the same repeated group", f.Leaves[before].Dotted)
	}
	return nil
}

// SchemaDigest returns 8 bytes that identify the schema that the file stores, without
// constants. It is not a cryptographic digest.
func (f *File) SchemaDigest() ([]byte, error) { return meta.Digest(f.stored().elements) }
