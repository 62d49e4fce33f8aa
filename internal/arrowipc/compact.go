package arrowipc

import (
	"bytes"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// compact returns arr, or a copy if arr is a slice that the encoder would write
// incorrectly. The caller releases it.
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
		e := faults.Unsupported(fault.At{}, "writing a slice of an array of %s", arr.DataType())
		e.Err = err
		return nil, e
	}
	return out, nil
}

// isCompact reports whether the array and all its descendants start where their
// buffers start (no offset, and a first value offset of zero), and whether an array
// without values has no descendants with values.
func isCompact(d arrow.ArrayData) bool {
	if d.Offset() != 0 && d.DataType().ID() != arrow.NULL {
		return false
	}
	dt := d.DataType()
	if e, ok := dt.(arrow.ExtensionType); ok {
		dt = e.StorageType()
	}
	switch dt := dt.(type) {
	case *arrow.BinaryType, *arrow.StringType, *arrow.LargeBinaryType, *arrow.LargeStringType:
		if !startsAtZero(d, dt) || d.Len() == 0 && d.Buffers()[2] != nil && d.Buffers()[2].Len() > 0 {
			return false
		}
	case *arrow.ListType, *arrow.LargeListType, *arrow.MapType:
		if !startsAtZero(d, dt) || d.Children()[0].Len() > 0 && noElements(d, dt) {
			return false
		}
	case *arrow.StructType, *arrow.FixedSizeListType, *arrow.SparseUnionType:
		for _, c := range d.Children() {
			if d.Len() == 0 && c.Len() > 0 {
				return false
			}
		}
	}
	for _, c := range d.Children() {
		if !isCompact(c) {
			return false
		}
	}
	dict := d.Dictionary()
	return d.DataType().ID() != arrow.DICTIONARY || dict.(*array.Data) == nil || isCompact(dict)
}

// startsAtZero reports whether the first offset is zero or missing.
func startsAtZero(d arrow.ArrayData, dt arrow.DataType) bool {
	offs := d.Buffers()[1]
	width := dt.(arrow.OffsetsDataType).OffsetTypeTraits().BytesRequired(1)
	return offs == nil || offs.Len() < width || zero(offs.Bytes()[:width])
}

// noElements reports whether all lists of d, whose first offset is zero, are empty.
func noElements(d arrow.ArrayData, dt arrow.DataType) bool {
	offs := d.Buffers()[1]
	width := dt.(arrow.OffsetsDataType).OffsetTypeTraits().BytesRequired(1)
	return d.Len() == 0 || offs == nil || zero(offs.Bytes()[d.Len()*width:(d.Len()+1)*width])
}

func zero(b []byte) bool {
	return len(bytes.Trim(b, "\x00")) == 0
}
