package keys

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
)

// Choice is what a text chooses of the columns of an output: one, or all but some.
type Choice struct {
	Path   Path   // of one
	Star   string // "*", "log.*" or "ids.*": all; empty: one
	Except []Path // of all
}

// String returns the choice in the syntax of [ParseChoices].
func (c Choice) String() string {
	text := c.Star
	for i, p := range c.Except {
		text += []string{" except ", ","}[min(i, 1)] + p.String()
	}
	return text + c.Path.String()
}

// SplitChoices divides a value of --columns at its commas. Those after EXCEPT belong to that.
func SplitChoices(s string) (texts []string) {
	quoted, from := false, 0
	for i, c := range s {
		quoted = quoted != (c == '"')
		if c == ',' && !quoted {
			if star, except := cutStar(s[from:i]); star == "" || except == "" {
				texts, from = append(texts, s[from:i]), i+1
			}
		}
	}
	return append(texts, s[from:])
}

// cutStar returns the star that a text begins with, if any, and what follows.
func cutStar(s string) (star, rest string) {
	star, rest, _ = strings.Cut(strings.TrimSpace(s), " ")
	if star == "*" || star == "log.*" || star == "ids.*" {
		return star, strings.TrimSpace(rest)
	}
	return "", ""
}

// ParseChoices parses texts, each a path as of [ParsePaths], or a star: *, log.* or ids.*, perhaps
// with EXCEPT and paths, separated by commas.
func ParseChoices(texts []string) ([]Choice, error) {
	all := []Choice{}
	for _, text := range texts {
		c, err := parseChoice(text)
		if err != nil {
			return nil, err
		}
		for _, o := range all { // two stars for one side
			if c.Star != "" && o.Star != "" && (c.Star == o.Star || c.Star == "*" || o.Star == "*") {
				return nil, fmt.Errorf("%s and %s choose the same columns (leave one of them out)", o, c)
			}
		}
		all = append(all, c)
	}
	return all, nil
}

func parseChoice(text string) (c Choice, err error) {
	star, rest := cutStar(text)
	if star != "" {
		if c.Star = star; rest == "" {
			return c, nil
		}
		word, names, _ := strings.Cut(rest, " ")
		if names = strings.TrimSpace(names); names == "" || !strings.EqualFold(word, "except") {
			return c, fmt.Errorf("%s: want a comma, or EXCEPT and names, after %s", text, star)
		}
		c.Except, err = ParsePaths(names)
		return c, err
	}
	paths, err := ParsePaths(text)
	if err == nil && len(paths) > 1 {
		err = fmt.Errorf("%s: want one column, got %d", text, len(paths))
	}
	if err != nil {
		return c, err
	}
	return Choice{Path: paths[0]}, nil
}

// Choose returns the positions of the chosen columns in a schema, in order, and the paths of the
// fields below them that are chosen alone. A star leaves out the hidden columns, and those that are
// named.
func Choose(choices []Choice, schema *arrow.Schema, hidden []int, ignoreCase bool) (columns []int, fields map[int][][]string, err error) {
	columns, fields = []int{}, map[int][][]string{}
	named := map[int]Path{}
	find := func(p Path) (int, error) {
		f, err := p[:1].Resolve(schema, ignoreCase)
		if err != nil {
			return 0, err
		}
		return f.Index[0], nil
	}
	for _, c := range choices {
		if c.Star != "" {
			continue
		}
		at, err := find(c.Path)
		if err != nil {
			return nil, nil, err
		}
		if len(c.Path) > 1 {
			fields[at] = append(fields[at], c.Path[1:])
		}
		if before := named[at]; before != nil && (len(before) == 1 || len(c.Path) == 1) {
			return nil, nil, fmt.Errorf("%s and %s are the same column (name it once)", before, c.Path)
		}
		named[at] = c.Path
	}
	for _, c := range choices {
		if c.Star == "" {
			if at, _ := find(c.Path); !slices.Contains(columns, at) {
				columns = append(columns, at)
			}
			continue
		}
		if c.Star == "ids.*" {
			return nil, nil, fmt.Errorf("%s: a scan has no columns of IDs (choose some of the log)", c)
		}
		without := slices.Clone(hidden)
		for _, p := range c.Except {
			at, err := find(p)
			if err == nil && len(p) > 1 {
				err = fmt.Errorf("%s: want whole columns after EXCEPT, got %s (name the fields to keep)", c, p)
			}
			if err != nil {
				return nil, nil, err
			}
			without = append(without, at)
		}
		for at := range schema.NumFields() {
			if named[at] == nil && !slices.Contains(without, at) {
				columns = append(columns, at)
			}
		}
	}
	return columns, fields, nil
}

// PickFields reports whether texts choose fields of structs.
func PickFields(texts []string) bool {
	choices, _ := ParseChoices(texts)
	return slices.ContainsFunc(choices, func(c Choice) bool { return len(c.Path) > 1 })
}
