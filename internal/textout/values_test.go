package textout

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/decimal256"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowtest"
	"github.com/bloomjoin/bloomjoin/internal/decimal"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// entry is a struct type of an integer and a text.
var entry = arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: `y"`, Type: arrow.BinaryTypes.String, Nullable: true})

var uuid = arrow.NewMetadata([]string{extensionKey}, []string{"arrow.uuid"})

// Each type as it stands in CSV and in NDJSON. In TSV it is as in CSV where that has no quotes.
func TestValues(t *testing.T) {
	for name, c := range map[string]struct {
		dt        arrow.DataType
		md        arrow.Metadata
		in        string
		csv, json []string
	}{
		"null":       {dt: arrow.Null, in: `[null]`, csv: []string{""}, json: []string{"null"}},
		"bool":       {dt: arrow.FixedWidthTypes.Boolean, in: `[true,false,null]`, csv: []string{"true", "false", ""}, json: []string{"true", "false", "null"}},
		"int8":       {dt: arrow.PrimitiveTypes.Int8, in: `[-128,127]`, csv: []string{"-128", "127"}, json: []string{"-128", "127"}},
		"int64":      {dt: arrow.PrimitiveTypes.Int64, in: `[-9223372036854775808]`, csv: []string{"-9223372036854775808"}, json: []string{"-9223372036854775808"}},
		"uint64":     {dt: arrow.PrimitiveTypes.Uint64, in: `["18446744073709551615"]`, csv: []string{"18446744073709551615"}, json: []string{"18446744073709551615"}},
		"float64":    {dt: arrow.PrimitiveTypes.Float64, in: `[0.1,100,9007199254740993,1e300,5e-324,0.000001,1e-7]`, csv: []string{"0.1", "100.0", "9.007199254740992e+15", "1e+300", "5e-324", "0.000001", "1e-07"}, json: []string{"0.1", "100.0", "9.007199254740992e+15", "1e+300", "5e-324", "0.000001", "1e-07"}},
		"float32":    {dt: arrow.PrimitiveTypes.Float32, in: `[0.1,16777215,123456789]`, csv: []string{"0.1", "16777215.0", "1.2345679e+08"}, json: []string{"0.1", "16777215.0", "1.2345679e+08"}},
		"decimal":    {dt: &arrow.Decimal128Type{Precision: 15, Scale: 2}, in: `["-0.05",null]`, csv: []string{"-0.05", ""}, json: []string{"-0.05", "null"}},
		"wide":       {dt: &arrow.Decimal128Type{Precision: 16, Scale: 2}, in: `["-0.05",null]`, csv: []string{"-0.05", ""}, json: []string{`"-0.05"`, "null"}},
		"string":     {dt: arrow.BinaryTypes.String, in: `["a b","","a,b","a\"b","\u001f\\","é\u2028",null]`, csv: []string{"a b", `""`, `"a,b"`, `"a""b"`, "\x1f\\", "é\u2028", ""}, json: []string{`"a b"`, `""`, `"a,b"`, `"a\"b"`, `"\u001f\\"`, "\"é\u2028\"", "null"}},
		"binary":     {dt: arrow.BinaryTypes.Binary, in: `["AP8=",""]`, csv: []string{"00ff", `""`}, json: []string{`"00ff"`, `""`}},
		"fixed":      {dt: &arrow.FixedSizeBinaryType{ByteWidth: 2}, in: `["AP8="]`, csv: []string{"00ff"}, json: []string{`"00ff"`}},
		"uuid":       {dt: &arrow.FixedSizeBinaryType{ByteWidth: 16}, md: uuid, in: `["AAECAwQFBgcICQoLDA0ODw=="]`, csv: []string{"00010203-0405-0607-0809-0a0b0c0d0e0f"}, json: []string{`"00010203-0405-0607-0809-0a0b0c0d0e0f"`}},
		"date32":     {dt: arrow.FixedWidthTypes.Date32, in: `["0000-01-01","1969-12-31","2024-02-29","9999-12-31"]`, csv: []string{"0000-01-01", "1969-12-31", "2024-02-29", "9999-12-31"}, json: []string{`"0000-01-01"`, `"1969-12-31"`, `"2024-02-29"`, `"9999-12-31"`}},
		"seconds":    {dt: &arrow.TimestampType{Unit: arrow.Second}, in: `[-1]`, csv: []string{"1969-12-31T23:59:59"}, json: []string{`"1969-12-31T23:59:59"`}},
		"millis":     {dt: &arrow.TimestampType{Unit: arrow.Millisecond}, in: `[-1,120]`, csv: []string{"1969-12-31T23:59:59.999", "1970-01-01T00:00:00.120"}, json: []string{`"1969-12-31T23:59:59.999"`, `"1970-01-01T00:00:00.120"`}},
		"nanos":      {dt: &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Oslo"}, in: `["2262-04-11T23:47:16.854775807Z",-9223372036854775808]`, csv: []string{"2262-04-11T23:47:16.854775807Z", "1677-09-21T00:12:43.145224192Z"}, json: []string{`"2262-04-11T23:47:16.854775807Z"`, `"1677-09-21T00:12:43.145224192Z"`}},
		"time32":     {dt: arrow.FixedWidthTypes.Time32s, in: `["23:59:59"]`, csv: []string{"23:59:59"}, json: []string{`"23:59:59"`}},
		"time64":     {dt: arrow.FixedWidthTypes.Time64us, in: `["00:00:00.000001"]`, csv: []string{"00:00:00.000001"}, json: []string{`"00:00:00.000001"`}},
		"duration":   {dt: arrow.FixedWidthTypes.Duration_ms, in: `[-1500]`, csv: []string{"-1500"}, json: []string{"-1500"}},
		"dictionary": {dt: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, in: `["a","b,",null,"a"]`, csv: []string{"a", `"b,"`, "", "a"}, json: []string{`"a"`, `"b,"`, "null", `"a"`}},
		"list":       {dt: arrow.ListOf(arrow.PrimitiveTypes.Int16), in: `[[1,null],[],null]`, csv: []string{`"[1,null]"`, "[]", ""}, json: []string{"[1,null]", "[]", "null"}},
		"fixed list": {dt: arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Date32), in: `[null,["1970-01-01",null]]`, csv: []string{"", `"[""1970-01-01"",null]"`}, json: []string{"null", `["1970-01-01",null]`}},
		"struct":     {dt: entry, in: `[{"x":1,"y\"":"a"},{"x":null,"y\"":null},null]`, csv: []string{`"{""x"":1,""y\"""":""a""}"`, `"{""x"":null,""y\"""":null}"`, ""}, json: []string{`{"x":1,"y\"":"a"}`, `{"x":null,"y\"":null}`, "null"}},
		"map":        {dt: arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(entry)), in: `[[{"key":"k","value":[{"x":1}]}]]`, csv: []string{`"[{""key"":""k"",""value"":[{""x"":1,""y\"""":null}]}]"`}, json: []string{`[{"key":"k","value":[{"x":1,"y\"":null}]}]`}},
	} {
		t.Run(name, func(t *testing.T) {
			rec := column(t, c.dt, c.md, c.in)
			for f, want := range map[text.Format][]string{text.CSV: c.csv, text.NDJSON: c.json, text.TSV: c.csv} {
				if f == text.TSV && strings.Contains(strings.Join(want, ""), `"`) {
					continue
				}
				for step := int64(1); step <= rec.NumRows(); step++ {
					s, err := written(rec, step, Options{Format: f})
					if got := cells(t, s, f); err != nil || !slices.Equal(got, want) {
						t.Errorf("format %d, records of %d rows: %q, %v; want %q", f, step, got, err, want)
					}
				}
			}
		})
	}
}

// What arrow's JSON cannot write.
func TestMoreValues(t *testing.T) {
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendValues([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}, nil)
	floats := beside(arrow.Field{Name: "c", Type: arrow.PrimitiveTypes.Float64}, b.NewArray())
	wide, _, err := array.FromJSON(memory.DefaultAllocator, &arrow.FixedSizeBinaryType{ByteWidth: 16}, strings.NewReader(`["AAECAwQFBgcICQoLDA0ODw=="]`))
	if err != nil {
		t.Fatal(err)
	}
	wrapped := arrowtest.Extended(t, wide)
	for _, c := range []struct {
		rec       arrow.Record
		csv, json []string
	}{
		{floats, []string{"NaN", "Infinity", "-Infinity", "-0.0"}, []string{`"NaN"`, `"Infinity"`, `"-Infinity"`, "-0.0"}},
		{beside(arrow.Field{Name: "c", Type: wrapped.DataType()}, wrapped), []string{"000102030405060708090a0b0c0d0e0f"}, []string{`"000102030405060708090a0b0c0d0e0f"`}},
	} {
		for f, want := range map[text.Format][]string{text.CSV: c.csv, text.TSV: c.csv, text.NDJSON: c.json} {
			s, err := written(c.rec, 3, Options{Format: f})
			if got := cells(t, s, f); err != nil || !slices.Equal(got, want) {
				t.Errorf("format %d: %q, %v; want %q", f, got, err, want)
			}
		}
	}
}

// Decimals of all sizes and scales, with the digits of math/big.
func TestDecimals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		n := new(big.Int)
		for range 4 {
			n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(r.Uint64()))
		}
		n.Rsh(n, uint(2+r.IntN(255)))
		if r.IntN(2) == 0 {
			n.Neg(n)
		}
		scale := r.IntN(80) - 3
		want := new(big.Int).Abs(n).String()
		if scale <= 0 && n.Sign() != 0 {
			want += strings.Repeat("0", -scale)
		} else if scale > 0 {
			want = strings.Repeat("0", max(scale+1-len(want), 0)) + want
			want = want[:len(want)-scale] + "." + want[len(want)-scale:]
		}
		if n.Sign() < 0 {
			want = "-" + want
		}
		check := func(kind string, a arrow.Array) {
			p, _ := plain(arrow.Field{}, a)
			if got, err := p([]byte("x"), 0); err != nil || string(got) != "x"+want {
				t.Fatalf("%s %s with scale %d: %q, %v; want %q", kind, n, scale, got, err, want)
			}
		}
		b := array.NewDecimal256Builder(memory.DefaultAllocator, &arrow.Decimal256Type{Precision: 76, Scale: int32(scale)})
		b.Append(decimal256.Num(decimal.From256(n)))
		check("decimal256", b.NewArray())
		if n.BitLen() < 127 {
			b := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 38, Scale: int32(scale)})
			b.Append(decimal128.Num(decimal.From128(n)))
			check("decimal128", b.NewArray())
		}
	}
}

// Each float is the nearest one to its text, and integers are written with their own digits only.
func TestFloats(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200000 {
		f := math.Float64frombits(r.Uint64())
		if r.IntN(2) == 0 {
			f = math.Trunc(f * math.Pow(10, float64(r.IntN(30))))
		}
		if special(f) != "" {
			continue
		}
		s := string(appendFloat(nil, f, 64))
		if got, err := strconv.ParseFloat(s, 64); got != f || err != nil {
			t.Fatalf("%v is %s, which is %v, %v", f, s, got, err)
		}
		whole, is := strings.CutSuffix(s, ".0")
		if exact, _ := new(big.Float).SetFloat64(f).Int(nil); is && exact.String() != whole && f != 0 || !is && !strings.ContainsAny(s, ".e") {
			t.Fatalf("%v is %s, want %s.0", f, s, exact)
		}
		g := float32(f)
		s = string(appendFloat(nil, float64(g), 32))
		if got, err := strconv.ParseFloat(s, 32); special(float64(g)) == "" && (float32(got) != g || err != nil) {
			t.Fatalf("%v is %s, which is %v, %v", g, s, got, err)
		}
	}
}

// What text cannot say is an error with row, column and remedy, and without the value.
func TestRefused(t *testing.T) {
	str := arrow.BinaryTypes.String
	any := []text.Format{text.CSV, text.TSV, text.NDJSON}
	notJSON := any[:2]
	tsv := any[1:2]
	for name, c := range map[string]struct {
		formats []text.Format
		dt      arrow.DataType
		in      string
		says    string
	}{
		"not UTF-8":       {any, str, "", "row 2 has text that is not UTF-8"},
		"within a list":   {any, arrow.ListOf(str), "", "row 2 has text that is not UTF-8"},
		"NUL":             {notJSON, str, `["a","secret\u0000"]`, "row 2 has text with a NUL"},
		"tab":             {tsv, str, `["a","secret\t"]`, "row 2 has text with a tab"},
		"CR":              {tsv, str, `["a","secret\r"]`, "row 2 has text with a tab or a line end"},
		"empty":           {tsv, str, `["a",""]`, "row 2 has an empty string"},
		"empty binary":    {tsv, arrow.BinaryTypes.Binary, `["AA==",""]`, "row 2 has an empty string"},
		"late date":       {any, arrow.FixedWidthTypes.Date32, `[0,2932897]`, "row 2 has a year"},
		"early date":      {any, arrow.FixedWidthTypes.Date32, `[0,-719529]`, "row 2 has a year"},
		"part of a day":   {any, arrow.FixedWidthTypes.Date64, `[86400000,1]`, "row 2 has a date with a time"},
		"late timestamp":  {any, &arrow.TimestampType{Unit: arrow.Second}, `[0,253402300800]`, "row 2 has a year"},
		"early timestamp": {any, &arrow.TimestampType{Unit: arrow.Millisecond}, `[0,-62167219200001]`, "row 2 has a year"},
		"late time":       {any, arrow.FixedWidthTypes.Time32s, `[0,86400]`, "row 2 has a time"},
		"early time":      {any, arrow.FixedWidthTypes.Time64ns, `[0,-1]`, "row 2 has a time"},
	} {
		rec := arrow.Record(nil)
		if c.in == "" {
			b := array.NewBuilder(memory.DefaultAllocator, c.dt)
			values, _ := b.(*array.StringBuilder)
			for _, s := range []string{"a", "secret\xff"} {
				if l, ok := b.(*array.ListBuilder); ok {
					l.Append(true)
					values = l.ValueBuilder().(*array.StringBuilder)
				}
				values.Append(s)
			}
			rec = beside(arrow.Field{Name: "c", Type: c.dt}, b.NewArray())
		} else {
			rec = column(t, c.dt, arrow.Metadata{}, c.in)
		}
		for _, f := range any {
			s, err := written(rec, 1, Options{Format: f})
			if !slices.Contains(c.formats, f) {
				if err != nil {
					t.Errorf("%s, format %d: %v", name, f, err)
				}
				continue
			}
			e := new(fault.Error)
			if !errors.As(err, &e) || !errors.Is(err, fault.ErrUnsupported) || e.At.Column != "c" || !strings.Contains(err.Error(), c.says) || e.Hint == "" || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s, format %d: %v; want that %q, the column and a hint", name, f, err, c.says)
			}
			if len(cells(t, s, f)) != 1 {
				t.Errorf("%s, format %d: after the error there is %q", name, f, s)
			}
		}
	}
}

// Schemas that text cannot have.
func TestRefusedSchemas(t *testing.T) {
	i := arrow.PrimitiveTypes.Int32
	for name, c := range map[string]struct {
		fields []arrow.Field
		says   string
	}{
		"none":           {nil, "without columns"},
		"no name":        {[]arrow.Field{{Name: "", Type: i}}, "without a name"},
		"twice":          {[]arrow.Field{{Name: "a", Type: i}, {Name: "b", Type: i}, {Name: "a", Type: i}}, "column a: unsupported: two columns of one name"},
		"twice in a map": {[]arrow.Field{{Name: "a", Type: arrow.MapOf(i, arrow.StructOf(arrow.Field{Name: "x", Type: i}, arrow.Field{Name: "x", Type: i}))}}, "column a.x: unsupported: two columns of one name"},
		"not UTF-8":      {[]arrow.Field{{Name: "a\xff", Type: i}}, "not UTF-8"},
		"interval":       {[]arrow.Field{{Name: "a", Type: arrow.FixedWidthTypes.MonthInterval}}, "month_interval as text"},
		"list of unions": {[]arrow.Field{{Name: "a", Type: arrow.ListOf(arrow.SparseUnionOf([]arrow.Field{{Name: "x", Type: i}}, []arrow.UnionTypeCode{0}))}}, "column a: unsupported"},
		"run ends":       {[]arrow.Field{{Name: "a", Type: arrow.RunEndEncodedOf(i, i)}}, "column a: unsupported"},
	} {
		for _, f := range []text.Format{text.CSV, text.TSV, text.NDJSON} {
			_, err := NewWriter(new(bytes.Buffer), arrow.NewSchema(c.fields, nil), Options{Format: f})
			if e := new(fault.Error); !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) || e.Hint == "" {
				t.Errorf("%s, format %d: %v; want %q and a hint", name, f, err, c.says)
			}
		}
	}
	for name, f := range map[string]text.Format{"a\x00": text.CSV, "a\tb": text.TSV, "\ufeffa": text.TSV} {
		if _, err := NewWriter(new(bytes.Buffer), arrow.NewSchema([]arrow.Field{{Name: name, Type: i}}, nil), Options{Format: f}); !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("the name %q in format %d: %v", name, f, err)
		}
	}
}
