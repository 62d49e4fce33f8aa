package keys

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/each"
)

// Sides of a join, as a choice of its columns names them.
const (
	LogSide = "log"
	IDsSide = "ids"
)

// Choice is what a text chooses of the columns of an output: one, or all but some.
type Choice struct {
	Side   string // LogSide, IDsSide, or empty: the one that has the column, or both
	Path   Path   // of one column, or of a field that is chosen alone; nil: a star, all columns
	Except []Choice
}

// String returns the choice in the syntax of [ParseChoices].
func (c Choice) String() string {
	text := c.Path.String()
	if c.Path == nil {
		text = "*"
	}
	if c.Side != "" {
		text = c.Side + "." + text
	}
	for i, e := range c.Except {
		text += []string{" except ", ","}[min(i, 1)] + e.String()
	}
	return text
}

// OfLog returns the choice as a scan of the log names it.
func (c Choice) OfLog() Choice {
	c.Side, c.Except = "", each.Slice(c.Except, Choice.OfLog)
	return c
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
// with EXCEPT and paths, separated by commas. In a join, paths may begin with a side. Nil stays nil.
func ParseChoices(texts []string, join bool) ([]Choice, error) {
	all, seen := each.Slice(texts, func(string) Choice { return Choice{} }), map[string]bool{}
	for i, text := range texts {
		c, err := parseChoice(text, join)
		if err != nil {
			return nil, err
		}
		if seen[c.String()] {
			return nil, fmt.Errorf("%s is named twice (name it once)", c)
		}
		for _, o := range all[:i] { // two stars for one side
			if c.Path == nil && o.Path == nil && (c.Side == o.Side || c.Side == "" || o.Side == "") {
				return nil, fmt.Errorf("%s and %s choose the same columns (leave one of them out)", o, c)
			}
		}
		all[i], seen[c.String()] = c, true
	}
	return all, nil
}

func parseChoice(text string, join bool) (c Choice, err error) {
	names := text
	star, rest := cutStar(text)
	if star != "" {
		c.Side = strings.TrimRight(star, ".*")
		if c.Side == IDsSide && !join {
			return c, fmt.Errorf("%s: a scan has no columns of IDs (choose some of the log)", text)
		}
		if rest == "" {
			return c, nil
		}
		word := ""
		if word, names, _ = strings.Cut(rest, " "); strings.TrimSpace(names) == "" || !strings.EqualFold(word, "except") {
			return c, fmt.Errorf("%s: want a comma, or EXCEPT and names, after %s", text, star)
		}
		names = strings.Join(each.Slice(SplitChoices(names), strings.TrimSpace), ",")
	}
	paths, err := ParsePaths(names)
	if err != nil {
		return c, err
	}
	c.Except = each.Slice(paths, func(p Path) Choice {
		if join && len(p) > 1 && (p[0] == LogSide || p[0] == IDsSide) {
			return Choice{Side: p[0], Path: p[1:]}
		}
		return Choice{Path: p}
	})
	if star != "" {
		return c, nil
	}
	if len(paths) > 1 {
		err = fmt.Errorf("%s: want one column, got %d", text, len(paths))
	}
	return c.Except[0], err
}

// Choose returns the chosen columns, in order, and the paths of the fields of each that are chosen
// alone: an empty one if the column is chosen as a whole. Nil chooses all. find finds the column of a
// choice, and all those of a side. A star leaves out columns that are named.
func Choose[C comparable](choices []Choice, find func(Choice) (C, error), all func(side string) []C) (columns []C, fields map[C][]Path, err error) {
	if choices == nil {
		choices = []Choice{{}}
	}
	columns, fields = []C{}, map[C][]Path{}
	named, except := map[C]Choice{}, map[C]bool{}
	for _, c := range choices {
		for _, e := range c.Except {
			if e.Side == "" {
				e.Side = c.Side
			}
			at, err := find(e)
			if err == nil && len(e.Path) > 1 {
				err = fmt.Errorf("%s: want whole columns after EXCEPT, got %s (name the fields to keep)", c, e)
			}
			if err != nil {
				return nil, nil, err
			}
			except[at] = true
		}
		if c.Path == nil {
			continue
		}
		at, err := find(c)
		if err != nil {
			return nil, nil, err
		}
		if before, again := named[at]; again && (len(before.Path) == 1 || len(c.Path) == 1) {
			return nil, nil, fmt.Errorf("%s and %s are the same column (name it once)", before, c)
		}
		named[at], except[at] = c, true
	}
	for _, c := range choices {
		if c.Path != nil {
			at, _ := find(c)
			if slices.ContainsFunc(fields[at], func(p Path) bool { return slices.Equal(p, c.Path[1:]) }) {
				return nil, nil, fmt.Errorf("%s is named twice (name it once)", c)
			}
			if fields[at] == nil {
				columns = append(columns, at)
			}
			fields[at] = append(fields[at], c.Path[1:])
			continue
		}
		for _, at := range all(c.Side) {
			if !except[at] {
				columns, fields[at] = append(columns, at), []Path{{}}
			}
		}
	}
	return columns, fields, nil
}

// ChooseIn is [Choose] for the columns of a schema, of which stars leave out the hidden ones.
func ChooseIn(schema *arrow.Schema, texts, hidden []string, ignoreCase bool) (columns []int, fields map[int][]Path, err error) {
	choices, err := ParseChoices(texts, false)
	if err != nil {
		return nil, nil, err
	}
	find := func(c Choice) (int, error) {
		f, err := c.Path[:1].Resolve(schema, ignoreCase)
		return append(f.Index, 0)[0], err
	}
	return Choose(choices, find, func(string) (all []int) {
		for i, f := range schema.Fields() {
			if !slices.Contains(hidden, f.Name) {
				all = append(all, i)
			}
		}
		return all
	})
}

// PickFields reports whether texts choose fields of structs.
func PickFields(texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		c, _ := parseChoice(text, false)
		return len(c.Path) > 1
	})
}
