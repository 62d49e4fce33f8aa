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

// bitmap is the validity of an array; nil bits: all valid.
type bitmap struct {
	bits   []byte
	offset int
}

func bitmapOf(a arrow.Array) bitmap {
	if a.NullN() == 0 {
		return bitmap{}
	}
	return bitmap{a.NullBitmapBytes(), a.Data().Offset()}
}

// has reports whether a row that is taken has a value.
func (b bitmap) has(row int) bool {
	return row >= 0 && (b.bits == nil || bitutil.BitIsSet(b.bits, b.offset+row))
}

// newData puts the validity of the rows before the other buffers. It takes over
// no reference.
func newData(mem memory.Allocator, a arrow.Array, rows []int, bufs []*memory.Buffer, children []arrow.ArrayData) *array.Data {
	valid, nulls := bitmapOf(a), 0
	for _, row := range rows {
		if !valid.has(row) {
			nulls++
		}
	}
	var validity *memory.Buffer
	if nulls > 0 {
		validity = newBuffer(mem, int(bitutil.BytesForBits(int64(len(rows)))))
		defer validity.Release()
		for i, row := range rows {
			if valid.has(row) {
				bitutil.SetBit(validity.Bytes(), i)
			}
		}
	}
	d := array.NewData(a.DataType(), len(rows), append([]*memory.Buffer{validity}, bufs...), children, nulls, 0)
	if dict, ok := a.(*array.Dictionary); ok {
		d.SetDictionary(dict.Dictionary().Data())
	}
	return d
}

func takeFixed(mem memory.Allocator, a arrow.Array, rows []int, width int) *array.Data {
	out := newBuffer(mem, len(rows)*width)
	defer out.Release()
	dst := out.Bytes()
	var from []byte
	if b := a.Data().Buffers()[1]; b != nil {
		from = b.Bytes()[a.Data().Offset()*width:]
	}
	for i, row := range rows {
		if row < 0 || from == nil {
			continue
		}
		src := from[row*width:]
		switch width {
		case 8:
			*(*[8]byte)(dst[i*8:]) = *(*[8]byte)(src)
		case 4:
			*(*[4]byte)(dst[i*4:]) = *(*[4]byte)(src)
		default:
			copy(dst[i*width:(i+1)*width], src)
		}
	}
	return newData(mem, a, rows, []*memory.Buffer{out}, nil)
}

func takeBits(mem memory.Allocator, a *array.Boolean, rows []int) *array.Data {
	out := newBuffer(mem, int(bitutil.BytesForBits(int64(len(rows)))))
	defer out.Release()
	for i, row := range rows {
		if row >= 0 && a.IsValid(row) && a.Value(row) {
			bitutil.SetBit(out.Bytes(), i)
		}
	}
	return newData(mem, a, rows, []*memory.Buffer{out}, nil)
}

// Text returns a function that reads the strings or bytes of an array without copying
// them; nil: it has others.
func Text(a arrow.Array) func(row int) string {
	switch a := a.(type) {
	case interface{ Value(int) string }:
		return a.Value
	case interface{ Value(int) []byte }:
		return func(row int) string {
			b := a.Value(row)
			return unsafe.String(unsafe.SliceData(b), len(b))
		}
	}
	return nil
}

// takeBinary copies strings and binary of both offset widths.
func takeBinary(mem memory.Allocator, a arrow.Array, rows []int) (*array.Data, error) {
	value, valid := Text(a), bitmapOf(a)
	total := int64(0)
	for _, row := range rows {
		if valid.has(row) {
			total += int64(len(value(row)))
		}
	}
	id := a.DataType().ID()
	offs, err := newOffsets(mem, len(rows), total, id == arrow.LARGE_STRING || id == arrow.LARGE_BINARY)
	if err != nil {
		return nil, err
	}
	defer offs.buf.Release()
	out := newBuffer(mem, int(total))
	defer out.Release()
	at := 0
	for i, row := range rows {
		if valid.has(row) {
			at += copy(out.Bytes()[at:], value(row))
		}
		offs.set(i+1, at)
	}
	return newData(mem, a, rows, []*memory.Buffer{offs.buf, out}, nil), nil
}

// viewInline is the number of bytes that fit into a view's header.
const viewInline = 12

// takeViews copies string and binary views into one buffer, which holds only the
// bytes of the rows taken.
func takeViews(mem memory.Allocator, a arrow.Array, rows []int) (*array.Data, error) {
	value, valid := Text(a), bitmapOf(a)
	total := int64(0)
	for _, row := range rows {
		if valid.has(row) && len(value(row)) > viewInline {
			total += int64(len(value(row)))
		}
	}
	if total > math.MaxInt32 {
		return nil, ErrTooLarge
	}
	headers := newBuffer(mem, len(rows)*arrow.ViewHeaderSizeBytes)
	defer headers.Release()
	out := newBuffer(mem, int(total))
	defer out.Release()
	hs := arrow.ViewHeaderTraits.CastFromBytes(headers.Bytes())
	at := 0
	for i, row := range rows {
		if !valid.has(row) {
			continue
		}
		v := value(row)
		if hs[i].SetString(v); !hs[i].IsInline() {
			hs[i].SetIndexOffset(0, int32(at))
			at += copy(out.Bytes()[at:], v)
		}
	}
	return newData(mem, a, rows, []*memory.Buffer{headers, out}, nil), nil
}

// takeList copies lists, large lists and maps: it takes the elements of each
// row from the child.
func takeList(mem memory.Allocator, a array.ListLike, rows []int) (*array.Data, error) {
	valid, total := bitmapOf(a), int64(0)
	for _, row := range rows {
		if valid.has(row) {
			s, e := a.ValueOffsets(row)
			total += e - s
		}
	}
	offs, err := newOffsets(mem, len(rows), total, a.DataType().ID() == arrow.LARGE_LIST)
	if err != nil {
		return nil, err
	}
	defer offs.buf.Release()
	elems := make([]int, 0, total)
	for i, row := range rows {
		if valid.has(row) {
			s, e := a.ValueOffsets(row)
			for j := s; j < e; j++ {
				elems = append(elems, int(j))
			}
		}
		offs.set(i+1, len(elems))
	}
	child, err := take(mem, a.ListValues(), elems)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return newData(mem, a, rows, []*memory.Buffer{offs.buf}, []arrow.ArrayData{child}), nil
}

// takeFixedList takes a NULL list's elements, too: it has a place in the child.
func takeFixedList(mem memory.Allocator, a *array.FixedSizeList, rows []int) (*array.Data, error) {
	n := int(a.DataType().(*arrow.FixedSizeListType).Len())
	elems := make([]int, 0, n*len(rows))
	for _, row := range rows {
		for j := range n {
			if row < 0 {
				elems = append(elems, -1)
			} else {
				elems = append(elems, (row+a.Data().Offset())*n+j)
			}
		}
	}
	child, err := take(mem, a.ListValues(), elems)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return newData(mem, a, rows, nil, []arrow.ArrayData{child}), nil
}

func takeStruct(mem memory.Allocator, a *array.Struct, rows []int) (*array.Data, error) {
	children := make([]arrow.ArrayData, 0, a.NumField())
	defer each.Release(&children)
	for i := range a.NumField() {
		c, err := take(mem, a.Field(i), rows)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	return newData(mem, a, rows, nil, children), nil
}
