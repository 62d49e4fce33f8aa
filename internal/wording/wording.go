// Package wording reads texts in which options are named in braces: what package fault has
// in its errors, and package faults words for a front end.
package wording

import (
	"fmt"
	"go/token"
	"io"
	"slices"
	"strings"
)

// Option is an option that an error names, in most cases because setting,
// raising or removing it resolves the error.
type Option struct {
	Name  string // such as Memory
	Value string // such as 88MiB; empty: none is suggested
	to    bool   // the text has "to" before the value
}

// String returns the option as a Go program spells it: "Memory", "Kind exact",
// "Memory to 88MiB".
func (o Option) String() string { return o.As(o.Name) }

// As returns what String returns, with another spelling of the name.
func (o Option) As(name string) string {
	switch {
	case o.Value == "":
		return name
	case o.to:
		return name + " to " + o.Value
	}
	return name + " " + o.Value
}

// Render returns the text with each option as spell renders it.
func Render(text string, spell func(Option) string) string {
	var b strings.Builder
	rest := text
	for {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			return b.String() + rest
		}
		b.WriteString(rest[:i])
		brace := rest[i : i+1]
		rest = rest[i+1:]
		if o, after, ok := cutOption(rest); ok && brace == "{" {
			b.WriteString(spell(o))
			rest = after
			continue
		}
		b.WriteString(brace)
		rest = strings.TrimPrefix(rest, brace)
	}
}

// Escape doubles the braces of a text that names no options.
func Escape(s string) string { return doubled.Replace(s) }

var doubled = strings.NewReplacer("{", "{{", "}", "}}")

// cutOption parses what follows a brace as an option, up to the closing brace.
func cutOption(s string) (o Option, rest string, ok bool) {
	var inside strings.Builder
	for rest = s; ; {
		before, after, ok := strings.Cut(rest, "}")
		if !ok {
			return Option{}, "", false
		}
		inside.WriteString(strings.ReplaceAll(before, "{{", "{"))
		if rest, ok = strings.CutPrefix(after, "}"); !ok {
			break
		}
		inside.WriteByte('}')
	}
	o.Name, o.Value, _ = strings.Cut(inside.String(), " ")
	o.Value, o.to = strings.CutPrefix(o.Value, "to ")
	return o, rest, isName(o.Name)
}

// isName reports whether s is one exported Go name, or several joined by plus
// signs.
func isName(s string) bool {
	for part := range strings.SplitSeq(s, "+") {
		if !token.IsIdentifier(part) || !token.IsExported(part) {
			return false
		}
	}
	return true
}

// Format formats a text. The format may name options, and so may the arguments for which raw
// returns a text; braces in others stand for themselves.
func Format(raw func(any) (text string, ok bool), format string, args ...any) string {
	isText := func(a any) bool {
		_, ok := raw(a)
		return ok
	}
	if text := fmt.Sprintf(format, args...); !strings.ContainsAny(text, "{}") && !slices.ContainsFunc(args, isText) {
		return text
	}
	literals := make([]any, len(args))
	for i, a := range args {
		literals[i] = literal{a, raw}
	}
	return fmt.Sprintf(format, literals...)
}

// literal formats its value with doubled braces, unless it is a text.
type literal struct {
	value any
	raw   func(any) (string, bool)
}

func (l literal) Format(s fmt.State, verb rune) {
	if t, ok := l.raw(l.value); ok {
		_, _ = io.WriteString(s, t)
		return
	}
	_, _ = io.WriteString(s, Escape(fmt.Sprintf(fmt.FormatString(s, verb), l.value)))
}
