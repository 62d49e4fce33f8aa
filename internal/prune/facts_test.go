package prune

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// TestFacts checks what the statistics of a row group and of its only page say about values
// outside the bounds: NaN, empty strings and NULLs.
func TestFacts(t *testing.T) {
	f32 := func(f float32) []byte { return i32(int32(math.Float32bits(f))) }
	nan32, nan64 := f32(float32(math.NaN())), f64(math.NaN())
	single, double := leaf(format.Float, false, nil), leaf(format.Double, false, nil)
	text := leaf(format.ByteArray, false, new(format.StringType))
	const rows = 300
	for _, c := range []struct {
		name        string
		leaf        meta.Element
		dt          arrow.DataType
		by          string
		least, most []byte
		nulls       int64
		want        string
	}{
		{"double", double, arrow.PrimitiveTypes.Float64, "", f64(1), f64(5), 0, "bounds, NaN, no NULLs"},
		{"single", single, arrow.PrimitiveTypes.Float32, "", f32(1), f32(5), 0, "bounds, NaN, no NULLs"},
		{"one double", double, arrow.PrimitiveTypes.Float64, "", f64(1), f64(1), 0, "bounds, NaN, no NULLs"},
		{"one single", single, arrow.PrimitiveTypes.Float32, "", f32(1), f32(1), 0, "bounds, NaN, no NULLs"},
		{"all doubles", double, arrow.PrimitiveTypes.Float64, "", f64(math.Inf(-1)), f64(math.Inf(1)), 0, "bounds, NaN, no NULLs"},
		{"all singles", single, arrow.PrimitiveTypes.Float32, "", f32(float32(math.Inf(-1))), f32(float32(math.Inf(1))), 0, "bounds, NaN, no NULLs"},
		{"double of another writer", double, arrow.PrimitiveTypes.Float64, "parquet-cpp-arrow version 15.0.0", f64(1), f64(5), 0, "bounds, NaN, no NULLs"},
		{"double up to NaN", double, arrow.PrimitiveTypes.Float64, "", f64(1), nan64, 0, "no NULLs"},
		{"double from NaN", double, arrow.PrimitiveTypes.Float64, "", nan64, f64(5), 0, "no NULLs"},
		{"single up to NaN", single, arrow.PrimitiveTypes.Float32, "", f32(1), nan32, 0, "no NULLs"},
		{"double of a writer that loses values before NaN", double, arrow.PrimitiveTypes.Float64, "parquet-go version 15.0.2", f64(1), f64(5), 0, "no NULLs"},
		{"optional double", leaf(format.Double, true, nil), arrow.PrimitiveTypes.Float64, "", f64(1), f64(5), 0, "bounds, NaN, no NULLs"},
		{"optional double, some NULL", leaf(format.Double, true, nil), arrow.PrimitiveTypes.Float64, "", f64(1), f64(5), 7, "bounds, NaN"},
		{"optional single, all NULL", leaf(format.Float, true, nil), arrow.PrimitiveTypes.Float32, "", nil, nil, rows, "all NULL"},
		{"optional single, all NULL with bounds", leaf(format.Float, true, nil), arrow.PrimitiveTypes.Float32, "", f32(1), f32(5), rows, "bounds, NaN"},
		{"integer", leaf(format.Int64, false, nil), arrow.PrimitiveTypes.Int64, "", i64(1), i64(5), 0, "bounds, no NULLs"},
		{"integers, swapped bounds", leaf(format.Int64, false, nil), arrow.PrimitiveTypes.Int64, "", i64(5), i64(1), 0, "no NULLs"},
		{"string", text, arrow.BinaryTypes.String, "", []byte("a"), []byte("b"), 0, "bounds, empty, no NULLs"},
		{"string from empty", text, arrow.BinaryTypes.String, "", []byte{}, []byte("b"), 0, "bounds, no NULLs"},
		{"string without end", text, arrow.BinaryTypes.String, "", []byte("a"), []byte("\xff\xff"), 0, "no NULLs"},
		{"fixed", fixedLeaf(2, nil), &arrow.FixedSizeBinaryType{ByteWidth: 2}, "", []byte("aa"), []byte("\xff\xff"), 0, "bounds, no NULLs"},
	} {
		s := spec{
			by: c.by, leaf: c.leaf, rows: rows, stats: meta.Statistics{NullCount: thrift.New(c.nulls)},
			pages: []specPage{{rows: rows, min: c.least, max: c.most, null: c.nulls == rows && c.least == nil, nulls: c.nulls}},
		}.base()
		if c.least != nil {
			s.stats.MinValue, s.stats.MaxValue = thrift.New(c.least), thrift.New(c.most)
		}
		file := s.file(t)
		f, err := parquet.Open(nil, bytes.NewReader(file), int64(len(file)), "test.parquet")
		if err != nil {
			t.Fatal(err)
		}
		st := NewStatistics(f, 0, c.dt)
		if got := told(st.Group(0), c.least, c.most); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		_, pages, err := st.Pages(0)
		if c.by == "parquet-go version 15.0.2" { // whose index is not read
			if pages != nil || err != nil {
				t.Errorf("%s: pages %v, %v", c.name, pages, err)
			}
			continue
		}
		if err != nil || len(pages) != 1 {
			t.Fatalf("%s: %d pages, %v", c.name, len(pages), err)
		}
		if got := told(pages[0], c.least, c.most); got != c.want {
			t.Errorf("%s: page: %s, want %s", c.name, got, c.want)
		}
	}
}

// told renders facts. It shows their bounds only if these are not the given ones.
func told(f Facts, least, most []byte) string {
	out := ""
	switch {
	case f.Least == nil && f.Most == nil:
	case f.Least != nil && bytes.Equal(f.Least, least) && bytes.Equal(f.Most, most):
		out = "bounds, "
	default:
		out = fmt.Sprintf("bounds %x and %x, ", f.Least, f.Most)
	}
	for _, is := range []struct {
		so   bool
		text string
	}{{f.NaN, "NaN, "}, {f.Empty, "empty, "}, {f.NoNulls, "no NULLs, "}, {f.AllNulls, "all NULL, "}} {
		if is.so {
			out += is.text
		}
	}
	return out[:max(len(out)-2, 0)]
}
