package arrowparquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/parquet-go/parquet-go/format"
)

// WriterOptions say how a Parquet file is written. The zero value works.
type WriterOptions struct {
	Codec        string            // "snappy" (also for ""), "zstd", "gzip", "brotli", "lz4" or "none"
	Level        int               // of the codec, in its own scale; 0: a fast default, for zstd 1
	RowGroupRows int64             // most rows of a row group; 0: DefaultRowGroupRows
	Metadata     map[string]string // key-value metadata on top of the schema's
	// RowGroupBytes is the most bytes of a row group's rows, about as plain
	// encoding holds them; a larger row has a row group of its own. 0:
	// DefaultRowGroupBytes.
	RowGroupBytes int64
	// StoredSchema is stored as the Arrow schema beside the Parquet one, for
	// columns that are those of a file with it: it knows of dictionaries, which
	// Schema does not. Empty: the writer's schema.
	StoredSchema string
	// Pool is what the writer takes its memory from; nil: one of its own.
	Pool *parquet.Pool
}

var writerCodecs = map[string]format.CompressionCodec{
	"": format.Snappy, "snappy": format.Snappy, "zstd": format.Zstd, "gzip": format.Gzip,
	"brotli": format.Brotli, "lz4": format.Lz4Raw, "none": format.Uncompressed,
}

// ParquetWriter writes records as a Parquet file. The bytes are a function of
// the schema, the options and the rows alone: how the rows are cut into
// records does not matter. It holds the rows of one row group, encoded. It is
// not safe for concurrent use.
type ParquetWriter struct {
	file   *parquet.Writer
	rows   *Appender
	err    error // of Close
	closed bool
}

// NewParquetWriter starts a Parquet file of the given schema on w. A column
// that Parquet has no right form for is an error that names it.
// Dictionary-encoded columns are written by value; the stored Arrow schema
// makes readers that know it restore them. Seconds become milliseconds, date64
// becomes a date.
func NewParquetWriter(w io.Writer, sc *arrow.Schema, opts WriterOptions) (*ParquetWriter, error) {
	codec, ok := writerCodecs[opts.Codec]
	if !ok {
		return nil, fault.Unsupported(fault.At{}, "compression codec %q for Parquet", opts.Codec)
	}
	plan, err := planSchema(sc)
	if err != nil {
		return nil, err
	}
	kv, err := keyValues(sc, opts.Metadata, opts.StoredSchema)
	if err != nil {
		return nil, err
	}
	file, err := parquet.NewWriter(w, plan.elements, nil, parquet.WriterOptions{
		Compression: parquet.Compression{Codec: codec, Level: opts.Level}, KeyValue: kv, Pool: opts.Pool,
	})
	if err != nil {
		return nil, err
	}
	rows, err := newAppender(file, sc, plan, opts)
	if err != nil {
		return nil, err
	}
	return &ParquetWriter{file: file, rows: rows}, nil
}

// Write adds the rows of rec, whose schema must have the file's columns.
// Nothing of rec is kept.
func (w *ParquetWriter) Write(rec arrow.Record) error {
	if w.closed {
		return errors.New("write to a closed Parquet file")
	}
	return w.rows.Write(rec)
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
	if w.err = w.rows.Flush(); w.err != nil {
		return 0, 0, w.err
	}
	rows, bytes, w.err = w.file.Close()
	return rows, bytes, w.err
}

// Abort ends the file without regard to what is missing: nobody will read it.
func (w *ParquetWriter) Abort() { _, _, _ = w.Close() }

// recovered turns a panic, of an Arrow array that is not what it says, into an
// error.
func recovered(doing string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s: %v", doing, r)
	}
}
