package builds

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// putNulls writes the file null, whose column id is of the null type.
func putNulls(t *testing.T, s *memStore) {
	null := array.NewNull(3)
	defer null.Release()
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.Null, Nullable: true}}, nil), []arrow.Array{null}, 3)
	defer rec.Release()
	putParquet(t, s, "null", 1000, rec)
}

// A column of the null type has no keys, alone or together with files that have
// some.
func TestNullColumn(t *testing.T) {
	s := newStore()
	putNulls(t, s)
	putColumn(t, s, "ints", []int64{1, 7})
	putColumn(t, s, "strings", []string{"a"})
	for _, c := range []struct {
		inputs []string
		keys   uint64
	}{
		{[]string{"null"}, 0}, {[]string{"null", "ints"}, 2}, {[]string{"ints", "null"}, 2}, {[]string{"null", "strings"}, 1},
	} {
		for _, threads := range []int{1, 4} {
			f, rep := build(t, s, c.inputs, Options{Key: "id", Threads: threads})
			if rep.KeysNull != 3 || f.Facts().Keys != c.keys {
				t.Errorf("%v: %d keys, %d NULLs, want %d and 3", c.inputs, f.Facts().Keys, rep.KeysNull, c.keys)
			}
			if len(c.inputs) > 1 && c.inputs[1] != "strings" && passed(t, f, []int64{1, 7, 8}) != 2 {
				t.Errorf("%v: members are lost", c.inputs)
			}
		}
	}
}

// TestNullColumnWithOthers: a filter of a column of NULLs only can be asked about keys of each class,
// and what it is combined or updated with has the class. So it is for a filter without keys that has one.
func TestNullColumnWithOthers(t *testing.T) {
	s := newStore()
	putNulls(t, s)
	putColumn(t, s, "none", []string{})
	var texts []string
	for i := range 5000 {
		texts = append(texts, fmt.Sprint(i))
	}
	putColumn(t, s, "strings", texts)
	putColumn(t, s, "ints", []int64{1, 7})
	of := func(name string) *filters.Filter {
		f, _ := build(t, s, []string{name}, Options{Key: "id"})
		return f
	}
	if n := passed(t, of("null"), []int64{1, 7}); n != 0 {
		t.Errorf("%d keys pass a filter of NULLs", n)
	}
	for _, c := range []struct {
		op    SetOp
		names []string
		keys  uint64
		class string
	}{
		{Union, []string{"null", "strings"}, 5000, "bytes"}, {Union, []string{"strings", "null"}, 5000, "bytes"},
		{Union, []string{"none", "strings"}, 5000, "bytes"}, {Union, []string{"strings", "none"}, 5000, "bytes"},
		{Union, []string{"null", "ints"}, 2, "integer"}, {Difference, []string{"ints", "null"}, 2, "integer"},
		{Difference, []string{"null", "ints"}, 0, "null"}, {Intersect, []string{"ints", "null"}, 0, "null"}, {Union, []string{"null", "null"}, 0, "null"},
	} {
		f, err := Combine(context.Background(), c.op, of(c.names[0]), of(c.names[1]))
		if err != nil {
			t.Errorf("%s of %v: %v", c.op, c.names, err)
		} else if got := f.KeyClasses(); f.Facts().Keys != c.keys || got[0] != c.class || f.FPR() > 0.001 {
			t.Errorf("%s of %v: %d keys of %v, rate %v", c.op, c.names, f.Facts().Keys, got, f.FPR())
		}
	}
	if _, err := Combine(context.Background(), Union, of("null"), of("ints"), of("strings")); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("integers and strings with NULLs: %v", err)
	}
	f, _ := build(t, s, []string{"null"}, Options{Key: "id", Kind: codec.KindExact})
	if got := f.KeyClasses()[0]; got != "integer" {
		t.Errorf("an exact filter of NULLs is of class %s", got)
	}
	for rule, class := range map[string]string{"lower": "bytes", "uuid": "fixed[16]"} {
		f, _ := build(t, s, []string{"null"}, Options{Key: "id", Normalize: rule})
		if got := f.KeyClasses()[0]; got != class {
			t.Errorf("under the rule %s: class %s", rule, got)
		}
	}
}
