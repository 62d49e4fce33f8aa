package take

import (
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
)

// Place is a row of one of several arrays.
type Place struct {
	Chunk int32 // number of the array; below 0: none, which gives NULL
	Row   int
}

// Gather returns the rows at the places given, in their order, of arrays of one
// type, of which there is one at least. Dictionaries must be one and the same.
// The caller releases the result.
func Gather(mem memory.Allocator, chunks []arrow.Array, places []Place) (arrow.Array, error) {
	d, err := gather(mem, chunks, places)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

// gather is Gather into array data, which the caller releases.
func gather(mem memory.Allocator, chunks []arrow.Array, places []Place) (*array.Data, error) {
	switch a := chunks[0].(type) {
	case array.ExtensionArray:
		d, err := gather(mem, parts(chunks, func(a arrow.Array) arrow.Array { return a.(array.ExtensionArray).Storage() }), places)
		if err != nil {
			return nil, err
		}
		defer d.Release()
		e := array.NewData(a.DataType(), d.Len(), d.Buffers(), d.Children(), d.NullN(), 0)
		if dict := d.Dictionary(); dict.(*array.Data) != nil {
			e.SetDictionary(dict)
		}
		return e, nil
	case *array.Null:
		return array.NewData(arrow.Null, len(places), []*memory.Buffer{nil}, nil, len(places), 0), nil
	case *array.Struct:
		return gatherStruct(mem, chunks, places, a.NumField())
	case *array.FixedSizeList:
		return gatherFixedList(mem, chunks, places)
	case *array.List, *array.LargeList, *array.Map:
		return gatherList(mem, chunks, places)
	case *array.String, *array.Binary, *array.LargeString, *array.LargeBinary:
		return gatherBinary(mem, chunks, places)
	case *array.StringView, *array.BinaryView:
		return gatherViews(mem, chunks, places)
	case *array.Boolean:
		return gatherBits(mem, chunks, places), nil
	case *array.Dictionary:
		for _, c := range chunks[1:] {
			if c.Data().Dictionary() != a.Data().Dictionary() {
				return nil, fault.Unsupported(fault.At{}, "type %s with a dictionary in each part", a.DataType())
			}
		}
	}
	a := chunks[0]
	if t, ok := a.DataType().(arrow.FixedWidthDataType); ok && t.BitWidth()%8 == 0 && len(a.Data().Buffers()) == 2 {
		return gatherFixed(mem, chunks, places, t.BitWidth()/8), nil
	}
	return nil, fault.Unsupported(fault.At{}, "type %s", a.DataType())
}

// parts returns a part of each array.
func parts(chunks []arrow.Array, part func(a arrow.Array) arrow.Array) []arrow.Array {
	out := make([]arrow.Array, len(chunks))
	for i, c := range chunks {
		out[i] = part(c)
	}
	return out
}

// bitmap is the validity of an array; nil bits: all valid.
type bitmap struct {
	bits   []byte
	offset int
}

func (b bitmap) valid(row int) bool { return b.bits == nil || bitutil.BitIsSet(b.bits, b.offset+row) }

func bitmaps(chunks []arrow.Array) []bitmap {
	out := make([]bitmap, len(chunks))
	for i, c := range chunks {
		if c.NullN() > 0 {
			out[i] = bitmap{c.NullBitmapBytes(), c.Data().Offset()}
		}
	}
	return out
}

// build puts the validity of the places before other buffers. It takes over no
// reference.
func build(mem memory.Allocator, chunks []arrow.Array, places []Place, bufs []*memory.Buffer, children []arrow.ArrayData) *array.Data {
	maps := bitmaps(chunks)
	nulls := 0
	for _, p := range places {
		if p.Chunk < 0 || !maps[p.Chunk].valid(p.Row) {
			nulls++
		}
	}
	var validity *memory.Buffer
	if nulls > 0 {
		validity = newBuffer(mem, int(bitutil.BytesForBits(int64(len(places)))))
		defer validity.Release()
		for i, p := range places {
			if p.Chunk >= 0 && maps[p.Chunk].valid(p.Row) {
				bitutil.SetBit(validity.Bytes(), i)
			}
		}
	}
	d := array.NewData(chunks[0].DataType(), len(places), append([]*memory.Buffer{validity}, bufs...), children, nulls, 0)
	if dict, ok := chunks[0].(*array.Dictionary); ok {
		d.SetDictionary(dict.Dictionary().Data())
	}
	return d
}

func gatherFixed(mem memory.Allocator, chunks []arrow.Array, places []Place, width int) *array.Data {
	out := newBuffer(mem, len(places)*width)
	defer out.Release()
	dst := out.Bytes()
	from := make([][]byte, len(chunks))
	for i, c := range chunks {
		if b := c.Data().Buffers()[1]; b != nil {
			from[i] = b.Bytes()[c.Data().Offset()*width:]
		}
	}
	for i, p := range places {
		if p.Chunk < 0 || from[p.Chunk] == nil {
			continue
		}
		src := from[p.Chunk][p.Row*width:]
		switch width {
		case 8:
			*(*[8]byte)(dst[i*8:]) = *(*[8]byte)(src)
		case 4:
			*(*[4]byte)(dst[i*4:]) = *(*[4]byte)(src)
		default:
			copy(dst[i*width:(i+1)*width], src)
		}
	}
	return build(mem, chunks, places, []*memory.Buffer{out}, nil)
}

func gatherBits(mem memory.Allocator, chunks []arrow.Array, places []Place) *array.Data {
	out := newBuffer(mem, int(bitutil.BytesForBits(int64(len(places)))))
	defer out.Release()
	for i, p := range places {
		if p.Chunk < 0 {
			continue
		}
		if a := chunks[p.Chunk].(*array.Boolean); a.IsValid(p.Row) && a.Value(p.Row) {
			bitutil.SetBit(out.Bytes(), i)
		}
	}
	return build(mem, chunks, places, []*memory.Buffer{out}, nil)
}

// valuesOf returns how to read the strings or bytes of each array, as views.
func valuesOf(chunks []arrow.Array) []func(row int) string {
	out := make([]func(row int) string, len(chunks))
	for i, c := range chunks {
		switch a := c.(type) {
		case *array.String:
			out[i] = a.Value
		case *array.Binary:
			out[i] = a.ValueString
		case *array.LargeString:
			out[i] = a.Value
		case *array.LargeBinary:
			out[i] = a.ValueString
		case *array.StringView:
			out[i] = a.Value
		case *array.BinaryView:
			out[i] = a.ValueString
		}
	}
	return out
}

func gatherBinary(mem memory.Allocator, chunks []arrow.Array, places []Place) (*array.Data, error) {
	values, maps := valuesOf(chunks), bitmaps(chunks)
	total := int64(0)
	for _, p := range places {
		if p.Chunk >= 0 && maps[p.Chunk].valid(p.Row) {
			total += int64(len(values[p.Chunk](p.Row)))
		}
	}
	id := chunks[0].DataType().ID()
	offs, err := newOffsets(mem, len(places), total, id == arrow.LARGE_STRING || id == arrow.LARGE_BINARY)
	if err != nil {
		return nil, err
	}
	defer offs.buf.Release()
	out := newBuffer(mem, int(total))
	defer out.Release()
	at := 0
	for i, p := range places {
		if p.Chunk >= 0 && maps[p.Chunk].valid(p.Row) {
			at += copy(out.Bytes()[at:], values[p.Chunk](p.Row))
		}
		offs.set(i+1, at)
	}
	return build(mem, chunks, places, []*memory.Buffer{offs.buf, out}, nil), nil
}

// gatherViews copies views with their bytes, as viewData does.
func gatherViews(mem memory.Allocator, chunks []arrow.Array, places []Place) (*array.Data, error) {
	values, maps := valuesOf(chunks), bitmaps(chunks)
	total := int64(0)
	for _, p := range places {
		if p.Chunk < 0 || !maps[p.Chunk].valid(p.Row) {
			continue
		}
		if n := len(values[p.Chunk](p.Row)); n > viewInline {
			total += int64(n)
		}
	}
	if total > math.MaxInt32 {
		return nil, ErrTooLarge
	}
	headers := newBuffer(mem, len(places)*arrow.ViewHeaderSizeBytes)
	defer headers.Release()
	out := newBuffer(mem, int(total))
	defer out.Release()
	hs := arrow.ViewHeaderTraits.CastFromBytes(headers.Bytes())
	at := 0
	for i, p := range places {
		if p.Chunk < 0 || !maps[p.Chunk].valid(p.Row) {
			continue
		}
		v := values[p.Chunk](p.Row)
		if hs[i].SetString(v); !hs[i].IsInline() {
			hs[i].SetIndexOffset(0, int32(at))
			at += copy(out.Bytes()[at:], v)
		}
	}
	return build(mem, chunks, places, []*memory.Buffer{headers, out}, nil), nil
}

func gatherList(mem memory.Allocator, chunks []arrow.Array, places []Place) (*array.Data, error) {
	maps := bitmaps(chunks)
	total := int64(0)
	for _, p := range places {
		if p.Chunk >= 0 && maps[p.Chunk].valid(p.Row) {
			s, e := chunks[p.Chunk].(array.ListLike).ValueOffsets(p.Row)
			total += e - s
		}
	}
	offs, err := newOffsets(mem, len(places), total, chunks[0].DataType().ID() == arrow.LARGE_LIST)
	if err != nil {
		return nil, err
	}
	defer offs.buf.Release()
	elems := make([]Place, 0, total)
	for i, p := range places {
		if p.Chunk >= 0 && maps[p.Chunk].valid(p.Row) {
			s, e := chunks[p.Chunk].(array.ListLike).ValueOffsets(p.Row)
			for j := s; j < e; j++ {
				elems = append(elems, Place{p.Chunk, int(j)})
			}
		}
		offs.set(i+1, len(elems))
	}
	child, err := gather(mem, parts(chunks, listValues), elems)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return build(mem, chunks, places, []*memory.Buffer{offs.buf}, []arrow.ArrayData{child}), nil
}

func listValues(a arrow.Array) arrow.Array { return a.(array.ListLike).ListValues() }

// gatherFixedList: a NULL list still takes its place in the child.
func gatherFixedList(mem memory.Allocator, chunks []arrow.Array, places []Place) (*array.Data, error) {
	n := int(chunks[0].DataType().(*arrow.FixedSizeListType).Len())
	elems := make([]Place, 0, n*len(places))
	for _, p := range places {
		for j := range n {
			e := Place{Chunk: p.Chunk}
			if p.Chunk >= 0 {
				e.Row = (chunks[p.Chunk].Data().Offset()+p.Row)*n + j
			}
			elems = append(elems, e)
		}
	}
	child, err := gather(mem, parts(chunks, listValues), elems)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return build(mem, chunks, places, nil, []arrow.ArrayData{child}), nil
}

func gatherStruct(mem memory.Allocator, chunks []arrow.Array, places []Place, fields int) (*array.Data, error) {
	children := make([]arrow.ArrayData, 0, fields)
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for i := range fields {
		c, err := gather(mem, parts(chunks, func(a arrow.Array) arrow.Array { return a.(*array.Struct).Field(i) }), places)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	return build(mem, chunks, places, nil, children), nil
}
