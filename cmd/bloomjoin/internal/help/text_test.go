package help

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ about, page, want string }{
		{"titles", "<!-- made -->\n# A `b`\n\n## C\n\n### D\n\ntext\n", "A `b`\n=====\n\nC\n-\n\nD\n\ntext\n"},
		{"a paragraph is folded", "One two three four five six seven\neight nine ten.", "One two three four five six\nseven eight nine ten.\n"},
		{"links", "See [keys](keys.md#casts), [above](#top), [`x`](../internal/x.go), [a site](https://a.b/c).", "See keys (guide keys), above,\n`x`\n(https://github.com/bloomjoin/bloomjoin/blob/main/internal/x.go),\na site (https://a.b/c).\n"},
		{"bold, but not in code", "**Never** `a**b`", "Never `a**b`\n"},
		{"lists", "1. one two three four five six seven\n2. b\n   c\n  - d", "1. one two three four five six\n   seven\n2. b c\n  - d\n"},
		{"code", "a\n\n<!-- ci: run -->\n```sh\n# no title\n\n| **x** |\n```\nb", "a\n\n    # no title\n\n    | **x** |\nb\n"},
		{"code without a fence", "a\n\n    **b**   c\n    d\n\n- e\n    f", "a\n\n    **b**   c\n    d\n\n- e f\n"},
		{"a table", "| a | |\n|---|--:|\n| `b\\|c` | one two three four five six |\n| d |\n", "a\n-----  -----------------------\n`b|c`  one two three four five\n       six\nd\n"},
		{"an empty head cell", "| | b |\n|---|---|\n| c | d |", "   b\n-  -\nc  d\n"},
	} {
		if got := Text(c.page, 30); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.about, got, c.want)
		}
	}
}

// word is what no rendering may lose.
var word = regexp.MustCompile(`[\pL\pN_]+`)

// Every guide keeps all its words and has no line that could have been shorter.
func TestGuides(t *testing.T) {
	names := topicNames()
	if len(names) < 20 {
		t.Errorf("only %d guides", len(names))
	}
	for _, name := range names {
		page := topicPage(name)
		got := Text(page, 80)
		left := map[string]int{}
		for _, w := range word.FindAllString(got, -1) {
			left[w]++
		}
		plain := regexp.MustCompile("(?m)^ *```[a-z]*").ReplaceAllString(comments.ReplaceAllString(page, ""), "")
		plain = links.ReplaceAllString(plain, "$1")
		plain = regexp.MustCompile(`(?m)^ *[0-9]+\. `).ReplaceAllString(plain, "")
		for _, w := range word.FindAllString(plain, -1) {
			if left[w]--; left[w] == -1 {
				t.Errorf("%s: the word %s is lost", name, w)
			}
		}
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			code := strings.HasPrefix(line, "    ")
			if prose := regexp.MustCompile("`[^`]*`").ReplaceAllString(line, ""); !code && regexp.MustCompile(`\]\(|<!--|\*\*`).MatchString(prose) {
				t.Errorf("%s: Markdown: %s", name, line)
			}
			if n := utf8.RuneCountInString(line); n > 80 && !code && strings.Contains(strings.TrimLeft(line, "-* "), " ") && !strings.Contains(line, "  ") {
				t.Errorf("%s: %d characters: %s", name, n, line)
			}
		}
	}
}

func TestTopics(t *testing.T) {
	for page, want := range map[string]string{
		"# A\n\nWhat is it? It is.\n":     "A: What is it?",
		"<!-- x -->\n# A?\n\nIs: so\n":    "A: Is",
		"# A\n\n```sh\nx\n```\n":          "A",
		"# A\n\n| a | b |\n":              "A",
		"# `A`\n\n[All](keys.md) are: b.": "`A`: All (guide keys) are",
	} {
		if got := summary(page); got != want {
			t.Errorf("%q: %q, want %q", page, got, want)
		}
	}
	list := listTopics(80)
	for _, name := range topicNames() {
		if !regexp.MustCompile(`(?m)^  ` + name + ` +\pL.`).MatchString(list) {
			t.Errorf("no line of %s in\n%s", name, list)
		}
	}
	for line := range strings.Lines(list) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("too wide: %s", line)
		}
	}
}
