package textout

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/klauspost/compress/gzip"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// types are those that package text reads.
var types = []arrow.DataType{
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.FixedWidthTypes.Boolean,
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Time32s,
	arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
	&arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"},
	&arrow.TimestampType{Unit: arrow.Microsecond}, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"},
	&arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.FixedSizeBinaryType{ByteWidth: 16},
	&arrow.Decimal128Type{Precision: 38, Scale: 6}, &arrow.Decimal256Type{Precision: 76, Scale: 40},
}

// pieces are what strings are made of, in which the last ones are rare.
var pieces = []string{"a", "B7", " ", ",", `"`, `\`, "\x01", "\x7f", "é", "\ufeff", "\u2028", "\U0001F600", "null", "NaN", "'", "#", "\n", "\r", "\r\n", "\t", "\x00", "\xff"}

// words makes numbers and texts of bytes, zeros after the last.
type words struct{ b []byte }

func (w *words) n(most int) int { return int(w.word() % uint64(most)) }

func (w *words) word() uint64 {
	var b [8]byte
	w.b = w.b[copy(b[:1+len(w.b)%8], w.b):]
	return binary.LittleEndian.Uint64(b[:])
}

func (w *words) text() (s string) {
	for range w.n(5) {
		s += pieces[w.n(len(pieces)-6*min(w.n(8), 1))]
	}
	return s
}

// record makes a record of up to 4 columns and 8 rows.
func (w *words) record() arrow.Record {
	var fields []arrow.Field
	var cols []arrow.Array
	rows := w.n(9)
	for i := range 1 + w.n(4) {
		dt := types[w.n(len(types))]
		f := arrow.Field{Name: w.text() + strconv.Itoa(i)[w.n(8)/7:], Type: dt, Nullable: true}
		if dt.ID() == arrow.FIXED_SIZE_BINARY && w.n(2) == 0 {
			f.Metadata = uuid
		}
		b := array.NewBuilder(memory.DefaultAllocator, dt)
		for range rows {
			if w.n(4) == 0 {
				b.AppendNull()
			} else {
				w.append(b)
			}
		}
		fields, cols = append(fields, f), append(cols, b.NewArray())
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), cols, int64(rows))
}

// append appends a value with bits that are drawn.
func (w *words) append(b array.Builder) {
	switch b := b.(type) {
	case array.StringLikeBuilder:
		b.Append(w.text())
	case *array.BooleanBuilder:
		b.Append(w.n(2) == 0)
	default: // a value of fixed width: build it of its bytes
		dt := b.Type().(arrow.FixedWidthDataType)
		raw := make([]byte, dt.BitWidth()/8)
		for i := 0; i < len(raw); i += 8 {
			var word [8]byte
			n := w.word()
			if w.n(3) > 0 && i == 0 { // often a small number
				n %= 100000
			}
			binary.LittleEndian.PutUint64(word[:], n)
			copy(raw[i:], word[:])
		}
		d := array.NewData(b.Type(), 1, []*memory.Buffer{nil, memory.NewBufferBytes(raw)}, nil, 0, 0)
		if err := b.AppendValueFromString(array.MakeFromData(d).ValueStr(0)); err != nil {
			b.AppendNull() // arrow cannot write it either
		}
	}
}

// opened returns a table of a text, with the types of a schema.
func opened(s, name string, schema *arrow.Schema) (*text.Table, error) {
	given := map[string]arrow.DataType{}
	for _, f := range schema.Fields() {
		given[f.Name] = f.Type
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }
	return text.Open(open, name, text.Options{Size: int64(len(s)), Types: given})
}

// check writes a record in a format, and reads it back. It returns the number of rows, 0 if the
// format cannot have the record.
func check(t testing.TB, rec arrow.Record, name string) (read int64) {
	f, _ := text.FormatOf(name)
	s, err := written(rec, rec.NumRows()/2+1, Options{Format: f, Gzip: strings.HasSuffix(name, ".gz")})
	if err != nil {
		if !errors.Is(err, fault.ErrUnsupported) {
			t.Fatalf("%s: %v", name, err)
		}
		return 0
	}
	readByOthers(t, rec, s, name)
	if f == text.NDJSON && rec.NumRows() == 0 {
		return 0 // then it has no columns
	}
	tab, err := opened(s, name, rec.Schema())
	if err != nil {
		t.Fatalf("%s: %q: %v", name, s, err)
	}
	row := int64(0)
	for got, err := range tab.Read(context.Background(), 0, nil) {
		if err != nil {
			t.Fatalf("%s: %q: %v", name, s, err)
		}
		for i, c := range rec.Columns() {
			if got.ColumnName(i) != rec.ColumnName(i) {
				t.Fatalf("%s: %q: column %d is %q, want %q", name, s, i, got.ColumnName(i), rec.ColumnName(i))
			}
			for j := range int(got.NumRows()) {
				at := int(row) + j
				if a, ok := c.(array.StringLike); ok && f == text.CSV && a.IsValid(at) && a.Value(at) == "" && got.Column(i).IsNull(j) {
					continue // quoted and empty: to package text it is NULL, too
				}
				if !array.SliceEqual(c, int64(at), int64(at)+1, got.Column(i), int64(j), int64(j)+1) && got.Column(i).ValueStr(j) != c.ValueStr(at) { // NaN
					t.Fatalf("%s: %q: row %d, column %d is %s, want %s", name, s, at, i, got.Column(i).ValueStr(j), c.ValueStr(at))
				}
			}
		}
		row += got.NumRows()
	}
	if row != rec.NumRows() {
		t.Fatalf("%s: %q: %d rows, want %d", name, s, row, rec.NumRows())
	}
	return row
}

// readByOthers reads a text with the standard library, and compares its strings and NULLs.
func readByOthers(t testing.TB, rec arrow.Record, s, name string) {
	if strings.HasSuffix(name, ".gz") {
		r, err := gzip.NewReader(strings.NewReader(s))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		s, name = string(b), strings.TrimSuffix(name, ".gz")
	}
	switch {
	case strings.HasSuffix(name, ".csv"):
		r := csv.NewReader(strings.NewReader(s))
		rows, err := r.ReadAll()
		if err != nil || len(rows) != int(rec.NumRows())+1 {
			t.Fatalf("%q: %d rows, %v", s, len(rows), err)
		}
		for i, c := range rec.Columns() {
			a, ok := c.(array.StringLike)
			for j := 0; ok && j < a.Len(); j++ {
				if got, want := rows[j+1][i], strings.ReplaceAll(a.Value(j), "\r\n", "\n"); got != want && a.IsValid(j) { // as encoding/csv reads it
					t.Fatalf("%q: row %d, column %d is %q, want %q", s, j, i, got, want)
				}
			}
		}
	case strings.HasSuffix(name, ".ndjson"):
		d := json.NewDecoder(strings.NewReader(s))
		for j := range int(rec.NumRows()) {
			var row map[string]any
			if err := d.Decode(&row); err != nil || len(row) != int(rec.NumCols()) {
				t.Fatalf("%q: row %d: %v, %v", s, j, row, err)
			}
			for i, c := range rec.Columns() {
				v, ok := row[rec.ColumnName(i)]
				if !ok || c.IsNull(j) != (v == nil) {
					t.Fatalf("%q: row %d, column %d is %v", s, j, i, v)
				}
				if a, ok := c.(array.StringLike); ok && a.IsValid(j) && v != a.Value(j) {
					t.Fatalf("%q: row %d, column %d is %q, want %q", s, j, i, v, a.Value(j))
				}
			}
		}
		if d.More() || !bytes.Equal(bytes.TrimRight([]byte(s), "\n"), bytes.TrimSuffix([]byte(s), []byte("\n"))) {
			t.Fatalf("%q: more follows", s)
		}
	}
}

// Package text and the standard library read the same values back, whatever they are.
func TestRoundTrip(t *testing.T) {
	r, n := rand.New(rand.NewPCG(5, 6)), cases.Count(200, 800, 100000)
	rows := map[string]int64{}
	for range n {
		b := make([]byte, r.IntN(400))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		rec := (&words{b}).record()
		for _, name := range []string{"x.csv", "x.tsv", "x.ndjson", "x.csv.gz"} {
			rows[name] += check(t, rec, name)
		}
	}
	for name, least := range map[string]int64{"x.csv": 2, "x.tsv": 1, "x.ndjson": 2, "x.csv.gz": 2} {
		if rows[name] < least*int64(n) {
			t.Errorf("%s: %d rows of %d records, which is too few to say anything", name, rows[name], n)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("columns, rows and values"), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, format byte) {
		check(t, (&words{b}).record(), []string{"x.csv", "x.tsv", "x.ndjson", "x.ndjson.gz"}[format%4])
	})
}
