package arrowipc

import (
	"encoding/binary"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// This file converts some layouts to simpler ones while reading: those that
// arrow/go v15 lacks or cannot write again.

// conversion converts the arrays of a body to another type.
type conversion struct {
	to   arrow.DataType
	data func(l *loader, n *node, from arrow.ArrayData, to arrow.DataType) (arrow.ArrayData, error)
}

// shown returns the type of the field's loaded arrays, ignoring extensions.
func (f *field) shown() arrow.DataType {
	if f.plain != nil {
		return f.plain.to
	}
	return f.layout
}

// ofViews returns the conversion for dictionary values that are views, whose
// buffers the encoder miscounts; nil for other types.
func ofViews(dt arrow.DataType) *conversion {
	switch dt.ID() {
	case arrow.STRING_VIEW:
		return &conversion{arrow.BinaryTypes.LargeString, plainViews}
	case arrow.BINARY_VIEW:
		return &conversion{arrow.BinaryTypes.LargeBinary, plainViews}
	}
	return nil
}

// plainViews copies the bytes of views into one buffer. Views may share bytes, so
// their total is limited relative to the input's size.
func plainViews(l *loader, n *node, from arrow.ArrayData, to arrow.DataType) (arrow.ArrayData, error) {
	a := array.MakeFromData(from)
	defer a.Release()
	value := take.Text(a)
	there, total := int64(16*a.Len()), int64(0)
	for _, b := range from.Buffers()[2:] {
		there += int64(b.Len())
	}
	for i := range a.Len() {
		if a.IsValid(i) {
			total += int64(len(value(i)))
		}
	}
	if total > 4*there {
		return nil, faults.Unsupported(n.f.in(l.at), "views of %d bytes in buffers of %d", total, there)
	}
	offsets, values := memory.NewResizableBuffer(l.mem), memory.NewResizableBuffer(l.mem)
	defer offsets.Release()
	defer values.Release()
	offsets.Resize(8 * (a.Len() + 1))
	values.Resize(int(total))
	at := 0
	for i := range a.Len() {
		binary.LittleEndian.PutUint64(offsets.Bytes()[8*i:], uint64(at))
		if a.IsValid(i) {
			at += copy(values.Bytes()[at:], value(i))
		}
	}
	binary.LittleEndian.PutUint64(offsets.Bytes()[8*a.Len():], uint64(at))
	return array.NewData(to, a.Len(), []*memory.Buffer{from.Buffers()[0], offsets, values}, nil, from.NullN(), 0), nil
}

// plainDictionary replaces a dictionary of floating-point values by the values,
// because the encoder treats dictionaries as equal that are only approximately so.
func plainDictionary(l *loader, _ *node, from arrow.ArrayData, to arrow.DataType) (arrow.ArrayData, error) {
	coded := array.MakeFromData(from)
	defer coded.Release()
	a, err := take.Plain(l.mem, coded)
	if err != nil {
		return nil, err
	}
	defer a.Release()
	return array.NewData(to, a.Len(), a.Data().Buffers(), nil, a.NullN(), 0), nil
}

// plainDecimals converts decimals of 32 and 64 bits, which are stored like
// integers, to 128 bits.
func plainDecimals(l *loader, _ *node, from arrow.ArrayData, to arrow.DataType) (arrow.ArrayData, error) {
	width := from.DataType().(arrow.FixedWidthDataType).BitWidth() / 8
	values := memory.NewResizableBuffer(l.mem)
	defer values.Release()
	values.Resize(16 * from.Len())
	src, dst := from.Buffers()[1].Bytes(), values.Bytes()
	for i := range from.Len() {
		var v int64
		if width == 4 {
			v = int64(int32(binary.LittleEndian.Uint32(src[4*i:])))
		} else {
			v = int64(binary.LittleEndian.Uint64(src[8*i:]))
		}
		binary.LittleEndian.PutUint64(dst[16*i:], uint64(v))
		binary.LittleEndian.PutUint64(dst[16*i+8:], uint64(v>>63))
	}
	return array.NewData(to, from.Len(), []*memory.Buffer{from.Buffers()[0], values}, nil, from.NullN(), 0), nil
}

// plainEmpty converts lists and binary of a fixed size of 0 to empty ones.
func plainEmpty(l *loader, n *node, from arrow.ArrayData, to arrow.DataType) (arrow.ArrayData, error) {
	if n.len > maxUnbacked {
		return nil, unbacked(n.f.in(l.at))
	}
	offsets := memory.NewBufferBytes(make([]byte, 4*(from.Len()+1)))
	bufs := []*memory.Buffer{from.Buffers()[0], offsets, memory.NewBufferBytes(nil)}
	return array.NewData(to, from.Len(), bufs[:len(to.Layout().Buffers)], from.Children(), from.NullN(), 0), nil
}

// plainLists converts list views to lists.
func plainLists(l *loader, n *node, from arrow.ArrayData, to arrow.DataType) (arrow.ArrayData, error) {
	a := array.MakeFromData(from)
	defer a.Release()
	lists := a.(array.ListLike)
	var rows []int
	most := from.Children()[0].Len() + 1<<16 // list views may share elements, so their total is limited
	width := to.(arrow.OffsetsDataType).OffsetTypeTraits().BytesRequired(1)
	offsets := memory.NewResizableBuffer(l.mem)
	defer offsets.Release()
	offsets.Resize(width * (a.Len() + 1))
	put := func(i int) {
		if width == 4 {
			binary.LittleEndian.PutUint32(offsets.Bytes()[4*i:], uint32(len(rows)))
		} else {
			binary.LittleEndian.PutUint64(offsets.Bytes()[8*i:], uint64(len(rows)))
		}
	}
	for i := range a.Len() {
		put(i)
		if !a.IsValid(i) {
			continue
		}
		lo, hi := lists.ValueOffsets(i)
		if hi-lo > int64(most-len(rows)) {
			return nil, faults.Unsupported(n.f.in(l.at), "list views that share their elements")
		}
		for ; lo < hi; lo++ {
			rows = append(rows, int(lo))
		}
	}
	put(a.Len())
	child, err := take.Array(l.mem, lists.ListValues(), rows)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return array.NewData(to, a.Len(), []*memory.Buffer{from.Buffers()[0], offsets}, []arrow.ArrayData{child.Data()}, from.NullN(), 0), nil
}
