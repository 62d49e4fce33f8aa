// Package causes explains the causes of errors by their codes, which package cause gives to
// errors. causes.txt is the registry: a theme a paragraph, each cause with what users see,
// why, what to do, and whether another attempt makes sense.
//
// A code that was published keeps its meaning. It only reads; flags and the page
// docs/errors.md print what it returns.
package causes

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed causes.txt
var registry string

// Cause explains one cause of errors.
type Cause struct {
	Code, Title, Theme  string
	See, Why, Do, Again string
}

// Parts returns the headings and texts of the parts.
func (c Cause) Parts() [][2]string {
	return [][2]string{{"You see", c.See}, {"Why", c.Why}, {"Do", c.Do}, {"Try again?", c.Again}}
}

// All returns the causes by code. Callers do not change the slice.
var All = sync.OnceValue(func() (all []Cause) {
	theme := ""
	for line := range strings.Lines(registry) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "":
			continue
		case name == "#":
			theme = rest
			continue
		case name[0] == 'E':
			all = append(all, Cause{Code: name, Title: rest, Theme: theme})
			continue
		}
		c := &all[len(all)-1]
		*map[string]*string{"see": &c.See, "why": &c.Why, "do": &c.Do, "again": &c.Again}[name] = rest
	}
	return all
})

// Find returns the cause with a code, in either case.
func Find(code string) (Cause, bool) {
	i := slices.IndexFunc(All(), func(c Cause) bool { return strings.EqualFold(c.Code, code) })
	if i < 0 {
		return Cause{}, false
	}
	return All()[i], true
}

// IsCode reports whether a word has the form of a code, in either case.
func IsCode(word string) bool { return form.MatchString(word) }

var form = regexp.MustCompile(`^[Ee][0-9]{1,4}$`)

// Near returns codes and titles, a line each: those of the theme of an unknown code, or of all.
func Near(code string) string {
	var b strings.Builder
	alike := func(c Cause) bool { return strings.EqualFold(c.Code[:2], code[:2]) }
	all := !slices.ContainsFunc(All(), alike)
	for _, c := range All() {
		if all || alike(c) {
			fmt.Fprintf(&b, "\n  %s  %s", c.Code, c.Title)
		}
	}
	return b.String()
}
