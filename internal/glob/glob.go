// Package glob matches paths with patterns, as doublestar does: * and ? within an element,
// [a-z] and [!a], {a,b}, ** for any number of directories, \ before a character that stands
// for itself. What comes in are patterns as people write them and paths with slashes; what
// goes out is whether they match. Storage uses it to list inputs, partition to choose among
// them.
package glob

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/bloomjoin/bloomjoin/internal/address"
)

// special are the characters that make a name a pattern.
const special = "*?[{"

// Is reports whether a name is a pattern.
func Is(name string) bool { return strings.ContainsAny(name, special) }

// ErrSyntax means that a pattern is not well formed.
var ErrSyntax = fmt.Errorf("%w: a bracket or brace is not closed, or a backslash ends it", path.ErrBadPattern)

// Check returns ErrSyntax for a pattern that is not well formed.
func Check(pattern string) error {
	if !doublestar.ValidatePattern(pattern) {
		return ErrSyntax
	}
	return nil
}

// Deep reports whether a pattern has an element **.
func Deep(pattern string) bool {
	return strings.HasPrefix(pattern, "**/") || strings.HasSuffix(pattern, "/**") || strings.Contains(pattern, "/**/") || pattern == "**"
}

// Prefix returns what all paths begin with that a pattern matches.
func Prefix(pattern string) string {
	if i := strings.IndexAny(pattern, special+`\`); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// Static returns the directory, with a slash at its end unless it is empty, before the
// first element of a pattern that has a special character.
func Static(pattern string) string {
	prefix := Prefix(pattern)
	return prefix[:strings.LastIndexByte(prefix, '/')+1]
}

// Top returns the shortest beginning of a path, up to a slash or its end, that a pattern
// matches: the file, or a directory that holds it.
func Top(pattern, name string) (top string, ok bool) {
	for dir := range Dirs(name) {
		if doublestar.MatchUnvalidated(pattern, dir) {
			return dir, true
		}
	}
	return name, doublestar.MatchUnvalidated(pattern, name)
}

// Matches reports whether a pattern matches a whole path.
func Matches(pattern, name string) bool { return doublestar.MatchUnvalidated(pattern, name) }

// Leads reports whether a pattern without ** may match something below a directory.
func Leads(pattern, dir string) bool {
	at := 0
	for range strings.Count(dir, "/") + 1 {
		i := strings.IndexByte(pattern[at:], '/')
		if i < 0 {
			return false
		}
		at += i + 1
	}
	return Matches(pattern[:at-1], dir) && !Marked(pattern, dir)
}

// Dirs yields the directories that hold a path, from the top down.
func Dirs(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 1; i < len(name); i++ {
			if name[i] == '/' && !yield(name[:i]) {
				return
			}
		}
	}
}

// Alternatives writes a pattern with braces that have a slash in them as several without:
// {a/b,../c}/* as a/b/* and ../c/*.
func Alternatives(pattern string) (all []string) {
	open, depth := -1, 0
	var commas []int
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '{':
			if depth++; depth == 1 {
				open, commas = i, nil
			}
		case c == ',' && depth == 1:
			commas = append(commas, i)
		case c == '}' && depth > 0:
			if depth--; depth > 0 || !strings.Contains(pattern[open:i], "/") {
				continue
			}
			from := open + 1
			for _, to := range append(commas, i) {
				all = append(all, Alternatives(pattern[:open]+pattern[from:to]+pattern[i+1:])...)
				from = to + 1
			}
			return all
		}
	}
	if pattern == "" {
		return nil
	}
	return []string{pattern}
}

// Marker reports whether a path element names something other than data, see
// storage.Marker.
func Marker(element string) bool {
	return strings.HasPrefix(element, "_") || strings.HasPrefix(element, ".") || strings.HasSuffix(element, address.ManifestSuffix)
}

// Marked reports whether an element of a path is a marker that the pattern, if there is
// one, does not spell out.
func Marked(pattern, name string) bool {
	want := strings.Split(pattern, "/")
	for i, element := range strings.Split(name, "/") {
		if Marker(element) && (i >= len(want) || !spells(want[i], element)) {
			return true
		}
	}
	return false
}

// spells reports whether the element of a pattern itself has what makes a name a marker,
// and not a wildcard that matches it: _ or . at its start, else its ending.
func spells(element, marker string) bool {
	c := marker[0]
	if c != '_' && c != '.' {
		return strings.HasSuffix(element, path.Ext(marker))
	}
	return element != "" && element[0] == c ||
		strings.HasPrefix(element, "{") && (element[1:2] == string(c) || strings.Contains(element, ","+string(c)))
}

// Rule is a pattern that selects files of a tree, as a line of .gitignore does: without a
// slash it matches names at any depth, with one the path below the root; a directory that
// matches stands for all files in it, and a slash at the end says that only directories
// match. An absolute path or a URL is compared with the whole name of a file, too.
type Rule struct {
	pattern string // below the root
	whole   string // of whole names; empty: none
	names   bool   // it has no slash
	dirs    bool
}

// ParseRule parses a pattern.
func ParseRule(s string) (Rule, error) {
	local := address.Local(s)
	r := Rule{pattern: local}
	if address.IsURL(local) || filepath.IsAbs(local) {
		r.whole, r.dirs = strings.CutSuffix(filepath.ToSlash(local), "/")
	}
	if !address.IsURL(local) {
		r.pattern, r.dirs = strings.CutSuffix(filepath.ToSlash(local), "/")
		r.names = !strings.Contains(r.pattern, "/")
		r.pattern = strings.TrimPrefix(r.pattern, "/")
		for strings.HasPrefix(r.pattern, "./") {
			r.pattern = r.pattern[2:]
		}
	}
	switch {
	case strings.Trim(r.pattern, "./") == "" && !strings.Contains(r.pattern, "*"):
		return r, errors.New("it names no file")
	case strings.HasPrefix(s, "!"):
		return r, errors.New(`it begins with ! (write \! for a name that does)`)
	}
	return r, Check(s)
}

// Match reports whether the rule selects a file. name is its whole name, an absolute path or
// a URL; rel is its path below the root.
func (r Rule) Match(name, rel string) bool {
	if r.matchPath(r.pattern, rel) {
		return true
	}
	return r.whole != "" && r.matchPath(r.whole, name)
}

// matchPath reports whether a pattern matches a path or one of the directories in it.
func (r Rule) matchPath(pattern, name string) bool {
	for dir := range Dirs(name) {
		if r.matchOne(pattern, dir) {
			return true
		}
	}
	return !r.dirs && r.matchOne(pattern, name)
}

func (r Rule) matchOne(pattern, name string) bool {
	if r.names {
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(pattern, name)
}
