// Package take copies chosen rows out of Arrow arrays: the rows that a scan
// keeps, or the two sides of a join.
//
// A negative row number gives NULL, for outer joins. The result is always a new
// array without an offset, which every writer handles. All types are supported
// except unions, list views and run-end encoded ones; dictionaries are shared,
// not copied. A column whose rows would overflow the 32-bit offsets of its type
// is an error that wraps [ErrTooLarge].
//
// It also derives the schemas of such records: with plain values in place of
// dictionaries, and without metadata that no longer holds.
package take

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// ErrTooLarge means that the rows hold more bytes or elements than one array of
// their type can. Take fewer rows at a time.
var ErrTooLarge = errors.New("rows exceed the 2 GiB of a column with 32-bit offsets")

// Record returns the given rows of rec, in the given order. The caller
// releases the result.
func Record(mem memory.Allocator, rec arrow.Record, rows []int) (arrow.Record, error) {
	return columns(rec, rec.Schema(), int64(len(rows)), func(a arrow.Array) (arrow.Array, error) { return Array(mem, a, rows) })
}

// columns returns a record of what fn returns for each column of rec.
func columns(rec arrow.Record, schema *arrow.Schema, rows int64, fn func(arrow.Array) (arrow.Array, error)) (arrow.Record, error) {
	cols := make([]arrow.Array, 0, rec.NumCols())
	defer each.Release(&cols)
	for i, col := range rec.Columns() {
		c, err := fn(col)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", rec.ColumnName(i), err)
		}
		cols = append(cols, c)
	}
	return array.NewRecord(schema, cols, rows), nil
}

// Array returns the given rows of a. A negative row gives NULL. The caller
// releases the result.
func Array(mem memory.Allocator, a arrow.Array, rows []int) (arrow.Array, error) {
	d, err := take(mem, a, rows)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

// Nulls returns an array of n NULLs of exactly the type t: builders give the children of
// some types other names. The caller releases it.
func Nulls(mem memory.Allocator, t arrow.DataType, n int) (arrow.Array, error) {
	empty := array.MakeFromData(none(t))
	defer empty.Release()
	return Array(mem, empty, slices.Repeat([]int{-1}, n))
}

// none returns the data of an array of type t without rows.
func none(t arrow.DataType) *array.Data {
	var children []arrow.ArrayData
	switch of := t.(type) {
	case arrow.ExtensionType:
		return as(t, none(of.StorageType()))
	case *arrow.DictionaryType:
		return array.NewDataWithDictionary(t, 0, make([]*memory.Buffer, 2), 0, 0, none(of.ValueType))
	case arrow.NestedType:
		for _, f := range of.Fields() {
			children = append(children, none(f.Type))
		}
	}
	return array.NewData(t, 0, make([]*memory.Buffer, len(t.Layout().Buffers)), children, 0, 0)
}

// As returns the array with another type of the same layout, as one whose children have
// other names or metadata. The caller releases it.
func As(a arrow.Array, t arrow.DataType) arrow.Array {
	d := as(t, a.Data())
	defer d.Release()
	return array.MakeFromData(d)
}

func as(t arrow.DataType, d arrow.ArrayData) *array.Data {
	of := t
	for e, ok := of.(arrow.ExtensionType); ok; e, ok = of.(arrow.ExtensionType) {
		of = e.StorageType()
	}
	children := d.Children()
	if n, ok := of.(arrow.NestedType); ok {
		children = make([]arrow.ArrayData, len(children))
		for i, f := range n.Fields() {
			c := as(f.Type, d.Children()[i])
			defer c.Release()
			children[i] = c
		}
	}
	out := array.NewData(t, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	if dict := d.Dictionary(); dict.(*array.Data) != nil {
		out.SetDictionary(dict)
	}
	return out
}

// take copies the rows into new array data, which the caller releases.
func take(mem memory.Allocator, from arrow.Array, rows []int) (*array.Data, error) {
	switch a := from.(type) {
	case array.ExtensionArray:
		d, err := take(mem, a.Storage(), rows)
		if err != nil {
			return nil, err
		}
		defer d.Release()
		return as(a.DataType(), d), nil
	case *array.Null:
		return array.NewData(arrow.Null, len(rows), []*memory.Buffer{nil}, nil, len(rows), 0), nil
	case *array.Struct:
		return takeStruct(mem, a, rows)
	case *array.FixedSizeList:
		return takeFixedList(mem, a, rows)
	case *array.List, *array.LargeList, *array.Map:
		return takeList(mem, a.(array.ListLike), rows)
	case *array.String, *array.Binary, *array.LargeString, *array.LargeBinary:
		return takeBinary(mem, a, rows)
	case *array.StringView, *array.BinaryView:
		return takeViews(mem, a, rows)
	case *array.Boolean:
		return takeBits(mem, a, rows), nil
	}
	if t, ok := from.DataType().(arrow.FixedWidthDataType); ok && t.BitWidth()%8 == 0 && len(from.Data().Buffers()) == 2 {
		return takeFixed(mem, from, rows, t.BitWidth()/8), nil
	}
	return nil, faults.Unsupported(fault.At{}, "type %s", from.DataType())
}
