package arrowparquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

func opened(t testing.TB, b []byte) *parquet.File {
	f, err := parquet.Open(nil, bytes.NewReader(b), int64(len(b)), "x")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// le returns the PLAIN encoding of numbers and of bytes.
func le(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func floats64(values ...float64) arrow.Array {
	b := array.NewFloat64Builder(memory.NewGoAllocator())
	b.AppendValues(values, nil)
	return b.NewArray()
}

func floats32(values ...float32) arrow.Array {
	b := array.NewFloat32Builder(memory.NewGoAllocator())
	b.AppendValues(values, nil)
	return b.NewArray()
}

// The bounds of a chunk, by hand. The lists of NULLs give their number.
func TestBounds(t *testing.T) {
	long, edge := strings.Repeat("x", 1025), strings.Repeat("y", 1024)
	from := func(dt arrow.DataType, json string) arrow.Array {
		arr, _, err := array.FromJSON(memory.NewGoAllocator(), dt, strings.NewReader(json))
		if err != nil {
			t.Fatal(err)
		}
		return arr
	}
	text, bin := arrow.BinaryTypes.String, arrow.BinaryTypes.Binary
	negative := math.Copysign(0, -1)
	for name, c := range map[string]struct {
		arr    arrow.Array
		lo, hi any // nil: none
		nulls  int64
	}{
		"only ''":         {from(text, `["",""]`), "", "", 0},
		"'' and more":     {from(text, `["b","",null,"c"]`), "", "c", 1},
		"'' in bytes":     {from(bin, `["","AA==",null]`), "", "\x00", 1},
		"unsigned bytes":  {from(bin, `["/w==","fw=="]`), "\x7f", "\xff", 0},
		"prefixes":        {from(text, `["ab","a","abc"]`), "a", "abc", 0},
		"NULLs":           {from(text, `[null,null]`), nil, nil, 2},
		"1024 bytes":      {from(text, `["a","`+edge+`"]`), "a", edge, 0},
		"1025 bytes":      {from(text, `["a","`+long+`"]`), "a", long[:1023] + "y", 0},
		"by value":        {from(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: text}, `["a","",null,"b"]`), "", "b", 1},
		"in lists":        {from(arrow.ListOf(text), `[["b",""],null,["a",null]]`), "", "b", 2},
		"fixed":           {from(&arrow.FixedSizeBinaryType{ByteWidth: 1}, `["gA==","AQ=="]`), "\x01", "\x80", 0},
		"false":           {from(arrow.FixedWidthTypes.Boolean, `[false,null,false]`), le(false), le(false), 1},
		"true":            {from(arrow.FixedWidthTypes.Boolean, `[true,true]`), le(true), le(true), 0},
		"both":            {from(arrow.FixedWidthTypes.Boolean, `[true,false]`), le(false), le(true), 0},
		"int8":            {from(arrow.PrimitiveTypes.Int8, `[-128,0,127]`), le(int32(-128)), le(int32(127)), 0},
		"uint32":          {from(arrow.PrimitiveTypes.Uint32, `[0,4294967295,null]`), le(uint32(0)), le(uint32(math.MaxUint32)), 1},
		"int64":           {from(arrow.PrimitiveTypes.Int64, `[5,null,-5]`), le(int64(-5)), le(int64(5)), 1},
		"seconds":         {from(arrow.FixedWidthTypes.Timestamp_s, `["1969-12-31 23:59:59"]`), le(int64(-1000)), le(int64(-1000)), 0},
		"floats":          {floats32(2, -1), le(float32(-1)), le(float32(2)), 0},
		"doubles":         {floats64(math.Inf(1), 2), 2.0, math.Inf(1), 0},
		"infinite":        {floats64(math.Inf(1)), math.Inf(1), math.Inf(1), 0},
		"NaN":             {floats64(math.NaN()), nil, nil, 0},
		"NaN last":        {floats64(1, math.NaN()), nil, nil, 0},
		"NaN first":       {floats32(float32(math.NaN()), 1), nil, nil, 0},
		"+0":              {floats64(0), negative, 0.0, 0},
		"-0":              {floats64(negative), negative, 0.0, 0},
		"zeros of both":   {floats32(0, float32(negative)), float32(negative), float32(0), 0},
		"a decimal":       {from(&arrow.Decimal128Type{Precision: 5}, `["-1",null]`), "\xff\xff\xff", "\xff\xff\xff", 1},
		"only empty list": {from(arrow.ListOf(arrow.PrimitiveTypes.Int32), `[[],[]]`), nil, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			rec := array.NewRecord(oneColumn(c.arr.DataType()), []arrow.Array{c.arr}, int64(c.arr.Len()))
			st := opened(t, written(t, rec, 2, WriterOptions{})).Metadata.RowGroups[0].Columns[0].MetaData.Statistics
			if st.NullCount.V != c.nulls || !st.NullCount.Valid {
				t.Errorf("NULLs: got %+v, want %d", st.NullCount, c.nulls)
			}
			if st.MinValue.Valid != (c.lo != nil) || st.MaxValue.Valid != (c.hi != nil) {
				t.Fatalf("got %+v", st)
			}
			if c.lo != nil && (string(st.MinValue.V) != le(c.lo) || string(st.MaxValue.V) != le(c.hi)) {
				t.Errorf("got %q to %q, want %q to %q", st.MinValue.V, st.MaxValue.V, le(c.lo), le(c.hi))
			}
		})
	}
}

// Each row group has the statistics of its own values; pages have none.
func TestStatisticsOfGroups(t *testing.T) {
	mem := checked(t)
	rec := record(t, mem, oneColumn(arrow.BinaryTypes.String), `[{"c":"b"},{"c":""},{"c":"c"},{"c":null}]`)
	defer rec.Release()
	b := written(t, rec, 4, WriterOptions{RowGroupRows: 1, Codec: "none"})
	var got []string
	for _, g := range opened(t, b).Metadata.RowGroups {
		st := g.Columns[0].MetaData.Statistics
		got = append(got, fmt.Sprintf("%v %q %q %d", st.MinValue.Valid, st.MinValue.V, st.MaxValue.V, st.NullCount.V))
	}
	want := `true "b" "b" 0|true "" "" 0|true "c" "c" 0|false "" "" 1`
	if strings.Join(got, "|") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "|"), want)
	}
}
