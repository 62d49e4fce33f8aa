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
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/flat"
	flatbuffers "github.com/google/flatbuffers/go"
)

// WriterOptions are options of both writers. The zero value works.
type WriterOptions struct {
	// Mem is where buffers come from; nil means the Go heap.
	Mem memory.Allocator
	// Metadata is merged into the schema's metadata, whose keys it replaces.
	Metadata map[string]string
	// Zstd compresses buffers, which readers older than Arrow 1.0 cannot read.
	Zstd bool
}

// Writer writes records as an IPC file or stream. The same records and options
// give the same bytes. After an error every later call returns it. Not safe
// for concurrent use.
type Writer struct {
	schema *arrow.Schema
	enc    *ipc.Writer
	out    *output
	rows   int64
	err    error
	closed bool
}

// NewFileWriter writes an IPC file to w. The file has the end-of-stream marker
// before its footer, so that it can also be read as a stream from byte 8 on.
// A file cannot replace a dictionary: a record whose dictionary differs from
// the one written before is an error of kind fault.ErrUnsupported.
func NewFileWriter(w io.Writer, schema *arrow.Schema, opts WriterOptions) (*Writer, error) {
	return newWriter(w, schema, opts, true)
}

// NewStreamWriter writes an IPC stream to w.
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

// writable refuses what the encoder would write wrongly: it takes dictionaries
// of floating-point values for equal that are only nearly so, and miscounts
// the buffers of views in dictionaries.
func writable(dt arrow.DataType) *fault.Error {
	if e, ok := dt.(arrow.ExtensionType); ok {
		if e.StorageType().ID() == arrow.DICTIONARY {
			return fault.Unsupported(fault.At{}, "writing %s, an extension type over a dictionary", dt)
		}
		return writable(e.StorageType())
	}
	if d, ok := dt.(*arrow.DictionaryType); ok {
		if contains(d.ValueType, arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64, arrow.STRING_VIEW, arrow.BINARY_VIEW) {
			return fault.Unsupported(fault.At{}, "writing %s", dt)
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

// Write appends one record, which keeps belonging to the caller. Its columns
// must have the types of the writer's schema.
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
	cols := make([]arrow.Array, rec.NumCols())
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, c := range rec.Columns() {
		if !arrow.TypeEqual(c.DataType(), w.schema.Field(i).Type) {
			return fmt.Errorf("arrow writer: column %s is %s, the schema says %s", w.schema.Field(i).Name, c.DataType(), w.schema.Field(i).Type)
		}
		if cols[i], err = compact(c, w.out.mem); err != nil {
			return err
		}
	}
	own := array.NewRecord(w.schema, cols, rec.NumRows())
	defer own.Release()
	if err := w.enc.Write(own); err != nil {
		return w.first(err)
	}
	w.rows += rec.NumRows()
	return w.out.err
}

// first prefers the output's own error to what the encoder makes of it.
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

// Close writes what comes after the last record and returns the number of rows
// and bytes written. It does not close the underlying writer.
func (w *Writer) Close() (rows, bytes int64, err error) {
	if !w.closed {
		w.closed = true
		w.finish()
	}
	return w.rows, w.out.pos, w.err
}

// Abort frees what the writer holds and writes nothing more, so that a stream has
// no end marker: its reader learns that records are missing.
func (w *Writer) Abort() {
	if w.err == nil {
		w.err = errAborted
	}
	_, _, _ = w.Close()
}

var errAborted = errors.New("arrow writer: aborted")

// finish lets the encoder free its dictionaries also after an error; nothing
// is written then.
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

// output frames messages; it implements ipc.PayloadWriter. Its first error
// sticks, and nothing is written after it.
type output struct {
	w    io.Writer
	pos  int64
	err  error
	mem  memory.Allocator
	file bool

	// Of a file:
	schema     []byte // the schema message's metadata
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

// note remembers for the footer where a message lies.
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
			return fault.Unsupported(fault.At{}, "a dictionary that changes within an IPC file").
				WithHint("an IPC stream can hold it, and so can Parquet")
		}
		o.dicts[d.id] = true
		o.dictBlocks = append(o.dictBlocks, blk)
	}
	return nil
}

// Close implements ipc.PayloadWriter: the end marker and, in a file, the
// footer. The error stays in o: told of it, the encoder would keep its
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

// footer is the flatbuffer that ends a file. Its schema is the table inside
// the schema message, whose bytes are carried along as a vector: offsets in
// flatbuffers are relative, so a table can stay where it is.
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
