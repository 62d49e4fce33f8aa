package builds

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// A column of the null type has no keys, alone or together with files that have
// some.
func TestNullColumn(t *testing.T) {
	s := newStore()
	null := array.NewNull(3)
	defer null.Release()
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.Null, Nullable: true}}, nil), []arrow.Array{null}, 3)
	defer rec.Release()
	putParquet(t, s, "null", 1000, rec)
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
