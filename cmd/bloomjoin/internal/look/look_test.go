package look

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"golang.org/x/text/width"
)

// TestWidths compares the width of each character with what Unicode says.
func TestWidths(t *testing.T) {
	t.Parallel()
	var zero, two int
	for r := rune(' '); r <= unicode.MaxRune; r++ {
		k := width.LookupRune(r).Kind()
		want := 1
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
			want = 0
		case k == width.EastAsianWide || k == width.EastAsianFullwidth:
			want = 2
		case !unicode.IsPrint(r), r >= 0x1160 && r <= 0x11ff: // never shown as they are; parts of syllables
			continue
		}
		switch want {
		case 0:
			zero++
		case 2:
			two++
		}
		if got := widthOf(r); got != want {
			t.Errorf("%U has width %d, want %d", r, got, want)
		}
	}
	if zero < 1500 || two < 100_000 {
		t.Errorf("%d characters without a width, %d wide ones", zero, two)
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{
		"":             0,
		"user":         4,
		"Zoë":          3,
		"Zoe\u0308":    3, // with an accent of its own
		"日本":           4,
		"한글":           4,
		"ｆｕｌｌ":         8,
		"😀":            2,
		"👩‍👩‍👧":        2, // joined
		"👍🏽":           2, // with a colour
		"❤️":           2, // made an emoji
		"❤":            1,
		"🇩🇪":           2,
		"a日e\u0301b":   5,
		"\u1112\u1161": 2, // a syllable in parts
	} {
		if got := columnsOf(s); got != want {
			t.Errorf("%q takes %d columns, want %d", s, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"user", 4, "user"}, {"users", 4, "use…"}, {"users", 1, "…"}, {"u", 1, "u"},
		{"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"日本語", 1, "…"},
		{"Zoe\u0308x", 3, "Zo…"}, {"Zoe\u0308x", 4, "Zoe\u0308x"}, {"👩‍👩‍👧👍🏽", 3, "👩‍👩‍👧…"},
	} {
		if got := cut(c.s, c.most); got != c.want {
			t.Errorf("%q in %d columns is %q, want %q", c.s, c.most, got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "日", "\u0308", "👩", "\u200d", "👍", "🏽", "\ufe0f", "❤", "🇩", "한"}
	for range 20_000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		s, most := b.String(), 1+rng.IntN(14)
		got := cut(s, most)
		if n := columnsOf(got); n > most || (got == s) != (columnsOf(s) <= most) {
			t.Fatalf("%q, which takes %d columns, in %d is %q, which takes %d", s, columnsOf(s), most, got, n)
		}
	}
}

// one has values of a type as JSON, and how they are shown.
type one struct {
	typ  arrow.DataType
	json string
	want []string
}

var cells = []one{
	{typ: arrow.PrimitiveTypes.Int64, json: `[-9223372036854775808, null, 7]`, want: []string{"-9223372036854775808", "NULL", "7"}},
	{typ: arrow.PrimitiveTypes.Uint64, json: `["18446744073709551615"]`, want: []string{"18446744073709551615"}},
	{typ: arrow.PrimitiveTypes.Float64, json: `[1000000, 0.1, 1e300, 1e-9, -0.5, 0, 123456.789]`, want: []string{"1000000", "0.1", "1e+300", "1e-09", "-0.5", "0", "123456.789"}},
	{typ: arrow.PrimitiveTypes.Float32, json: `[0.1]`, want: []string{"0.1"}},
	{typ: arrow.FixedWidthTypes.Boolean, json: `[true, null]`, want: []string{"true", "NULL"}},
	{typ: arrow.BinaryTypes.String, json: `["", "NULL", null, "\"q\"", " a", "a ", "a b", "a\tb", "\u001b[31mred", "e\u202etxt", "日本", "a\\n", "\u00a0", "\u200b"]`, want: []string{
		`""`, `"NULL"`, "NULL", `"\"q\""`, `" a"`, `"a "`, "a b", `"a\tb"`, `"\x1b[31mred"`, `"e\u202etxt"`, "日本", `a\n`, `"\u00a0"`, `"\u200b"`,
	}},
	{typ: arrow.BinaryTypes.Binary, json: `["/w==", "YWI="]`, want: []string{`"\xff"`, "ab"}},
	{typ: &arrow.FixedSizeBinaryType{ByteWidth: 2}, json: `["/wA="]`, want: []string{"ff00"}},
	{typ: arrow.FixedWidthTypes.Date32, json: `["1969-12-31"]`, want: []string{"1969-12-31"}},
	{typ: &arrow.TimestampType{Unit: arrow.Millisecond}, json: `["2001-02-03 04:05:06.789"]`, want: []string{"2001-02-03 04:05:06.789"}},
	{typ: &arrow.TimestampType{Unit: arrow.Second, TimeZone: "Europe/Berlin"}, json: `["2001-02-03T04:05:06Z"]`, want: []string{"2001-02-03 04:05:06Z"}},
	{typ: &arrow.Decimal128Type{Precision: 5, Scale: 2}, json: `["-1.50", "0"]`, want: []string{"-1.50", "0.00"}},
	{typ: arrow.ListOf(arrow.BinaryTypes.String), json: `[["a", null, "\u001b\"\\"], [], null]`, want: []string{`["a",null,"\u001b\"\\"]`, "[]", "NULL"}},
	{typ: arrow.StructOf(arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "on", Type: arrow.FixedWidthTypes.Date32, Nullable: true}), json: `[{"id": 1, "on": "2001-02-03"}, {"id": null, "on": null}]`, want: []string{
		`{"id":1,"on":"2001-02-03"}`, `{"id":null,"on":null}`,
	}},
	{typ: arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String), json: `[[{"key": 1, "value": "a"}], []]`, want: []string{`{"1":"a"}`, "{}"}},
	{typ: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, json: `["x", "NULL", null]`, want: []string{"x", `"NULL"`, "NULL"}},
	{typ: arrow.BinaryTypes.StringView, json: `["x\u001b", "y", null]`, want: []string{`"x\x1b"`, "y", "NULL"}},
	{typ: arrow.Null, json: `[null]`, want: []string{"NULL"}},
}

func fromJSON(t *testing.T, typ arrow.DataType, text string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	return a
}

func TestCells(t *testing.T) {
	t.Parallel()
	for _, c := range cells {
		a := fromJSON(t, c.typ, c.json)
		if a.Len() != len(c.want) {
			t.Errorf("%s: %d values, want %d", c.typ, a.Len(), len(c.want))
		}
		for i := range c.want {
			if got := cell(a, i, 1000); got != c.want[i] {
				t.Errorf("%s: value %d is %s, want %s", c.typ, i, got, c.want[i])
			}
		}
		a.Release()
	}
}

// TestExtremes renders the smallest and largest values of types whose text is computed.
func TestExtremes(t *testing.T) {
	t.Parallel()
	for _, typ := range []arrow.DataType{
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time64ns,
		&arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "no such zone"},
		arrow.FixedWidthTypes.Duration_s, arrow.FixedWidthTypes.MonthInterval, arrow.FixedWidthTypes.DayTimeInterval, arrow.FixedWidthTypes.MonthDayNanoInterval,
		&arrow.Decimal128Type{Precision: 38, Scale: -3}, &arrow.Decimal256Type{Precision: 76, Scale: 76}, arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float64,
		arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8),
	} {
		width := 16
		if f, ok := typ.(arrow.FixedWidthDataType); ok {
			width = f.BitWidth() / 8
		}
		for _, fill := range []byte{0, 0xff, 0x80, 0x7f} {
			buf := memory.NewBufferBytes(bytes.Repeat([]byte{fill}, 4*max(width, 16)))
			data := array.NewData(typ, 2, []*memory.Buffer{nil, buf}, nil, 0, 0)
			if list, ok := typ.(*arrow.FixedSizeListType); ok {
				data = array.NewData(typ, 2, []*memory.Buffer{nil}, []arrow.ArrayData{array.NewData(list.Elem(), 4, []*memory.Buffer{nil, buf}, nil, 0, 0)}, 0, 0)
			}
			if got := cell(array.MakeFromData(data), 1, 1000); got == "" || strings.ContainsFunc(got, unicode.IsControl) {
				t.Errorf("%s of bytes %x: %q", typ, fill, got)
			}
		}
	}
}

// TestCoded renders texts that an array has once for several rows, and those of a type that is
// not taken apart.
func TestCoded(t *testing.T) {
	t.Parallel()
	texts := fromJSON(t, arrow.BinaryTypes.String, `["x\u001b[2J", null]`)
	runs := array.NewRunEndEncodedArray(fromJSON(t, arrow.PrimitiveTypes.Int32, `[2, 3]`), texts, 3, 0)
	for i, want := range []string{`"x\x1b[2J"`, `"x\x1b[2J"`, "NULL"} {
		if got := cell(runs, i, 1000); got != want {
			t.Errorf("run %d is %s, want %s", i, got, want)
		}
	}
	union, err := array.NewSparseUnionFromArrays(fromJSON(t, arrow.PrimitiveTypes.Int8, `[0, 0]`), []arrow.Array{texts})
	if err != nil {
		t.Fatal(err)
	}
	if got := cell(union, 0, 1000); strings.ContainsFunc(got, unicode.IsControl) {
		t.Errorf("a union shows %q", got)
	}
}

// TestLongCells renders values of which only a little may be held.
func TestLongCells(t *testing.T) {
	long := strings.Repeat("ab日", 1<<20)
	b := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Int8)
	b.Append(true)
	for range 1 << 20 {
		b.ValueBuilder().(*array.Int8Builder).Append(1)
	}
	s := array.NewStringBuilder(memory.DefaultAllocator)
	s.Append(long)
	for _, a := range []arrow.Array{b.NewArray(), s.NewArray()} {
		var got string
		if n := testing.AllocsPerRun(1, func() { got = cell(a, 0, 100) }); n > 50 {
			t.Errorf("%s: %v allocations", a.DataType(), n)
		}
		if len(got) > 120 || !strings.HasSuffix(got, "…") {
			t.Errorf("%s: %s", a.DataType(), got)
		}
	}
}

// sample is a record with a column of each kind.
func sample(t *testing.T) arrow.Record {
	t.Helper()
	cols := []struct {
		name string
		typ  arrow.DataType
		json string
		md   arrow.Metadata
	}{
		{"user_id", arrow.PrimitiveTypes.Int64, `[7, 1234567890123, null]`, arrow.Metadata{}},
		{"name", arrow.BinaryTypes.String, `["Zoë", "山田太郎", ""]`, arrow.Metadata{}},
		{"url", arrow.BinaryTypes.String, `["https://example.org/a/very/long/path/to/something?q=1", "x\u001b[2J", null]`, arrow.Metadata{}},
		{"tags", arrow.ListOf(arrow.BinaryTypes.String), `[["a","b"], [], ["a long one", "another", "more"]]`, arrow.Metadata{}},
		{"session", &arrow.FixedSizeBinaryType{ByteWidth: 16}, `["ASNFZ4mrze8BI0VniavN7w==", null, null]`, arrow.NewMetadata([]string{"ARROW:extension:name"}, []string{"arrow.uuid"})},
		{"amount", &arrow.Decimal128Type{Precision: 9, Scale: 2}, `["1.50", "-12345.00", "0.01"]`, arrow.Metadata{}},
		{"a_column_with_a_long_name", arrow.FixedWidthTypes.Boolean, `[true, false, null]`, arrow.Metadata{}},
		{"city", arrow.BinaryTypes.String, `["Berlin", "東京", "👩‍👩‍👧 town"]`, arrow.Metadata{}},
	}
	var fields []arrow.Field
	var arrays []arrow.Array
	for _, c := range cols {
		fields = append(fields, arrow.Field{Name: c.name, Type: c.typ, Nullable: true, Metadata: c.md})
		arrays = append(arrays, fromJSON(t, c.typ, c.json))
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), arrays, 3)
}

func TestTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most, width int
		of          int64
		hint, want  string
	}{
		{3, 80, 3, "", `
      user_id │ name     │ url          │ … │     amount │ a_column_w… │ city
        int64 │ utf8     │ utf8         │ … │ decimal(9… │ bool        │ utf8
──────────────┼──────────┼──────────────┼───┼────────────┼─────────────┼────────
            7 │ Zoë      │ https://exa… │ … │       1.50 │ true        │ Berlin
1234567890123 │ 山田太郎 │ "x\x1b[2J"   │ … │  -12345.00 │ false       │ 東京
         NULL │ ""       │ NULL         │ … │       0.01 │ NULL        │ 👩‍👩‍👧 town
3 rows, 6 of 8 columns
`},
		{2, 60, 3, " (--columns names others)", `
      user_id │ name     │ … │ a_column_with_a_lon… │ city
        int64 │ utf8     │ … │ bool                 │ utf8
──────────────┼──────────┼───┼──────────────────────┼───────
            7 │ Zoë      │ … │ true                 │ Berlin
1234567890123 │ 山田太郎 │ … │ false                │ 東京
first 2 of 3 rows, 4 of 8 columns (--columns names others)
`},
		{1, 20, -1, "", `
user_id │ … │ city
  int64 │ … │ utf8
────────┼───┼───────
      7 │ … │ Berlin
first 1 row, 2 of 8 columns
`},
	} {
		table := NewTable(c.most, c.width)
		table.AddRecord(sample(t))
		var b strings.Builder
		if err := table.Print(&b, c.of, c.hint); err != nil {
			t.Fatal(err)
		}
		if want := c.want[1:]; b.String() != want {
			t.Errorf("in %d columns:\n%s\nwant\n%s", c.width, b.String(), want)
		}
	}
}

// TestFits prints a table in terminals of all widths.
func TestFits(t *testing.T) {
	t.Parallel()
	rec := sample(t)
	before := 0
	for w := 1; w < 260; w++ {
		table := NewTable(3, w)
		table.AddRecord(rec)
		var b strings.Builder
		if err := table.Print(&b, 3, ""); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		for _, line := range lines[:6] {
			if n := columnsOf(line); n > max(w, leastWidth) {
				t.Errorf("a terminal of %d columns: a line of %d: %s", w, n, line)
			}
		}
		if strings.ContainsFunc(b.String(), func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
			t.Errorf("a terminal of %d columns: control characters: %q", w, b.String())
		}
		n := strings.Count(lines[0], "│")
		if n < before {
			t.Errorf("a terminal of %d columns: fewer columns than in a narrower one", w)
		}
		before = n
	}
	if before != 7 {
		t.Errorf("%d columns in the widest terminal, want 8", before+1)
	}
}

// TestSections adds files whose columns differ, and one without rows before them.
func TestSections(t *testing.T) {
	t.Parallel()
	rec := sample(t)
	of := func(columns ...int) arrow.Record {
		var fields []arrow.Field
		var arrays []arrow.Array
		for _, c := range columns {
			fields, arrays = append(fields, rec.Schema().Field(c)), append(arrays, rec.Column(c))
		}
		return array.NewRecord(arrow.NewSchema(fields, nil), arrays, 3)
	}
	table := NewTable(8, 80)
	table.Add(of(0).Schema(), nil, 0)
	for _, r := range []arrow.Record{of(1, 7), of(1, 7), of(5)} {
		table.AddRecord(r)
	}
	var b strings.Builder
	if err := table.Print(&b, -1, ""); err != nil {
		t.Fatal(err)
	}
	want := `name     │ city
utf8     │ utf8
─────────┼────────
Zoë      │ Berlin
山田太郎 │ 東京
""       │ 👩‍👩‍👧 town
Zoë      │ Berlin
山田太郎 │ 東京
""       │ 👩‍👩‍👧 town

       amount
decimal(9, 2)
─────────────
         1.50
    -12345.00
first 8 rows
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
