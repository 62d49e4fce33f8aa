package keys_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowtest"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

func TestParsePaths(t *testing.T) {
	for s, want := range map[string][]keys.Path{
		"a":               {{"a"}},
		"a,b":             {{"a"}, {"b"}},
		"user.id":         {{"user", "id"}},
		`"user.id"`:       {{"user.id"}},
		`a."b.c".d,"x,y"`: {{"a", "b.c", "d"}, {"x,y"}},
		`"say ""hi"""`:    {{`say "hi"`}},
		`""`:              {{""}},
		`"".a`:            {{"", "a"}},
		"a=b":             {{"a=b"}}, // an equals sign is special only in pairs
		" a , b":          {{" a "}, {" b"}},
		`a"b`:             {{`a"b`}},
		"Größe":           {{"Größe"}},
		"a\x00\xff":       {{"a\x00\xff"}},
	} {
		got, err := keys.ParsePaths(s)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v, want %q", s, got, err, want)
			continue
		}
		columns, err := keys.ParseColumns(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := keys.ParsePaths(keys.ColumnsString(columns))
		if err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%q is written %q, which reads %q, %v", s, keys.ColumnsString(columns), again, err)
		}
	}
	for _, s := range []string{"", ",", "a,", ",a", "a,,b", ".", "a.", ".a", "a..b", `"`, `"a`, `"a"b`, `"a""`, `a."b`, `"a" ,b`} {
		if got, err := keys.ParseColumns(s); err == nil {
			t.Errorf("%q: %q, want an error", s, got)
		} else if !strings.Contains(err.Error(), "columns ") {
			t.Errorf("%q: the error does not show it: %v", s, err)
		}
	}
}

// TestParseCasts: each column may be followed by a type, which may contain commas.
func TestParseCasts(t *testing.T) {
	for s, want := range map[string]string{
		"a::int64":                          "a::int64",
		"a::BIGINT,b":                       "a::int64,b",
		"a.b::decimal( 10 , 2 ),c::VarChar": "a.b::decimal(10,2),c::string",
		`"a::b"::uuid`:                      `"a::b"::uuid`,
		`"a::b"`:                            `"a::b"`,
		"a:b":                               "a:b",
		"a::timestamp with time zone":       "a::timestamptz",
	} {
		got, err := keys.ParseColumns(s)
		if err != nil || keys.ColumnsString(got) != want {
			t.Errorf("%q: %v, %v, want %s", s, got, err, want)
		}
		if again, err := keys.ParseColumns(want); err != nil || keys.ColumnsString(again) != want {
			t.Errorf("%q: %v, %v", want, again, err)
		}
	}
	for _, s := range []string{"a::", "a::int8", "a::b", "::int64", "a::int64.b", "a::int64::int64", "a:::int64", `"a"::`, "a::decimal(1", "a::int64=b::int64"} {
		if got, err := keys.ParseColumns(s); err == nil {
			t.Errorf("%q: %v, want an error", s, got)
		}
	}
	left, right, err := keys.ParsePairs(`a::decimal(9,1)=b::uint8,c::text`)
	if err != nil || keys.ColumnsString(left) != "a::decimal(9,1),c::string" || keys.ColumnsString(right) != "b::uint8,c::string" {
		t.Errorf("%v, %v, %v", left, right, err)
	}
	if _, err := keys.ParsePaths("a::int64"); err == nil {
		t.Error("a path with a cast is read")
	}
}

// TestIgnoreCase: names match regardless of case, unless two match.
func TestIgnoreCase(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "User", Type: arrow.StructOf(arrow.Field{Name: "ID", Type: arrow.PrimitiveTypes.Int64})},
		{Name: "ts", Type: arrow.PrimitiveTypes.Int64}, {Name: "TS", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	f, err := keys.Path{"user", "id"}.Resolve(schema, true)
	if err != nil || !reflect.DeepEqual(f.Index, []int{0, 0}) || f.Names.String() != "User.ID" {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := (keys.Path{"user", "id"}).Resolve(schema, false); err == nil {
		t.Error("found with other letters")
	}
	if f, err := (keys.Path{"TS"}).Resolve(schema, false); err != nil || f.Index[0] != 2 {
		t.Errorf("%+v, %v", f, err)
	}
	for _, name := range []string{"ts", "TS", "Ts"} {
		_, err := keys.Path{name}.Resolve(schema, true)
		if err == nil || !strings.Contains(err.Error(), `"ts" and "TS"`) || strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParsePairs(t *testing.T) {
	for s, want := range map[string][2]string{
		"a":                  {"a", "a"},
		"a=b":                {"a", "b"},
		"a=b,c":              {"a,c", "b,c"},
		"c,a=b":              {"c,a", "c,b"},
		`user.id=id,"x=y"=z`: {`user.id,"x=y"`, "id,z"},
		`a.b="a.b"`:          {"a.b", `"a.b"`},
	} {
		left, right, err := keys.ParsePairs(s)
		if err != nil || keys.ColumnsString(left) != want[0] || keys.ColumnsString(right) != want[1] {
			t.Errorf("%q: %v, %v, %v, want %v", s, left, right, err, want)
		}
	}
	for _, s := range []string{"", "=", "a=", "=a", "a=b=c", "a==b", "a=b,", `a="b`, "a.=b", "a=b=c,d"} {
		if l, r, err := keys.ParsePairs(s); err == nil {
			t.Errorf("%q: %q, %q, want an error", s, l, r)
		}
	}
}

// FuzzParsePaths: the String of a parsed path parses to the same path.
func FuzzParsePaths(f *testing.F) {
	for _, s := range []string{"a", "a.b,c", `"a.b"`, `"a""b".c`, "a=b", `""`, `a"b`, ",", `"`, "\xff.\x00", "a,b=c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if paths, err := keys.ParseColumns(s); err == nil {
			again, err := keys.ParseColumns(keys.ColumnsString(paths))
			if err != nil || !reflect.DeepEqual(paths, again) {
				t.Errorf("%q: %q, written %q, read %q, %v", s, paths, keys.ColumnsString(paths), again, err)
			}
		}
		left, right, err := keys.ParsePairs(s)
		if err != nil {
			return
		}
		var pairs []string
		for i := range left {
			pairs = append(pairs, left[i].String()+"="+right[i].String())
		}
		l, r, err := keys.ParsePairs(strings.Join(pairs, ","))
		if err != nil || !reflect.DeepEqual(l, left) || !reflect.DeepEqual(r, right) {
			t.Errorf("%q: %q = %q, written %q, read %q = %q, %v", s, left, right, pairs, l, r, err)
		}
	})
}

func nested() *arrow.Schema {
	str := arrow.BinaryTypes.String
	inner := arrow.StructOf(arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "name", Type: str})
	return arrow.NewSchema([]arrow.Field{
		{Name: "ts", Type: zoned(arrow.Second)},
		{Name: "user", Type: arrow.StructOf(arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int32}, arrow.Field{Name: "in", Type: inner})},
		{Name: "user.id", Type: str},
		{Name: "a.b", Type: str},
		{Name: "tags", Type: arrow.ListOf(inner)},
		{Name: "props", Type: arrow.MapOf(str, str)},
		{Name: "twice", Type: str},
		{Name: "twice", Type: str},
		{Name: "wrapped", Type: arrowtest.ExtensionOf(arrowtest.ExtensionOf(inner))},
		{Name: "Country", Type: str},
		{Name: "pair", Type: arrow.StructOf(arrow.Field{Name: "x", Type: str}, arrow.Field{Name: "x", Type: str})},
	}, nil)
}

func TestResolve(t *testing.T) {
	for s, want := range map[string][]int{
		"ts": {0}, "user.id": {1, 0}, "user.in.name": {1, 1, 1}, `"user.id"`: {2}, `"a.b"`: {3}, "wrapped.id": {8, 0},
	} {
		paths, err := keys.ParseColumns(s)
		if err != nil {
			t.Fatal(err)
		}
		f, err := paths[0].Resolve(nested(), false)
		if err != nil || !slices.Equal(f.Index, want) {
			t.Errorf("%s: %v, %v, want %v", s, f.Index, err, want)
		}
		_, err = keys.NewEncoder(nested(), paths, keys.Options{})
		if err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// TestNotFound: the error says what was not found and lists the columns.
func TestNotFound(t *testing.T) {
	for s, want := range map[string][]string{
		"tz":          {`no column "tz"`, "(there are ts, user,", "Country"},
		"user.idd":    {`no column "idd" (there are user.id, user.in)`},
		"user.in.nam": {`no column "nam" (there are user.in.id, user.in.name)`},
		"country":     {`no column "country"`, "(there are ts, user,", "Country"},
		"ts:int64":    {`no column "ts:int64" (a cast has two colons: ts::int64)`},
		"zzzzzzzz":    {"there are ts, user,", `"user.id"`},
		"a.b":         {`'"a.b"'`}, // a column with that exact name
		`"user.in"`:   {`no column "user.in"`},
		"twice":       {`two columns are called "twice"`},
		"pair.x":      {`two columns are called "x"`},
		"ts.x":        {"ts is of type timestamp"},
		`""`:          {`no column ""`},
	} {
		paths, err := keys.ParseColumns(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = keys.NewEncoder(nested(), paths, keys.Options{})
		var nf *keys.NotFoundError
		if !errors.As(err, &nf) {
			t.Errorf("%s: %v, want a NotFoundError", s, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want it to say %q", s, err, w)
			}
		}
		if last := paths[0].Path[len(paths[0].Path)-1]; len(nf.Have) > 0 && (nf.Name != last || nf.Meant != nil) {
			t.Errorf("%s: %q was not found and %v is meant, want %q and none", s, nf.Name, nf.Meant, last)
		}
		if strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: %v guesses", s, err)
		}
	}
}

// The list of columns is limited; a single column is quoted.
func TestNotFoundChoice(t *testing.T) {
	e := &keys.NotFoundError{Err: errors.New("none"), Have: []keys.Path{{"0"}}}
	if got, want := e.Error(), `none (there is only "0")`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e.Have = slices.Repeat([]keys.Path{{"x"}}, 20)
	if got, want := e.Error(), "none (there are "+strings.Repeat("x, ", 19)+"x)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e.Have = append(e.Have, keys.Path{"x"})
	if got, want := e.Error(), "none (there are "+strings.Repeat("x, ", 20)+"…)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUnsupportedKeys: the error for a repeated column, or one without a class, has
// the word "unsupported".
func TestUnsupportedKeys(t *testing.T) {
	for _, s := range []string{"tags.id", "tags", "props", "props.key", "user", "user.in"} {
		paths, err := keys.ParseColumns(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = keys.NewEncoder(nested(), paths, keys.Options{})
		if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "unsupported") || !strings.Contains(err.Error(), s) {
			t.Errorf("%s: %v, want it to be unsupported", s, err)
		}
	}
	if _, err := keys.NewEncoder(nested(), nil, keys.Options{}); err == nil {
		t.Error("a key of no columns")
	}
}

// TestColumns: the top-level columns to read, in ascending order, without
// duplicates.
func TestColumns(t *testing.T) {
	paths, err := keys.ParseColumns(`wrapped.id,user.in.id,ts,user.id`)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := keys.NewEncoder(nested(), paths, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := enc.Columns(); !slices.Equal(got, []int{0, 1, 8}) {
		t.Errorf("columns %v", got)
	}
	if got := enc.Classes(); !slices.Equal(got, []keys.Class{keys.Integer, keys.Integer, keys.Instant, keys.Integer}) {
		t.Errorf("classes %v", got)
	}
}

// TestSplitNames: other names are taken out of pairs; what is quoted is one name.
func TestSplitNames(t *testing.T) {
	for in, want := range map[string]string{
		"a=b": "a=b [] []", `"a|b"=c`: `"a|b"=c [] []`, "a|b=c": "a=c [a|b] []", "a|b": "a [a|b] [a|b]", "a|b|c::int64=d|e::int64,f": "a::int64=d::int64,f [a|b|c] [d|e]",
		`"x.y"|"p|q"=z`: `"x.y"=z ["x.y"|"p|q"] []`,
	} {
		pairs, left, right, err := keys.SplitNames(in)
		if got := fmt.Sprint(pairs, " ", left, " ", right); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"a.b|c=d", "a|b.c=d", "a|=d", "|a=d"} {
		if _, _, _, err := keys.SplitNames(in); err == nil {
			t.Errorf("%s: no error", in)
		}
	}
}
