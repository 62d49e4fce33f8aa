package take

import (
	"math"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/each"
)

// newBuffer returns a zeroed buffer of n bytes.
func newBuffer(mem memory.Allocator, n int) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Resize(n)
	memory.Set(b.Bytes(), 0)
	return b
}

// offsets writes the offsets of variable-size values, in either width.
type offsets struct {
	buf   *memory.Buffer
	large bool
}

func newOffsets(mem memory.Allocator, n int, total int64, large bool) (offsets, error) {
	if !large && total > math.MaxInt32 || total > math.MaxInt {
		return offsets{}, ErrTooLarge
	}
	width := 4
	if large {
		width = 8
	}
	return offsets{newBuffer(mem, (n+1)*width), large}, nil
}

func (o offsets) set(i, v int) {
	if o.large {
		arrow.Int64Traits.CastFromBytes(o.buf.Bytes())[i] = int64(v)
	} else {
		arrow.Int32Traits.CastFromBytes(o.buf.Bytes())[i] = int32(v)
	}
}

// parts calls part with each array, for instance to get a field of each.
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

// newData puts the validity of the places before the other buffers. It takes over
// no reference.
func newData(mem memory.Allocator, chunks []arrow.Array, places []Place, bufs []*memory.Buffer, children []arrow.ArrayData) *array.Data {
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

func takeFixed(mem memory.Allocator, chunks []arrow.Array, places []Place, width int) *array.Data {
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
	return newData(mem, chunks, places, []*memory.Buffer{out}, nil)
}

func takeBits(mem memory.Allocator, chunks []arrow.Array, places []Place) *array.Data {
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
	return newData(mem, chunks, places, []*memory.Buffer{out}, nil)
}

// Text returns a function that reads the strings or bytes of an array without copying
// them; nil: it has others.
func Text(a arrow.Array) func(row int) string {
	switch a := a.(type) {
	case *array.String:
		return a.Value
	case *array.LargeString:
		return a.Value
	case *array.StringView:
		return a.Value
	case *array.Binary:
		return shared(a.Value)
	case *array.LargeBinary:
		return shared(a.Value)
	case *array.BinaryView:
		return shared(a.Value)
	case *array.FixedSizeBinary:
		return shared(a.Value)
	}
	return nil
}

func shared(value func(int) []byte) func(row int) string {
	return func(row int) string {
		b := value(row)
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
}

// takeBinary copies strings and binary of both offset widths.
func takeBinary(mem memory.Allocator, chunks []arrow.Array, places []Place) (*array.Data, error) {
	values, maps := each.Slice(chunks, Text), bitmaps(chunks)
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
	return newData(mem, chunks, places, []*memory.Buffer{offs.buf, out}, nil), nil
}

// viewInline is the number of bytes that fit into a view's header.
const viewInline = 12

// takeViews copies string and binary views into one buffer, which holds only the
// bytes of the rows taken.
func takeViews(mem memory.Allocator, chunks []arrow.Array, places []Place) (*array.Data, error) {
	values, maps := each.Slice(chunks, Text), bitmaps(chunks)
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
	return newData(mem, chunks, places, []*memory.Buffer{headers, out}, nil), nil
}

// takeList copies lists, large lists and maps: it takes the elements of each
// row from the child.
func takeList(mem memory.Allocator, chunks []arrow.Array, places []Place) (*array.Data, error) {
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
	child, err := take(mem, parts(chunks, listValues), elems)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return newData(mem, chunks, places, []*memory.Buffer{offs.buf}, []arrow.ArrayData{child}), nil
}

func listValues(a arrow.Array) arrow.Array { return a.(array.ListLike).ListValues() }

// takeFixedList takes a NULL list's elements, too: it has a place in the child.
func takeFixedList(mem memory.Allocator, chunks []arrow.Array, places []Place) (*array.Data, error) {
	n := int(chunks[0].DataType().(*arrow.FixedSizeListType).Len())
	elems := make([]Place, 0, n*len(places))
	for _, p := range places {
		row := p.Row
		if p.Chunk >= 0 {
			row += chunks[p.Chunk].Data().Offset()
		}
		for j := range n {
			elems = append(elems, Place{p.Chunk, row*n + j})
		}
	}
	child, err := take(mem, parts(chunks, listValues), elems)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return newData(mem, chunks, places, nil, []arrow.ArrayData{child}), nil
}

func takeStruct(mem memory.Allocator, chunks []arrow.Array, places []Place, fields int) (*array.Data, error) {
	children := make([]arrow.ArrayData, 0, fields)
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for i := range fields {
		c, err := take(mem, parts(chunks, func(a arrow.Array) arrow.Array { return a.(*array.Struct).Field(i) }), places)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	return newData(mem, chunks, places, nil, children), nil
}
