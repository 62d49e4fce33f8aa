package keys_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/fault"
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
		"a=b":             {{"a=b"}}, // an equals sign means something in pairs only
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
		again, err := keys.ParsePaths(keys.PathsString(got))
		if err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%q is written %q, which reads %q, %v", s, keys.PathsString(got), again, err)
		}
	}
	for _, s := range []string{"", ",", "a,", ",a", "a,,b", ".", "a.", ".a", "a..b", `"`, `"a`, `"a"b`, `"a""`, `a."b`, `"a" ,b`} {
		if got, err := keys.ParsePaths(s); err == nil {
			t.Errorf("%q: %q, want an error", s, got)
		} else if !strings.Contains(err.Error(), "columns ") {
			t.Errorf("%q: the error does not show it: %v", s, err)
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
		if err != nil || keys.PathsString(left) != want[0] || keys.PathsString(right) != want[1] {
			t.Errorf("%q: %v, %v, %v, want %v", s, left, right, err, want)
		}
	}
	for _, s := range []string{"", "=", "a=", "=a", "a=b=c", "a==b", "a=b,", `a="b`, "a.=b", "a=b=c,d"} {
		if l, r, err := keys.ParsePairs(s); err == nil {
			t.Errorf("%q: %q, %q, want an error", s, l, r)
		}
	}
}

// FuzzParsePaths: what parses is written in a way that parses to the same.
func FuzzParsePaths(f *testing.F) {
	for _, s := range []string{"a", "a.b,c", `"a.b"`, `"a""b".c`, "a=b", `""`, `a"b`, ",", `"`, "\xff.\x00", "a,b=c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if paths, err := keys.ParsePaths(s); err == nil {
			again, err := keys.ParsePaths(keys.PathsString(paths))
			if err != nil || !reflect.DeepEqual(paths, again) {
				t.Errorf("%q: %q, written %q, read %q, %v", s, paths, keys.PathsString(paths), again, err)
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
		{Name: "wrapped", Type: &wrapped{arrow.ExtensionBase{Storage: &wrapped{arrow.ExtensionBase{Storage: inner}}}}},
		{Name: "Country", Type: str},
		{Name: "pair", Type: arrow.StructOf(arrow.Field{Name: "x", Type: str}, arrow.Field{Name: "x", Type: str})},
	}, nil)
}

func TestResolve(t *testing.T) {
	for s, want := range map[string][]int{
		"ts": {0}, "user.id": {1, 0}, "user.in.name": {1, 1, 1}, `"user.id"`: {2}, `"a.b"`: {3}, "wrapped.id": {8, 0},
	} {
		paths, err := keys.ParsePaths(s)
		if err != nil {
			t.Fatal(err)
		}
		f, err := paths[0].Resolve(nested())
		if err != nil || !slices.Equal(f.Index, want) {
			t.Errorf("%s: %v, %v, want %v", s, f.Index, err, want)
		}
		_, err = keys.NewEncoder(nested(), paths, 0)
		if err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// TestNotFound: the error says what there is, and what was probably meant.
func TestNotFound(t *testing.T) {
	for s, want := range map[string][]string{
		"tz":           {`no column "tz"`, "did you mean ts?"},
		"user.idd":     {`no column "idd"`, "did you mean user.id?"},
		"user.in.nmae": {"did you mean user.in.name?"},
		"country":      {"did you mean Country?"},
		"zzzzzzzz":     {"there are ts, user,", `"user.id"`},
		"a.b":          {`'"a.b"'`}, // a column of that very name
		`"user.in"`:    {`no column "user.in"`},
		"twice":        {`two columns are called "twice"`},
		"pair.x":       {`two columns are called "x"`},
		"ts.x":         {"ts is no struct but timestamp"},
		`""`:           {`no column ""`},
	} {
		paths, err := keys.ParsePaths(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = keys.NewEncoder(nested(), paths, 0)
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
		if s == "zzzzzzzz" && strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: %v guesses", s, err)
		}
	}
}

// TestUnsupportedKeys: what is repeated or has no class says so in one word.
func TestUnsupportedKeys(t *testing.T) {
	for _, s := range []string{"tags.id", "tags", "props", "props.key", "user", "user.in"} {
		paths, err := keys.ParsePaths(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = keys.NewEncoder(nested(), paths, 0)
		if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "unsupported") || !strings.Contains(err.Error(), s) {
			t.Errorf("%s: %v, want it to be unsupported", s, err)
		}
	}
	if _, err := keys.NewEncoder(nested(), nil, 0); err == nil {
		t.Error("a key of no columns")
	}
}

// TestColumns: the top-level columns to read, ascending, each once.
func TestColumns(t *testing.T) {
	paths, err := keys.ParsePaths(`wrapped.id,user.in.id,ts,user.id`)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := keys.NewEncoder(nested(), paths, 0)
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
