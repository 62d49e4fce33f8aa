package spill

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// A record is encoded as its arrays in column order. An array is its length, its
// NULL count, its buffers, each preceded by its length, and its children. Types are
// not stored, because the reader knows the schema. Nothing is checked that the
// chunk's checksum covers.

// align is the alignment of every buffer, so that its values can be used in place.
const align = 8

// AppendRecord appends a record. Its arrays must have no offset, as those made by
// package take, and no dictionaries.
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
		return nil, faults.Unsupported(fault.At{}, "a dictionary below type %s, to be kept on disk", d.DataType()).
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

// Record decodes the output of AppendRecord at byte at of b, whose memory the
// record shares. The caller releases it.
func Record(schema *arrow.Schema, b []byte, at int) (rec arrow.Record, err error) {
	defer panics.Recover(fault.At{}, &err) // for bytes that AppendRecord has not written
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

// arrayReader reads consecutive arrays.
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

// childTypes returns the types of the child arrays of type t.
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

// typed returns an error if the array cannot have type t.
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

// data returns the array with type t. The caller releases it.
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
