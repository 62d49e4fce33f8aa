package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/internal/textout"
	"github.com/bloomjoin/bloomjoin/storage"
)

// writer writes a file of any format.
type writer interface {
	Write(r outRows) error // takes ownership of r
	// Size returns the number of bytes encoded so far. It does not depend on how rows
	// are divided into records.
	Size() int64
	Close() (rows, bytes int64, err error)
	Abort() // instead of Close after an error: releases everything
}

// recordWriter writes records.
type recordWriter struct{ w recordSink }

func (w recordWriter) Write(r outRows) error {
	defer r.Record.Release()
	return w.w.Write(r.Record)
}

func (w recordWriter) Size() int64 { return w.w.Size() }

func (w recordWriter) Close() (rows, bytes int64, err error) { return w.w.Close() }

func (w recordWriter) Abort() { w.w.Abort() }

// plainWriter replaces dictionaries by their values: an Arrow file has one dictionary per
// column, but each input has its own, and a stream may replace them.
type plainWriter struct {
	writer
	mem memory.Allocator
}

func (w plainWriter) Write(r outRows) error {
	defer r.Record.Release()
	plain, err := take.PlainRecord(w.mem, r.Record)
	if err != nil {
		return err
	}
	return w.writer.Write(outRows{Rows: arraycopy.Rows{Piece: r.Piece, Record: plain}})
}

// newWriter begins a file of the part's schema; shared: rows of other parts are written to
// it, too.
func (o Destination) newWriter(dst io.Writer, p Part, shared bool) (writer, error) {
	if p.pages != nil {
		if p.pages.Sink.W == nil {
			return pageWriter{p.pages.Layout}, p.pages.Sink.To(dst)
		}
		p.pages.Sink.W = dst
		return pageWriter{p.pages.Layout}, p.pages.Layout.Restart(p.pages.Sink)
	}
	in := p.Piece.File
	plain := o.Format == dataset.ArrowFile && (shared || in != nil && in.Format() == dataset.ArrowStream)
	if plain {
		p.Schema = take.PlainSchema(p.Schema)
	}
	w, err := o.newRecordWriter(dst, p.Schema, in)
	if plain {
		return plainWriter{recordWriter{w}, o.mem}, err
	}
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

func (o Destination) newRecordWriter(dst io.Writer, schema *arrow.Schema, in *source.File) (recordSink, error) {
	md := o.metadata()
	stored := ""
	if in != nil && in.Owns(schema) {
		stored = in.StoredSchema()
	}
	schema = take.WithoutKeys(schema, pagecopy.OwnKeys...) // the input may itself be an output
	switch o.Format {
	case dataset.Parquet:
		c, err := o.compression(in)
		if err != nil {
			return nil, err
		}
		if stored == "" && in != nil {
			if stored, err = arrowparquet.EncodeSchema(in.Coded(schema)); err != nil {
				return nil, err
			}
		}
		return arrowparquet.NewParquetWriter(dst, schema, arrowparquet.WriterOptions{Codec: c.codec, Level: c.level, Metadata: md, StoredSchema: stored, Pool: o.pool})
	case dataset.ArrowFile:
		w, err := arrowipc.NewFileWriter(dst, schema, arrowipc.WriterOptions{Metadata: md, Mem: o.mem})
		return &arrowSink{Writer: w, measures: o.TargetSize > 0}, err
	case dataset.ArrowStream:
		w, err := arrowipc.NewStreamWriter(dst, schema, arrowipc.WriterOptions{Metadata: md, Mem: o.mem})
		return &arrowSink{Writer: w}, err
	case dataset.CSV, dataset.TSV, dataset.NDJSON:
		name := strings.ToLower(o.Name)
		if strings.HasSuffix(name, ".zst") || strings.HasSuffix(name, ".zstd") {
			return nil, faults.Unsupported(fault.At{}, "text in zstd").WithHint("name the file .gz, or without a compression")
		}
		gzip := strings.HasSuffix(name, ".gz")
		return textout.NewWriter(dst, schema, textout.Options{Format: source.TextFormats[o.Format], Gzip: gzip})
	}
	return nil, faults.Unsupported(fault.At{File: o.Name}, "writing %s files", o.Format)
}

// oneSchema returns the schema that all parts share.
func oneSchema(parts []Part) (*arrow.Schema, *source.File, error) {
	if len(parts) == 0 {
		return nil, nil, errors.New("an output without a part, and so without a schema")
	}
	first := parts[0]
	if first.pages != nil { // then all parts have pages; see planPages
		return first.Schema, first.Piece.File, nil
	}
	for _, p := range parts[1:] {
		if !p.Schema.Equal(first.Schema) {
			return nil, nil, faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: p.name()}, "schema", describe(first.Schema)+" as in "+first.name(), describe(p.Schema))).
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

// fileSink writes all rows to one file or stream.
type fileSink struct {
	out    Destination
	name   string         // for messages
	file   storage.Writer // nil: a stream
	writer writer
	sum    *xxh3.Hasher // of a text file; nil: of none
}

func (o Destination) openStream(parts []Part) (rowSink, error) {
	schema, in, err := oneSchema(parts)
	if err != nil {
		return nil, err
	}
	p := Part{Schema: schema}
	switch {
	case o.Format == dataset.Parquet:
		p.Piece.File, p.pages = in, parts[0].pages
	case !o.asText():
		o.Format = dataset.ArrowStream
	}
	w, err := o.newWriter(o.Stdout, p, false)
	if err != nil {
		return nil, fmt.Errorf("standard output: writing: %w", err)
	}
	return &fileSink{out: o, name: "standard output", writer: w}, nil
}

func (o Destination) openFile(ctx context.Context, parts []Part) (rowSink, error) {
	schema, in, err := oneSchema(parts)
	if err != nil {
		return nil, err
	}
	if err := objects.Sweep(ctx, o.Store, o.Name); err != nil {
		return nil, err
	}
	file, err := o.Store.Create(ctx, o.Name, storage.CreateOptions{})
	if err != nil {
		return nil, err
	}
	s := &fileSink{out: o, name: o.Name, file: file}
	var dst io.Writer = file
	if o.asText() {
		s.sum = xxh3.New()
		dst = io.MultiWriter(file, s.sum)
	}
	s.writer, err = o.newWriter(dst, Part{Piece: source.Piece{File: in}, Schema: schema, pages: parts[0].pages}, len(parts) > 1)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing %s: %w", o.Name, err), file.Abort())
	}
	return s, nil
}

func (s *fileSink) write(_ context.Context, r outRows) error {
	if err := s.writer.Write(r); err != nil {
		return fmt.Errorf("writing %s: %w", s.name, err)
	}
	return nil
}

func (s *fileSink) end(ctx context.Context, w *dataset.Written, err error) error {
	if err == nil {
		if w.Rows, w.Bytes, err = s.writer.Close(); err != nil {
			err = fmt.Errorf("writing %s: %w", s.name, err)
		}
	}
	if err != nil {
		s.writer.Abort()
	}
	switch {
	case s.file == nil:
		return err
	case err == nil && s.sum != nil:
		err = s.out.writeMark(ctx, publish.Sum(s.sum), w.Rows)
	}
	if err != nil {
		return errors.Join(err, s.file.Abort())
	}
	if err := s.out.owner.Commit(ctx, s.name, s.file, s.out.Force); err != nil {
		return err
	}
	w.Files = []dataset.WrittenFile{{Name: s.name, Rows: w.Rows, Bytes: w.Bytes}}
	for i := range w.Inputs {
		if w.Inputs[i].RowsOut > 0 {
			w.Inputs[i].Files = []string{s.name}
		}
	}
	return nil
}

// compression returns the compression for files whose rows come from in.
func (o Destination) compression(in *source.File) (compression, error) {
	if o.Compression != "" {
		c, err := parseCompression(o.Compression)
		if err != nil {
			return c, faults.Unsupported(fault.At{File: o.Name}, "%v", err)
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
