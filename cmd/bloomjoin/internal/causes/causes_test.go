package causes

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Codes are unique and in order, by hundreds by theme, and every cause has all its parts.
func TestRegistry(t *testing.T) {
	all := All()
	if len(all) < 45 {
		t.Fatalf("%d causes", len(all))
	}
	themes := map[string]string{}
	for i, c := range all {
		if !regexp.MustCompile(`^E[1-9][0-9]{2}$`).MatchString(c.Code) || i > 0 && c.Code <= all[i-1].Code {
			t.Errorf("%s: not a code, or not above the one before", c.Code)
		}
		if theme := themes[c.Code[:2]]; theme != "" && theme != c.Theme || c.Theme == "" {
			t.Errorf("%s: theme %q, want %q", c.Code, c.Theme, theme)
		}
		themes[c.Code[:2]] = c.Theme
		for _, p := range append(c.Parts(), [2]string{"title", c.Title}) {
			if p[1] == "" || p[0] != "title" && p[0] != "You see" && !strings.HasSuffix(p[1], ".") {
				t.Errorf("%s: %s: %q", c.Code, p[0], p[1])
			}
		}
	}
	if n := len(themes); n != len(slices.Compact(slices.Collect(func(yield func(string) bool) {
		for _, c := range all {
			if !yield(c.Theme) {
				return
			}
		}
	}))) {
		t.Errorf("%d hundreds: themes and hundreds differ", n)
	}
}

func TestFind(t *testing.T) {
	upper, ok := Find("E201")
	lower, okToo := Find("e201")
	if !ok || !okToo || upper != lower || upper.Title != "No such file" {
		t.Errorf("%+v and %+v", upper, lower)
	}
	for code, want := range map[string][2]string{"E299": {"E201", "E101"}, "e0": {"E101", "none"}, "E7": {"E701", "E801"}} {
		if _, ok := Find(code); ok || !IsCode(code) {
			t.Errorf("%s is a code", code)
		}
		if near := Near(code); !strings.Contains(near, want[0]) || strings.Contains(near, want[1]) {
			t.Errorf("%s: %s", code, near)
		}
	}
	for _, word := range []string{"E", "join", "E12345", "flags", "EE1", "E1x"} {
		if IsCode(word) {
			t.Errorf("%s has the form of a code", word)
		}
	}
}
