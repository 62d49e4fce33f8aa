package arrowipc

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// compact returns arr, or a copy of it when arr is a slice that the encoder
// would write wrongly. The caller releases it.
func compact(arr arrow.Array, mem memory.Allocator) (arrow.Array, error) {
	if isCompact(arr.Data()) {
		arr.Retain()
		return arr, nil
	}
	out, err := array.Concatenate([]arrow.Array{arr}, mem)
	if err == nil && !isCompact(out.Data()) {
		out.Release()
		out = nil
	}
	if err != nil || out == nil {
		e := fault.Unsupported(fault.At{}, "writing a slice of an array of %s", arr.DataType())
		e.Err = err
		return nil, e
	}
	return out, nil
}

// isCompact reports whether the array, and all below it, begin where their
// buffers begin: no offset, and a first value offset of zero.
func isCompact(d arrow.ArrayData) bool {
	if d.Offset() != 0 && d.DataType().ID() != arrow.NULL {
		return false
	}
	dt := d.DataType()
	if e, ok := dt.(arrow.ExtensionType); ok {
		dt = e.StorageType()
	}
	switch dt.(type) {
	case *arrow.BinaryType, *arrow.StringType, *arrow.LargeBinaryType, *arrow.LargeStringType,
		*arrow.ListType, *arrow.LargeListType, *arrow.MapType:
		width := dt.(arrow.OffsetsDataType).OffsetTypeTraits().BytesRequired(1)
		if offs := d.Buffers()[1]; offs != nil && offs.Len() >= width && !zero(offs.Bytes()[:width]) {
			return false
		}
	}
	for _, c := range d.Children() {
		if !isCompact(c) {
			return false
		}
	}
	return d.DataType().ID() != arrow.DICTIONARY || isCompactDict(d)
}

// isCompactDict looks at a dictionary's values.
func isCompactDict(d arrow.ArrayData) bool {
	v := d.Dictionary()
	return v.(*array.Data) == nil || isCompact(v)
}

func zero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
