package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/storage"
)

// writer writes a file of any format.
type writer interface {
	Write(r Rows) error // takes ownership of r
	// Size returns the number of bytes encoded so far. It does not depend on how rows
	// are divided into records.
	Size() int64
	Close() (rows, bytes int64, err error)
	Abort() // instead of Close after an error: releases everything
}

// recordWriter writes records.
type recordWriter struct{ w recordSink }

func (w recordWriter) Write(r Rows) error {
	defer r.Record.Release()
	return w.w.Write(r.Record)
}

func (w recordWriter) Size() int64 { return w.w.Size() }

func (w recordWriter) Close() (rows, bytes int64, err error) { return w.w.Close() }

func (w recordWriter) Abort() { w.w.Abort() }

// newWriter begins a file of the part's schema.
func (o Output) newWriter(dst io.Writer, p Part) (writer, error) {
	if p.pages != nil {
		return newPageWriter(dst, p.pages)
	}
	w, err := o.newRecordWriter(dst, p.Schema, p.Piece.File)
	return recordWriter{w}, err
}

// arrowSink writes Arrow records. Its size is that of the values, since the bytes of
// the file depend on how rows are divided into records.
type arrowSink struct {
	*arrowipc.Writer
	measures bool
	size     int64
}

func (s *arrowSink) Write(rec arrow.Record) error {
	if s.measures {
		n, err := arrowparquet.RowsSize(rec)
		if err != nil {
			return err
		}
		s.size += n
	}
	return s.Writer.Write(rec)
}

func (s *arrowSink) Size() int64 { return s.size }

type recordSink interface {
	Write(rec arrow.Record) error
	Size() int64
	Close() (rows, bytes int64, err error)
	Abort()
}

func (o Output) newRecordWriter(dst io.Writer, schema *arrow.Schema, in *File) (recordSink, error) {
	md := o.metadata()
	stored := ""
	if in != nil && in.owns(schema) {
		stored = in.storedSchema()
	}
	schema = take.WithoutKeys(schema, ownKeys...) // the input may itself be an output
	switch o.Format {
	case Parquet:
		c, err := o.compression(in)
		if err != nil {
			return nil, err
		}
		if stored == "" && in != nil {
			if stored, err = arrowparquet.EncodeSchema(in.coded(schema)); err != nil {
				return nil, err
			}
		}
		return arrowparquet.NewParquetWriter(dst, schema, arrowparquet.WriterOptions{Codec: c.codec, Level: c.level, Metadata: md, StoredSchema: stored, Pool: o.pool})
	case ArrowFile:
		w, err := arrowipc.NewFileWriter(dst, schema, arrowipc.WriterOptions{Metadata: md, Mem: o.mem})
		return &arrowSink{Writer: w, measures: o.TargetSize > 0}, err
	case ArrowStream:
		w, err := arrowipc.NewStreamWriter(dst, schema, arrowipc.WriterOptions{Metadata: md, Mem: o.mem})
		return &arrowSink{Writer: w}, err
	}
	return nil, fault.Unsupported(fault.At{File: o.Name}, "writing %s files", o.Format)
}

// writeTo writes a part to dst. name is for messages.
func (o Output) writeTo(dst io.Writer, name string, p Part, rows iter.Seq2[Rows, error]) (n, size int64, err error) {
	w, err := o.newWriter(dst, p)
	if err != nil {
		return 0, 0, fmt.Errorf("writing %s: %w", name, err)
	}
	return copyAll(w, name, rows)
}

// oneSchema returns the schema that all parts share.
func oneSchema(parts []Part) (*arrow.Schema, *File, error) {
	if len(parts) == 0 {
		return nil, nil, errors.New("an output without a part, and so without a schema")
	}
	first := parts[0]
	if first.pages != nil { // then all parts have pages; see planPages
		return first.Schema, first.Piece.File, nil
	}
	for _, p := range parts[1:] {
		if !p.Schema.Equal(first.Schema) {
			return nil, nil, fault.Mismatch(fault.At{File: p.name()}, "schema", describe(first.Schema)+" as in "+first.name(), describe(p.Schema)).
				WithHint("write to a directory, {Output OUT/}, where each file keeps its own schema")
		}
	}
	return first.Schema, first.Piece.File, nil
}

// describe renders a schema on one line.
func describe(s *arrow.Schema) string {
	fields := make([]string, len(s.Fields()))
	for i, f := range s.Fields() {
		fields[i] = f.Name + " " + f.Type.String()
		if !f.Nullable {
			fields[i] += " not null"
		}
	}
	return "(" + strings.Join(fields, ", ") + ")"
}

// copyAll writes all rows to w and closes it, or aborts it after an error. name
// is for messages.
func copyAll(w writer, name string, rows iter.Seq2[Rows, error]) (n, size int64, err error) {
	defer func() {
		if err != nil {
			w.Abort()
		}
	}()
	for r, err := range rows {
		if err != nil {
			return 0, 0, err
		}
		if err := w.Write(r); err != nil {
			return 0, 0, fmt.Errorf("writing %s: %w", name, err)
		}
	}
	if n, size, err = w.Close(); err != nil {
		return 0, 0, fmt.Errorf("writing %s: %w", name, err)
	}
	return n, size, nil
}

func (o Output) writeStream(w *Written, parts []Part, rows iter.Seq2[Rows, error]) error {
	schema, _, err := oneSchema(parts)
	if err != nil {
		return err
	}
	o.Format = ArrowStream
	dst, err := o.newWriter(o.Stdout, Part{Schema: schema})
	if err != nil {
		return fmt.Errorf("standard output: writing: %w", err)
	}
	w.Rows, w.Bytes, err = copyAll(dst, "standard output", rows)
	return err
}

func (o Output) writeFile(ctx context.Context, w *Written, parts []Part, rows iter.Seq2[Rows, error]) error {
	schema, in, err := oneSchema(parts)
	if err != nil {
		return err
	}
	if o.Format == ArrowFile && len(parts) > 1 {
		schema, rows = take.PlainSchema(schema), o.plain(rows)
	}
	one := Part{Piece: Piece{File: in}, Schema: schema, pages: parts[0].pages}
	if err := storage.Sweep(ctx, o.Store, o.Name); err != nil {
		return err
	}
	file, err := o.Store.Create(ctx, o.Name, storage.CreateOptions{})
	if err != nil {
		return err
	}
	n, size, err := o.writeTo(file, o.Name, one, rows)
	if err != nil {
		return errors.Join(err, file.Abort())
	}
	if err := o.owner.Commit(ctx, o.Name, file, o.Force); err != nil {
		return err
	}
	w.Files, w.Rows, w.Bytes = []WrittenFile{{Name: o.Name, Rows: n, Bytes: size}}, n, size
	for i := range w.Inputs {
		if w.Inputs[i].RowsOut > 0 {
			w.Inputs[i].Files = []string{o.Name}
		}
	}
	return nil
}

// plain replaces dictionaries by their values: an Arrow file has one dictionary per
// column, but each input has its own.
func (o Output) plain(rows iter.Seq2[Rows, error]) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		for r, err := range rows {
			if err == nil {
				rec := r.Record
				r.Record, err = take.PlainRecord(o.mem, rec)
				rec.Release()
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// compression returns the compression for files whose rows come from in.
func (o Output) compression(in *File) (compression, error) {
	if o.Compression != "" {
		c, err := parseCompression(o.Compression)
		if err != nil {
			return c, fault.Unsupported(fault.At{File: o.Name}, "%v", err)
		}
		return c, nil
	}
	c := compression{codec: "zstd"} // for inputs in another format, or in a codec that cannot be written
	if in != nil {
		if _, ok := codecs[in.Codec()]; ok {
			c.codec = in.Codec()
		}
	}
	return c, nil
}
