package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Values within objects are columns, as whole inputs and by ranges, by goroutines and in one.
func TestNested(t *testing.T) {
	const row = `{"user":{"id":7,"name":{"first":"a\u00e9"}},"id":1}` + "\n" +
		`{"user":{"name":{"first":null},"id":"8"}}` + "\n" +
		`{"id":2}` + "\n" + `{"user":null}` + "\n" + `{"user":{"id":9,"deep":{"id":1}},"user.id":5}` + "\n"
	text := strings.Repeat(row, 40)
	paths := [][]string{{"user", "id"}, {"user", "name", "first"}, {"nobody", "x"}}
	for size := int64(0); size < 1000; size += 1 + size/3 {
		tab, err := openRanges(t, "a.ndjson", text, size, Options{Nested: paths})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"user", "id", "user.id", "user.id", "user.name.first"}; !slices.Equal(tab.columns, want) {
			t.Fatalf("columns %q", tab.columns)
		}
		for c, want := range map[int][]string{3: {"7", "8", "9"}, 4: {"aé"}} {
			rows, got, err := plainlyOf(t.Context(), tab, 0, tab.NumGroups(), c, 2)
			if err != nil || rows != 200 || !slices.Equal(got, slices.Repeat(want, 40)) {
				t.Fatalf("column %d by %d bytes: %d rows, %.80q, %v", c, size, rows, got, err)
			}
			var all []string
			for g := range tab.NumGroups() {
				_, got, err := recordsOf(tab, g, c)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, got...)
			}
			if !slices.Contains(all, want[0]) {
				t.Fatalf("column %d by %d bytes as records: %.80q", c, size, all)
			}
		}
	}
}

// A path through something else than an object, or to a key that stands twice, makes the line bad.
func TestNestedBad(t *testing.T) {
	const good = `{"user":{"id":1}}` + "\n" + `{"user":{"id":2}}` + "\n" + `{"user":{"id":4}}` + "\n"
	for bad, want := range map[string]string{
		`{"user":3}`:               "no object",
		`{"user":[{"id":3}]}`:      "no object",
		`{"user":{"id":3,"id":3}}`: "twice",
		`{"user":{"id":"\ud800"}}`: "surrogate",
	} {
		for _, skip := range []bool{false, true} {
			tab, err := openRanges(t, "a.ndjson", good+bad+"\n"+good, 0, Options{Nested: [][]string{{"user", "id"}}, SkipBad: skip, Types: map[string]arrow.DataType{"user.id": arrow.PrimitiveTypes.Int64}})
			var got []string
			if err == nil {
				_, got, err = plainlyOf(t.Context(), tab, 0, 1, 1, 1)
			}
			if skip && (err != nil || len(got) != 6 || tab.Bad().Lines != 1) {
				t.Errorf("%s: %q, %v", bad, got, err)
			}
			if !skip && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line 4")) {
				t.Errorf("%s: %v", bad, err)
			}
		}
	}
}

// A path is not found under the name of a key that looks like it, nor under that of another path.
func TestNestedNames(t *testing.T) {
	const text = `{"c":{"d":1},"a.b":2,"x":{"y.z":3},"x.y":{"z":4}}` + "\n"
	paths := [][]string{{"c", "d"}, {"a", "b"}, {"x", "y.z"}, {"x.y", "z"}}
	tab, err := openRanges(t, "a.ndjson", text, 0, Options{Nested: paths})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1", "", "3", "4"} {
		at, err := keys.Path(paths[i]).Resolve(tab.Schema(), false)
		if want == "" {
			if err == nil {
				t.Errorf("%q is column %d", paths[i], at.Index)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := recordsOf(tab, 0, at.Index[0]); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%q: %q, %v, want %s", paths[i], got, err, want)
		}
	}
}
