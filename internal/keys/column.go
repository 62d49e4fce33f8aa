package keys

import (
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// This file encodes whole columns at a time: the most common keys, one integer or
// string column, need no call per row.

// gatherInts returns the integers at the given ascending rows as 64-bit two's
// complement, using dst's memory if it is large enough.
func gatherInts(dst []uint64, a arrow.Array, rows []uint32) []uint64 {
	switch a := a.(type) {
	case *array.Int8:
		return gather(dst, a.Int8Values(), rows)
	case *array.Int16:
		return gather(dst, a.Int16Values(), rows)
	case *array.Int32:
		return gather(dst, a.Int32Values(), rows)
	case *array.Int64:
		return gather(dst, a.Int64Values(), rows)
	case *array.Uint8:
		return gather(dst, a.Uint8Values(), rows)
	case *array.Uint16:
		return gather(dst, a.Uint16Values(), rows)
	case *array.Uint32:
		return gather(dst, a.Uint32Values(), rows)
	case *array.Uint64:
		return gather(dst, a.Uint64Values(), rows)
	}
	return dst
}

func gather[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](dst []uint64, values []T, rows []uint32) []uint64 {
	dst = slices.Grow(dst, len(rows))[:len(rows)]
	if len(rows) == len(values) {
		for i := range dst {
			dst[i] = uint64(values[i])
		}
		return dst
	}
	for i, row := range rows {
		dst[i] = uint64(values[row])
	}
	return dst
}

// share makes the batch use the bytes of a string or binary column without NULLs
// directly, without a copy. It reports whether the column's type allows that.
func (b *Batch) share(a arrow.Array) bool {
	if b.Len == 0 { // an empty column may have no offsets at all
		return false
	}
	switch a := a.(type) {
	case *array.String:
		shareBytes(b, a.ValueOffsets(), a.ValueBytes())
	case *array.Binary:
		shareBytes(b, a.ValueOffsets(), a.ValueBytes())
	case *array.LargeString:
		shareBytes(b, a.ValueOffsets(), a.ValueBytes())
	case *array.LargeBinary:
		shareBytes(b, a.ValueOffsets(), a.ValueBytes())
	default:
		return false
	}
	return true
}

// shareBytes takes the batch's keys from data, delimited by Len+1 offsets; data
// starts at the first offset.
func shareBytes[T int32 | int64](b *Batch, offsets []T, data []byte) {
	b.shared, b.own, b.data = true, b.data, data
	b.ends = slices.Grow(b.ends, b.Len)[:b.Len]
	for i := range b.ends {
		b.ends[i] = int(offsets[i+1] - offsets[0])
	}
}
