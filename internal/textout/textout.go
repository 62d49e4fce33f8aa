// Package textout writes Arrow records as CSV, TSV or NDJSON, so that nothing of a value is
// lost or changed: what text cannot say is an error.
//
//   - Lines end with LF. Text is UTF-8, without a byte order mark. A compressed output is one
//     gzip stream without a name or a time: equal rows give equal bytes.
//   - CSV starts with the names of the columns and has the quotes of RFC 4180, where a field
//     needs them. NULL is an empty field, an empty string is "". In the only column of an
//     output NULL is "", since readers skip empty lines; an empty string there is an error.
//   - TSV starts with the names, too, and has no quotes: a tab or a line end in a string is an
//     error, and so are an empty string and NULL in the only column.
//   - NDJSON has an object for each row, with all columns. NULL is null.
//   - Integers and decimals are digits. In NDJSON they are numbers, but decimals of more than 15
//     digits are strings, since most readers would round them. Floats have the fewest digits
//     that give the same float, and a point or an exponent; NaN, Infinity and -Infinity are strings in NDJSON.
//   - Dates, times and timestamps are written as in ISO 8601 with all digits of their unit, with
//     T before the time of day; timestamps with a time zone are in UTC, with Z. Years are 0000
//     to 9999. Durations are integers, in their unit.
//   - Binary values are hexadecimal, UUIDs have dashes.
//   - Lists, structs and maps are JSON; a map is a list of objects with key and value. In CSV and TSV
//     this is the text of the field.
//
// Columns need distinct names that are not empty. Package text reads all of this back.
package textout

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/klauspost/compress/gzip"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// Options say how text is written.
type Options struct {
	Format text.Format // CSV, TSV or NDJSON
	Gzip   bool
}

// Writer writes records. After an error every later call returns it. It is not safe for
// concurrent use.
type Writer struct {
	Options
	schema *arrow.Schema
	prefix [][]byte // by column: what stands before its value
	put    []put    // by column, of the record at hand
	dst    counter
	zip    *gzip.Writer // nil: not compressed
	buf    []byte       // not written yet
	size   int64        // of the text
	rows   int64
	err    error
}

// bufferBytes is the size of text from which it is written.
const bufferBytes = 64 << 10

// NewWriter returns a Writer to w. Columns that text cannot have are an error.
func NewWriter(w io.Writer, schema *arrow.Schema, opts Options) (*Writer, error) {
	if err := writable(schema.Fields()); err != nil {
		return nil, err
	}
	t := &Writer{Options: opts, schema: schema, dst: counter{w: w}, put: make([]put, schema.NumFields())}
	if opts.Gzip {
		t.zip = gzip.NewWriter(&t.dst)
	}
	for i, f := range schema.Fields() {
		var before []byte
		if opts.Format != text.NDJSON {
			if i > 0 {
				before = []byte{t.between()}
			}
			name, err := t.header(f.Name, i)
			if err != nil {
				return nil, about(err, f.Name, "the name of the column")
			}
			t.buf = append(append(t.buf, before...), name...)
		} else {
			before = append(before, "{,"[min(i, 1)])
			before, _ = appendJSON(before, f.Name) // it is UTF-8
			before = append(before, ':')
		}
		t.prefix = append(t.prefix, before)
	}
	if opts.Format != text.NDJSON {
		t.buf = append(t.buf, '\n')
	}
	return t, nil
}

// between returns what separates fields.
func (w *Writer) between() byte {
	if w.Format == text.TSV {
		return '\t'
	}
	return ','
}

// header returns the name of column i as a field. Quotes keep what looks like a byte order mark
// part of the first name.
func (w *Writer) header(name string, i int) ([]byte, error) {
	if w.Format == text.TSV {
		if i == 0 && name[0] == 0xEF {
			return nil, trouble{"begins with a byte order mark, which TSV cannot have", otherText}
		}
		return appendTSV(nil, name)
	}
	quoted, err := appendCSV(nil, name)
	if err == nil && i == 0 && name[0] == 0xEF && quoted[0] != '"' {
		quoted = fmt.Appendf(nil, `"%s"`, name)
	}
	return quoted, err
}

// writable returns an error for columns that text cannot have, also within lists and structs.
func writable(fields []arrow.Field) error {
	seen := map[string]bool{}
	for _, f := range fields {
		at := fault.At{Column: f.Name}
		switch {
		case f.Name == "":
			return faults.Unsupported(at, "a column without a name, as text").WithHint(leaveOut)
		case !utf8.ValidString(f.Name):
			return faults.Unsupported(at, "the name of a column that is not UTF-8, as text").WithHint(leaveOut)
		case seen[f.Name]:
			return faults.Unsupported(at, "two columns of one name, as text").WithHint(leaveOut)
		}
		seen[f.Name] = true
		if err := writableType(f.Type); err != nil {
			if e := new(fault.Error); errors.As(err, &e) && e.At.Column != "" { // of a struct
				e.At.Column = f.Name + "." + e.At.Column
				return e
			}
			return faults.Unsupported(at, "%s as text", f.Type).WithHint(leaveOut)
		}
	}
	if len(fields) == 0 {
		return faults.Unsupported(fault.At{}, "rows without columns, as text").WithHint(otherwise)
	}
	return nil
}

var errType = errors.New("a type that text does not have")

func writableType(t arrow.DataType) error {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return writableType(t.StorageType())
	case *arrow.DictionaryType:
		return writableType(t.ValueType)
	case *arrow.StructType:
		if len(t.Fields()) == 0 {
			return nil
		}
		return writable(t.Fields())
	case *arrow.MapType:
		if err := writableType(t.KeyType()); err != nil {
			return err
		}
		return writableType(t.ItemType())
	case arrow.ListLikeType:
		return writableType(t.Elem())
	}
	switch t.ID() {
	case arrow.NULL, arrow.BOOL, arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW,
		arrow.FIXED_SIZE_BINARY, arrow.DECIMAL128, arrow.DECIMAL256, arrow.DATE32, arrow.DATE64, arrow.TIME32, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION,
		arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64, arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return nil
	}
	return errType
}

// Hints of errors.
const (
	otherwise = "write Parquet or Arrow"
	leaveOut  = "write Parquet or Arrow, or leave the column out: {Columns} names those to keep"
	otherText = "write CSV, NDJSON or Parquet, or leave the column out: {Columns} names those to keep"
)

// trouble is a value that the format cannot have, without the value.
type trouble struct {
	what string
	hint string
}

func (t trouble) Error() string { return t.what }

// about returns the error of a value.
func about(err error, column, what string) error {
	var t trouble
	if !errors.As(err, &t) {
		return err
	}
	return faults.Unsupported(fault.At{Column: column}, "%s %s", what, t.what).WithHint("%s", fault.Text(t.hint))
}

// Write writes a record, which the caller still owns. Its columns must have the types of the
// schema; each record may have dictionaries of its own.
func (w *Writer) Write(rec arrow.Record) error {
	if w.err == nil {
		w.err = w.write(rec)
	}
	return w.err
}

func (w *Writer) write(rec arrow.Record) (err error) {
	defer panics.Recover(fault.At{}, &err)
	if n := w.schema.NumFields(); int(rec.NumCols()) != n {
		return fmt.Errorf("text writer: %d columns, the schema has %d", rec.NumCols(), n)
	}
	b := binder{json: w.Format == text.NDJSON, tsv: w.Format == text.TSV, only: len(w.put) == 1}
	for i, c := range rec.Columns() {
		f := w.schema.Field(i)
		if !arrow.TypeEqual(c.DataType(), f.Type) {
			return fmt.Errorf("text writer: column %s is %s, the schema says %s", f.Name, c.DataType(), f.Type)
		}
		w.put[i] = b.column(f, c)
	}
	for row := range int(rec.NumRows()) {
		for i, put := range w.put {
			w.buf = append(w.buf, w.prefix[i]...)
			if w.buf, err = put(w.buf, row); err != nil {
				return about(err, w.schema.Field(i).Name, fmt.Sprintf("row %d", w.rows+int64(row)+1))
			}
		}
		if w.Format == text.NDJSON {
			w.buf = append(w.buf, '}')
		}
		w.buf = append(w.buf, '\n')
		if len(w.buf) >= bufferBytes {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.rows += rec.NumRows()
	return w.flush()
}

// flush writes what is buffered.
func (w *Writer) flush() (err error) {
	w.size += int64(len(w.buf))
	if w.zip != nil {
		_, err = w.zip.Write(w.buf)
	} else {
		_, err = w.dst.Write(w.buf)
	}
	w.buf = w.buf[:0]
	return err
}

// Size returns the size of the text before it is compressed.
func (w *Writer) Size() int64 { return w.size }

// Close writes the end and returns the number of rows and bytes written. It does not close the
// underlying writer.
func (w *Writer) Close() (rows, bytes int64, err error) {
	if w.err == nil {
		w.err = w.flush()
	}
	if w.err == nil && w.zip != nil {
		w.err = w.zip.Close()
	}
	if w.err != nil {
		return 0, 0, w.err
	}
	w.err = errClosed
	return w.rows, w.dst.n, nil
}

var errClosed = errors.New("text writer: closed")

// Abort ends the Writer and writes nothing more.
func (w *Writer) Abort() {
	if w.err == nil {
		w.err = errClosed
	}
}

// counter counts the bytes written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if c.n += int64(n); err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}
