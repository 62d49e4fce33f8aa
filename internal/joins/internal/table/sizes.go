package table

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// widest returns a bound on the bytes of any one value.
func widest(a arrow.Array) (most int64) {
	if a.Len() == 0 {
		return 0 // an empty array may have no offsets
	}
	switch a := a.(type) {
	case *array.String:
		return longest(a.ValueOffsets())
	case *array.Binary:
		return longest(a.ValueOffsets())
	case *array.LargeString:
		return longest(a.ValueOffsets())
	case *array.LargeBinary:
		return longest(a.ValueOffsets())
	case array.ExtensionArray:
		return widest(a.Storage())
	case *array.Dictionary:
		return widest(a.Dictionary())
	case *array.Struct:
		for i := range a.NumField() {
			most += widest(a.Field(i))
		}
		return most
	}
	if t, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		return int64(t.BitWidth()+7) / 8
	}
	return arrayBytes(a)
}

// longest returns the greatest difference between consecutive offsets.
func longest[T int32 | int64](offsets []T) (most int64) {
	for i := 1; i < len(offsets); i++ {
		most = max(most, int64(offsets[i]-offsets[i-1]))
	}
	return most
}

// valueBytes returns the approximate bytes of one value; at most widest.
func valueBytes(a arrow.Array, row int) (n int64) {
	if a.IsNull(row) {
		return 0
	}
	switch a := a.(type) {
	case *array.String:
		return int64(len(a.Value(row)))
	case *array.Binary:
		return int64(len(a.Value(row)))
	case *array.LargeString:
		return int64(len(a.Value(row)))
	case *array.LargeBinary:
		return int64(len(a.Value(row)))
	case array.ExtensionArray:
		return valueBytes(a.Storage(), row)
	case *array.Dictionary:
		return valueBytes(a.Dictionary(), a.GetValueIndex(row))
	case *array.Struct:
		for i := range a.NumField() {
			n += valueBytes(a.Field(i), row)
		}
		return n
	case array.ListLike:
		start, end := a.ValueOffsets(row)
		elems := array.NewSlice(a.ListValues(), start, end)
		defer elems.Release()
		return arrayBytes(elems)
	}
	if t, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		return int64(t.BitWidth()+7) / 8
	}
	one := array.NewSlice(a, int64(row), int64(row+1))
	defer one.Release()
	return arrayBytes(one)
}

// WidestRow returns a bound on the bytes of any row of the columns.
func WidestRow(cols []arrow.Array) (most int64) {
	for _, col := range cols {
		most += widest(col)
	}
	return most
}

// RowBytes returns the approximate bytes of one row; at most WidestRow.
func RowBytes(cols []arrow.Array, row int) (n int64) {
	for _, col := range cols {
		n += valueBytes(col, row)
	}
	return n
}

// recordBytes returns the memory of a record, counting each buffer once.
func recordBytes(rec arrow.Record) (n int64) {
	seen := map[*byte]bool{}
	for _, col := range rec.Columns() {
		n += dataBytes(col.Data(), seen)
	}
	return n
}

func dataBytes(d arrow.ArrayData, seen map[*byte]bool) (n int64) {
	for _, b := range d.Buffers() {
		if b == nil || b.Len() == 0 {
			continue
		}
		if all := b.Buf(); !seen[&all[0]] {
			seen[&all[0]] = true
			n += int64(cap(all)) // Arrow's allocators keep the rest of a shortened buffer
		}
	}
	for _, c := range d.Children() {
		n += dataBytes(c, seen)
	}
	if dict, ok := d.Dictionary().(*array.Data); ok && dict != nil {
		n += dataBytes(dict, seen)
	}
	return n
}

// neededBytes returns the approximate memory that the rows of a record would take
// in a record of their own.
func neededBytes(rec arrow.Record) (n int64) {
	for _, col := range rec.Columns() {
		n += arrayBytes(col)
	}
	return n
}

func arrayBytes(a arrow.Array) int64 {
	rows := a.Len()
	n := int64(rows+7) / 8
	switch a := a.(type) {
	case array.ExtensionArray:
		return arrayBytes(a.Storage())
	case *array.Dictionary:
		return n + 4*int64(rows) + arrayBytes(a.Dictionary())
	case *array.Struct:
		for i := range a.NumField() {
			n += arrayBytes(a.Field(i))
		}
	case *array.String:
		n += 4*int64(rows) + int64(len(a.ValueBytes()))
	case *array.Binary:
		n += 4*int64(rows) + int64(len(a.ValueBytes()))
	case *array.LargeString:
		n += 8*int64(rows) + int64(len(a.ValueBytes()))
	case *array.LargeBinary:
		n += 8*int64(rows) + int64(len(a.ValueBytes()))
	case array.ListLike:
		if rows == 0 {
			break
		}
		s, _ := a.ValueOffsets(0)
		_, e := a.ValueOffsets(rows - 1)
		elems := array.NewSlice(a.ListValues(), s, e)
		defer elems.Release()
		n += 4*int64(rows) + arrayBytes(elems)
	case *array.StringView:
		for i := range rows {
			n += int64(arrow.ViewHeaderSizeBytes + len(a.Value(i)))
		}
	case *array.BinaryView:
		for i := range rows {
			n += int64(arrow.ViewHeaderSizeBytes + len(a.Value(i)))
		}
	default:
		if t, ok := a.DataType().(arrow.FixedWidthDataType); ok {
			n += int64(rows) * int64(t.BitWidth()) / 8
		}
	}
	return n
}
