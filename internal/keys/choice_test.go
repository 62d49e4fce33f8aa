package keys

import (
	"slices"
	"strings"
	"testing"
)

// TestSplitChoices: commas divide a value, but not in quotes and after EXCEPT.
func TestSplitChoices(t *testing.T) {
	for value, want := range map[string]string{
		"a,b":                         "a|b",
		`"a,b",c`:                     `"a,b"|c`,
		`"*",a`:                       `"*"|a`,
		"*,a":                         "*|a",
		"k,log.* EXCEPT a,b":          "k|log.* EXCEPT a,b",
		`* except "a,b",c`:            `* except "a,b",c`,
		`ids.*,log.* except a`:        `ids.*|log.* except a`,
		`"* except a",b`:              `"* except a"|b`,
		`log."* x",s."a""b".c,log.*`:  `log."* x"|s."a""b".c|log.*`,
		"* but a,b":                   "* but a,b",
		`"a b",other.*`:               `"a b"|other.*`,
		`log.*  Except  log.a , x`:    `log.*  Except  log.a , x`,
		"a except b,c":                "a except b|c",
		`ids.* except "x","y,z",last`: `ids.* except "x","y,z",last`,
	} {
		if got := SplitChoices(value); !slices.Equal(got, strings.Split(want, "|")) {
			t.Errorf("%s: %q, want %s", value, got, want)
		}
	}
	texts := []string{`ids.* except "*",a."b.c"`, `"* x".y`, "log.*", `"*"`}
	choices, err := ParseChoices(texts, true)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range choices {
		if c.String() != texts[i] {
			t.Errorf("%s is written %s", texts[i], c)
		}
	}
}

// TestPickFields: a field is seen whatever the other texts are.
func TestPickFields(t *testing.T) {
	for texts, want := range map[string]bool{"k|k|s.a": true, "*|*|s.a": true, `k|"s.a"`: false, "* except s.a": false} {
		if got := PickFields(strings.Split(texts, "|")); got != want {
			t.Errorf("%s: %t", texts, got)
		}
	}
}
