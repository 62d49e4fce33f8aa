package join

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// A row that meets many others stands in the answer that many times: so a batch
// of the answer may be far larger than what it is made of, and is bounded by
// bytes as well as rows.

// batchBytes and leastBatchBytes bound about the most bytes of a batch of the
// answer that has more than one row.
const (
	batchBytes      = 16 << 20
	leastBatchBytes = 1 << 20
	batchPart       = 16 // of what may be in flight
)

// batchBytesOf returns how many bytes such a batch may have, for logs of which so
// many bytes may be in flight; 0: no bound.
func batchBytesOf(inFlight int64) int64 {
	if inFlight == 0 {
		return batchBytes
	}
	return min(max(inFlight/batchPart, leastBatchBytes), batchBytes)
}

// widest returns a bound on the bytes of any one value.
func widest(a arrow.Array) (most int64) {
	if a.Len() == 0 {
		return 0 // of which arrow may have no offsets
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

// longest returns the greatest distance of an offset from the one before.
func longest[T int32 | int64](offsets []T) (most int64) {
	for i := 1; i < len(offsets); i++ {
		most = max(most, int64(offsets[i]-offsets[i-1]))
	}
	return most
}

// valueBytes returns about the bytes of one value; no more than widest.
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

// widestRow returns a bound on the bytes of any one row of some columns.
func widestRow(cols []arrow.Array) (most int64) {
	for _, col := range cols {
		most += widest(col)
	}
	return most
}

// rowBytes returns about the bytes of one row; no more than widestRow.
func rowBytes(cols []arrow.Array, row int) (n int64) {
	for _, col := range cols {
		n += valueBytes(col, row)
	}
	return n
}

// fitting returns how many of the rows of the answer, at least one, make a batch.
func (w *worker) fitting(log, ids []int) int {
	var side *idRows
	width := w.widest
	if w.j.idCols.rows {
		side = &w.j.side.rows
		width += side.widest
	}
	if int64(len(log))*width <= w.j.batchBytes {
		return len(log)
	}
	var bytes int64
	for i, row := range log {
		bytes += rowBytes(w.cols, row)
		if side != nil && ids[i] >= 0 {
			w.places = side.locate(w.places[:0], ids[i:i+1])
			bytes += rowBytes(side.records[w.places[0].Chunk].Columns(), w.places[0].Row)
		}
		if bytes > w.j.batchBytes {
			return max(i, 1)
		}
	}
	return len(log)
}
