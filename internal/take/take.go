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

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// ErrTooLarge means that the rows hold more bytes or elements than one array of
// their type can. Take fewer rows at a time.
var ErrTooLarge = errors.New("rows exceed the 2 GiB of a column with 32-bit offsets")

// Record returns the given rows of rec, in the given order. The caller
// releases the result.
func Record(mem memory.Allocator, rec arrow.Record, rows []int) (arrow.Record, error) {
	cols := make([]arrow.Array, 0, rec.NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, col := range rec.Columns() {
		c, err := Array(mem, col, rows)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", rec.ColumnName(i), err)
		}
		cols = append(cols, c)
	}
	return array.NewRecord(rec.Schema(), cols, int64(len(rows))), nil
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

// take copies the rows into new array data, which the caller releases.
func take(mem memory.Allocator, from arrow.Array, rows []int) (*array.Data, error) {
	switch a := from.(type) {
	case array.ExtensionArray:
		d, err := take(mem, a.Storage(), rows)
		if err != nil {
			return nil, err
		}
		defer d.Release()
		e := array.NewData(a.DataType(), d.Len(), d.Buffers(), d.Children(), d.NullN(), 0)
		if dict := d.Dictionary(); dict.(*array.Data) != nil { // the storage is a dictionary
			e.SetDictionary(dict)
		}
		return e, nil
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
