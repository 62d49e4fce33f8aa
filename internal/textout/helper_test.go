package textout

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/text"
)

// written returns the text of a record, written in pieces of step rows.
func written(rec arrow.Record, step int64, opts Options) (string, error) {
	var b bytes.Buffer
	w, err := NewWriter(&b, rec.Schema(), opts)
	if err != nil {
		return "", err
	}
	for lo := int64(0); lo < rec.NumRows(); lo += step {
		part := rec.NewSlice(lo, min(lo+step, rec.NumRows()))
		err = w.Write(part)
		part.Release()
		if err != nil {
			if _, _, last := w.Close(); last != err {
				return "", fmt.Errorf("after %w Close returns %w", err, last)
			}
			return b.String(), err
		}
	}
	rows, n, err := w.Close()
	if err == nil && (rows != rec.NumRows() || n != int64(b.Len())) {
		err = fmt.Errorf("Close returns %d rows and %d bytes, want %d and %d", rows, n, rec.NumRows(), b.Len())
	}
	return b.String(), err
}

// column returns a record of rows of a column "c" of JSON, as pyarrow and arrow/go write it, and
// one of row numbers "n" before it.
func column(t testing.TB, dt arrow.DataType, md arrow.Metadata, json string) arrow.Record {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, dt, strings.NewReader(json))
	if err != nil {
		t.Fatal(err)
	}
	return beside(arrow.Field{Name: "c", Type: dt, Nullable: true, Metadata: md}, a)
}

func beside(f arrow.Field, a arrow.Array) arrow.Record {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range a.Len() {
		b.Append(int64(i))
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}, f}, nil)
	return array.NewRecord(schema, []arrow.Array{b.NewArray(), a}, int64(a.Len()))
}

// cells returns the text of the second of two columns, by row, without what stands around it.
func cells(t testing.TB, s string, f text.Format) (cells []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	if f != text.NDJSON {
		lines = lines[1:]
	}
	for i, line := range lines {
		before, after := fmt.Sprintf("%d,", i), ""
		switch f {
		case text.TSV:
			before = fmt.Sprintf("%d\t", i)
		case text.NDJSON:
			before, after = fmt.Sprintf(`{"n":%d,"c":`, i), "}"
		}
		cell, ok := strings.CutPrefix(line, before)
		cell, ok2 := strings.CutSuffix(cell, after)
		if !ok || !ok2 {
			t.Fatalf("line %q, want it between %q and %q", line, before, after)
		}
		cells = append(cells, cell)
	}
	return cells
}
