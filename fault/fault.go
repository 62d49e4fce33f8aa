// Package fault defines the errors that all packages of this module report:
// what is wrong and where, what was wanted and what was found, and what to do.
//
// Programs branch on the sentinels with errors.Is. [Error], found with
// errors.As, has the parts of the message.
package fault

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/show"
	"github.com/bloomjoin/bloomjoin/internal/wording"
)

// Kinds of errors, for errors.Is.
var (
	// ErrCorrupt means that data breaks the rules of its format, or a checksum.
	// Another attempt will fail, too.
	ErrCorrupt = cause.New(cause.Damaged, "corrupt")
	// ErrUnsupported means that the input is valid, or may be, but uses a feature
	// that is not handled.
	ErrUnsupported = cause.New(cause.Unsupported, "unsupported")
	// ErrMismatch means that two things disagree that must agree, such as key
	// classes, hashes, geometries, schemas or builds.
	ErrMismatch = cause.New(cause.Mismatch, "mismatch")
	// ErrMemory means that what must be in memory at once exceeds the memory
	// budget.
	ErrMemory = cause.New(cause.Memory, "over the memory budget")
	// ErrNoColumn means that a column that an option names is not in a file, or not
	// in one piece.
	ErrNoColumn = cause.New(cause.NoColumn, "no such column")
)

// Code returns the code of an error's cause, as "E402", which is never renumbered:
// `bloomjoin help E402` explains it. It is empty for nil.
func Code(err error) string { return string(cause.Of(err)) }

// At is a place in an input. Zero fields are unknown and left out of the text.
type At struct {
	File     string // as the caller named it
	RowGroup int    // row group or record batch, from 1
	Column   string // dotted path of the leaf
	Page     int    // page of the column chunk, from 1, without the dictionary page
	Line     int    // line of a text file, from 1
}

// String returns the place as "file: row group 3: column a.b: page 2".
func (a At) String() string {
	var parts []string
	if a.File != "" {
		parts = append(parts, show.Printable(a.File, ""))
	}
	if a.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", a.Line))
	}
	if a.RowGroup > 0 {
		parts = append(parts, fmt.Sprintf("row group %d", a.RowGroup))
	}
	if a.Column != "" {
		parts = append(parts, "column "+show.Printable(a.Column, ""))
	}
	if a.Page > 0 {
		parts = append(parts, fmt.Sprintf("page %d", a.Page))
	}
	return strings.Join(parts, ": ")
}

// Error is an error with the parts of its message. All but Kind may be empty.
// What, Want and Hint may name options, see [Text].
type Error struct {
	Kind error  // ErrCorrupt, ErrUnsupported, ErrMismatch, ErrMemory, or an error that wraps one
	At   At     // where it was found
	What Text   // what is wrong, in a few words
	Want Text   // what would have been right
	Got  string // what was found
	Hint Text   // what to do
	Err  error  // the cause
}

// Error returns the message on one line: place, kind, what is wrong, what was
// wanted and found, the cause, and the hint in parentheses.
func (e *Error) Error() string {
	if e == nil {
		return "no error"
	}
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(e.At.String())
	if e.Kind != nil {
		add(e.Kind.Error())
	}
	add(e.What.String())
	switch want := e.Want.String(); {
	case want != "" && e.Got != "":
		add("want " + want + ", got " + e.Got)
	case want != "":
		add("want " + want)
	case e.Got != "":
		add("got " + e.Got)
	}
	if e.Err != nil {
		add(e.Err.Error())
	}
	text := strings.Join(parts, ": ")
	if hint := e.hint().String(); hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// hint returns what to do. Damaged files have a default, but lines of text do
// not.
func (e *Error) hint() Text {
	if e.Hint == "" && errors.Is(e.Kind, ErrCorrupt) && e.At.File != "" && e.At.Line == 0 {
		return "get a good copy of the file, or write it again; if other programs read it, report a bug"
	}
	return e.Hint
}

// Unwrap returns the kind and the cause, as far as they are set.
func (e *Error) Unwrap() (errs []error) {
	if e == nil {
		return nil
	}
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// WithHint sets Hint and returns e. The format may name options.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = textf(format, args...)
	return e
}

// Text is a part of a message. In it, an option of the call that failed stands in braces, with
// a value if one is suggested, so that other front ends can spell it: "{Memory to 88MiB}".
// String returns it as a Go program spells it.
type Text string

// String returns the text with the names of options as a program spells them.
func (t Text) String() string { return wording.Render(string(t), wording.Option.String) }

func textf(format string, args ...any) Text {
	raw := func(a any) (string, bool) {
		t, ok := a.(Text)
		return string(t), ok
	}
	return Text(wording.Format(raw, format, args...))
}
