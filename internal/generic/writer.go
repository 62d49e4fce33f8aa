package generic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	v15 "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// DefaultRowGroupRows is the number of rows of a row group unless asked
// otherwise.
const DefaultRowGroupRows = 128 << 10

// DefaultRowGroupBytes is the size of the rows of a row group, in bytes,
// unless asked otherwise.
const DefaultRowGroupBytes = 64 << 20

// WriterOptions say how a Parquet file is written. The zero value works.
type WriterOptions struct {
	Codec        string            // "snappy" (also for ""), "zstd", "gzip", "brotli" or "none"
	Level        int               // of the codec, in its own scale; 0: a fast default, for zstd 1
	RowGroupRows int64             // most rows of a row group; 0: DefaultRowGroupRows
	Metadata     map[string]string // key-value metadata on top of the schema's
	// RowGroupBytes is the most bytes of a row group's rows, about as plain
	// encoding holds them; a larger row has a row group of its own. 0:
	// DefaultRowGroupBytes.
	RowGroupBytes int64
	// StoredSchema is stored as the Arrow schema beside the Parquet one, for
	// columns that are those of a file with it: it knows of dictionaries and
	// of fixed-size lists, which Schema does not. Empty: the writer's schema.
	StoredSchema string
	Mem          memory.Allocator // may be nil
}

var writerCodecs = map[string]compress.Compression{
	"": compress.Codecs.Snappy, "snappy": compress.Codecs.Snappy, "zstd": compress.Codecs.Zstd,
	"gzip": compress.Codecs.Gzip, "brotli": compress.Codecs.Brotli, "none": compress.Codecs.Uncompressed,
}

// ParquetWriter writes records as a Parquet file. The bytes are a function of
// the schema, the options and the rows alone: how the rows are cut into
// records does not matter. It holds the rows of one row group. It is not safe
// for concurrent use.
type ParquetWriter struct {
	sink     *sinkWriter
	schema   *arrow.Schema
	shapes   []*shape
	leaves   []*leafShape
	fw       *file.Writer
	maxRows  int64
	maxBytes int64

	pending []arrow.Record       // of the row group to come
	rows    int64                // in pending
	bytes   int64                // in pending, as rowSizes counts them
	stats   []parquet.Statistics // of the chunks so far, in the file's order
	total   int64
	err     error // sticky
	closed  bool
}

// NewParquetWriter starts a Parquet file of the given schema on w. A column
// that Parquet, or the writer beneath, has no right form for is an error that
// names it. Dictionary-encoded columns are written by value; the stored Arrow
// schema makes readers that know it restore them. Seconds become
// milliseconds, date64 becomes a date.
func NewParquetWriter(w io.Writer, sc *arrow.Schema, opts WriterOptions) (pw *ParquetWriter, err error) {
	codec, ok := writerCodecs[opts.Codec]
	if !ok {
		return nil, fault.Unsupported(fault.At{}, "compression codec %q for Parquet", opts.Codec)
	}
	if opts.RowGroupRows < 0 || opts.RowGroupBytes < 0 {
		return nil, fmt.Errorf("row groups of %d rows and %d bytes", opts.RowGroupRows, opts.RowGroupBytes)
	}
	if opts.RowGroupRows == 0 {
		opts.RowGroupRows = DefaultRowGroupRows
	}
	if opts.RowGroupBytes == 0 {
		opts.RowGroupBytes = DefaultRowGroupBytes
	}
	if opts.Mem == nil {
		opts.Mem = memory.NewGoAllocator()
	}
	if opts.Level == 0 && opts.Codec == "zstd" {
		opts.Level = 1
	}
	sink := &sinkWriter{w: w}
	defer recovered("starting the Parquet file", sink, &err)
	s := shaper{}
	root, shapes, err := s.root(sc)
	if err != nil {
		return nil, err
	}
	keys, values, err := keyValues(sc, opts.Metadata, opts.StoredSchema)
	if err != nil {
		return nil, err
	}
	kv := metadata.NewKeyValueMetadata()
	for i, k := range keys {
		if err := kv.Append(k, values[i]); err != nil {
			return nil, err
		}
	}
	props := []v15.WriterProperty{
		v15.WithAllocator(opts.Mem), v15.WithVersion(v15.V2_LATEST), v15.WithDataPageVersion(v15.DataPageV1),
		v15.WithDictionaryDefault(true), v15.WithCompression(codec), v15.WithCreatedBy("bloomjoin"),
		v15.WithBatchSize(writeEntries), v15.WithStats(false), // finish adds right ones
	}
	if opts.Level != 0 {
		props = append(props, v15.WithCompressionLevel(opts.Level))
	}
	fw := file.NewParquetWriter(sink, root, file.WithWriterProps(v15.NewWriterProperties(props...)),
		file.WithWriteMetadata(kv))
	return &ParquetWriter{sink: sink, schema: sc, shapes: shapes, leaves: s.leaves, fw: fw,
		maxRows: opts.RowGroupRows, maxBytes: opts.RowGroupBytes}, nil
}

// recovered turns a panic of v15's writer into an error. An error of the
// writer beneath wins: v15 panics after some of them, and keeps the text alone
// of others.
func recovered(doing string, sink *sinkWriter, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s: %v", doing, r)
	}
	if *err != nil && sink.err != nil && !errors.Is(*err, sink.err) {
		*err = fmt.Errorf("%s: %w", doing, sink.err)
	}
}

// Write adds the rows of rec, whose schema must have the file's columns. It
// retains rec until its rows are written.
func (w *ParquetWriter) Write(rec arrow.Record) error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return errors.New("write to a closed Parquet file")
	}
	if w.err = w.checkColumns(rec); w.err != nil {
		return w.err
	}
	sizes := sizesOf(rec)
	for from := int64(0); from < rec.NumRows() && w.err == nil; {
		n, full, err := w.fitting(&sizes, from, rec.NumRows())
		if w.err = err; err != nil {
			break
		}
		if n > 0 {
			w.pending = append(w.pending, rec.NewSlice(from, from+n))
		}
		from += n
		if full {
			w.err = w.flush()
		}
	}
	return w.err
}

// fitting counts the rows from the given one on that the row group to come has
// room for, and says whether it is full then.
func (w *ParquetWriter) fitting(sizes *rowSizes, from, end int64) (n int64, full bool, err error) {
	defer recovered("measuring rows", w.sink, &err)
	for ; from+n < end; n++ {
		size := sizes.row(int(from + n))
		if w.rows > 0 && size > w.maxBytes-w.bytes {
			return n, true, nil
		}
		w.rows++
		w.bytes += size
		if w.rows == w.maxRows || w.bytes >= w.maxBytes {
			return n + 1, true, nil
		}
	}
	return n, false, nil
}

func (w *ParquetWriter) checkColumns(rec arrow.Record) error {
	if int(rec.NumCols()) != w.schema.NumFields() {
		return fault.Mismatch(fault.At{}, "columns of a record",
			fmt.Sprint(w.schema.NumFields()), fmt.Sprint(rec.NumCols()))
	}
	for i, f := range w.schema.Fields() {
		if got := rec.Column(i).DataType(); !arrow.TypeEqual(f.Type, got) {
			return fault.Mismatch(fault.At{Column: f.Name}, "type of a column", f.Type.String(), got.String())
		}
	}
	return nil
}

// flush writes the pending rows as one row group.
func (w *ParquetWriter) flush() (err error) {
	defer recovered("writing a row group", w.sink, &err)
	defer w.drop()
	group := w.fw.AppendRowGroup()
	for i := range w.shapes {
		if err := w.column(group, i); err != nil {
			return err
		}
	}
	if len(w.leaves) == 0 {
		return fault.Unsupported(fault.At{}, "rows without columns in a Parquet file")
	}
	if err := group.Close(); err != nil {
		return fmt.Errorf("writing a row group: %w", err)
	}
	w.total += w.rows
	return w.sink.err
}

func (w *ParquetWriter) drop() {
	for _, r := range w.pending {
		r.Release()
	}
	clear(w.pending)
	w.pending, w.rows, w.bytes = w.pending[:0], 0, 0
}

// column writes the leaves of top-level column i, in order.
func (w *ParquetWriter) column(group file.SerialRowGroupWriter, i int) error {
	var order []*leafShape
	collected := map[*leafShape]*leafValues{}
	s := shredder{emit: func(l *leafShape, arr arrow.Array, slots []slot) error {
		v := collected[l]
		if v == nil {
			v = new(leafValues)
			collected[l] = v
			order = append(order, l)
		}
		return v.add(l, arr, slots, w.fw.Schema.Column(slices.Index(w.leaves, l)).TypeLength())
	}}
	for _, rec := range w.pending {
		arr := rec.Column(i)
		if err := s.column(w.shapes[i], arr, rows(arr.Len())); err != nil {
			return fmt.Errorf("column %s: %w", w.schema.Field(i).Name, err)
		}
	}
	for _, l := range order {
		cw, err := group.NextColumn()
		if err != nil {
			return fmt.Errorf("column %s: %w", l.path, err)
		}
		if err := collected[l].write(cw, l.maxDef); err != nil {
			return fmt.Errorf("column %s: %w", l.path, err)
		}
		if err := cw.Close(); err != nil {
			return fmt.Errorf("column %s: %w", l.path, err)
		}
		if w.sink.err != nil {
			return w.sink.err
		}
		w.stats = append(w.stats, collected[l].statistics(!l.noStats))
	}
	return nil
}

// Close writes what is pending and the footer, and returns the file's rows
// and bytes. It does not close the writer beneath. The first error of any
// write, also one that was not seen then, comes back here. Further calls
// return the same error and nothing else.
func (w *ParquetWriter) Close() (rows, bytes int64, err error) {
	if w.closed {
		return 0, 0, w.err
	}
	w.closed = true
	defer w.drop()
	if w.err == nil && w.rows > 0 {
		w.err = w.flush()
	}
	if w.err == nil {
		w.err = w.finish()
	}
	if w.err == nil {
		w.err = w.sink.err
	}
	if w.err != nil {
		return 0, 0, w.err
	}
	return w.total, w.sink.n, nil
}

// finish lets v15 write its footer and puts a corrected one in its place.
func (w *ParquetWriter) finish() (err error) {
	defer recovered("writing the footer", w.sink, &err)
	w.sink.hold = true
	if err := w.fw.Close(); err != nil {
		return fmt.Errorf("writing the footer: %w", err)
	}
	w.sink.hold = false
	const tail = 8
	if len(w.sink.held) < tail {
		return errors.New("writing the footer: it is missing")
	}
	footer, err := correctFooter(w.sink.held[:len(w.sink.held)-tail], w.stats)
	if err != nil {
		return fmt.Errorf("writing the footer: %w", err)
	}
	n := len(footer)
	footer = binary.LittleEndian.AppendUint32(footer, uint32(n))
	_, err = w.sink.Write(append(footer, "PAR1"...))
	return err
}

// correctFooter puts the chunks' statistics in and takes out what v15 writes
// and should not: the field id -1 of groups, and column orders that are
// nothing.
func correctFooter(b []byte, stats []parquet.Statistics) ([]byte, error) {
	m, err := parquet.DecodeFooter(b)
	if err != nil {
		return nil, err
	}
	for i := range m.Schema {
		if m.Schema[i].FieldID.V < 0 {
			m.Schema[i].FieldID = thrift.Null[int32]{}
		}
	}
	for g := range m.RowGroups {
		columns := m.RowGroups[g].Columns
		if len(columns) > len(stats) {
			return nil, errors.New("it has more column chunks than were written")
		}
		for c := range columns {
			columns[c].MetaData.Statistics = stats[c]
		}
		stats = stats[len(columns):]
	}
	orders := make([]format.ColumnOrder, len(m.ColumnOrders))
	for i := range orders {
		orders[i].Value = &format.TypeDefinedOrder{}
	}
	m.ColumnOrders = orders
	return m.Encode()
}

// sinkWriter counts what goes to the writer beneath, keeps its first error and
// writes nothing more after it, and can hold back what comes.
type sinkWriter struct {
	w    io.Writer
	n    int64
	err  error
	hold bool
	held []byte
}

func (s *sinkWriter) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.hold {
		s.held = append(s.held, p...)
		return len(p), nil
	}
	n, err := s.w.Write(p)
	s.n += int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	s.err = err
	return n, err
}
