package text

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/decimal"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// parseOne parses s as dt. It returns false if s is refused.
func parseOne(t *testing.T, dt arrow.DataType, s string) (arrow.Array, bool) {
	t.Helper()
	p, ok := parserOf(dt)
	if !ok {
		t.Fatalf("no parser for %s", dt)
	}
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	ok = p(b, s)
	if arr := b.NewArray(); ok != (arr.Len() == 1) {
		t.Errorf("%s: parsed %v, %d values", dt, ok, arr.Len())
		return nil, false
	} else if ok {
		return arr, true
	}
	return nil, false
}

func TestParse(t *testing.T) {
	prim, fixed := arrow.PrimitiveTypes, arrow.FixedWidthTypes
	dec := &arrow.Decimal128Type{Precision: 5, Scale: 2}
	decNeg := &arrow.Decimal128Type{Precision: 3, Scale: -2}
	dec256 := &arrow.Decimal256Type{Precision: 76, Scale: 0}
	local := func(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u} }
	zoned := func(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u, TimeZone: "Asia/Tokyo"} }
	for _, c := range []struct {
		dt   arrow.DataType
		good map[string]any
		bad  []string
	}{
		{prim.Int8, map[string]any{"127": int8(127), "-128": int8(-128), "+5": int8(5), "007": int8(7), "-0": int8(0), " 1": int8(1), "\t-1 ": int8(-1)},
			[]string{"128", "-129", "", "+", "1.0", "1e1", "0x1", "1 1", "- 1", " ", "\u00a01", "\n1", "1_0", "--1", "٣"}},
		{prim.Int16, map[string]any{"-32768": int16(math.MinInt16)}, []string{"32768"}},
		{prim.Int32, map[string]any{"2147483647": int32(math.MaxInt32)}, []string{"2147483648"}},
		{prim.Int64, map[string]any{"-9223372036854775808": int64(math.MinInt64), "9007199254740993": int64(9007199254740993)}, []string{"9223372036854775808"}},
		{prim.Uint8, map[string]any{"255": uint8(255), "+1": uint8(1), "-0": uint8(0)}, []string{"256", "-1", "+-1", "-+1", "++1"}},
		{prim.Uint16, map[string]any{"65535": uint16(65535)}, []string{"65536"}},
		{prim.Uint32, map[string]any{"4294967295": uint32(math.MaxUint32)}, []string{"4294967296"}},
		{prim.Uint64, map[string]any{"18446744073709551615": uint64(math.MaxUint64)}, []string{"18446744073709551616", "-1"}},
		{prim.Float32, map[string]any{"1.5": float32(1.5), "-inf": float32(math.Inf(-1)), "16777216": float32(16777216), "16777217.5": float32(16777218)}, []string{"16777217", "-16777217", "1e39", "x", "0x1p4", "1_0", ""}},
		{prim.Float64, map[string]any{"1e-3": 0.001, ".5": 0.5, " 1.5 ": 1.5, "-0": math.Copysign(0, -1), "9007199254740992": 9007199254740992.0}, []string{"9007199254740993", "1e400", "0x1", "1,5", "nanny"}},
		{fixed.Boolean, map[string]any{"true": true, "FALSE": false, "True": true}, []string{"1", "t", "yes", "", " true"}},
		{prim.Date32, map[string]any{"1970-01-01": arrow.Date32(0), "1969-12-31": arrow.Date32(-1), "2024-02-29": arrow.Date32(19782), "0001-01-01": arrow.Date32(-719162), " 1970-01-02 ": arrow.Date32(1)},
			[]string{"2023-02-29", "2024-1-1", "20240101", "2024-01-01T00:00:00", ""}},
		{local(arrow.Second), map[string]any{"1970-01-01T00:00:01": arrow.Timestamp(1), "1969-12-31 23:59:59": arrow.Timestamp(-1), "1970-01-01T00:00:00.000": arrow.Timestamp(0), "1970-01-02": arrow.Timestamp(86400), "1970-01-01 00:01": arrow.Timestamp(60)},
			[]string{"1970-01-01T00:00:01Z", "1970-01-01T00:00:01.5", "1970-01-01T", "1970-01-01T00", "1970-01-01T1:00:00", "1970-01-01T1:00", "1970-01-01 00:00+00", "19700101", "1970-1-1", "1970-01-01T00:00:00+00:00"}},
		{local(arrow.Millisecond), map[string]any{"1969-12-31T23:59:59.999": arrow.Timestamp(-1)}, []string{"1970-01-01T00:00:00.0001"}},
		{zoned(arrow.Microsecond), map[string]any{"1970-01-01T00:00:00.000001Z": arrow.Timestamp(1), "1970-01-01T09:00:00+09:00": arrow.Timestamp(0), "1970-01-01 09:00+0900": arrow.Timestamp(0), "1969-12-31 19:00-05": arrow.Timestamp(0), "1970-01-01T00:00:00": arrow.Timestamp(0), "1970-01-01": arrow.Timestamp(0), "9999-12-31T23:59:59Z": arrow.Timestamp(253402300799000000)},
			[]string{"1970-01-01Z", "1970-01-01T00:00:00,5Z", "1970-01-01T24:00:00Z", "1970-01-01T00:00:00+9", "1970-01-01T00:00:00Z0900", "1970-01-01T00:00:00+09:0", "1970-01-01T00:00:00 UTC"}},
		{zoned(arrow.Nanosecond), map[string]any{"1970-01-01T00:00:00.123456789Z": arrow.Timestamp(123456789), "1970-01-01T00:00:00.12345678900Z": arrow.Timestamp(123456789), "2262-04-11T23:47:15Z": arrow.Timestamp(9223372035000000000)},
			[]string{"2263-01-01T00:00:00Z", "1677-01-01T00:00:00Z", "1970-01-01T00:00:00.1234567891Z", "1970-01-01T0:00:00.1234567891Z"}},
		{fixed.Time32s, map[string]any{"00:00:00": "00:00:00", "23:59:59.000": "23:59:59", "00:01": "00:01:00"}, []string{"24:00:00", "1:00:00", "00:00:00.5", "1:000", "24:00", "00:00:00Z"}},
		{fixed.Time64ns, map[string]any{"00:00:01.000000001": "00:00:01.000000001"}, []string{"00:00:00.0000000001", "00:00:00,5"}},
		{dec, map[string]any{"1.5": "150", "-1.50": "-150", "999.99": "99999", "1e2": "10000", "0.0000": "0", "-0": "0", ".01": "1", "5.": "500", " 1.5\t": "150", "0.12e1": "120", "00012.300": "1230", "0e99999": "0"},
			[]string{"0.1e-2147483648", "10e2147483647", "1.234", "1000", "", ".", "-", "e1", "1e", "1e99", "1.2.3", "1 2", " ", "٣", "1e9999999999", "inf", "1-2"}},
		{decNeg, map[string]any{"100": "1", "99900": "999", "1e2": "1"}, []string{"150", "100000", "1"}},
		{dec256, map[string]any{strings.Repeat("9", 76): strings.Repeat("9", 76)}, []string{strings.Repeat("9", 77), "0.1"}},
		{&arrow.FixedSizeBinaryType{ByteWidth: 2}, map[string]any{"0aFF": "\x0a\xff"}, []string{"0a", "0aff00", "0g00", ""}},
		{&arrow.FixedSizeBinaryType{ByteWidth: 16}, map[string]any{
			"00112233-4455-6677-8899-aabbccddeeff": "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff",
			"00112233445566778899AABBCCDDEEFF":     "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"},
			[]string{"{00112233-4455-6677-8899-aabbccddeeff}", "001122334-455-6677-8899-aabbccddeeff", "0011223344556677-8899-aabbccddeeff"}},
		{arrow.BinaryTypes.Binary, map[string]any{"": "", "\xff": "\xff"}, nil},
		{arrow.BinaryTypes.LargeBinary, map[string]any{"x": "x"}, nil},
		{arrow.BinaryTypes.LargeString, map[string]any{" x ": " x "}, nil},
	} {
		for s, want := range c.good {
			arr, ok := parseOne(t, c.dt, s)
			if !ok {
				t.Errorf("%s: %q is refused", c.dt, s)
			} else if got := valueOf(arr); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %q is %v, want %v", c.dt, s, got, want)
			}
		}
		for _, s := range c.bad {
			if arr, ok := parseOne(t, c.dt, s); ok {
				t.Errorf("%s: %q is %v, want it refused", c.dt, s, arr)
			}
		}
	}
	if arr, ok := parseOne(t, prim.Float64, "NaN"); !ok || !math.IsNaN(arr.(*array.Float64).Value(0)) {
		t.Error("NaN")
	}
	for _, dt := range []arrow.DataType{arrow.Null, fixed.Float16, fixed.Date64, arrow.StructOf(), arrow.BinaryTypes.StringView, fixed.Duration_s} {
		if _, ok := parserOf(dt); ok {
			t.Errorf("a parser for %s", dt)
		}
	}
}

// valueOf returns the only value of arr.
func valueOf(arr arrow.Array) any {
	switch a := arr.(type) {
	case *array.Timestamp:
		return a.Value(0)
	case *array.Date32:
		return a.Value(0)
	case *array.Decimal128:
		return decimal.Big128(a.Value(0))
	case *array.Decimal256:
		return decimal.Big256(a.Value(0))
	case *array.FixedSizeBinary:
		return string(a.Value(0))
	case *array.Binary:
		return string(a.Value(0))
	case *array.LargeBinary:
		return string(a.Value(0))
	case *array.LargeString:
		return a.Value(0)
	}
	return arr.GetOneForMarshal(0)
}

// unpanicked requires that err, if not nil, is from a check and not a recovered
// panic.
func unpanicked(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, panics.ErrRecovered) {
		t.Fatalf("a recovered panic: %v", err)
	}
}

// FuzzCSV compares with encoding/csv: the same rows, or both find an error. The
// oracle changes CR LF within quotes to LF, and knows no lines that end with CR; the test
// allows for that.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{
		"a,b\n1,2\n", "a\n\"x\ny\"\n\n", "\xEF\xBB\xBFa\r\n1\r\n", "a,a\n", "a\n\"", "a,b\n1\n", gz("a\n1\n"), zst("a\n1\n"),
		"a\n\"\"\"\r\n\"\n", "a,b\n\"1\n\",x\"\n", "a\r\n\"x\" \r\n", "a\n1\r", "a\n\r\r\n,", "a,b\r1,\"\r\"\r\r2,", "a\xFF\n1\n", "a\r1\n2\n", "a,b\n\"\n\",\"\",\n",
		",a\n0,b\n", ",a\n", ",\n", "\"\",a,b\n1,\"x\ny\",\n2,3\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rows, err := read(t, "a.csv", s, Options{MaxLineBytes: 1 << 20})
		unpanicked(t, err)
		if compressionOf([]byte(s[:min(4, len(s))])) != "" || errors.Is(err, fault.ErrUnsupported) {
			return
		}
		if mark, _ := markOf([]byte(s)); !utf8.ValidString(s) {
			head := strings.TrimLeft(strings.TrimPrefix(s, "\xEF\xBB\xBF"), "\r\n")
			indexed := strings.HasPrefix(head, ",") || strings.HasPrefix(head, `"",`) // which is not read
			if err == nil && mark == "" && !indexed {
				t.Fatalf("%q of text that is not UTF-8", rows)
			}
			return
		}
		end := "\r\n"
		if lf := strings.IndexByte(s, '\n'); lf < 0 && strings.Contains(s, "\r") {
			end, s = "\r", strings.ReplaceAll(s, "\r", "\n")
		}
		want, line, broken := oracleCSV(strings.TrimPrefix(s, "\xEF\xBB\xBF"))
		var got *fault.Error
		if errors.As(err, &got) {
			if strings.Contains(got.What.String(), "a CR without LF") {
				if !strings.Contains(s, "\r") {
					t.Fatalf("%v", err)
				}
				return
			}
			if quotes := strings.Contains(got.What.String(), "quote"); quotes != broken {
				t.Fatalf("%v; encoding/csv finds broken quotes: %v", err, broken)
			} else if quotes && got.At.Line != line && !strings.Contains(got.What.String(), "not closed") {
				t.Fatalf("%v; encoding/csv: line %d", err, line)
			} else if !quotes && got.At.Line != line {
				t.Fatalf("%v; by encoding/csv: line %d", err, line)
			}
			return
		}
		if broken || err != nil || len(want) == 0 || line != 0 {
			t.Fatalf("%v, %v; broken quotes: %v, a wrong row: %d, %d rows", rows, err, broken, line, len(want))
		}
		for _, row := range rows {
			for i := range row {
				row[i] = strings.ReplaceAll(row[i], end, "\n")
			}
		}
		if fmt.Sprint(rows) != fmt.Sprint(want[1:]) {
			t.Fatalf("%q, want %q", rows, want[1:])
		}
	})
}

// oracleCSV reads all rows with encoding/csv, with NULL as "∅". line is that of the
// first error: quotes, names, or a row of another width.
func oracleCSV(s string) (rows [][]string, line int, broken bool) {
	r := csv.NewReader(strings.NewReader(s))
	r.FieldsPerRecord = -1
	width, first := 0, 0 // first: 1 if there is an index
	for {
		row, err := r.Read()
		if err == io.EOF {
			return rows, 0, false
		}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			return rows, parse.Line, true
		}
		line, _ := r.FieldPos(0)
		if len(rows) == 0 {
			if width = len(row); width > 1 && row[0] == "" {
				first = 1
			}
			sorted := slices.Sorted(slices.Values(row[first:]))
			if sorted[0] == "" || len(slices.Compact(sorted)) < width-first {
				return rows, line, false
			}
		} else if len(row) != width {
			return rows, line, false
		}
		row = row[first:]
		for i := range row {
			if row[i] == "" && len(rows) > 0 {
				row[i] = "∅"
			}
		}
		rows = append(rows, row)
	}
}

// FuzzNDJSON compares strings and numbers with encoding/json.
func FuzzNDJSON(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":"\u0041\ud83d\ude00","b":[{},"]"]}`, "{}\n{\"x\":null}", `{"a":"\ud800"}`, `{"a":1,"a":2}`, ` { "a" : { "b" : "}" } , "c" : -1.5e3 } `} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tab, err := Open(given(t, s), "a.jsonl", Options{})
		unpanicked(t, err)
		if err != nil || len(s) > 1<<16 {
			return
		}
		rows, err := all(tab, nil)
		unpanicked(t, err)
		if mark, _ := markOf([]byte(s)); err != nil || compressionOf([]byte(s[:min(4, len(s))])) != "" || mark != "" && mark != UTF8 {
			return
		}
		dec := json.NewDecoder(strings.NewReader(strings.TrimPrefix(s, "\xEF\xBB\xBF")))
		dec.UseNumber()
		for i := 0; ; i++ {
			var want map[string]any
			if err := dec.Decode(&want); err == io.EOF && i == len(rows) {
				return
			} else if err != nil || i >= len(rows) {
				t.Fatalf("%d rows; encoding/json at row %d: %v", len(rows), i, err)
			}
			for c, field := range tab.Schema().Fields() {
				got := rows[i][c]
				switch v := want[field.Name].(type) {
				case nil:
					if got != "∅" {
						t.Fatalf("row %d, %q: %q, want NULL", i, field.Name, got)
					}
				case string, json.Number, bool:
					if got != fmt.Sprint(v) {
						t.Fatalf("row %d, %q: %q, want %q", i, field.Name, got, v)
					}
				default:
					if !json.Valid([]byte(got)) {
						t.Fatalf("row %d, %q: %q is not JSON", i, field.Name, got)
					}
				}
			}
		}
	})
}
