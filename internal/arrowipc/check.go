package arrowipc

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// check validates the offsets, views, type ids and run ends of one array, so that
// reading its values stays within its buffers. The format does not define these at
// NULLs; invalid ones there are set to zero, in a copy, because buffers may share
// memory.
func (l *loader) check(n *node, bufs []*memory.Buffer, kids []arrow.ArrayData) error {
	if n.len == 0 {
		return nil
	}
	switch dt := n.f.layout.(type) {
	case *arrow.BinaryType, *arrow.StringType:
		return checkOffsets[int32](l, n, bufs[1], bufs[2].Len())
	case *arrow.LargeBinaryType, *arrow.LargeStringType:
		return checkOffsets[int64](l, n, bufs[1], bufs[2].Len())
	case *arrow.ListType, *arrow.MapType:
		return checkOffsets[int32](l, n, bufs[1], kids[0].Len())
	case *arrow.LargeListType:
		return checkOffsets[int64](l, n, bufs[1], kids[0].Len())
	case *arrow.ListViewType:
		return checkListViews[int32](l, n, bufs, kids[0].Len())
	case *arrow.LargeListViewType:
		return checkListViews[int64](l, n, bufs, kids[0].Len())
	case arrow.BinaryViewDataType:
		return l.checkViews(n, bufs)
	case arrow.UnionType:
		return l.checkUnion(n, dt, bufs, kids)
	case *arrow.RunEndEncodedType:
		switch ends := kids[0]; ends.DataType().ID() {
		case arrow.INT16:
			return checkRunEnds[int16](l, n, ends)
		case arrow.INT32:
			return checkRunEnds[int32](l, n, ends)
		default:
			return checkRunEnds[int64](l, n, ends)
		}
	}
	return nil
}

func (l *loader) corrupt(n *node, format string, args ...any) error {
	return faults.Corrupt(n.f.in(l.at), format, args...)
}

// checkOffsets checks that n.len+1 offsets ascend and stay within limit.
func checkOffsets[T int32 | int64](l *loader, n *node, buf *memory.Buffer, limit int) error {
	offs := arrow.GetData[T](buf.Bytes())
	last := offs[0]
	for i, o := range offs[1 : n.len+1] {
		if o < last {
			return l.corrupt(n, "offset %d is smaller than the one before", i+1)
		}
		last = o
	}
	if offs[0] < 0 || int64(last) > int64(limit) {
		return l.corrupt(n, "offsets from %d to %d in %d", offs[0], last, limit)
	}
	return nil
}

// validity returns the array's validity bitmap, nil if every value is valid.
func validity(bufs []*memory.Buffer) []byte {
	if bufs[0] == nil {
		return nil
	}
	return bufs[0].Bytes()
}

// isNull reports whether value i is NULL according to the bitmap.
func isNull(valid []byte, i int) bool { return valid != nil && !bitutil.BitIsSet(valid, i) }

// private replaces bufs[i] by a copy, unless *done is set, and returns its bytes.
func (l *loader) private(bufs []*memory.Buffer, i int, done *bool) []byte {
	if !*done {
		b := memory.NewResizableBuffer(l.mem)
		b.Resize(bufs[i].Len())
		copy(b.Bytes(), bufs[i].Bytes())
		bufs[i].Release()
		bufs[i], *done = b, true
	}
	return bufs[i].Bytes()
}

// checkListViews checks that every list lies within its child.
func checkListViews[T int32 | int64](l *loader, n *node, bufs []*memory.Buffer, limit int) error {
	valid := validity(bufs)
	offs, sizes := arrow.GetData[T](bufs[1].Bytes()), arrow.GetData[T](bufs[2].Bytes())
	var ownOffs, ownSizes bool
	for i := range int(n.len) {
		off, size := int64(offs[i]), int64(sizes[i])
		if off >= 0 && size >= 0 && off <= int64(limit) && size <= int64(limit)-off {
			continue
		}
		if !isNull(valid, i) {
			return l.corrupt(n, "list %d lies outside its %d elements", i, limit)
		}
		offs, sizes = arrow.GetData[T](l.private(bufs, 1, &ownOffs)), arrow.GetData[T](l.private(bufs, 2, &ownSizes))
		offs[i], sizes[i] = 0, 0
	}
	return nil
}

// checkViews checks that every view lies within its buffer and that its prefix
// equals the bytes there.
func (l *loader) checkViews(n *node, bufs []*memory.Buffer) error {
	const width = arrow.ViewHeaderSizeBytes
	valid, data := validity(bufs), bufs[2:]
	own := false
	for i := range int(n.len) {
		v := bufs[1].Bytes()[width*i : width*(i+1)]
		if viewFits(v, data) {
			continue
		}
		if !isNull(valid, i) {
			return l.corrupt(n, "view %d lies outside its buffers", i)
		}
		clear(l.private(bufs, 1, &own)[width*i : width*(i+1)])
	}
	return nil
}

// viewFits reports whether the bytes of view v are within data.
func viewFits(v []byte, data []*memory.Buffer) bool {
	size := int32(binary.LittleEndian.Uint32(v))
	if size >= 0 && size <= 12 {
		return true
	}
	index, off := int32(binary.LittleEndian.Uint32(v[8:])), int32(binary.LittleEndian.Uint32(v[12:]))
	if size < 0 || off < 0 || index < 0 || int(index) >= len(data) {
		return false
	}
	b := data[index].Bytes()
	return int64(off)+int64(size) <= int64(len(b)) && string(b[off:off+4]) == string(v[4:8])
}

// checkText checks that the values of a text column are UTF-8.
func (l *loader) checkText(n *node, bufs []*memory.Buffer) error {
	switch n.f.layout.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
	default:
		return nil
	}
	d := array.NewData(n.f.layout, int(n.len), bufs, nil, int(n.nulls), 0)
	defer d.Release()
	a := array.MakeFromData(d)
	defer a.Release()
	for i := range a.Len() {
		if a.IsValid(i) && !utf8.ValidString(a.(interface{ Value(int) string }).Value(i)) {
			return l.corrupt(n, "value %d is not UTF-8", i)
		}
	}
	return nil
}

// checkUnion checks the type ids and, in a dense union, that offsets are within the
// children.
func (l *loader) checkUnion(n *node, dt arrow.UnionType, bufs []*memory.Buffer, kids []arrow.ArrayData) error {
	child := dt.ChildIDs()
	ids := arrow.Int8Traits.CastFromBytes(bufs[1].Bytes())[:n.len]
	for i, id := range ids {
		if id < 0 || child[id] == arrow.InvalidUnionChildID {
			return l.corrupt(n, "value %d has type id %d", i, id)
		}
	}
	if dt.Mode() == arrow.SparseMode {
		return nil
	}
	for i, off := range arrow.Int32Traits.CastFromBytes(bufs[2].Bytes())[:n.len] {
		if off < 0 || int(off) >= kids[child[ids[i]]].Len() {
			return l.corrupt(n, "value %d lies outside its child", i)
		}
	}
	return nil
}

// checkRunEnds checks that run ends ascend from 1 and reach the array's end.
func checkRunEnds[T int16 | int32 | int64](l *loader, n *node, ends arrow.ArrayData) error {
	last := T(0)
	for i, e := range arrow.GetData[T](ends.Buffers()[1].Bytes())[:ends.Len()] {
		if e <= last {
			return l.corrupt(n, "run end %d does not rise", i)
		}
		last = e
	}
	if int64(last) < n.len {
		return l.corrupt(n, "run ends stop at %d of %d values", last, n.len)
	}
	return nil
}

// checkIndices checks that every index of a dictionary-encoded array is below
// limit.
func (l *loader) checkIndices(n *node, bufs []*memory.Buffer, limit int) error {
	if n.len == 0 {
		return nil
	}
	switch n.f.layout.(*arrow.DictionaryType).IndexType.ID() {
	case arrow.INT8:
		return indices[int8](l, n, bufs, limit)
	case arrow.INT16:
		return indices[int16](l, n, bufs, limit)
	case arrow.INT32:
		return indices[int32](l, n, bufs, limit)
	case arrow.INT64:
		return indices[int64](l, n, bufs, limit)
	case arrow.UINT8:
		return indices[uint8](l, n, bufs, limit)
	case arrow.UINT16:
		return indices[uint16](l, n, bufs, limit)
	case arrow.UINT32:
		return indices[uint32](l, n, bufs, limit)
	default:
		return indices[uint64](l, n, bufs, limit)
	}
}

func indices[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](l *loader, n *node, bufs []*memory.Buffer, limit int) error {
	valid := validity(bufs)
	own := false
	v := arrow.GetData[T](bufs[1].Bytes())
	for i := range int(n.len) {
		x := v[i]
		if uint64(x) < uint64(limit) { // a negative index becomes a huge one
			continue
		}
		if !isNull(valid, i) {
			return l.corrupt(n, "value %d has index %d in a dictionary of %d", i, x, limit)
		}
		v = arrow.GetData[T](l.private(bufs, 1, &own))
		v[i] = 0
	}
	return nil
}
