package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// Defaults of WriterOptions.
const (
	DefaultPageBytes = 1 << 20
	DefaultDictBytes = 1 << 20

	// formatVersion declares that encodings added after version 1 are in use.
	formatVersion = 2
)

// WriterOptions control how a file is written. The zero value is valid and does not
// compress.
type WriterOptions struct {
	Compression enc.Compression
	KeyValue    []meta.KeyValue // the file's metadata, in this order
	CreatedBy   string          // empty: "bloomjoin"
	// PageBytes is the approximate size of a page's values in PLAIN encoding. Rows
	// are never split. 0: DefaultPageBytes.
	PageBytes int
	// DictBytes is the largest size of a chunk's dictionary in PLAIN encoding, in
	// bytes. From the value that exceeds it on, the chunk is written without a
	// dictionary. 0: DefaultDictBytes or twice the size of an input's dictionary,
	// up to 64 MiB, whichever is more.
	DictBytes int
	// Pool provides the Writer's memory; nil: its own pool.
	Pool *Pool
}

// Writer writes a Parquet file from column chunks, which are encoded in memory
// first or copied from other files. The bytes depend only on the schema, the options and the entries of each
// chunk.
//
// Chunk is safe for concurrent use, including during RowGroup. Calls of RowGroup
// and Close must not be concurrent with each other.
type Writer struct {
	out    sink
	schema []meta.Element
	orders []format.ColumnOrder
	leaves []meta.Leaf
	order  []meta.Order // per leaf
	opts   WriterOptions

	growDicts bool // DictBytes grows with the input's dictionaries

	groups  []meta.RowGroup
	indexes [][]encodedIndex // per row group and chunk
	rows    int64
	closed  bool
}

// NewWriter starts a file on w. schema is the footer's schema, depth first, and is
// not modified. orders gives each leaf's column order; nil: all leaves have the
// order of their type. Leaves with another order get no bounds. Annotations with an
// unknown logical type are left out of the file.
func NewWriter(w io.Writer, schema []meta.Element, orders []format.ColumnOrder, opts WriterOptions) (*Writer, error) {
	if err := opts.Compression.Check(); err != nil {
		return nil, err
	}
	if opts.PageBytes < 0 || opts.PageBytes > enc.MaxPageSize/2 || opts.DictBytes < 0 || opts.DictBytes > enc.MaxPageSize/2 {
		return nil, fmt.Errorf("pages of %d bytes and dictionaries of %d", opts.PageBytes, opts.DictBytes)
	}
	if opts.PageBytes == 0 {
		opts.PageBytes = DefaultPageBytes
	}
	grow := opts.DictBytes == 0
	if grow {
		opts.DictBytes = DefaultDictBytes
	}
	if opts.Pool == nil {
		opts.Pool = new(Pool)
	}
	if opts.CreatedBy == "" {
		opts.CreatedBy = meta.Creator
	}
	tree, err := (&meta.Footer{Schema: schema}).Tree(fault.At{})
	if err != nil {
		return nil, fmt.Errorf("the schema to be written: %w", err)
	}
	if orders != nil && len(orders) != len(tree.Leaves) {
		return nil, fmt.Errorf("%d column orders for %d columns", len(orders), len(tree.Leaves))
	}
	wr := &Writer{out: sink{w: w}, schema: schema, leaves: tree.Leaves, opts: opts, growDicts: grow}
	wr.orders = make([]format.ColumnOrder, len(tree.Leaves))
	wr.order = tree.Orders()
	for i := range wr.orders {
		wr.orders[i].Value = &format.TypeDefinedOrder{}
		if orders == nil {
			continue
		}
		if _, ok := orders[i].Value.(*format.TypeDefinedOrder); !ok {
			wr.order[i] = meta.Order{}
			if orders[i].Value != nil {
				wr.orders[i] = orders[i]
			}
		}
	}
	return wr, wr.out.write([]byte(magic))
}

// Leaves returns the columns in the order of their chunks.
func (w *Writer) Leaves() []meta.Leaf { return w.leaves }

// Schema returns the footer's schema, depth first.
func (w *Writer) Schema() []meta.Element { return w.schema }

// Size returns the number of bytes written so far.
func (w *Writer) Size() int64 { return w.out.n }

// Restart begins another file on dst, with the same schema and options, after Close.
// Chunks that were begun before belong to it.
func (w *Writer) Restart(dst io.Writer) error {
	if !w.closed || w.out.err != nil {
		return errors.New("another Parquet file before the last one is complete")
	}
	w.out, w.rows, w.closed = sink{w: dst, piece: w.out.piece}, 0, false
	return w.out.write([]byte(magic))
}

// Another begins another file on dst, with the same schema and options but for compression. It
// must be called before w has a row group.
func (w *Writer) Another(dst io.Writer, c enc.Compression) (*Writer, error) {
	n := *w
	n.out, n.opts.Compression = sink{w: dst}, c
	return &n, n.out.write([]byte(magic))
}

// Pool returns the pool that provides the Writer's memory.
func (w *Writer) Pool() *Pool { return w.opts.Pool }

// RowGroup writes a row group with the given number of rows: one chunk per leaf, in
// the order of the leaves. The chunks cannot be used again.
func (w *Writer) RowGroup(rows int64, chunks []*EncodedChunk) error {
	if w.closed {
		return errors.New("a row group for a closed Parquet file")
	}
	if err := w.checkGroup(rows, chunks); err != nil {
		return err
	}
	start := w.out.n
	g := meta.RowGroup{NumRows: rows, FileOffset: start, Columns: make([]meta.ColumnChunk, len(chunks))}
	if n := len(w.groups); n <= math.MaxInt16 {
		g.Ordinal = thrift.New(int16(n))
	}
	indexes := make([]encodedIndex, len(chunks))
	for i, c := range chunks {
		g.Columns[i] = c.place(w.out.n, &w.leaves[i], w.opts.Compression.Codec)
		for j := range c.index.pages { // offsets are from the first data page on
			c.index.pages[j].Offset += g.Columns[i].MetaData.DataPageOffset
		}
		var err error
		if indexes[i], err = c.index.encoded(); err != nil {
			return w.out.fail(err)
		}
		g.TotalByteSize += c.plainSize
		if err := c.write(&w.out); err != nil {
			return err
		}
		w.release(c)
	}
	g.TotalCompressedSize = w.out.n - start
	for i, c := range chunks {
		if err := w.copyFilter(c, &g.Columns[i].MetaData); err != nil {
			return err
		}
	}
	w.groups = append(w.groups, g)
	w.indexes = append(w.indexes, indexes)
	w.rows += rows
	return nil
}

// copyFilter writes the chunk's Bloom filter, if it has one.
func (w *Writer) copyFilter(c *EncodedChunk, md *meta.ColumnMetaData) error {
	if c.filter == nil {
		return nil
	}
	md.BloomFilterOffset, md.BloomFilterLength = w.out.n, int32(c.filter.size)
	err := c.filter.write(&w.out)
	c.filter = nil
	return err
}

func (w *Writer) checkGroup(rows int64, chunks []*EncodedChunk) error {
	switch {
	case w.out.err != nil:
		return w.out.err
	case rows <= 0:
		return fmt.Errorf("a row group of %d rows", rows)
	case len(w.leaves) == 0:
		return faults.Unsupported(fault.At{}, "rows without columns in a Parquet file")
	case len(chunks) != len(w.leaves):
		return fmt.Errorf("%d column chunks for %d columns", len(chunks), len(w.leaves))
	}
	for i, c := range chunks {
		switch {
		case c == nil || c.w != w || c.leaf != i || c.written:
			return fmt.Errorf("column %s: not its chunk", w.leaves[i].Dotted)
		case c.rows != rows:
			return fmt.Errorf("column %s: %d rows in a row group of %d", w.leaves[i].Dotted, c.rows, rows)
		}
	}
	return nil
}

// Close writes the page indexes and the footer and returns the number of rows and
// bytes in the file. It does not close the underlying writer. Once a write has
// failed, every call returns that first error.
func (w *Writer) Close() (rows, bytes int64, err error) {
	if w.closed {
		return 0, 0, errors.New("the Parquet file is closed already")
	}
	w.closed = true
	if w.out.err != nil {
		return 0, 0, w.out.err
	}
	if err := w.writeIndexes(); err != nil {
		return 0, 0, err
	}
	m := meta.Footer{
		Version: formatVersion, Schema: knownAnnotations(w.schema), NumRows: w.rows, RowGroups: w.groups,
		KeyValueMetadata: w.opts.KeyValue, CreatedBy: w.opts.CreatedBy, ColumnOrders: w.orders,
	}
	if m.RowGroups == nil {
		m.RowGroups = []meta.RowGroup{} // the field is required, even if empty
	}
	footer, err := m.Encode()
	if err != nil {
		return 0, 0, fmt.Errorf("encoding the footer: %w", err)
	}
	if len(footer) > maxFooterSize {
		return 0, 0, faults.Unsupported(fault.At{}, "an output whose footer takes %s; the limit is %s", show.Size(int64(len(footer))), show.Size(maxFooterSize)).
			WithHint("write to a directory, or larger row groups")
	}
	n := len(footer)
	footer = binary.LittleEndian.AppendUint32(footer, uint32(n))
	if err := w.out.write(append(footer, magic...)); err != nil {
		return 0, 0, err
	}
	w.groups, w.indexes = nil, nil // lets the memory be freed while the Writer is still referenced
	return w.rows, w.out.n, nil
}

// writeIndexes writes the column indexes of all chunks, then their offset indexes,
// as the format recommends, and records their positions.
func (w *Writer) writeIndexes() error {
	for _, offsets := range []bool{false, true} {
		for g, group := range w.indexes {
			for i := range group {
				c, b := &w.groups[g].Columns[i], group[i].bounds
				at, length := &c.ColumnIndexOffset, &c.ColumnIndexLength
				if offsets {
					b, at, length = group[i].offsets, &c.OffsetIndexOffset, &c.OffsetIndexLength
				}
				if b == nil {
					continue
				}
				*at, *length = w.out.n, int32(len(b))
				if err := w.out.write(b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// knownAnnotations removes unknown logical types: written as an empty union, they
// would be an error for many readers.
func knownAnnotations(schema []meta.Element) []meta.Element {
	out := make([]meta.Element, len(schema))
	copy(out, schema)
	for i := range out {
		if out[i].LogicalType.Valid && out[i].LogicalType.V.Value == nil {
			out[i].LogicalType = thrift.Null[format.LogicalType]{}
		}
	}
	return out
}

// sink counts the bytes written to the underlying writer and keeps its first error.
type sink struct {
	w     io.Writer
	n     int64
	err   error
	piece []byte // of what is copied from files
}

// buffer returns memory for copying size bytes in pieces.
func (s *sink) buffer(size int64) []byte {
	if n := min(size, copyPiece); int64(len(s.piece)) < n {
		s.piece = make([]byte, n)
	}
	return s.piece
}

// fail records err, because of which the file is not whole.
func (s *sink) fail(err error) error {
	s.err = err
	return err
}

func (s *sink) write(p []byte) error {
	if s.err != nil {
		return s.err
	}
	n, err := s.w.Write(p)
	s.n += int64(n)
	if err == nil && n != len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		s.err = fmt.Errorf("writing the Parquet file: %w", err)
	}
	return s.err
}
