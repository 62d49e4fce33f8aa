package hive

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

func TestParse(t *testing.T) {
	for path, want := range map[string]string{
		"a.parquet":                          "[]",
		"dt=1.parquet":                       "[]",
		"log/dt=2024-01-01/country=NO/a":     "[{dt 2024-01-01 false} {country NO false}]",
		"a=1/x/b=3/f":                        "[{a 1 false} {b 3 false}]",
		"s3://bucket/log/a=1/f":              "[{a 1 false}]",
		"a=/f":                               "[{a  false}]",
		"=a/f":                               "[]",
		"a=b=c/f":                            "[{a b=c false}]",
		"a%20b=x%2Fy%3d%C3%A9/f":             "[{a b x/y=é false}]",
		"a=100%/b=%zz/c=%4/f":                "[{a 100% false} {b %zz false} {c %4 false}]",
		"a=x+y/f":                            "[{a x+y false}]",
		"a=__HIVE_DEFAULT_PARTITION__/b=2/f": "[{a  true} {b 2 false}]",
		"a=__hive_default_partition__/f":     "[{a __hive_default_partition__ false}]",
	} {
		parts, err := Parse(path)
		if got := fmt.Sprint(parts); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", path, got, err, want)
		}
	}
	for path, want := range map[string]string{"a=1/a=2/f": "two directories", "a=%FF/f": "UTF-8"} {
		if _, err := Parse(path); !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %s", path, err, want)
		}
	}
}

// filesOf returns files with one directory each, of a column p.
func filesOf(texts ...string) (files []File) {
	for _, s := range texts {
		files = append(files, File{s, []Part{{Name: "p", Text: s, Null: s == null}}})
	}
	return files
}

// The types are those that DuckDB 2.0 finds, but where a comment says otherwise.
func TestInferTypes(t *testing.T) {
	const integer, text, date, timestamp = "int64", "utf8", "date32", "timestamp[us]"
	for _, c := range []struct {
		texts, want string
	}{
		{"1 2", integer}, {"-5 0", integer}, {"9223372036854775807", integer}, {"9223372036854775808", text},
		{"01 2", text}, {"+1 2", text}, {"08 09", text}, {"1e3", text}, {"1_000", text}, {"1.5 2", text}, {"1 x", text},
		{"-0 5", text}, // DuckDB: BIGINT
		{"true false", text}, {"NO SE", text}, {"NO 1", text},
		{"1 NULL", integer}, {"1 null", integer}, {"NULL", text}, {"a null", text},
		{"1 __HIVE_DEFAULT_PARTITION__", integer}, {"__HIVE_DEFAULT_PARTITION__", text}, {"a __HIVE_DEFAULT_PARTITION__", text},
		{"2024-01-01 2024-01-02", date}, {"2024-01-01 2024-02-30", text}, {"2024-01-01 NULL", date},
		{"2024-1-1", text},    // DuckDB: DATE
		{"infinity", text},    // DuckDB: DATE
		{"12345-01-01", text}, // DuckDB: DATE
		{"2024-01-01T10:11:12", timestamp}, {"2024-01-01T10:11 2024-01-01T10:11:12.123456", timestamp},
		{"2024-01-01T10:11:12.1234567", text},
		{"2024-01-01T10:11:12Z", text}, // DuckDB: TIMESTAMP
		{"2024-01-01 2024-01-01T10:11:12", text}, {"2024-01-01 1", text},
	} {
		columns, err := Infer(filesOf(strings.Fields(c.texts)...), nil)
		if err != nil || len(columns) != 1 || columns[0].Type.String() != c.want {
			t.Errorf("%s: %v, %v; want %s", c.texts, columns, err, c.want)
		}
	}
	columns, err := Infer(filesOf("1", ""), nil)
	if err != nil || columns[0].Type.ID() != arrow.STRING {
		t.Errorf("an empty value: %v, %v", columns, err)
	}
	columns, err = Infer(filesOf("2024-01-01 10:11:12"), nil)
	if err != nil || columns[0].Type.ID() != arrow.TIMESTAMP {
		t.Errorf("a space: %v, %v", columns, err)
	}
}

func TestInferGiven(t *testing.T) {
	given, err := ParseTypes("p:decimal(9,2),q:date")
	if err != nil {
		t.Fatal(err)
	}
	columns, err := Infer(filesOf("1.5", "2", "", "NULL", null), given)
	if err != nil || columns[0].Type.String() != "decimal(9, 2)" {
		t.Errorf("%v, %v", columns, err)
	}
	_, err = Infer(filesOf("1.5", "x"), given)
	if !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), `x: column p: mismatch: the directory's value: want a value of type decimal(9,2), got "x" (give the column another type with HiveTypes)`) {
		t.Errorf("%v", err)
	}
	for s, want := range map[string]string{"p": "NAME:TYPE", "p:": "NAME:TYPE", ":date": "NAME:TYPE", "p:dat": "dat", "p:date,p:string": "two types", "p:date,": ""} {
		if _, err := ParseTypes(s); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want an error that says %s", s, err, want)
		}
	}
}

// A given type is the one that is found, so that naming it never changes an output.
func TestInferGivenAsFound(t *testing.T) {
	for _, texts := range [][]string{{"1"}, {"2024-01-01"}, {"2024-01-01 10:11", "9999-12-31 23:59:59.999999"}, {"x"}} {
		found, err := Infer(filesOf(texts...), nil)
		if err != nil {
			t.Fatal(err)
		}
		given, err := ParseTypes("p:" + keys.TypeName(found[0].Type))
		if err != nil || !arrow.TypeEqual(given[0].Type, found[0].Type) {
			t.Errorf("%q: %v given, %v found, %v", texts, given, found, err)
		}
		if again, err := Infer(filesOf(texts...), given); err != nil || !arrow.TypeEqual(again[0].Type, found[0].Type) {
			t.Errorf("%q: %v, want %v; %v", texts, again, found, err)
		}
	}
	given, err := ParseTypes("p:timestamptz")
	if err != nil || given[0].Type.String() != "timestamp[us, tz=UTC]" {
		t.Errorf("%v, %v", given, err)
	}
}

func TestInferColumns(t *testing.T) {
	parsed := func(paths ...string) (files []File) {
		for _, p := range paths {
			parts, err := Parse(p)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, File{p, parts})
		}
		return files
	}
	columns, err := Infer(parsed("a=1/b=x/f", "b=2/a=3/f"), nil)
	if err != nil || fmt.Sprint(columns) != "[{a int64} {b utf8}]" {
		t.Errorf("another order: %v, %v", columns, err)
	}
	for _, paths := range [][]string{{"a=1/f", "a=1/b=2/f"}, {"a=1/b=2/f", "a=1/f"}, {"a=1/f", "b=1/f"}, {"a=1/f", "f"}, {"f", "a=1/f"}} {
		_, err := Infer(parsed(paths...), nil)
		if !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), paths[1]+": mismatch") || !strings.Contains(err.Error(), "as in "+paths[0]) || !strings.Contains(err.Error(), "Hive off") {
			t.Errorf("%v: %v", paths, err)
		}
	}
}

func TestValue(t *testing.T) {
	for _, c := range []struct {
		text string
		typ  arrow.DataType
		want string
	}{
		{"5", arrow.PrimitiveTypes.Int64, "[5]"}, {"NULL", arrow.PrimitiveTypes.Int64, "[(null)]"}, {"", arrow.PrimitiveTypes.Int64, "[(null)]"},
		{null, arrow.BinaryTypes.String, "[(null)]"}, {"", arrow.BinaryTypes.String, `[""]`}, {"null", arrow.BinaryTypes.String, `["null"]`},
		{"2024-01-01T10:11", &arrow.TimestampType{Unit: arrow.Microsecond}, "[1704103860000000]"},
		{"x", arrow.PrimitiveTypes.Int64, ""},
	} {
		a, ok := Value(filesOf(c.text)[0].Parts[0], c.typ)
		if ok != (c.want != "") || ok && a.String() != c.want {
			t.Errorf("%q as %s: %v, %v; want %s", c.text, c.typ, a, ok, c.want)
		}
		if ok {
			a.Release()
		}
	}
}

// The directory of rows without values has the names as they are written in paths.
func TestNulls(t *testing.T) {
	for path, want := range map[string]string{
		"a.parquet": "", "a=1/x/b=2/f": "a=__HIVE_DEFAULT_PARTITION__/b=__HIVE_DEFAULT_PARTITION__/",
		"a%20b=1/f": "a%20b=__HIVE_DEFAULT_PARTITION__/", "log/a%2Fb=1/f": "a%2Fb=__HIVE_DEFAULT_PARTITION__/",
	} {
		if got := Nulls(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// A file may be of the table of its directory, or of one above that the format has put it below.
func TestAround(t *testing.T) {
	for dir, want := range map[string]string{
		"":                        "[]",
		"/":                       "[/]",
		"t/":                      "[t/ ]",
		"/w/t/data/":              "[/w/t/data/ /w/t/]",
		"/w/t/data/dt=1/c=2/":     "[/w/t/data/ /w/t/]",
		"/w/t/dt=1/":              "[/w/t/ /w/]",
		"/w/t/data/0110/1010/11/": "[/w/t/data/0110/1010/11/ /w/t/data/0110/1010/ /w/t/]",
		"/run=5/w/t/data/":        "[/run=5/w/t/data/ /run=5/w/t/ /]",
		"t/dt=1/deep/":            "[t/dt=1/deep/ t/dt=1/ t/ ]",
		"t/data/0110/dt=1/":       "[t/data/0110/ t/data/ t/]",
	} {
		if got := fmt.Sprint(around(dir)); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}

// A directory is looked at once; what it is found to be stays true. Raw reading looks at none.
func TestLook(t *testing.T) {
	table := errors.New("a table")
	var looked []string
	look := func(dir string) error {
		if looked = append(looked, dir); dir == "w/t/" {
			return table
		}
		return nil
	}
	ctx := Looking(t.Context(), false)
	for _, dir := range []string{"w/plain/", "w/plain/", "w/t/data/", "w/t/data/", "w/t/data/x=1/"} {
		if err := Look(Looking(ctx, false), "s3://b/", dir, look); (err != nil) != strings.HasPrefix(dir, "w/t/") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if got := fmt.Sprint(looked); got != "[w/plain/ w/ w/t/data/ w/t/]" {
		t.Errorf("looked at %s", got)
	}
	if err := Look(ctx, "s3://c/", "w/t/data/", look); err == nil || len(looked) != 6 {
		t.Errorf("another bucket: %v", looked)
	}
	if err := Look(Looking(ctx, true), "", "w/t/", look); err != nil || len(looked) != 6 || !Raw(Looking(ctx, true)) || Raw(ctx) {
		t.Errorf("raw: %v, %v", err, looked)
	}
}
