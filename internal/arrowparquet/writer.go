package arrowparquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

// WriterOptions control how a Parquet file is written. The zero value is valid.
type WriterOptions struct {
	Codec        string            // "snappy" (also for ""), "zstd", "gzip", "brotli", "lz4" or "none"
	Level        int               // of the codec, in its own scale; 0: a fast default, 1 for zstd
	RowGroupRows int64             // largest number of rows in a row group; 0: DefaultRowGroupRows
	Metadata     map[string]string // key-value metadata in addition to the schema's
	// RowGroupBytes is the largest size of a row group's rows, in bytes of
	// approximately their PLAIN encoding. A larger row gets a row group of its own.
	// 0: DefaultRowGroupBytes.
	RowGroupBytes int64
	// StoredSchema is the Arrow schema to store in the file, for columns that were
	// read from a file with that schema: it has dictionary types, which Schema does
	// not. Empty: the writer's schema.
	StoredSchema string
	// Pool provides the writer's memory; nil: its own pool.
	Pool *parquet.Pool
}

var writerCodecs = map[string]format.CompressionCodec{
	"": format.Snappy, "snappy": format.Snappy, "zstd": format.Zstd, "gzip": format.Gzip,
	"brotli": format.Brotli, "lz4": format.Lz4Raw, "none": format.Uncompressed,
}

// ParquetWriter writes records to a Parquet file. The bytes depend only on the
// schema, the options and the rows, not on how the rows are divided into records.
// It holds the encoded rows of one row group in memory. It is not safe for
// concurrent use.
type ParquetWriter struct {
	file   *parquet.Writer
	rows   *appender
	err    error // returned by Close
	closed bool
}

// NewParquetWriter starts a Parquet file with the given schema on w. A column that
// Parquet cannot represent correctly is an error that names it. Dictionary-encoded
// columns are written by value; readers that use the stored Arrow schema restore
// them. Seconds become milliseconds, and date64 becomes a date.
func NewParquetWriter(w io.Writer, sc *arrow.Schema, opts WriterOptions) (*ParquetWriter, error) {
	codec, ok := writerCodecs[opts.Codec]
	if !ok {
		return nil, faults.Unsupported(fault.At{}, "compression codec %q for Parquet", opts.Codec)
	}
	shred, err := NewShredder(sc)
	if err != nil {
		return nil, err
	}
	kv, err := keyValues(sc, opts.Metadata, opts.StoredSchema)
	if err != nil {
		return nil, err
	}
	file, err := parquet.NewWriter(w, shred.Schema(), nil, parquet.WriterOptions{
		Compression: enc.Compression{Codec: codec, Level: opts.Level}, KeyValue: kv, Pool: opts.Pool,
	})
	if err != nil {
		return nil, err
	}
	rows, err := newAppender(file, shred, opts)
	if err != nil {
		return nil, err
	}
	return &ParquetWriter{file: file, rows: rows}, nil
}

// Write adds the rows of rec, whose columns must have the types of the file's. It
// keeps no reference to rec.
func (w *ParquetWriter) Write(rec arrow.Record) error {
	if w.closed {
		return errors.New("write to a closed Parquet file")
	}
	return w.rows.write(rec)
}

// Size returns the number of bytes encoded so far, apart from pages that are not full.
func (w *ParquetWriter) Size() int64 {
	n := w.file.Size()
	for _, c := range w.rows.chunks {
		n += c.Encoded()
	}
	return n
}

// Close writes pending rows and the footer, and returns the number of rows and
// bytes in the file. It does not close the underlying writer. It returns the first
// error of any write, even if no earlier call did. Further calls only return the
// same error.
func (w *ParquetWriter) Close() (rows, bytes int64, err error) {
	if w.closed {
		return 0, 0, w.err
	}
	w.closed = true
	if w.err = w.rows.flush(); w.err != nil {
		return 0, 0, w.err
	}
	rows, bytes, w.err = w.file.Close()
	return rows, bytes, w.err
}

// Abort closes the file and ignores errors. The file must not be used.
func (w *ParquetWriter) Abort() { _, _, _ = w.Close() }

// recovered turns a panic, caused by an inconsistent Arrow array, into an error.
func recovered(doing string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s: %v", doing, r)
	}
}
