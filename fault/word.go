package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Word returns the text of err with each option that the errors in its tree
// name as spell renders it. Errors of other packages may wrap them: within the
// outer text, the text of each wrapped error is replaced.
func Word(err error, spell func(Option) string) string {
	if e, ok := err.(worder); ok { //nolint:errorlint // the tree is walked here
		return e.word(spell)
	}
	text := err.Error()
	done := 0 // bytes of text that are final
	for _, child := range children(err) {
		plain, worded := child.Error(), Word(child, spell)
		i := strings.Index(text[done:], plain)
		if i < 0 || plain == "" {
			continue
		}
		i += done
		text = text[:i] + worded + text[i+len(plain):]
		done = i + len(worded)
	}
	return text
}

// Options returns the options that err and the errors it wraps name, in the
// order of its text. An error that names none returns nil.
func Options(err error) (named []Option) {
	Word(err, func(o Option) string {
		named = append(named, o)
		return o.String()
	})
	return named
}

// worder is an error of this package that names options.
type worder interface {
	word(spell func(Option) string) string
}

func children(err error) []error {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() error }:
		if child := e.Unwrap(); child != nil {
			return []error{child}
		}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}

// Errorf returns an error like fmt.Errorf does, whose format may name options
// as a [Text] does, and so may arguments of that type.
func Errorf(format string, args ...any) error {
	if !slices.ContainsFunc(args, isText) && !strings.Contains(format, "{") {
		return fmt.Errorf(format, args...)
	}
	return &formatted{fmt.Errorf(Text(format).String(), args...), format, args}
}

func isText(a any) bool {
	_, ok := a.(Text)
	return ok
}

type formatted struct {
	error
	format string
	args   []any
}

func (f *formatted) Unwrap() error { return f.error }

func (f *formatted) word(spell func(Option) string) string {
	args := make([]any, len(f.args))
	for i, a := range f.args {
		switch a := a.(type) {
		case Text:
			args[i] = a.Word(spell)
		case error:
			args[i] = reworded{a, spell}
		default:
			args[i] = a
		}
	}
	return fmt.Errorf(Text(f.format).Word(spell), args...).Error()
}

// reworded is an error whose text names options as spell renders them.
type reworded struct {
	error
	spell func(Option) string
}

func (r reworded) Error() string { return Word(r.error, r.spell) }

// WithHint returns an error that wraps err and adds what to do in parentheses.
// The format may name options as a [Text] does.
func WithHint(err error, format string, args ...any) error {
	return &hinted{err, Textf(format, args...)}
}

type hinted struct {
	err  error
	hint Text
}

func (h *hinted) Error() string { return h.word(Option.String) }
func (h *hinted) Unwrap() error { return h.err }

func (h *hinted) word(spell func(Option) string) string {
	return fmt.Sprintf("%s (%s)", Word(h.err, spell), h.hint.Word(spell))
}
