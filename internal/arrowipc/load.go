package arrowipc

import (
	"errors"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// loader reads the buffers of a batch's nodes and builds array data that is safe to
// read at every index.
type loader struct {
	at    fault.At
	body  body
	unpk  *unpacker
	dicts dictSource
	mem   memory.Allocator

	strict bool // see Table.Check
}

// dictSource returns the values of a dictionary, resolved and validated. The caller
// releases them.
type dictSource interface {
	values(d *dictionary) (arrow.ArrayData, error)
}

// errNoDictionary means that no batch of the dictionary was received yet.
var errNoDictionary = errors.New("no dictionary")

// buffer reads a buffer and decompresses it.
func (l *loader) buffer(n *node, s span) (*memory.Buffer, error) {
	raw, err := l.body.at(s.off, s.len)
	if err != nil {
		return nil, wrapRead(n.f.in(l.at), "a buffer", err)
	}
	if l.unpk.codec != codecNone {
		plain, err := l.unpk.unpack(n.f.in(l.at), raw)
		raw.Release()
		if err != nil {
			return nil, err
		}
		raw = plain
	}
	if int64(raw.Len()) < s.min {
		defer raw.Release()
		return nil, faults.Corrupt(n.f.in(l.at), "a buffer of %d bytes where %d values need %d", raw.Len(), n.len, s.min)
	}
	return raw, nil
}

// buffers reads the buffers of a node in the order of Arrow's arrays: validity (or
// nil) first. The caller releases them, even if there is an error.
func (l *loader) buffers(n *node) ([]*memory.Buffer, error) {
	if n.f.layout.ID() == arrow.NULL {
		return nil, nil
	}
	bufs := []*memory.Buffer{nil}
	if n.validity != nil && (n.nulls > 0 || l.strict) {
		b, err := l.buffer(n, *n.validity)
		if err != nil {
			return bufs, err
		}
		if n.nulls > 0 {
			bufs[0] = b
		} else {
			defer b.Release()
		}
		if nulls := n.len - int64(bitutil.CountSetBits(b.Bytes(), 0, int(n.len))); nulls != n.nulls {
			return bufs, faults.Corrupt(n.f.in(l.at), "%d NULLs in the bitmap, %d in the batch's header", nulls, n.nulls)
		}
	}
	if n.len == 0 {
		return append(bufs, emptyBuffers(n)...), nil
	}
	for _, s := range n.bufs {
		b, err := l.buffer(n, s)
		if err != nil {
			return bufs, err
		}
		bufs = append(bufs, b)
	}
	return bufs, nil
}

// emptyBuffers returns the buffers, without validity, of an array of no values.
// Offsets have their single zero, whatever the file contains. All are large enough
// for an element of any type.
func emptyBuffers(n *node) []*memory.Buffer {
	var count int
	switch n.f.layout.(type) {
	case *arrow.NullType, *arrow.StructType, *arrow.FixedSizeListType, *arrow.RunEndEncodedType:
		return nil
	case *arrow.BinaryType, *arrow.StringType, *arrow.LargeBinaryType, *arrow.LargeStringType,
		*arrow.ListViewType, *arrow.LargeListViewType, *arrow.DenseUnionType:
		count = 2
	default:
		count = 1
	}
	out := make([]*memory.Buffer, count)
	for i := range out {
		out[i] = memory.NewBufferBytes(make([]byte, 64))
	}
	if _, ok := n.f.layout.(arrow.BinaryDataType); ok && count == 2 {
		out[1] = memory.NewBufferBytes(nil)
	}
	return out
}

// load builds the array data of n. The caller releases it.
func (l *loader) load(n *node) (arrow.ArrayData, error) {
	var kids []arrow.ArrayData
	bufs, err := l.buffers(n)
	defer func() {
		memory.ReleaseBuffers(bufs)
		for _, k := range kids {
			k.Release()
		}
	}()
	if err != nil {
		return nil, err
	}
	for _, k := range n.kids {
		d, err := l.load(k)
		if err != nil {
			return nil, err
		}
		kids = append(kids, d)
	}
	fitKids(n, kids)
	if err := l.check(n, bufs, kids); err != nil {
		return nil, err
	}
	if l.strict {
		if err := l.checkText(n, bufs); err != nil {
			return nil, err
		}
	}
	switch {
	case n.f.dict != nil && n.f.plain == nil:
		return l.encoded(n, n.f.Type, bufs)
	case n.f.dict != nil:
		stored, err := l.encoded(n, n.f.layout, bufs)
		if err != nil {
			return nil, err
		}
		defer stored.Release()
		return n.f.plain.data(l, n, stored, n.f.Type)
	case n.f.plain != nil:
		stored := array.NewData(n.f.layout, int(n.len), bufs, kids, int(n.nulls), 0)
		defer stored.Release()
		return n.f.plain.data(l, n, stored, n.f.Type)
	}
	return array.NewData(n.f.Type, int(n.len), bufs, kids, int(n.nulls), 0), nil
}

// fitKids shortens children that are longer than their parent needs.
func fitKids(n *node, kids []arrow.ArrayData) {
	want := n.len
	switch dt := n.f.layout.(type) {
	case *arrow.StructType, *arrow.SparseUnionType:
	case *arrow.FixedSizeListType:
		want *= int64(dt.Len())
	default:
		return
	}
	for i, k := range kids {
		if int64(k.Len()) > want {
			kids[i] = array.NewSliceData(k, 0, want)
			k.Release()
		}
	}
}

// encoded builds the data of a dictionary-encoded array. If all values are NULL, a
// missing dictionary is taken as empty.
func (l *loader) encoded(n *node, dt arrow.DataType, bufs []*memory.Buffer) (arrow.ArrayData, error) {
	values, err := l.dicts.values(n.f.dict)
	switch {
	case err == nil:
	case errors.Is(err, errNoDictionary) && n.nulls == n.len:
		if values, err = l.load(emptyNode(n.f.dict.values)); err != nil {
			return nil, err
		}
	case errors.Is(err, errNoDictionary):
		return nil, faults.Corrupt(n.f.in(l.at), "dictionary %d is missing", n.f.dict.id)
	default:
		return nil, err
	}
	defer values.Release()
	if err := l.checkIndices(n, bufs, values.Len()); err != nil {
		return nil, err
	}
	return array.NewDataWithDictionary(dt, int(n.len), bufs, int(n.nulls), 0, values.(*array.Data)), nil
}

// emptyNode returns a node for f without values.
func emptyNode(f *field) *node {
	n := &node{f: f}
	for _, c := range f.children {
		n.kids = append(n.kids, emptyNode(c))
	}
	return n
}

// record loads nodes as the columns of a record with the given schema. The caller
// releases it.
func (l *loader) record(schema *arrow.Schema, nodes []*node, rows int64) (rec arrow.Record, err error) {
	defer panics.Recover(l.at, &err)
	cols := make([]arrow.Array, 0, len(nodes))
	defer each.Release(&cols)
	for _, n := range nodes {
		d, err := l.load(n)
		if err != nil {
			return nil, err
		}
		cols = append(cols, array.MakeFromData(d))
		d.Release()
	}
	return array.NewRecord(schema, cols, rows), nil
}
