package keys

import (
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// This file encodes whole columns at a time: the most common keys, one integer or
// string column, need no call per row.

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
