package adapt

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// TestPick: schemas by hand. What is left of a file's leaves keeps its pages.
func TestPick(t *testing.T) {
	const text = "required int64 k; optional group s { required int32 a; optional group in { optional binary x (STRING); required int64 y; } required group r { required int32 z; } } optional group l (LIST) { repeated group list { optional int32 element; } }"
	for _, c := range []struct {
		fields string // paths, by blanks
		want   string // a schema, or an error
		leaves []int
	}{
		{"k s.a l", "required int64 k; optional group s { required int32 a; } optional group l (LIST) { repeated group list { optional int32 element; } }", []int{0, 1, 5}},
		{"k s.in.y S.r l", "required int64 k; optional group s { optional group in { required int64 y; } required group r { required int32 z; } } optional group l (LIST) { repeated group list { optional int32 element; } }", []int{0, 3, 4, 5}},
		{"s.q", "want fields of the struct: a, in, r, got q", nil},
		{"s.in s.in.x", "a struct or fields of it", nil},
		{"k.x", "unsupported: a field of a column that is INT64", nil},
		{"l.list", "unsupported: a field of a column that is group LIST", nil},
	} {
		var paths []keys.Path
		for path := range strings.FieldsSeq(c.fields) {
			paths = append(paths, strings.Split(path, "."))
		}
		got, err := Pick(schemaOf(t, text), paths, strings.EqualFold)
		if err != nil {
			if c.leaves != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.fields, err, c.want)
			}
			continue
		}
		if diff, same := SameSchema(got, schemaOf(t, c.want)); !same {
			t.Errorf("%s: %s", c.fields, diff)
		}
		file := schemaFileOf(t, "f", text)
		if _, err := New(file, got); !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("%s: fields are dropped, although none were picked: %v", c.fields, err)
		}
		to, err := NewPicked(file, got)
		if err != nil {
			t.Fatal(err)
		}
		var leaves []int
		for i := range to.Leaves {
			if leaves = append(leaves, to.Leaves[i].Leaf); !to.Leaves[i].Identity() {
				t.Errorf("%s: leaf %d is converted", c.fields, i)
			}
		}
		if !slices.Equal(leaves, c.leaves) {
			t.Errorf("%s: leaves %v, want %v", c.fields, leaves, c.leaves)
		}
	}
}
