package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Defaults of WriterOptions.
const (
	DefaultPageBytes = 1 << 20
	DefaultDictBytes = 1 << 20
	defaultCreator   = "bloomjoin"

	// formatVersion says that encodings beyond the first version's are in use.
	formatVersion = 2
)

// Compression is a codec and its level, in the codec's own scale. Level 0 is a
// fast default of each.
type Compression struct {
	Codec format.CompressionCodec
	Level int
}

// WriterOptions say how a file is written. The zero value works, and does not
// compress.
type WriterOptions struct {
	Compression Compression
	KeyValue    []KeyValue // the file's metadata, in this order
	CreatedBy   string     // empty: "bloomjoin"
	// PageBytes is what a page's values take in PLAIN encoding, about; a row
	// is never cut. 0: DefaultPageBytes.
	PageBytes int
	// DictBytes is the most bytes of a chunk's dictionary, in PLAIN encoding;
	// behind the value that exceeds it the chunk is written without one. 0:
	// DefaultDictBytes, or twice the size of a dictionary of the input, up to
	// 64 MiB, where that is more.
	DictBytes int
	// Pool is what the Writer takes its memory from; nil: one of its own.
	Pool *Pool
}

// Writer writes a Parquet file out of column chunks, which are encoded in
// memory before. The bytes are a function of the schema, the options and the
// entries of each chunk alone.
//
// Chunk is safe for concurrent use, also while RowGroup runs; of RowGroup and
// Close only one call at a time may run.
type Writer struct {
	out    sink
	schema []SchemaElement
	orders []format.ColumnOrder
	leaves []Leaf
	order  []valueOrder // of each leaf
	opts   WriterOptions

	growDicts bool // DictBytes rises with the dictionaries of the input

	groups  []RowGroupMeta
	indexes [][]pageIndex // of each group's chunks
	rows    int64
	closed  bool
}

// NewWriter starts a file on w. schema is the footer's, depth first, and kept
// as it is. orders says for each leaf by which order its bounds go, nil that
// all go by that of their type; leaves of another order get no bounds. An
// annotation whose logical type is not known is left out of the file.
func NewWriter(w io.Writer, schema []SchemaElement, orders []format.ColumnOrder, opts WriterOptions) (*Writer, error) {
	if err := checkCompression(opts.Compression); err != nil {
		return nil, err
	}
	if opts.PageBytes < 0 || opts.PageBytes > MaxPageSize/2 || opts.DictBytes < 0 || opts.DictBytes > MaxPageSize/2 {
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
		opts.CreatedBy = defaultCreator
	}
	f := &File{Metadata: &FileMetaData{Schema: schema}}
	if err := f.buildSchema(fault.At{}); err != nil {
		return nil, fmt.Errorf("the schema to be written: %w", err)
	}
	if orders != nil && len(orders) != len(f.Leaves) {
		return nil, fmt.Errorf("%d column orders for %d columns", len(orders), len(f.Leaves))
	}
	wr := &Writer{out: sink{w: w}, schema: schema, leaves: f.Leaves, opts: opts, growDicts: grow}
	wr.orders = make([]format.ColumnOrder, len(f.Leaves))
	wr.order = valueOrders(f.Root, f.Leaves)
	for i := range wr.orders {
		wr.orders[i].Value = &format.TypeDefinedOrder{}
		if orders == nil {
			continue
		}
		if _, ok := orders[i].Value.(*format.TypeDefinedOrder); !ok {
			wr.order[i] = valueOrder{}
			if orders[i].Value != nil {
				wr.orders[i] = orders[i]
			}
		}
	}
	return wr, wr.out.write([]byte(magic))
}

// Leaves are the columns, in the order of their chunks.
func (w *Writer) Leaves() []Leaf { return w.leaves }

// Pool is what the Writer takes its memory from.
func (w *Writer) Pool() *Pool { return w.opts.Pool }

// Schema is the file's, depth first.
func (w *Writer) Schema() []SchemaElement { return w.schema }

// RowGroup writes a row group of so many rows: one chunk for each leaf, in
// their order. The chunks are used up.
func (w *Writer) RowGroup(rows int64, chunks []*EncodedChunk) error {
	if w.closed {
		return errors.New("a row group for a closed Parquet file")
	}
	if err := w.checkGroup(rows, chunks); err != nil {
		return err
	}
	start := w.out.n
	g := RowGroupMeta{NumRows: rows, FileOffset: start, Columns: make([]ColumnChunk, len(chunks))}
	if n := len(w.groups); n <= math.MaxInt16 {
		g.Ordinal = thrift.New(int16(n))
	}
	indexes := make([]pageIndex, len(chunks))
	for i, c := range chunks {
		g.Columns[i] = c.place(w.out.n, &w.leaves[i], w.opts.Compression.Codec)
		c.index.shift(g.Columns[i].MetaData.DataPageOffset)
		indexes[i] = c.index
		g.TotalByteSize += c.plainSize
		if err := c.write(&w.out); err != nil {
			return err
		}
		w.release(c)
	}
	g.TotalCompressedSize = w.out.n - start
	w.groups = append(w.groups, g)
	w.indexes = append(w.indexes, indexes)
	w.rows += rows
	return nil
}

func (w *Writer) checkGroup(rows int64, chunks []*EncodedChunk) error {
	switch {
	case w.out.err != nil:
		return w.out.err
	case rows <= 0:
		return fmt.Errorf("a row group of %d rows", rows)
	case len(w.leaves) == 0:
		return fault.Unsupported(fault.At{}, "rows without columns in a Parquet file")
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

// Close writes the page indexes and the footer, and returns the rows and bytes
// of the file. It does not close the writer beneath. The first error of a
// write comes back from every call.
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
	m := FileMetaData{
		Version: formatVersion, Schema: knownAnnotations(w.schema), NumRows: w.rows, RowGroups: w.groups,
		KeyValueMetadata: w.opts.KeyValue, CreatedBy: w.opts.CreatedBy, ColumnOrders: w.orders,
	}
	if m.RowGroups == nil {
		m.RowGroups = []RowGroupMeta{} // required, and empty
	}
	footer, err := m.Encode()
	if err != nil {
		return 0, 0, fmt.Errorf("encoding the footer: %w", err)
	}
	if len(footer) > maxFooterSize {
		return 0, 0, fault.Unsupported(fault.At{}, "an output whose footer takes %s; the limit is %s", fault.Size(int64(len(footer))), fault.Size(maxFooterSize)).
			WithHint("write to a directory, or larger row groups")
	}
	n := len(footer)
	footer = binary.LittleEndian.AppendUint32(footer, uint32(n))
	if err := w.out.write(append(footer, magic...)); err != nil {
		return 0, 0, err
	}
	w.groups, w.indexes = nil, nil // whoever keeps the Writer need not keep them
	return w.rows, w.out.n, nil
}

// writeIndexes writes the column indexes of all chunks, then their offset
// indexes, as the format wants them, and notes where they are.
func (w *Writer) writeIndexes() error {
	for g, group := range w.indexes {
		for i := range group {
			c := &w.groups[g].Columns[i]
			if group[i].bounded() {
				b, err := group[i].encodeBounds()
				if err != nil {
					return err
				}
				c.ColumnIndexOffset, c.ColumnIndexLength = w.out.n, int32(len(b))
				if err := w.out.write(b); err != nil {
					return err
				}
			}
		}
	}
	for g, group := range w.indexes {
		for i := range group {
			c := &w.groups[g].Columns[i]
			b, err := group[i].encodeOffsets()
			if err != nil {
				return err
			}
			c.OffsetIndexOffset, c.OffsetIndexLength = w.out.n, int32(len(b))
			if err := w.out.write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// knownAnnotations leaves out logical types that nothing is known of: written
// as an empty union they would be an error to many readers.
func knownAnnotations(schema []SchemaElement) []SchemaElement {
	out := make([]SchemaElement, len(schema))
	copy(out, schema)
	for i := range out {
		if out[i].LogicalType.Valid && out[i].LogicalType.V.Value == nil {
			out[i].LogicalType = thrift.Null[format.LogicalType]{}
		}
	}
	return out
}

// sink counts what goes to the writer beneath and keeps its first error.
type sink struct {
	w   io.Writer
	n   int64
	err error
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
