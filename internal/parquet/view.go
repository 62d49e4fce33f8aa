package parquet

import (
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// View has the columns that a file is to have in place of those that it stores: in another order,
// under other names, with wider types, without some and with others that have one value in all rows.
type View struct {
	Elements []meta.Element // of the schema, depth first
	Leaves   []int          // the stored leaf of each, which may have a narrower type; -1: none
	Values   map[int][]byte // by leaf of the view that has no stored one: its value in all rows, PLAIN; none: NULL
	Instants []int          // leaves of the view that hold instants, if they are of INT96
	Without  []string       // keys of metadata that would describe the stored columns
}

// decoded returns the schema as it was decoded, whatever the view.
func (f *File) decoded() *storedSchema {
	if f.own != nil {
		return f.own
	}
	return f.stored()
}

// Adopt gives the file the columns of a view of its schema. It must be called once, after Share and
// before AddConstants. If like is a file that shares the schema and has the view, they share the
// schema of the view, too.
func (f *File) Adopt(v *View, like *File) error {
	at := fault.At{File: f.Name}
	f.own = f.stored()
	from := f.own
	if like != nil && like.view == v && like.own.Root == from.Root {
		s := like.stored()
		f.Metadata.Schema, f.Metadata.ColumnOrders, f.Schema = s.elements, s.orders, s.Schema
		f.Metadata.KeyValueMetadata, f.wider = like.Metadata.KeyValueMetadata, like.wider
	} else if err := f.adopt(at, v, from); err != nil {
		return err
	}
	f.view = v
	return f.adoptChunks(at, v)
}

// adopt makes the schema of a view.
func (f *File) adopt(at fault.At, v *View, from *storedSchema) (err error) {
	if err := f.charge(at, meta.ElementBytes*int64(len(v.Elements))); err != nil {
		return err
	}
	f.Metadata.Schema = slices.Clone(v.Elements)
	var orders []format.ColumnOrder
	for _, l := range v.Leaves {
		switch {
		case l < 0:
			orders = append(orders, format.ColumnOrder{Value: new(format.TypeDefinedOrder)})
		case l < len(from.orders):
			orders = append(orders, from.orders[l])
		}
	}
	f.Metadata.ColumnOrders = orders
	f.Metadata.KeyValueMetadata = slices.DeleteFunc(slices.Clone(f.Metadata.KeyValueMetadata), func(kv meta.KeyValue) bool {
		return slices.Contains(v.Without, kv.Key)
	})
	if f.Schema, err = f.Metadata.Tree(at); err != nil {
		return err
	}
	for i, l := range v.Leaves {
		if l < 0 {
			continue
		}
		w, err := newWidening(&from.Leaves[l], &f.Leaves[i])
		if err != nil {
			return err
		}
		if w != nil && f.wider == nil {
			f.wider = make([]*widening, len(v.Leaves))
		}
		if w != nil {
			f.wider[i] = w
		}
	}
	return nil
}

// adoptChunks puts the chunks of all row groups in the order of the view's leaves.
func (f *File) adoptChunks(at fault.At, v *View) error {
	f.absent = make([]bool, len(v.Leaves))
	var buf thriftBuffer
	values := map[int64][]meta.ColumnChunk{} // by rows
	for g := range f.Metadata.RowGroups {
		rg := &f.Metadata.RowGroups[g]
		made := values[rg.NumRows]
		chunks, next, bytes := make([]meta.ColumnChunk, 0, len(v.Leaves)), 0, int64(0)
		for i, l := range v.Leaves {
			if l >= 0 {
				c := rg.Columns[l]
				bytes += c.MetaData.TotalCompressedSize
				if c.MetaData.BloomFilterOffset != 0 && !f.Metadata.BloomBelieved(&f.own.Leaves[l]) { // the view may lack the annotation that says so
					c.MetaData.BloomFilterOffset = 0
				}
				if w := f.widened(i); w != nil {
					w.chunk(&c.MetaData)
				}
				chunks = append(chunks, c)
				continue
			}
			f.absent[i] = true
			if next == len(made) {
				before := len(f.extra)
				c, err := f.constantChunk(&buf, &f.Leaves[i], v.Values[i], rg.NumRows)
				if err != nil {
					return err
				}
				if err := f.charge(at, int64(len(f.extra)-before)); err != nil {
					return err
				}
				made = append(made, c)
			}
			chunks, next = append(chunks, made[next]), next+1
		}
		values[rg.NumRows] = made
		rg.Columns, f.RowGroups[g].CompressedBytes = chunks, bytes
		rg.SortingColumns = nil
	}
	f.extra = slices.Clip(f.extra)
	return nil
}

// Rename gives top-level columns other names. It must be called before AddConstants.
func (f *File) Rename(names []string, metadata []meta.KeyValue) (err error) {
	if f.own == nil { // which other files share
		f.own = f.stored()
	}
	elements, at := slices.Clone(f.Metadata.Schema), 1
	for i := range names {
		elements[at].Name = names[i]
		at, _ = span(elements, at, 0)
	}
	f.Metadata.Schema, f.Metadata.KeyValueMetadata = elements, metadata
	f.Schema, err = f.Metadata.Tree(fault.At{File: f.Name})
	return err
}

// RenamedLike gives the columns the names of those of a file whose schema f shares, and whose columns
// were renamed. It reports false if there are none such.
func (f *File) RenamedLike(like *File, names []string) bool {
	if like == nil || f.own != nil || like.own == nil || like.own.Root != f.Root {
		return false
	}
	s := like.stored()
	if !slices.Equal(s.Root.Names(), names) {
		return false
	}
	f.own = like.own
	f.Metadata.Schema, f.Metadata.KeyValueMetadata, f.Schema = s.elements, s.entries, s.Schema
	return true
}

// Keep charges memory that is kept as long as the file.
func (f *File) Keep(bytes int64) error { return f.charge(fault.At{File: f.Name}, bytes) }

// Instants reports whether a leaf of INT96 holds instants.
func (f *File) Instants(leaf int) bool {
	return f.view != nil && slices.Contains(f.view.Instants, leaf)
}

// Viewed reports whether the file has the columns of a view.
func (f *File) Viewed() bool { return f.view != nil }
