package adapt

import "testing"

// Pages of one schema are pages of another if the trees are the same apart from names.
func TestSameLayout(t *testing.T) {
	for _, c := range []struct {
		from, to string
		same     bool
	}{
		{"required int32 a; optional binary b (STRING);", "required int32 x; optional binary y (STRING);", true},
		{"required int32 a;", "optional int32 a;", true},
		{"optional int32 a;", "required int32 a;", false},
		{"repeated int32 a;", "optional int32 a;", false},
		{"required int32 a;", "repeated int32 a;", false},
		{"required int32 a;", "required int64 a;", false},
		{"required int32 a;", "required int32 a; required int32 b;", false},
		{"required binary a (STRING);", "required binary a;", false},
		{"required fixed(4) a;", "required fixed(5) a;", false},
		{"required group g { required int32 a; }", "optional group g { required int32 a; }", true},
		{"required group g { required int32 a; }", "required group g { optional int32 a; }", false},
		{
			"optional group l (LIST) { repeated group list { optional int32 element; } }",
			"optional group l (LIST) { repeated group bag { optional int32 item; } }", true,
		},
		{
			"optional group l (LIST) { repeated group list { optional int32 element; } }",
			"optional group l (LIST) { repeated group array { optional int32 element; } }", false,
		},
		{
			"optional group l (LIST) { repeated group list { optional int32 element; } }",
			"optional group l (LIST) { repeated int32 element; }", false,
		},
	} {
		if got := SameLayout(schemaOf(t, c.from), schemaOf(t, c.to)); got != c.same {
			t.Errorf("%s and %s: %t", c.from, c.to, got)
		}
	}
}
