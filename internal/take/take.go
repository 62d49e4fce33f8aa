// Package take copies chosen rows out of Arrow arrays: the survivors of a
// scan, the two sides of a join.
//
// A row number of -1 gives NULL, as an outer join needs it. The result is
// always a fresh array without an offset, which every writer handles. Columns
// of every type but unions, list views and run-end encoded ones are taken;
// dictionaries are shared, not copied. A column whose rows would not fit the
// 32-bit offsets of its type is an error that wraps [ErrTooLarge], never a
// wrapped offset.
package take

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
)

// ErrTooLarge says that the rows hold more bytes or elements than one array of
// their type can. Fewer rows at a time will do.
var ErrTooLarge = errors.New("rows exceed the 2 GiB of a column with 32-bit offsets")

// Record returns the given rows of rec, in the given order. The caller
// releases the result.
func Record(mem memory.Allocator, rec arrow.Record, rows []int) (arrow.Record, error) {
	cols := make([]arrow.Array, 0, rec.NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, col := range rec.Columns() {
		c, err := Array(mem, col, rows)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", rec.ColumnName(i), err)
		}
		cols = append(cols, c)
	}
	return array.NewRecord(rec.Schema(), cols, int64(len(rows))), nil
}

// Array returns the given rows of a. A row of -1 gives NULL. The caller
// releases the result.
func Array(mem memory.Allocator, a arrow.Array, rows []int) (arrow.Array, error) {
	d, err := data(mem, a, rows)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

// data takes rows of a into new array data, which the caller releases.
func data(mem memory.Allocator, a arrow.Array, rows []int) (*array.Data, error) {
	switch a := a.(type) {
	case array.ExtensionArray:
		d, err := data(mem, a.Storage(), rows)
		if err != nil {
			return nil, err
		}
		defer d.Release()
		e := array.NewData(a.DataType(), d.Len(), d.Buffers(), d.Children(), d.NullN(), 0)
		if dict := d.Dictionary(); dict.(*array.Data) != nil { // of a dictionary below the extension
			e.SetDictionary(dict)
		}
		return e, nil
	case *array.Null:
		return array.NewData(arrow.Null, len(rows), []*memory.Buffer{nil}, nil, len(rows), 0), nil
	case *array.Struct:
		return structData(mem, a, rows)
	case *array.FixedSizeList:
		return fixedListData(mem, a, rows)
	case *array.List:
		return listData(mem, a, rows)
	case *array.LargeList:
		return listData(mem, a, rows)
	case *array.Map:
		return listData(mem, a, rows)
	case *array.String, *array.Binary, *array.LargeString, *array.LargeBinary:
		return binaryData(mem, a, rows)
	case *array.StringView:
		return viewData(mem, a, rows, a.Value)
	case *array.BinaryView:
		return viewData(mem, a, rows, a.ValueString)
	case *array.Boolean:
		out := newBuffer(mem, int(bitutil.BytesForBits(int64(len(rows)))))
		defer out.Release()
		for i, r := range rows {
			if r >= 0 && a.IsValid(r) && a.Value(r) {
				bitutil.SetBit(out.Bytes(), i)
			}
		}
		return newData(mem, a, rows, []*memory.Buffer{out}, nil), nil
	}
	if t, ok := a.DataType().(arrow.FixedWidthDataType); ok && t.BitWidth()%8 == 0 && len(a.Data().Buffers()) == 2 {
		return fixedData(mem, a, rows, t.BitWidth()/8)
	}
	return nil, fault.Unsupported(fault.At{}, "type %s", a.DataType())
}

// newBuffer returns a zeroed buffer of n bytes.
func newBuffer(mem memory.Allocator, n int) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Resize(n)
	memory.Set(b.Bytes(), 0)
	return b
}

// newData puts the validity of rows before the other buffers. It takes over no
// reference.
func newData(mem memory.Allocator, a arrow.Array, rows []int, bufs []*memory.Buffer, children []arrow.ArrayData) *array.Data {
	nulls := 0
	for _, r := range rows {
		if r < 0 || a.IsNull(r) {
			nulls++
		}
	}
	var validity *memory.Buffer
	if nulls > 0 {
		validity = newBuffer(mem, int(bitutil.BytesForBits(int64(len(rows)))))
		defer validity.Release()
		for i, r := range rows {
			if r >= 0 && a.IsValid(r) {
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

func fixedData(mem memory.Allocator, a arrow.Array, rows []int, width int) (*array.Data, error) {
	out := newBuffer(mem, len(rows)*width)
	defer out.Release()
	dst := out.Bytes()
	if in := a.Data().Buffers()[1]; in != nil {
		src := in.Bytes()[a.Data().Offset()*width:]
		for i, r := range rows {
			if r >= 0 {
				copy(dst[i*width:(i+1)*width], src[r*width:])
			}
		}
	}
	return newData(mem, a, rows, []*memory.Buffer{out}, nil), nil
}

// binaryData handles strings and binary of both offset widths.
func binaryData(mem memory.Allocator, a arrow.Array, rows []int) (*array.Data, error) {
	var value func(i int) string // views of the array's bytes
	large := false
	switch a := a.(type) {
	case *array.String:
		value = a.Value
	case *array.Binary:
		value = a.ValueString
	case *array.LargeString:
		value, large = a.Value, true
	case *array.LargeBinary:
		value, large = a.ValueString, true
	}
	total := int64(0)
	for _, r := range rows {
		if r >= 0 && a.IsValid(r) {
			total += int64(len(value(r)))
		}
	}
	offs, err := newOffsets(mem, len(rows), total, large)
	if err != nil {
		return nil, err
	}
	defer offs.buf.Release()
	out := newBuffer(mem, int(total))
	defer out.Release()
	at := 0
	for i, r := range rows {
		if r >= 0 && a.IsValid(r) {
			at += copy(out.Bytes()[at:], value(r))
		}
		offs.set(i+1, at)
	}
	return newData(mem, a, rows, []*memory.Buffer{offs.buf, out}, nil), nil
}

// viewInline is the most bytes that a view holds in its header.
const viewInline = 12

// viewData copies string or binary views with their bytes: the rows left
// behind leave nothing in the one buffer.
func viewData(mem memory.Allocator, a arrow.Array, rows []int, value func(r int) string) (*array.Data, error) {
	total := int64(0)
	for _, r := range rows {
		if r >= 0 && a.IsValid(r) && len(value(r)) > viewInline {
			total += int64(len(value(r)))
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
	for i, r := range rows {
		if r < 0 || a.IsNull(r) {
			continue
		}
		if hs[i].SetString(value(r)); !hs[i].IsInline() {
			hs[i].SetIndexOffset(0, int32(at))
			at += copy(out.Bytes()[at:], value(r))
		}
	}
	return newData(mem, a, rows, []*memory.Buffer{headers, out}, nil), nil
}

// offsets writes the offsets of variable-size values in either width.
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

// listData handles lists, large lists and maps: it takes the elements of each
// row from the child.
func listData(mem memory.Allocator, a array.ListLike, rows []int) (*array.Data, error) {
	total := int64(0)
	for _, r := range rows {
		if r >= 0 && a.IsValid(r) {
			s, e := a.ValueOffsets(r)
			total += e - s
		}
	}
	offs, err := newOffsets(mem, len(rows), total, a.DataType().ID() == arrow.LARGE_LIST)
	if err != nil {
		return nil, err
	}
	defer offs.buf.Release()
	elems := make([]int, 0, total)
	for i, r := range rows {
		if r >= 0 && a.IsValid(r) {
			s, e := a.ValueOffsets(r)
			for j := s; j < e; j++ {
				elems = append(elems, int(j))
			}
		}
		offs.set(i+1, len(elems))
	}
	child, err := data(mem, a.ListValues(), elems)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return newData(mem, a, rows, []*memory.Buffer{offs.buf}, []arrow.ArrayData{child}), nil
}

// fixedListData: a NULL list still takes its place in the child.
func fixedListData(mem memory.Allocator, a *array.FixedSizeList, rows []int) (*array.Data, error) {
	n := int(a.DataType().(*arrow.FixedSizeListType).Len())
	elems := make([]int, 0, n*len(rows))
	for _, r := range rows {
		for j := range n {
			if r < 0 {
				elems = append(elems, -1)
			} else {
				elems = append(elems, (a.Data().Offset()+r)*n+j)
			}
		}
	}
	child, err := data(mem, a.ListValues(), elems)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return newData(mem, a, rows, nil, []arrow.ArrayData{child}), nil
}

func structData(mem memory.Allocator, a *array.Struct, rows []int) (*array.Data, error) {
	children := make([]arrow.ArrayData, 0, a.NumField())
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for i := range a.NumField() {
		c, err := data(mem, a.Field(i), rows)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	return newData(mem, a, rows, nil, children), nil
}
