package arrowipc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/flat"
)

// WriterOptions are options of both writers. The zero value is valid.
type WriterOptions struct {
	// Mem allocates buffers; nil: the Go heap.
	Mem memory.Allocator
	// Metadata is added to the schema's metadata and replaces existing keys.
	Metadata map[string]string
	// Zstd compresses buffers. Readers older than Arrow 1.0 cannot read them.
	Zstd bool
}

// Writer writes records to an IPC file or stream. The same records and options give
// the same bytes. After an error every later call returns it. It is not safe for
// concurrent use.
type Writer struct {
	schema *arrow.Schema
	enc    *ipc.Writer
	out    *output
	rows   int64
	err    error
	closed bool
}

// NewFileWriter returns a Writer of an IPC file to w. The file has the
// end-of-stream marker before its footer, so it can also be read as a stream from
// byte 8. A file cannot replace a dictionary: a record whose dictionary differs
// from the previous one is an error that wraps fault.ErrUnsupported.
func NewFileWriter(w io.Writer, schema *arrow.Schema, opts WriterOptions) (*Writer, error) {
	return newWriter(w, schema, opts, true)
}

// NewStreamWriter returns a Writer of an IPC stream to w.
func NewStreamWriter(w io.Writer, schema *arrow.Schema, opts WriterOptions) (*Writer, error) {
	return newWriter(w, schema, opts, false)
}

func newWriter(w io.Writer, schema *arrow.Schema, opts WriterOptions, file bool) (*Writer, error) {
	for _, f := range schema.Fields() {
		if err := writable(f.Type); err != nil {
			err.At.Column = f.Name
			return nil, err
		}
	}
	if opts.Mem == nil {
		opts.Mem = memory.NewGoAllocator()
	}
	schema = withMetadata(schema, opts.Metadata)
	out := &output{w: w, mem: opts.Mem, file: file, dicts: map[int64]bool{}}
	set := []ipc.Option{ipc.WithSchema(schema), ipc.WithAllocator(opts.Mem)}
	if opts.Zstd {
		set = append(set, ipc.WithZstd())
	}
	if file {
		out.write([]byte(magic + "\x00\x00"))
	}
	return &Writer{schema: schema, enc: ipc.NewWriterWithPayloadWriter(out, set...), out: out, err: out.err}, nil
}

// withMetadata adds keys to a schema's metadata, new ones in sorted order.
func withMetadata(s *arrow.Schema, add map[string]string) *arrow.Schema {
	old := s.Metadata()
	keys, values := slices.Clone(old.Keys()), slices.Clone(old.Values())
	for _, k := range slices.Sorted(maps.Keys(add)) {
		if i := slices.Index(keys, k); i >= 0 {
			values[i] = add[k]
		} else {
			keys, values = append(keys, k), append(values, add[k])
		}
	}
	meta := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(s.Fields(), &meta)
}

// writable refuses types that the encoder would write incorrectly: it treats
// dictionaries of floating-point values as equal that are only approximately so,
// and miscounts the buffers of views in dictionaries.
func writable(dt arrow.DataType) *fault.Error {
	if e, ok := dt.(arrow.ExtensionType); ok {
		if e.StorageType().ID() == arrow.DICTIONARY {
			return faults.Unsupported(fault.At{}, "writing %s, an extension type over a dictionary", dt)
		}
		return writable(e.StorageType())
	}
	if d, ok := dt.(*arrow.DictionaryType); ok {
		if contains(d.ValueType, arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64, arrow.STRING_VIEW, arrow.BINARY_VIEW) {
			return faults.Unsupported(fault.At{}, "writing %s", dt)
		}
		return writable(d.ValueType)
	}
	if n, ok := dt.(arrow.NestedType); ok {
		for _, f := range n.Fields() {
			if err := writable(f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

func contains(dt arrow.DataType, ids ...arrow.Type) bool {
	switch d := dt.(type) {
	case arrow.ExtensionType:
		return contains(d.StorageType(), ids...)
	case *arrow.DictionaryType:
		return contains(d.ValueType, ids...)
	case arrow.NestedType:
		return slices.ContainsFunc(d.Fields(), func(f arrow.Field) bool { return contains(f.Type, ids...) })
	}
	return slices.Contains(ids, dt.ID())
}

// Write appends a record, which the caller still owns. Its columns must have the
// types of the writer's schema.
func (w *Writer) Write(rec arrow.Record) error {
	if w.err == nil && w.closed {
		w.err = errors.New("arrow writer: closed")
	}
	if w.err == nil {
		w.err = w.write(rec)
	}
	return w.err
}

func (w *Writer) write(rec arrow.Record) (err error) {
	defer recovered(&err)
	if n := w.schema.NumFields(); int(rec.NumCols()) != n {
		return fmt.Errorf("arrow writer: %d columns, the schema has %d", rec.NumCols(), n)
	}
	cols := make([]arrow.Array, 0, rec.NumCols())
	defer each.Release(&cols)
	for i, c := range rec.Columns() {
		if !arrow.TypeEqual(c.DataType(), w.schema.Field(i).Type) {
			return fmt.Errorf("arrow writer: column %s is %s, the schema says %s", w.schema.Field(i).Name, c.DataType(), w.schema.Field(i).Type)
		}
		own, err := compact(c, w.out.mem)
		if err != nil {
			return err
		}
		cols = append(cols, own)
	}
	own := array.NewRecord(w.schema, cols, rec.NumRows())
	defer own.Release()
	if err := w.enc.Write(own); err != nil {
		return w.first(err)
	}
	w.rows += rec.NumRows()
	return w.out.err
}

// first returns the output's own error in preference to the encoder's.
func (w *Writer) first(err error) error {
	if w.out.err != nil {
		return w.out.err
	}
	return err
}

// recovered turns a panic of the encoder into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("arrow writer: %v", r)
	}
}

// Close writes the end of the file or stream and returns the number of rows and
// bytes written. It does not close the underlying writer.
func (w *Writer) Close() (rows, bytes int64, err error) {
	if !w.closed {
		w.closed = true
		w.finish()
	}
	return w.rows, w.out.pos, w.err
}

// Abort frees the writer's memory and writes nothing more. A stream then has no end
// marker, so that its reader can tell that records are missing.
func (w *Writer) Abort() {
	if w.err == nil {
		w.err = errAborted
	}
	_, _, _ = w.Close()
}

var errAborted = errors.New("arrow writer: aborted")

// finish makes the encoder free its dictionaries, even after an error; nothing is
// written in that case.
func (w *Writer) finish() {
	if w.err != nil && w.out.err == nil {
		w.out.err = w.err
	}
	err := func() (err error) {
		defer recovered(&err)
		return w.enc.Close()
	}()
	if w.err == nil {
		w.err = w.first(err)
	}
}

// output frames messages; it implements ipc.PayloadWriter. Nothing is written after
// its first error.
type output struct {
	w    io.Writer
	pos  int64
	err  error
	mem  memory.Allocator
	file bool

	// For files:
	schema     []byte // metadata of the schema message
	dicts      map[int64]bool
	dictBlocks []block
	blocks     []block
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.write(p)
	if o.err != nil {
		return 0, o.err
	}
	return len(p), nil
}

func (o *output) write(p []byte) {
	if o.err != nil || len(p) == 0 {
		return
	}
	n, err := o.w.Write(p)
	o.pos += int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	o.err = err
}

// Start implements ipc.PayloadWriter.
func (o *output) Start() error { return o.err }

// WritePayload implements ipc.PayloadWriter.
func (o *output) WritePayload(p ipc.Payload) error {
	if o.err != nil {
		return o.err
	}
	buf := p.Meta()
	defer buf.Release()
	meta := buf.Bytes()
	m, err := parseMessage(fault.At{}, meta)
	if err != nil {
		return err
	}
	blk := block{off: o.pos, meta: int64(8+len(meta)+7) &^ 7, body: m.body}
	if err := o.note(m, meta, blk); err != nil {
		o.err = err
		return err
	}
	head := binary.LittleEndian.AppendUint32(nil, continuation)
	head = binary.LittleEndian.AppendUint32(head, uint32(blk.meta-8))
	o.write(head)
	o.write(meta)
	o.write(make([]byte, blk.meta-8-int64(len(meta))))
	if err := p.SerializeBody(o); err != nil {
		return err
	}
	if o.err == nil && o.pos != blk.off+blk.meta+blk.body {
		o.err = fmt.Errorf("arrow writer: a body of %d bytes, its header says %d", o.pos-blk.off-blk.meta, blk.body)
	}
	return o.err
}

// note records the position of a message for the footer.
func (o *output) note(m message, meta []byte, blk block) error {
	if !o.file {
		return nil
	}
	switch m.kind {
	case headerSchema:
		o.schema = slices.Clone(meta)
	case headerBatch:
		o.blocks = append(o.blocks, blk)
	case headerDict:
		d, err := parseDict(fault.At{}, m)
		if err != nil {
			return err
		}
		if o.dicts[d.id] {
			return faults.Unsupported(fault.At{}, "a dictionary that changes within an IPC file").
				WithHint("an IPC stream can hold it, and so can Parquet")
		}
		o.dicts[d.id] = true
		o.dictBlocks = append(o.dictBlocks, blk)
	}
	return nil
}

// Close implements ipc.PayloadWriter: it writes the end marker and, for a file, the
// footer. It does not return o.err, because the encoder would then keep its
// dictionaries.
func (o *output) Close() error {
	o.write([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0})
	if o.file && o.err == nil {
		footer := footer(o.schema, o.dictBlocks, o.blocks)
		o.write(footer)
		o.write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer))))
		o.write([]byte(magic))
	}
	return nil
}

// footer returns the flatbuffer that ends a file. Its schema is the table inside
// the schema message, whose bytes are included as a vector: offsets in flatbuffers
// are relative, so the table need not be rebuilt.
func footer(schema []byte, dicts, batches []block) []byte {
	header, _ := flat.Root(schema).Table(messageHeader)

	b := flatbuffers.NewBuilder(len(schema) + 24*(len(dicts)+len(batches)) + 256)
	padded := (len(schema) + 7) &^ 7
	b.StartVector(8, padded/8, 8)
	for range padded - len(schema) {
		b.PlaceByte(0)
	}
	for i := len(schema) - 1; i >= 0; i-- {
		b.PlaceByte(schema[i])
	}
	schemaAt := b.Offset() - flatbuffers.UOffsetT(header.Pos()) // offsets count from the end
	b.EndVector(padded / 8)
	dictsAt := putBlocks(b, dicts)
	batchesAt := putBlocks(b, batches)
	b.StartObject(5)
	b.PrependInt16Slot(0, metadataV5, 0)
	b.PrependUOffsetTSlot(1, schemaAt, 0)
	b.PrependUOffsetTSlot(2, dictsAt, 0)
	b.PrependUOffsetTSlot(3, batchesAt, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

func putBlocks(b *flatbuffers.Builder, blocks []block) flatbuffers.UOffsetT {
	b.StartVector(24, len(blocks), 8)
	for i := len(blocks) - 1; i >= 0; i-- {
		b.Prep(8, 24)
		b.PrependInt64(blocks[i].body)
		b.Pad(4)
		b.PrependInt32(int32(blocks[i].meta))
		b.PrependInt64(blocks[i].off)
	}
	return b.EndVector(len(blocks))
}
