package fault

import (
	"fmt"
	"go/token"
	"io"
	"slices"
	"strings"
)

// Text is a message that may name options of the call that failed, each in
// braces with an optional value: "raise {Memory}", "build all with {Kind exact}",
// "raise {Memory to 88MiB} or more". Braces that are part of the message are
// doubled: {{ and }}. The name is that of a field in an Options struct or of a
// parameter; {Expect+Room} names two that are set together.
//
// String returns the message for a Go program, and Word for another front end.
type Text string

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

// Textf formats a text. The format may name options, and so may arguments of
// type Text; braces in other arguments stand for themselves.
func Textf(format string, args ...any) Text {
	if text := fmt.Sprintf(format, args...); !strings.ContainsAny(text, "{}") && !slices.ContainsFunc(args, isText) {
		return Text(text)
	}
	literals := make([]any, len(args))
	for i, a := range args {
		literals[i] = literal{a}
	}
	return Text(fmt.Sprintf(format, literals...))
}

func isText(a any) bool {
	_, ok := a.(Text)
	return ok
}

// literal formats its value with doubled braces, unless it is a Text.
type literal struct{ value any }

func (l literal) Format(s fmt.State, verb rune) {
	if t, ok := l.value.(Text); ok {
		_, _ = io.WriteString(s, string(t))
		return
	}
	_, _ = io.WriteString(s, escape(fmt.Sprintf(fmt.FormatString(s, verb), l.value)))
}

func escape(s string) string { return doubled.Replace(s) }

var doubled = strings.NewReplacer("{", "{{", "}", "}}")

// String returns the text with the names of options as a program spells them.
func (t Text) String() string { return t.Word(Option.String) }

// Word returns the text with each option as spell renders it.
func (t Text) Word(spell func(Option) string) string {
	var b strings.Builder
	rest := string(t)
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

// Options returns the options that the text names, in order.
func (t Text) Options() (named []Option) {
	t.Word(func(o Option) string {
		named = append(named, o)
		return ""
	})
	return named
}

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
