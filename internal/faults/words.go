// Package faults makes the errors of package fault, and words them for a front end. In goes
// what is wrong and where, with the options that would resolve it in braces; out come errors,
// and texts in which the options are spelled as users know them. Every package may use it.
package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/wording"
)

// Words says how a front end words errors. The zero value words them as their
// Error methods do.
type Words struct {
	// Option renders an option that an error names; nil: Option.String.
	Option func(wording.Option) string
	// Error renders an error of the tree as a whole. Where it is nil or returns
	// false, the error is rendered from its own text and the errors it wraps.
	Error func(error) (text string, ok bool)
}

// Text returns the text of err in the words of w. Errors of any package may wrap
// the errors that w words: within the outer text, the text of each wrapped error
// is replaced.
func (w Words) Text(err error) string {
	if w.Error != nil {
		if text, ok := w.Error(err); ok {
			return text
		}
	}
	switch e := err.(type) { //nolint:errorlint // each error of the tree in turn
	case *fault.Error:
		return w.fault(e)
	case worder:
		return e.word(w)
	}
	text := err.Error()
	done := 0 // bytes of text that are final
	for _, child := range children(err) {
		if child == nil {
			continue
		}
		plain, worded := child.Error(), w.Text(child)
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

// options returns how the options of a text are rendered.
func (w Words) options() func(wording.Option) string {
	if w.Option == nil {
		return wording.Option.String
	}
	return w.Option
}

// worder is an error of this package that may name options.
type worder interface{ word(Words) string }

// fault returns the text of an error with parts.
func (w Words) fault(e *fault.Error) string {
	if e == nil {
		return e.Error()
	}
	spelled := *e
	for _, t := range []*fault.Text{&spelled.What, &spelled.Want, &spelled.Hint} {
		*t = fault.Text(wording.Escape(Word(*t, w.options())))
	}
	if e.Err != nil {
		spelled.Err = errors.New(w.Text(e.Err))
	}
	return spelled.Error()
}

// children returns the errors that err wraps. Some may be nil.
func children(err error) []error {
	switch e := err.(type) { //nolint:errorlint // each error of the tree in turn
	case interface{ Unwrap() error }:
		return []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}

// Errorf returns an error like fmt.Errorf does. The format may name options, as
// a [fault.Text] does, and so may arguments of that type.
func Errorf(format string, args ...any) error {
	if !slices.ContainsFunc(args, isText) && !strings.Contains(format, "{") {
		return fmt.Errorf(format, args...)
	}
	return &formatted{fmt.Errorf(fault.Text(format).String(), args...), format, args}
}

// formatted is an error made by Errorf.
type formatted struct {
	error
	format string
	args   []any
}

func (f *formatted) Unwrap() error { return f.error }

func (f *formatted) word(w Words) string {
	args := slices.Clone(f.args)
	for i, a := range args {
		switch a := a.(type) {
		case fault.Text:
			args[i] = Word(a, w.options())
		case error:
			args[i] = w.Text(a)
		}
	}
	format := fault.Text(strings.ReplaceAll(f.format, "%w", "%v"))
	return fmt.Sprintf(Word(format, w.options()), args...)
}

// WithHint returns an error that wraps err and adds what to do, in parentheses.
// The format may name options, as a [fault.Text] does.
func WithHint(err error, format string, args ...any) error {
	return &hinted{err, Textf(format, args...)}
}

// hinted is an error made by WithHint.
type hinted struct {
	err  error
	hint fault.Text
}

func (h *hinted) Error() string { return h.word(Words{}) }
func (h *hinted) Unwrap() error { return h.err }

func (h *hinted) word(w Words) string {
	return fmt.Sprintf("%s (%s)", w.Text(h.err), Word(h.hint, w.options()))
}

// Word returns a text with each option as spell renders it.
func Word(t fault.Text, spell func(wording.Option) string) string {
	return wording.Render(string(t), spell)
}

func isText(a any) bool {
	_, ok := a.(fault.Text)
	return ok
}
