package glob

import (
	"strings"
	"testing"
)

// Cases of single lines, as git check-ignore decides them; whole names are beyond it.
func TestRule(t *testing.T) {
	const root = "/data/logs/"
	for _, c := range []struct {
		rule, rel string
		want      bool
	}{
		{"a.parquet", "a.parquet", true},
		{"a.parquet", "x/y/a.parquet", true},
		{"a.parquet", "x/ba.parquet", false},
		{"/a.parquet", "a.parquet", true},
		{"/a.parquet", "x/a.parquet", false},
		{"./a.parquet", "a.parquet", true},
		{"x/", "x/a.parquet", true},
		{"x/", "y/x/a.parquet", true},
		{"x/", "x", false},
		{"x", "y/x/a.parquet", true},
		{"y/x", "y/x/a.parquet", true},
		{"y/x", "z/y/x/a.parquet", false},
		{"**/x/*.parquet", "x/a.parquet", true},
		{"**/x/*.parquet", "z/y/x/a.parquet", true},
		{"x/**", "x/y/a.parquet", true},
		{"x/**/b", "x/b", true},
		{"*.parquet", "x/y/a.parquet", true},
		{"x/*.parquet", "x/y/a.parquet", false},
		{"{a,b}.parquet", "x/b.parquet", true},
		{"{a,b}.parquet", "x/c.parquet", false},
		{"[!a].parquet", "a.parquet", false},
		{"[!a].parquet", "b.parquet", true},
		{"dt=2024-*/*", "dt=2024-01-01/a.parquet", true},
		{`a\*.parquet`, "a*.parquet", true},
		{`a\*.parquet`, "ab.parquet", false},
		{root + "a.parquet", "a.parquet", true},
		{root + "x/", "x/y/a.parquet", true},
		{root + "x/*.parquet", "x/y/a.parquet", false},
		{"/other/a.parquet", "a.parquet", false},
	} {
		r, err := ParseRule(c.rule)
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
		}
		if got := r.Match(root+c.rel, c.rel); got != c.want {
			t.Errorf("%s matches %s: %v, want %v", c.rule, c.rel, got, c.want)
		}
	}
	r, err := ParseRule("s3://bucket/logs/*.parquet")
	if err != nil || !r.Match("s3://bucket/logs/a.parquet", "a.parquet") || r.Match("s3://bucket/logs/x/a.parquet", "x/a.parquet") {
		t.Errorf("a rule for whole URLs: %v", err)
	}
	for _, s := range []string{"", "/", "./", ".", "[a", "{a,b", "!a", `a\`} {
		if _, err := ParseRule(s); err == nil {
			t.Errorf("%q is a rule", s)
		}
	}
}

func TestTop(t *testing.T) {
	for _, c := range []struct {
		pattern, name, top string
		ok                 bool
	}{
		{"logs/*", "logs/a/b.parquet", "logs/a", true},
		{"logs/*.parquet", "logs/b.parquet", "logs/b.parquet", true},
		{"logs/*.parquet", "logs/a/b.parquet", "", false},
		{"logs/**/*.parquet", "logs/b.parquet", "logs/b.parquet", true},
		{"logs/**/*.parquet", "logs/x/y/b.parquet", "logs/x/y/b.parquet", true},
		{"logs/**/*.parquet", "logs/x/out.parquet/part.bin", "logs/x/out.parquet", true},
		{"{a,b/c}/*", "b/c/d/e", "b/c/d", true},
	} {
		top, ok := Top(c.pattern, c.name)
		if ok != c.ok || ok && top != c.top {
			t.Errorf("Top(%s, %s) = %s, %v; want %s, %v", c.pattern, c.name, top, ok, c.top, c.ok)
		}
	}
}

func TestStatic(t *testing.T) {
	for pattern, want := range map[string]string{
		"logs/**/x": "logs/", "*.parquet": "", "/a/b{c,d}/e": "/a/", `a\[/b*`: "", "a/b/*": "a/b/",
	} {
		if got := Static(pattern); got != want {
			t.Errorf("Static(%s) = %q, want %q", pattern, got, want)
		}
	}
}

func TestAlternatives(t *testing.T) {
	for pattern, want := range map[string]string{
		"{a,b}*": "{a,b}*", "{a/b,../c}/*": "a/b/* ../c/*", "x{/a{1,2},}/{b/c,d}": "x/a{1,2}/b/c x/a{1,2}/d x/b/c x/d", `\{a/b,c}`: `\{a/b,c}`, "{/a,}": "/a",
	} {
		if got := strings.Join(Alternatives(pattern), " "); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

func TestSpells(t *testing.T) {
	for _, c := range []struct {
		element, marker string
		want            bool
	}{
		{"_*", "_tmp", true}, {"*", "_tmp", false}, {"{_a,b}*", "_ab", true}, {"{a,_b}*", "_b", true}, {"{a,b}*", "_b", false},
		{"o*", "out.bloomjoin", false}, {"o*.bloomjoin", "out.bloomjoin", true}, {"", "_x", false},
	} {
		if got := spells(c.element, c.marker); got != c.want {
			t.Errorf("%s spells %s: %v", c.element, c.marker, got)
		}
	}
}

func FuzzRule(f *testing.F) {
	f.Add("x/**/{a,b}[!c].parquet", "x/y/a.parquet")
	f.Add(`/a\*/`, "a*/b")
	f.Fuzz(func(t *testing.T, pattern, rel string) {
		r, err := ParseRule(pattern)
		if err != nil {
			return
		}
		r.Match("/root/"+rel, rel) // it ends, without a panic
		Top(pattern, rel)
	})
}
