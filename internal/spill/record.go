package spill

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
)

// A record is its arrays, in the order of the columns; an array is its length,
// its NULLs, its buffers, each behind its length, and its children. Types are
// not written: whoever reads a record knows its schema. Nor is anything checked
// that the chunk's checksum answers for.

// align is what every buffer begins at a multiple of, so that its values can be
// read where they are.
const align = 8

// AppendRecord appends a record whose arrays have no offset, as package take
// makes them, nor dictionaries.
func AppendRecord(dst []byte, rec arrow.Record) ([]byte, error) {
	dst = padded(dst)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(rec.NumRows()))
	for i, col := range rec.Columns() {
		var err error
		if dst, err = appendArray(dst, col.Data()); err != nil {
			return nil, fmt.Errorf("column %s: %w", rec.ColumnName(i), err)
		}
	}
	return dst, nil
}

func appendArray(dst []byte, d arrow.ArrayData) ([]byte, error) {
	if d.Offset() != 0 {
		return nil, fmt.Errorf("an array with an offset of %d", d.Offset())
	}
	if dict, ok := d.Dictionary().(*array.Data); ok && dict != nil {
		return nil, fault.Unsupported(fault.At{}, "a dictionary below type %s, to be kept on disk", d.DataType()).
			WithHint("raise {Memory}, or cast the column")
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(d.Len()))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(d.NullN()))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(d.Buffers())))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(d.Children())))
	for _, b := range d.Buffers() {
		if b == nil {
			dst = binary.LittleEndian.AppendUint64(dst, ^uint64(0))
			continue
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(b.Len()))
		dst = padded(append(dst, b.Bytes()...))
	}
	for _, c := range d.Children() {
		var err error
		if dst, err = appendArray(dst, c); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// padded appends zeros up to the next multiple of align.
func padded(b []byte) []byte {
	n := -len(b) & (align - 1)
	b = slices.Grow(b, n)[:len(b)+n]
	clear(b[len(b)-n:])
	return b
}

// Record returns what AppendRecord has written at b's byte at, which shares b's
// memory. The caller releases it.
func Record(schema *arrow.Schema, b []byte, at int) (rec arrow.Record, err error) {
	defer fault.Recovered(fault.At{}, &err) // of bytes that no AppendRecord has written
	r := arrayReader{b: b, at: at}
	r.pad()
	rows := r.uint64()
	cols := make([]arrow.Array, 0, schema.NumFields())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for _, f := range schema.Fields() {
		d := r.array()
		if err := d.typed(f.Type); err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		data := d.data(f.Type)
		cols = append(cols, array.MakeFromData(data))
		data.Release()
	}
	return array.NewRecord(schema, cols, int64(rows)), nil
}

// arrayReader reads arrays one behind the other.
type arrayReader struct {
	b  []byte
	at int
}

func (r *arrayReader) pad() { r.at += -r.at & (align - 1) }

func (r *arrayReader) uint64() uint64 {
	v := binary.LittleEndian.Uint64(r.b[r.at:])
	r.at += 8
	return v
}

// stored is an array without its type.
type stored struct {
	len, nulls int
	buffers    []*memory.Buffer
	children   []stored
}

func (r *arrayReader) array() stored {
	s := stored{len: int(r.uint64()), nulls: int(r.uint64())}
	counts := r.uint64()
	for range uint32(counts) {
		n := r.uint64()
		if n == ^uint64(0) {
			s.buffers = append(s.buffers, nil)
			continue
		}
		end := r.at + int(n)
		s.buffers = append(s.buffers, memory.NewBufferBytes(r.b[r.at:end:end]))
		r.at = end
		r.pad()
	}
	for range counts >> 32 {
		s.children = append(s.children, r.array())
	}
	return s
}

// childTypes returns the types of the arrays below one of type t.
func childTypes(t arrow.DataType) []arrow.DataType {
	if e, ok := t.(arrow.ExtensionType); ok {
		return childTypes(e.StorageType())
	}
	n, ok := t.(arrow.NestedType)
	if !ok {
		return nil
	}
	var types []arrow.DataType
	for _, f := range n.Fields() {
		types = append(types, f.Type)
	}
	return types
}

// typed returns an error if the array cannot be one of type t.
func (s stored) typed(t arrow.DataType) error {
	types := childTypes(t)
	if len(types) != len(s.children) {
		return fmt.Errorf("%d arrays below one of type %s, want %d", len(s.children), t, len(types))
	}
	for i, c := range s.children {
		if err := c.typed(types[i]); err != nil {
			return err
		}
	}
	return nil
}

// data returns the array as one of type t. The caller releases it.
func (s stored) data(t arrow.DataType) arrow.ArrayData {
	var children []arrow.ArrayData
	for i, u := range childTypes(t) {
		children = append(children, s.children[i].data(u))
	}
	d := array.NewData(t, s.len, s.buffers, children, s.nulls, 0)
	for _, c := range children {
		c.Release()
	}
	return d
}
