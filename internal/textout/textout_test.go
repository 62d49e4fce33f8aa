package textout

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// one returns a record of one column.
func one(name string, values ...any) arrow.Record {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for _, v := range values {
		if s, ok := v.(string); ok {
			b.Append(s)
		} else {
			b.AppendNull()
		}
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	return array.NewRecord(schema, []arrow.Array{b.NewArray()}, int64(len(values)))
}

// No row of the only column is an empty line, which readers skip, and NULL and an empty string
// do not look alike.
func TestOnlyColumn(t *testing.T) {
	for _, c := range []struct {
		f      text.Format
		values []any
		want   string
		says   string
	}{
		{text.CSV, []any{"a", nil}, "c\na\n\"\"\n", ""},
		{text.CSV, []any{"a", ""}, "c\na\n", "row 2 has an empty string in the only column"},
		{text.TSV, []any{"a", nil}, "c\na\n", "row 2 is NULL in the only column"},
		{text.TSV, []any{"a", ""}, "c\na\n", "row 2 has an empty string"},
		{text.NDJSON, []any{nil, ""}, "{\"c\":null}\n{\"c\":\"\"}\n", ""},
	} {
		got, err := written(one("c", c.values...), 1, Options{Format: c.f})
		if got != c.want || (err == nil) != (c.says == "") || err != nil && !(errors.Is(err, fault.ErrUnsupported) && strings.Contains(err.Error(), c.says)) {
			t.Errorf("format %d of %q: %q, %v; want %q, %q", c.f, c.values, got, err, c.want, c.says)
		}
	}
}

// A name that begins like a byte order mark is not taken for one.
func TestMarkedName(t *testing.T) {
	got, err := written(one("\ufeffc", "a"), 1, Options{Format: text.CSV})
	if want := "\"\ufeffc\"\na\n"; got != want || err != nil {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// An output without rows has the names.
func TestNoRows(t *testing.T) {
	for f, want := range map[text.Format]string{text.CSV: "c\n", text.TSV: "c\n", text.NDJSON: ""} {
		if got, err := written(one("c"), 1, Options{Format: f}); got != want || err != nil {
			t.Errorf("format %d: %q, %v; want %q", f, got, err, want)
		}
	}
}

// sample is a record of five columns, as logs have them.
func sample(n int) arrow.Record {
	r := rand.New(rand.NewPCG(7, 8))
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "user_id", Type: arrow.PrimitiveTypes.Int64}, {Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
		{Name: "url", Type: arrow.BinaryTypes.String}, {Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "country", Type: dict},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(r.Int64N(1e9))
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(17e14 + int64(i)*12345))
		b.Field(2).(*array.StringBuilder).Append("https://example.org/shop/item?id=" + strconv.Itoa(r.IntN(1e6)) + `,"q"`)
		if price := b.Field(3).(*array.Float64Builder); i%10 == 0 {
			price.AppendNull()
		} else {
			price.Append(float64(r.IntN(100000)) / 100)
		}
		_ = b.Field(4).(*array.BinaryDictionaryBuilder).AppendString([]string{"NO", "DE", "FR"}[i%3])
	}
	return b.NewRecord()
}

// A record of any number of rows costs the same allocations.
func TestAllocations(t *testing.T) {
	if cases.Race {
		t.Skip("the race detector allocates")
	}
	for _, f := range []text.Format{text.CSV, text.NDJSON} {
		count := func(n int) float64 {
			rec := sample(n)
			w, err := NewWriter(io.Discard, rec.Schema(), Options{Format: f})
			if err != nil {
				t.Fatal(err)
			}
			return testing.AllocsPerRun(3, func() {
				if err := w.Write(rec); err != nil {
					t.Error(err)
				}
			})
		}
		if few, many := count(1000), count(20000); many > few {
			t.Errorf("format %d: %v allocations for 1,000 rows, %v for 20,000", f, few, many)
		}
	}
}

// The bytes do not depend on how rows are divided into records, also when they are compressed.
func TestSameBytes(t *testing.T) {
	rec := sample(5000)
	for _, o := range []Options{{Format: text.CSV}, {Format: text.NDJSON, Gzip: true}} {
		want, err := written(rec, 5000, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []int64{1, 7, 1000} {
			if got, err := written(rec, step, o); got != want || err != nil {
				t.Errorf("%+v: records of %d rows: other bytes, %v", o, step, err)
			}
		}
	}
}

// broken takes some bytes.
type broken struct{ room int }

func (b *broken) Write(p []byte) (int, error) {
	n := min(b.room, len(p))
	b.room -= n
	if n < len(p) {
		return n, os.ErrDeadlineExceeded
	}
	return n, nil
}

// short takes half of what it is given, and does not say so.
type short struct{}

func (short) Write(p []byte) (int, error) { return len(p) / 2, nil }

// An error of what is below stays, and is never lost.
func TestFailure(t *testing.T) {
	rec := sample(3000)
	for _, zip := range []bool{false, true} {
		whole, err := written(rec, 100, Options{Format: text.CSV, Gzip: zip})
		if err != nil {
			t.Fatal(err)
		}
		fails := func(dst io.Writer, want error) {
			w, err := NewWriter(dst, rec.Schema(), Options{Format: text.CSV, Gzip: zip})
			if err != nil {
				t.Fatal(err)
			}
			err = w.Write(rec)
			_, _, last := w.Close()
			if !errors.Is(last, want) || err != nil && err != last {
				t.Errorf("gzip %t: Write %v, Close %v; want %v", zip, err, last, want)
			}
		}
		for room := 0; room < len(whole); room += 1 + len(whole)/23 {
			fails(&broken{room}, os.ErrDeadlineExceeded)
		}
		fails(short{}, io.ErrShortWrite)
	}
}

// Records that are not of the schema are refused, and nothing follows the end.
func TestMisuse(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, one("c").Schema(), Options{Format: text.CSV})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(sample(1)); err == nil {
		t.Error("a record of five columns is one of one")
	}
	w, _ = NewWriter(&b, sample(1).Schema(), Options{Format: text.CSV})
	if _, _, err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Write(sample(1)); err == nil {
		t.Error("rows after Close")
	}
	w.Abort()
	b.Reset()
	w, _ = NewWriter(&b, sample(1).Schema(), Options{Format: text.CSV, Gzip: true})
	w.Abort()
	if _, _, err := w.Close(); err == nil || b.Len() > 0 {
		t.Errorf("after Abort: %d bytes, %v", b.Len(), err)
	}
}

func BenchmarkWrite(b *testing.B) {
	for name, o := range map[string]Options{"csv": {Format: text.CSV}, "ndjson": {Format: text.NDJSON}, "csv.gz": {Format: text.CSV, Gzip: true}} {
		b.Run(name, func(b *testing.B) {
			const rows = 100000
			rec := sample(rows)
			w, err := NewWriter(io.Discard, rec.Schema(), o)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := w.Write(rec); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(w.Size() / int64(b.N))
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
