package arrowparquet

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// LeafValues converts the values of one leaf to Arrow arrays of the types of
// [Parquet.ReadKeys], without levels.
type LeafValues struct {
	p   *Parquet
	col *column
}

// Leaf returns the leaf for a path of field numbers from the top of the schema. ok
// is false if that is a struct or a list, or is within a list.
func (p *Parquet) Leaf(index []int) (v LeafValues, ok bool) {
	level := p.keys
	var c *column
	for _, i := range index {
		if i < 0 || i >= len(level) {
			return v, false
		}
		c = level[i]
		if c.elemDef > 0 {
			return v, false
		}
		level = c.children
	}
	if c == nil || c.sink == nil {
		return v, false
	}
	return LeafValues{p, c}, true
}

// Index returns the leaf's number in the file.
func (v LeafValues) Index() int { return v.col.leaf }

// Type returns the Arrow type of the values.
func (v LeafValues) Type() arrow.DataType { return v.col.field.Type }

// Plain reports whether Arrow stores the values as Parquet does.
func (v LeafValues) Plain() bool {
	s := v.col.sink(v.p.mem, 0)
	defer s.release()
	fixed, ok := s.(*fixedSink)
	return ok && fixed.convert == nil
}

// Array returns an array of the page's values other than NULL. The caller releases
// it.
func (v LeafValues) Array(page *parquet.Page, dict *parquet.Dictionary) (arrow.Array, error) {
	return v.ArrayIn(v.p.mem, page, dict)
}

// ArrayIn is Array with an allocator other than the file's.
func (v LeafValues) ArrayIn(mem memory.Allocator, page *parquet.Page, dict *parquet.Dictionary) (arrow.Array, error) {
	s := v.col.sink(mem, page.NonNull)
	if err := s.add(page, dict); err != nil {
		s.release()
		at := fault.At{File: v.p.f.Name, Column: v.p.f.Leaves[v.col.leaf].Dotted, Page: page.Number}
		return nil, misfit(at, err)
	}
	d := s.data(v.col.field.Type, page.NonNull, 0, nil)
	defer d.Release()
	return array.MakeFromData(d), nil
}
