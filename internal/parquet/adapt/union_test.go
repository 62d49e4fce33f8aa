package adapt

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// schemaOf parses the format's own notation, without commas and quotes:
//
//	optional int32 a; optional group l (LIST) { repeated group list { optional fixed(5) element (DECIMAL 11 2) = 7; } }
func schemaOf(t testing.TB, text string) []meta.Element {
	t.Helper()
	for _, c := range []string{"{", "}", ";", "=", "(", ")"} {
		text = strings.ReplaceAll(text, c, " "+c+" ")
	}
	p := schemaParser{t: t, tokens: strings.Fields(text), out: []meta.Element{{Name: "schema"}}}
	p.out[0].NumChildren = thrift.New(int32(p.nodes()))
	return p.out
}

type schemaParser struct {
	t      testing.TB
	tokens []string
	out    []meta.Element
}

func (p *schemaParser) take() string {
	if len(p.tokens) == 0 {
		p.t.Fatal("the schema ends early")
	}
	s := p.tokens[0]
	p.tokens = p.tokens[1:]
	return s
}

func (p *schemaParser) next(s string) bool {
	if len(p.tokens) > 0 && p.tokens[0] == s {
		p.take()
		return true
	}
	return false
}

func (p *schemaParser) parenthesised() (words []string) {
	for w := p.take(); w != ")"; w = p.take() {
		words = append(words, w)
	}
	return words
}

func (p *schemaParser) nodes() (n int) {
	for ; len(p.tokens) > 0 && p.tokens[0] != "}"; n++ {
		p.node()
	}
	return n
}

var testTypes = map[string]format.Type{"boolean": format.Boolean, "int32": format.Int32, "int64": format.Int64, "int96": format.Int96,
	"float": format.Float, "double": format.Double, "binary": format.ByteArray, "fixed": format.FixedLenByteArray}

func (p *schemaParser) node() {
	var e meta.Element
	e.RepetitionType = thrift.New(map[string]format.FieldRepetitionType{
		"required": format.Required, "optional": format.Optional, "repeated": format.Repeated}[p.take()])
	kind := p.take()
	if kind != "group" {
		physical, ok := testTypes[kind]
		if !ok {
			p.t.Fatalf("no type %q", kind)
		}
		e.Type = thrift.New(physical)
		if p.next("(") {
			var n int32
			fmt.Sscan(p.parenthesised()[0], &n)
			e.TypeLength = thrift.New(n)
		}
	}
	e.Name = p.take()
	if p.next("(") {
		p.annotate(&e, p.parenthesised())
	}
	if p.next("=") {
		var id int32
		fmt.Sscan(p.take(), &id)
		e.FieldID = thrift.New(id)
	}
	at := len(p.out)
	p.out = append(p.out, e)
	if p.next("{") {
		n := p.nodes()
		p.take()
		p.out[at].NumChildren = thrift.New(int32(n))
	}
	p.next(";")
}

func (p *schemaParser) annotate(e *meta.Element, words []string) {
	var a, b int
	if len(words) > 1 {
		fmt.Sscan(words[1], &a)
	}
	if len(words) > 2 {
		fmt.Sscan(words[2], &b)
	}
	units := map[string]meta.Unit{"MILLIS": meta.Millis, "MICROS": meta.Micros, "NANOS": meta.Nanos}
	switch words[0] {
	case "LIST":
		e.LogicalType = logicalType(new(format.ListType))
	case "MAP":
		e.LogicalType = logicalType(new(format.MapType))
	case "VARIANT":
		e.LogicalType = logicalType(&format.VariantType{SpecificationVersion: int8(a)})
	case "STRING":
		e.LogicalType = logicalType(new(format.StringType))
	case "UTF8":
		e.ConvertedType = thrift.New(deprecated.UTF8)
	case "ENUM":
		e.LogicalType = logicalType(new(format.EnumType))
	case "JSON":
		e.LogicalType = logicalType(new(format.JsonType))
	case "UUID":
		e.LogicalType = logicalType(new(format.UUIDType))
	case "DATE":
		e.LogicalType = logicalType(new(format.DateType))
	case "NULL":
		e.LogicalType = logicalType(new(format.NullType))
	case "GEOMETRY":
		e.LogicalType = logicalType(&format.GeometryType{CRS: strings.Join(words[1:], "")})
	case "UNKNOWN":
		e.LogicalType = logicalType(nil)
	case "DECIMAL":
		e.LogicalType = logicalType(&format.DecimalType{Precision: int32(a), Scale: int32(b)})
		e.Precision, e.Scale = thrift.New(int32(a)), thrift.New(int32(b))
	case "INT":
		e.LogicalType = logicalType(&format.IntType{BitWidth: int8(a), IsSigned: true})
	case "UINT":
		e.LogicalType = logicalType(&format.IntType{BitWidth: int8(a)})
	case "TIMESTAMP":
		e.LogicalType = logicalType(&format.TimestampType{Unit: timeUnit(units[words[1]]), IsAdjustedToUTC: len(words) > 2})
	case "TIMESTAMP_MILLIS":
		e.ConvertedType = thrift.New(deprecated.TimestampMillis)
	case "TIME":
		e.LogicalType = logicalType(&format.TimeType{Unit: timeUnit(units[words[1]]), IsAdjustedToUTC: len(words) > 2})
	default:
		p.t.Fatalf("no annotation %q", words)
	}
}

func schemaFileOf(t testing.TB, name, text string) *parquet.File {
	t.Helper()
	f, err := parquet.SchemaFile(schemaOf(t, text), name)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

func unionOf(t testing.TB, texts ...string) ([]meta.Element, error) {
	t.Helper()
	var files []*parquet.File
	for i, text := range texts {
		files = append(files, schemaFileOf(t, string(rune('a'+i))+".parquet", text))
	}
	return Union(files, nil)
}

// The result of pyarrow 26 for the same pairs (unify_schemas, permissive) is the
// same if both have one, except as noted.
func TestUnionOfTypes(t *testing.T) {
	const none = ""
	for _, c := range []struct{ a, b, want string }{
		{"int32 x (INT 8)", "int32 x (UINT 8)", "int32 x (INT 16)"},
		{"int32 x (INT 8)", "int32 x (INT 16)", "int32 x (INT 16)"},
		{"int32 x (INT 8)", "int32 x (UINT 16)", "int32 x"},
		{"int32 x (INT 8)", "int32 x (UINT 32)", "int64 x"},
		{"int32 x (UINT 8)", "int32 x (UINT 16)", "int32 x (UINT 16)"},
		{"int32 x (UINT 8)", "int64 x (UINT 64)", "int64 x (UINT 64)"},
		{"int32 x (UINT 16)", "int32 x", "int32 x"},
		{"int32 x (UINT 32)", "int32 x", "int64 x"},
		{"int32 x (UINT 32)", "int64 x", "int64 x"},
		{"int32 x", "int64 x", "int64 x"},
		{"int32 x", "int32 x (INT 32)", "int32 x"},
		{"int64 x (INT 64)", "int64 x", "int64 x"},
		{"int64 x (UINT 64)", "int32 x (INT 8)", none}, // pyarrow: int64, which overflows
		{"int64 x (UINT 64)", "int64 x", none},         // pyarrow: int64, which overflows
		{"float x", "double x", "double x"},
		{"int32 x (INT 16)", "float x", "float x"},
		{"int32 x (UINT 16)", "float x", "float x"},
		{"int32 x", "float x", "double x"},
		{"int32 x (UINT 32)", "float x", "double x"},
		{"int32 x", "double x", "double x"},
		{"int64 x", "double x", none}, // pyarrow: double, which rounds
		{"int64 x", "float x", none},  // pyarrow: double, which rounds
		{"int64 x (UINT 64)", "double x", none},
		{"int32 x (DECIMAL 5 2)", "int32 x (DECIMAL 9 2)", "int32 x (DECIMAL 9 2)"},
		{"int32 x (DECIMAL 9 2)", "int64 x (DECIMAL 5 2)", "int64 x (DECIMAL 9 2)"},
		{"int32 x (DECIMAL 9 2)", "fixed(2) x (DECIMAL 4 2)", "fixed(4) x (DECIMAL 9 2)"},
		{"int64 x (DECIMAL 18 2)", "fixed(16) x (DECIMAL 20 2)", "fixed(16) x (DECIMAL 20 2)"},
		{"fixed(16) x (DECIMAL 10 2)", "fixed(5) x (DECIMAL 11 2)", "fixed(16) x (DECIMAL 11 2)"},
		{"int32 x (DECIMAL 9 2)", "binary x (DECIMAL 4 2)", "binary x (DECIMAL 9 2)"},
		{"fixed(16) x (DECIMAL 10 2)", "binary x (DECIMAL 4 2)", "binary x (DECIMAL 10 2)"},
		{"int32 x (DECIMAL 9 2)", "int32 x (DECIMAL 9 3)", none}, // pyarrow: rescales
		{"int32 x (DECIMAL 9 0)", "int32 x", none},               // pyarrow: a decimal
		{"int32 x (DECIMAL 9 2)", "double x", none},              // pyarrow: double, which rounds
		{"int64 x (TIMESTAMP MILLIS)", "int64 x (TIMESTAMP NANOS)", "int64 x (TIMESTAMP NANOS)"},
		{"int64 x (TIMESTAMP MICROS UTC)", "int64 x (TIMESTAMP MILLIS UTC)", "int64 x (TIMESTAMP MICROS UTC)"},
		{"int64 x (TIMESTAMP_MILLIS)", "int64 x (TIMESTAMP MILLIS UTC)", "int64 x (TIMESTAMP MILLIS UTC)"},
		{"int64 x (TIMESTAMP MICROS UTC)", "int64 x (TIMESTAMP MICROS)", none},
		{"int64 x (TIMESTAMP_MILLIS)", "int64 x (TIMESTAMP MILLIS)", none},
		{"int32 x (TIME MILLIS)", "int64 x (TIME MICROS)", "int64 x (TIME MICROS)"},
		{"int64 x (TIME NANOS)", "int64 x (TIME MICROS)", "int64 x (TIME NANOS)"},
		{"int64 x (TIME MICROS)", "int64 x (TIMESTAMP MICROS)", none},
		{"int96 x", "int96 x", "int96 x"},
		{"int96 x", "int64 x (TIMESTAMP NANOS)", none},
		{"int32 x (DATE)", "int64 x (TIMESTAMP MILLIS)", none},
		{"int32 x (DATE)", "int32 x", none},
		{"binary x (STRING)", "binary x (UTF8)", "binary x (STRING)"},
		{"binary x (STRING)", "binary x", none}, // pyarrow: binary
		{"binary x (STRING)", "binary x (ENUM)", none},
		{"binary x (STRING)", "binary x (JSON)", none},
		{"binary x", "fixed(4) x", none},
		{"fixed(5) x", "fixed(4) x", none},
		{"fixed(16) x", "fixed(16) x (UUID)", none},
		{"binary x (GEOMETRY a)", "binary x (GEOMETRY a)", "binary x (GEOMETRY a)"},
		{"binary x (GEOMETRY a)", "binary x (GEOMETRY b)", none},
		{"binary x (UNKNOWN)", "binary x (UNKNOWN)", none},
		{"binary x (UNKNOWN)", "binary x", none},
		{"boolean x", "boolean x", "boolean x"},
		{"boolean x", "int32 x", none},
		{"int32 x (NULL)", "int32 x (NULL)", "int32 x (NULL)"},
		{"int32 x (NULL)", "binary x (STRING)", "binary x (STRING)"},
		{"int32 x (NULL)", "group x { optional int32 y }", "group x { optional int32 y }"},
		{"int32 x", "group x { optional int32 y }", none},
	} {
		for range 2 {
			got, err := unionOf(t, "optional "+c.a, "optional "+c.b)
			switch {
			case c.want == none && !typedUnion(err):
				t.Errorf("%s and %s: %v", c.a, c.b, err)
			case c.want == none:
			case err != nil:
				t.Error(err)
			default:
				if diff, same := SameSchema(got, schemaOf(t, "optional "+c.want)); !same {
					t.Errorf("%s and %s: %s", c.a, c.b, diff)
				}
			}
			c.a, c.b = c.b, c.a
		}
	}
}

func typedUnion(err error) bool {
	return errors.Is(err, fault.ErrMismatch) || errors.Is(err, fault.ErrUnsupported)
}

func TestUnionOfStructures(t *testing.T) {
	list := func(inner, element string) string {
		return "optional group l (LIST) { repeated group " + inner + " { " + element + " } }"
	}
	for name, c := range map[string]struct {
		files []string
		want  string // "": refused
	}{
		"order": {[]string{"required int32 b; required int32 a", "required int32 c; required int32 a; required int32 b"},
			"required int32 b; required int32 a; optional int32 c"},
		"missing first":    {[]string{"required int32 a", "required int32 a; required int32 b"}, "required int32 a; optional int32 b"},
		"optional in one":  {[]string{"required int32 a", "optional int32 a", "required int32 a"}, "optional int32 a"},
		"required and all": {[]string{"required int32 a", "required int32 a"}, "required int32 a"},
		"repeated missing": {[]string{"required int32 a", "required int32 a; repeated int32 r"}, "required int32 a; repeated int32 r"},
		"repeated or not":  {[]string{"repeated int32 a", "optional int32 a"}, ""},
		"repeated or null": {[]string{"repeated int32 a", "optional int32 a (NULL)"}, ""},
		"null or repeated": {[]string{"optional int32 a (NULL)", "repeated int32 a"}, ""},
		"struct": {[]string{"required group s { required int32 a; required int32 b }", "optional group s { required int32 c; required int64 a }"},
			"optional group s { required int64 a; optional int32 b; optional int32 c }"},
		"struct missing":       {[]string{"required int32 k", "required int32 k; required group s { required int32 a }"}, "required int32 k; optional group s { required int32 a }"},
		"struct null":          {[]string{"optional int32 s (NULL)", "required group s { required int32 a }"}, "optional group s { required int32 a }"},
		"field null in struct": {[]string{"required group s { optional int32 a (NULL) }", "required group s { required binary a (STRING) }"}, "required group s { optional binary a (STRING) }"},
		"list names":           {[]string{list("list", "optional int32 element"), list("bag", "required int64 item")}, list("list", "optional int64 element")},
		"list null":            {[]string{"optional int32 l (NULL)", list("list", "optional int32 element")}, list("list", "optional int32 element")},
		"list of null":         {[]string{list("list", "optional int32 element (NULL)"), list("list", "required binary element")}, list("list", "optional binary element")},
		"list of structs": {[]string{list("list", "optional group element { required int32 a }"), list("list", "optional group item { required int32 b }")},
			list("list", "optional group element { optional int32 a; optional int32 b }")},
		"list, older": {[]string{list("list", "optional int32 element"), "optional group l (LIST) { repeated int32 element }"}, ""},
		"list, array": {[]string{list("list", "optional int32 a"), list("array", "optional int32 a")}, ""},
		"list, tuple": {[]string{list("array", "optional int32 a"), list("l_tuple", "optional int32 b")}, list("array", "optional int32 a; optional int32 b")},
		"list, both older": {[]string{"optional group l (LIST) { repeated int32 element }", "required group l (LIST) { repeated int64 array }"},
			"optional group l (LIST) { repeated int64 element }"},
		"list, fields or one": {[]string{list("list", "optional int32 a"), list("list", "optional int32 a; optional int32 b")}, ""},
		"list or struct":      {[]string{list("list", "optional int32 a"), "optional group l { repeated group list { optional int32 a } }"}, ""},
		"map": {[]string{
			"optional group m (MAP) { repeated group key_value { required binary key; optional int32 value } }",
			"required group m (MAP) { repeated group map { required binary k; required group v { required int32 x } } }"}, ""},
		"map widened": {[]string{
			"optional group m (MAP) { repeated group key_value { required int32 key; optional group value { required int32 x } } }",
			"required group m (MAP) { repeated group map { required int64 k; required group v { required int32 y } } }"},
			"optional group m (MAP) { repeated group key_value { required int64 key; optional group value { optional int32 x; optional int32 y } } }"},
		"variant":        {[]string{"optional group v (VARIANT) { required binary metadata; required binary value }", "optional group v (VARIANT) { required binary metadata; required binary value }"}, "optional group v (VARIANT) { required binary metadata; required binary value }"},
		"variant shreds": {[]string{"optional group v (VARIANT) { required binary metadata; required binary value }", "optional group v (VARIANT) { required binary metadata; optional binary value; optional int32 typed_value }"}, ""},
		"variant other":  {[]string{"optional group v (VARIANT 1) { required binary metadata; required binary value }", "optional group v (VARIANT 2) { required binary metadata; required binary value }"}, ""},
		"one name twice": {[]string{"optional int32 a; optional int32 a", "optional int32 a"}, ""},
		"three numbers":  {[]string{"optional int32 a (UINT 32)", "optional int32 a", "optional double a"}, "optional double a"},
		"three, wide":    {[]string{"optional int32 a (UINT 16)", "optional int32 a (INT 16)", "optional float a"}, "optional float a"},

		"ids":                 {[]string{"required int32 a = 1; required int32 b = 2", "required int32 a = 1; required int32 c = 3"}, "required int32 a = 1; optional int32 b = 2; optional int32 c = 3"},
		"ids differ":          {[]string{"required int32 a = 1; required int32 b = 2", "required int32 a = 2; required int32 b = 2"}, "required int32 a; required int32 b"},
		"ids of one only":     {[]string{"required int32 a = 1", "required int32 b"}, "optional int32 a; optional int32 b"},
		"id of two columns":   {[]string{"required int32 a = 1", "required int32 b = 1"}, "optional int32 a; optional int32 b"},
		"ids of each message": {[]string{"required group a = 1 { required int32 x = 1 }", "required group a = 1 { required int32 x = 1; required int32 y = 2 }"}, "required group a = 1 { required int32 x = 1; optional int32 y = 2 }"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := unionOf(t, c.files...)
			if c.want == "" {
				if !typedUnion(err) {
					t.Fatalf("want a mismatch, got %v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff, same := SameSchema(got, schemaOf(t, c.want)); !same {
				t.Fatal(diff)
			}
			for i, text := range c.files { // each file fits and adds nothing
				f := schemaFileOf(t, "f", text)
				if err := Covers(got, f, nil); err != nil {
					t.Errorf("file %d: %v", i, err)
				}
				again, err := unionOf(t, c.want, text)
				if err != nil {
					t.Fatal(err)
				}
				if diff, same := SameSchema(again, got); !same && !strings.Contains(diff, "field id") {
					t.Errorf("with file %d again: %s", i, diff)
				}
			}
		})
	}
}

func TestUnionErrorNamesAll(t *testing.T) {
	_, err := unionOf(t, "optional group s { optional int32 k }", "optional int32 other", "optional group s { optional binary k (STRING) }")
	const want = "c.parquet: column s.k: mismatch: the column's type: want INT32 as in a.parquet, got BYTE_ARRAY STRING (" +
		"write to a directory, where each file keeps its own types, or leave the column out)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// The widest type depends only on the set of types and can hold each of them.
func TestWidestIsOneOfTheSet(t *testing.T) {
	texts := []string{"int32 x (INT 8)", "int32 x (UINT 8)", "int32 x (INT 16)", "int32 x (UINT 16)", "int32 x", "int32 x (UINT 32)",
		"int64 x", "int64 x (UINT 64)", "float x", "double x", "int32 x (DECIMAL 9 2)", "int64 x (DECIMAL 12 2)", "int64 x (DECIMAL 18 2)",
		"fixed(3) x (DECIMAL 6 2)", "fixed(16) x (DECIMAL 30 2)", "binary x (DECIMAL 7 2)", "int32 x (DECIMAL 9 3)",
		"int32 x (TIME MILLIS)", "int64 x (TIME MICROS)", "int64 x (TIME NANOS)", "int64 x (TIMESTAMP MILLIS)", "int64 x (TIMESTAMP NANOS)",
		"int64 x (TIMESTAMP MICROS UTC)", "binary x (STRING)"}
	var all []valueType
	for _, text := range texts {
		all = append(all, fieldsOf(schemaFileOf(t, "", "optional "+text)).children[0].value)
	}
	rng := rand.New(rand.NewPCG(7, 8))
	found := 0
	for range 20000 {
		from := rng.IntN(len(all))
		some := []valueType{all[from]}
		for range 1 + rng.IntN(3) {
			some = append(some, all[(from+rng.IntN(7))%len(all)])
		}
		got, ok := widest(some)
		pairs := true
		for _, a := range some {
			for _, b := range some {
				_, pair := widest([]valueType{a, b})
				pairs = pairs && pair
			}
		}
		if ok != pairs {
			t.Fatalf("%v: together %v, in pairs %v", some, ok, pairs)
		}
		if !ok {
			continue
		}
		found++
		for _, a := range some {
			if w, ok := widest([]valueType{a, got}); !ok || !w.same(&got) {
				t.Fatalf("%v has %v, which does not hold %v", some, &got, &a)
			}
		}
		rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		if w, ok := widest(some); !ok || !w.same(&got) {
			t.Fatalf("%v has %v or %v, by the order", some, &got, &w)
		}
	}
	if found < 2000 {
		t.Fatalf("only %d sets had a type", found)
	}
}

func TestSameSchema(t *testing.T) {
	base := "required int64 id = 1; optional group s { optional binary t (STRING) }; optional int64 at (TIMESTAMP MILLIS UTC)"
	for other, want := range map[string]string{
		base: "",
		strings.Replace(base, "(STRING)", "(UTF8)", 1):                           "",
		strings.Replace(base, "(TIMESTAMP MILLIS UTC)", "(TIMESTAMP_MILLIS)", 1): "",
		strings.Replace(base, "int64 id", "int64 id (INT 64)", 1):                "",
		strings.Replace(base, "= 1", "= 2", 1):                                   "column id: field id 1 and 2",
		strings.Replace(base, "= 1", "", 1):                                      "column id: field id 1 and none",
		strings.Replace(base, "int64 id", "int32 id", 1):                         "column id: INT64 and INT32",
		strings.Replace(base, "required", "optional", 1):                         "column id: required and optional",
		strings.Replace(base, "(STRING)", "", 1):                                 "column s.t: BYTE_ARRAY STRING and BYTE_ARRAY",
		strings.Replace(base, " UTC", "", 1):                                     "column at: INT64 TIMESTAMP(MILLIS, UTC) and INT64 TIMESTAMP(MILLIS, without zone)",
		strings.Replace(base, "binary t", "binary u", 1):                         "column s.t stands where the second has s.u",
		base + "; optional int32 more":                                           "column more is in the second only",
		"required int64 id = 1":                                                  "column s is in the first only",
	} {
		diff, same := SameSchema(schemaOf(t, base), schemaOf(t, other))
		if diff != want || same != (want == "") {
			t.Errorf("%s: %q, %v; want %q", other, diff, same, want)
		}
	}
	odd := schemaOf(t, "optional binary x (UNKNOWN)")
	if _, same := SameSchema(odd, schemaOf(t, "optional binary x (UNKNOWN)")); same {
		t.Error("two unknown annotations are the same")
	}
	if diff, same := SameSchema(odd, odd); !same {
		t.Error(diff)
	}
}

func TestUnionOfSomeColumns(t *testing.T) {
	one := schemaFileOf(t, "one", "required int64 id; optional binary text (STRING); optional group s { optional int32 u }")
	two := schemaFileOf(t, "two", "optional int32 id; optional int64 text; optional int64 at")
	files := []*parquet.File{one, two}
	if _, err := Union(files, nil); !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "column text") {
		t.Errorf("text and number: %v", err)
	}
	got, err := Union(files, []string{"at", "id", "s"})
	if err != nil {
		t.Fatal(err)
	}
	if diff, same := SameSchema(got, schemaOf(t, "optional int64 at; optional int64 id; optional group s { optional int32 u }")); !same {
		t.Error(diff)
	}
	for _, names := range [][]string{{"id", "none"}, {"s.u"}} {
		if got, err := Union(files, names); !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "column "+names[len(names)-1]) {
			t.Errorf("%v: %v, %v", names, got, err)
		}
	}
}

func TestAdaptToSomeColumns(t *testing.T) {
	f := schemaFileOf(t, "f", "required int64 id; optional group s { optional binary t; optional int32 u }; optional int64 at; optional binary x (UNKNOWN)")
	odd := f.Project([]int{3, 1})
	a, err := New(f, odd.Schema)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{4, 1, 2} {
		if s := a.Leaves[i]; s.Leaf != want || !s.Identity() || odd.Leaves[i] != want {
			t.Errorf("leaf %d is %+v", i, s)
		}
	}
	if err := Covers(f.Project([]int{2, 1}).Schema, f, nil); !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "column id") {
		t.Errorf("a projection covers the file: %v", err)
	}
	if err := Covers(f.Metadata.Schema, f, nil); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("unknown annotations are compared: %v", err)
	}
}

func logicalType(v format.LogicalTypeValue) thrift.Null[format.LogicalType] {
	return thrift.New(format.LogicalType{Value: v})
}

func timeUnit(u meta.Unit) format.TimeUnit {
	return []format.TimeUnit{{Value: new(format.MilliSeconds)}, {Value: new(format.MicroSeconds)}, {Value: new(format.NanoSeconds)}}[u]
}
