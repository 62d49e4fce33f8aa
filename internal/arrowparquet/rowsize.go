package arrowparquet

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// rowSizes computes the approximate size of a record's rows in Parquet's PLAIN
// encoding. It depends on the values alone, so a row has the same size in any
// record.
type rowSizes struct {
	fixed int64 // bytes of every row
	more  []sizeFunc
}

// RowsSize returns the approximate size of a record's rows in Parquet's PLAIN encoding,
// in bytes. It does not depend on how rows are divided into records.
func RowsSize(rec arrow.Record) (n int64, err error) {
	defer recovered("measuring rows", &err)
	s := sizesOf(rec)
	if len(s.more) == 0 {
		return rec.NumRows() * s.fixed, nil
	}
	for i := range int(rec.NumRows()) {
		n += s.row(i)
	}
	return n, nil
}

// MinBytes returns the bytes that a value of a type takes in an array, even if it is NULL.
func MinBytes(dt arrow.DataType) (n int64) {
	switch dt := storage(dt).(type) {
	case *arrow.FixedSizeListType:
		return int64(dt.Len()) * max(MinBytes(dt.Elem()), 1)
	case *arrow.StructType:
		for _, f := range dt.Fields() {
			n += MinBytes(f.Type)
		}
	case arrow.FixedWidthDataType:
		n = int64(dt.BitWidth()+7) / 8
	}
	return n
}

// RowSizes returns a function for the approximate size of each row of a record; see RowsSize.
func RowSizes(rec arrow.Record) (of func(row int) int64, err error) {
	defer recovered("measuring rows", &err)
	s := sizesOf(rec)
	return s.row, nil
}

// sizeFunc returns the size in bytes of element i of an array.
type sizeFunc func(i int) int64

func sizesOf(rec arrow.Record) rowSizes {
	var s rowSizes
	for _, arr := range rec.Columns() {
		if f, n := sizes(arr); f != nil {
			s.more = append(s.more, f)
		} else {
			s.fixed += n
		}
	}
	return s
}

func (s *rowSizes) row(i int) int64 {
	n := s.fixed
	for _, f := range s.more {
		n += f(i)
	}
	return n
}

// sizes returns the size of arr's elements: f, or, if f is nil, a fixed size. A
// value of fixed width counts that width, NULL or not. A NULL of another type
// counts one byte, a string four more than its length, and a list one more than its
// elements.
func sizes(arr arrow.Array) (f sizeFunc, fixed int64) {
	switch a := arr.(type) {
	case array.ExtensionArray:
		return sizes(a.Storage())
	case *array.Dictionary:
		of, n := sizes(a.Dictionary())
		if of == nil {
			return nil, n
		}
		return orNull(a, func(i int) int64 { return of(a.GetValueIndex(i)) }), 0
	case *array.Struct:
		return orNull(a, structSizes(a)), 0
	case array.ListLike:
		return orNull(a, listSizes(a)), 0
	case array.BinaryLike:
		return orNull(a, func(i int) int64 { return 4 + int64(a.ValueLen(i)) }), 0
	case array.ViewLike:
		return orNull(a, func(i int) int64 { return 4 + int64(a.ValueHeader(i).Len()) }), 0
	}
	if dt, ok := arr.DataType().(arrow.FixedWidthDataType); ok {
		return nil, max(1, int64(dt.BitWidth()/8))
	}
	return nil, 1
}

func orNull(arr arrow.Array, f sizeFunc) sizeFunc {
	return func(i int) int64 {
		if arr.IsNull(i) {
			return 1
		}
		return f(i)
	}
}

func structSizes(st *array.Struct) sizeFunc {
	var s rowSizes
	for i := range st.NumField() {
		if f, n := sizes(st.Field(i)); f != nil {
			s.more = append(s.more, f)
		} else {
			s.fixed += n
		}
	}
	return s.row
}

func listSizes(l array.ListLike) sizeFunc {
	f, fixed := sizes(l.ListValues())
	return func(i int) int64 {
		from, to := l.ValueOffsets(i)
		if f == nil {
			return 1 + (to-from)*fixed
		}
		n := int64(1)
		for j := from; j < to; j++ {
			n += f(int(j))
		}
		return n
	}
}
