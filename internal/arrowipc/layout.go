package arrowipc

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// Limits on the number of values in an array.
const (
	maxLen      = math.MaxInt32 // of any array, as the format recommends
	maxUnbacked = 1 << 26       // of an array without any bytes in the body
)

// node is an array of a batch before its bytes are read: a node of the schema tree
// with its part of the batch's header.
type node struct {
	f        *field
	len      int64
	nulls    int64
	validity *span // nil if there is no bitmap
	bufs     []span
	kids     []*node
}

// span is the position of a buffer in the body, and the minimum size of its
// uncompressed form.
type span struct{ off, len, min int64 }

// layout assigns a batch's header to fields and returns a node for each. It checks
// everything that the header alone shows: the number of nodes and buffers, the
// consistency of lengths and, if the body is not compressed, buffer sizes against
// lengths.
func layout(at fault.At, b batch, fields []*field) (nodes []*node, err error) {
	defer panics.Recover(at, &err)
	w := layouter{at: at, b: b}
	if b.length > maxLen {
		return nil, faults.Unsupported(at, "batch of more than %d rows", maxLen)
	}
	for _, f := range fields {
		n, err := w.node(f)
		if err != nil {
			return nil, err
		}
		if n.len != b.length {
			return nil, w.corrupt(f, "%d values in a batch of %d rows", n.len, b.length)
		}
		nodes = append(nodes, n)
	}
	if w.nodes != len(b.nodes)/16 || w.bufs != len(b.buffers)/16 {
		return nil, faults.Corrupt(at, "the batch has %d nodes and %d buffers, its schema %d and %d", len(b.nodes)/16, len(b.buffers)/16, w.nodes, w.bufs)
	}
	return nodes, nil
}

type layouter struct {
	at                    fault.At
	b                     batch
	nodes, bufs, variadic int
}

func (w *layouter) corrupt(f *field, format string, args ...any) *fault.Error {
	return faults.Corrupt(f.in(w.at), format, args...)
}

// buffer takes the next buffer, which must have at least min bytes.
func (w *layouter) buffer(n *node, min int64) error {
	s, err := w.take(n.f)
	if err != nil {
		return err
	}
	if w.b.codec == codecNone && s.len < min {
		return w.corrupt(n.f, "a buffer of %d bytes where %d values need %d", s.len, n.len, min)
	}
	s.min = min
	n.bufs = append(n.bufs, s)
	return nil
}

func (w *layouter) take(f *field) (span, error) {
	if w.bufs >= len(w.b.buffers)/16 {
		return span{}, w.corrupt(f, "the batch has too few buffers")
	}
	off, l := pair(w.b.buffers, w.bufs)
	w.bufs++
	if l == 0 {
		off = 0
	}
	return span{off: off, len: l}, nil
}

// node takes the nodes and buffers of f and its children.
func (w *layouter) node(f *field) (*node, error) {
	if w.nodes >= len(w.b.nodes)/16 {
		return nil, w.corrupt(f, "the batch has too few nodes")
	}
	n := &node{f: f}
	n.len, n.nulls = pair(w.b.nodes, w.nodes)
	w.nodes++
	if n.len < 0 || n.nulls < 0 || n.nulls > n.len {
		return nil, w.corrupt(f, "%d NULLs among %d values", n.nulls, n.len)
	}
	if n.len > maxLen {
		return nil, faults.Unsupported(f.in(w.at), "array of more than %d values", maxLen)
	}
	if err := w.takeValidity(n); err != nil {
		return nil, err
	}
	if err := w.takeBuffers(n); err != nil {
		return nil, err
	}
	for _, c := range f.children {
		k, err := w.node(c)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, k)
	}
	return n, w.checkKids(n)
}

// takeValidity takes the validity bitmap, which some types lack.
func (w *layouter) takeValidity(n *node) error {
	switch n.f.layout.ID() {
	case arrow.NULL:
		n.nulls = n.len
		if n.len > maxUnbacked {
			return unbacked(n.f.in(w.at))
		}
		return nil
	case arrow.SPARSE_UNION, arrow.DENSE_UNION:
		if w.b.v5 {
			n.nulls = 0
			return nil
		}
		if n.nulls != 0 {
			return faults.Unsupported(w.at, "union with NULLs of its own, from before format version 1.0")
		}
	case arrow.RUN_END_ENCODED:
		n.nulls = 0
		return nil
	}
	s, err := w.take(n.f)
	if err != nil || n.nulls == 0 && s.len == 0 {
		return err
	}
	s.min = (n.len + 7) / 8
	if n.nulls > 0 && w.b.codec == codecNone && s.len < s.min {
		return w.corrupt(n.f, "a validity bitmap of %d bytes for %d values", s.len, n.len)
	}
	n.validity = &s
	return nil
}

func unbacked(at fault.At) error {
	return faults.Unsupported(at, "more than %d values without any data", maxUnbacked)
}

// takeBuffers takes the other buffers of a node.
func (w *layouter) takeBuffers(n *node) error {
	var sizes []int64
	switch dt := n.f.layout.(type) {
	case *arrow.NullType, *arrow.StructType, *arrow.FixedSizeListType, *arrow.RunEndEncodedType:
	case *arrow.DictionaryType:
		sizes = []int64{fixedBytes(dt.IndexType, n.len)}
	case *arrow.BinaryType, *arrow.StringType:
		sizes = []int64{offsetBytes(4, n.len), 0}
	case *arrow.LargeBinaryType, *arrow.LargeStringType:
		sizes = []int64{offsetBytes(8, n.len), 0}
	case *arrow.ListType, *arrow.MapType:
		sizes = []int64{offsetBytes(4, n.len)}
	case *arrow.LargeListType:
		sizes = []int64{offsetBytes(8, n.len)}
	case *arrow.ListViewType:
		sizes = []int64{4 * n.len, 4 * n.len}
	case *arrow.LargeListViewType:
		sizes = []int64{8 * n.len, 8 * n.len}
	case *arrow.SparseUnionType:
		sizes = []int64{n.len}
	case *arrow.DenseUnionType:
		sizes = []int64{n.len, 4 * n.len}
	case arrow.BinaryViewDataType:
		return w.takeViews(n)
	default:
		sizes = []int64{fixedBytes(dt, n.len)}
	}
	for _, min := range sizes {
		if err := w.buffer(n, min); err != nil {
			return err
		}
	}
	return nil
}

// takeViews takes the views and the data buffers of a view array.
func (w *layouter) takeViews(n *node) error {
	if 8*w.variadic >= len(w.b.variadic) {
		return w.corrupt(n.f, "the batch has too few counts of view buffers")
	}
	count := int64(binary.LittleEndian.Uint64(w.b.variadic[8*w.variadic:]))
	w.variadic++
	if count < 0 || count > int64(len(w.b.buffers)/16-w.bufs) {
		return w.corrupt(n.f, "%d view buffers", count)
	}
	if err := w.buffer(n, int64(arrow.ViewHeaderSizeBytes)*n.len); err != nil {
		return err
	}
	for range count {
		if err := w.buffer(n, 0); err != nil {
			return err
		}
	}
	return nil
}

// checkKids checks the lengths of a node's children against its own.
func (w *layouter) checkKids(n *node) error {
	switch dt := n.f.layout.(type) {
	case *arrow.StructType, *arrow.SparseUnionType:
		for _, k := range n.kids {
			if k.len < n.len {
				return w.corrupt(n.f, "child %s has %d values, its parent %d", k.f.Name, k.len, n.len)
			}
		}
		if len(n.kids) == 0 && n.len > maxUnbacked {
			return unbacked(n.f.in(w.at))
		}
	case *arrow.FixedSizeListType:
		if want := int64(dt.Len()) * n.len; n.kids[0].len < want {
			return w.corrupt(n.f, "%d list elements where %d lists of %d need %d", n.kids[0].len, n.len, dt.Len(), want)
		}
	case *arrow.MapType:
		if n.kids[0].nulls != 0 || n.kids[0].kids[0].nulls != 0 {
			return w.corrupt(n.f, "NULL entries or keys in a map")
		}
	case *arrow.RunEndEncodedType:
		if n.kids[0].nulls != 0 || n.kids[1].len < n.kids[0].len {
			return w.corrupt(n.f, "%d run ends for %d values", n.kids[0].len, n.kids[1].len)
		}
	}
	return nil
}

// fixedBytes returns the size of n values of a fixed-width type.
func fixedBytes(dt arrow.DataType, n int64) int64 {
	return (int64(dt.(arrow.FixedWidthDataType).BitWidth())*n + 7) / 8
}

// offsetBytes returns the size of the offsets of n values. Older writers leave the
// offsets of an empty array out.
func offsetBytes(width, n int64) int64 {
	if n == 0 {
		return 0
	}
	return width * (n + 1)
}
