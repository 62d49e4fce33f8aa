// Package fault holds the errors that every reader of foreign bytes reports:
// what is wrong, where it stands, what was wanted, what was found.
//
// Callers branch on the sentinels with errors.Is; [Error] carries the place.
// The partition package shows them to users under its own name.
package fault

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
)

// Sentinels. Every [Error] wraps exactly one of them.
var (
	// ErrCorrupt: the bytes break the rules of their own format, or a
	// checksum. Trying again will not help.
	ErrCorrupt = errors.New("corrupt")
	// ErrUnsupported: the input is valid, or may be, and uses something that
	// is not handled. Its text always holds the word "unsupported".
	ErrUnsupported = errors.New("unsupported")
	// ErrMismatch: two things that must agree do not (key classes, hashes,
	// geometries, schemas, builds).
	ErrMismatch = errors.New("mismatch")
	// ErrMemory: what must be held exceeds the memory budget.
	ErrMemory = errors.New("over the memory budget")
)

// At says where in the input something was found. Zero fields are left out of
// the text; RowGroup and Page count from 1 here, so that zero means "none".
type At struct {
	File     string // as the user named it
	RowGroup int    // row group or record batch, from 1
	Column   string // dotted path of the leaf
	Page     int    // page within the column chunk, from 1; the dictionary page is not counted
	Line     int    // line of a text file, from 1
}

// String renders the place as "file: row group 3: column a.b: page 2".
func (a At) String() string {
	var parts []string
	if a.File != "" {
		parts = append(parts, Printable(a.File, ""))
	}
	if a.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", a.Line))
	}
	if a.RowGroup > 0 {
		parts = append(parts, fmt.Sprintf("row group %d", a.RowGroup))
	}
	if a.Column != "" {
		parts = append(parts, "column "+Printable(a.Column, ""))
	}
	if a.Page > 0 {
		parts = append(parts, fmt.Sprintf("page %d", a.Page))
	}
	return strings.Join(parts, ": ")
}

// Error is one fault: its kind, its place, what was wanted and found, and what
// to do. What, Want and Hint may name options, see [Text].
type Error struct {
	Kind error  // one of the sentinels
	At   At     // where
	What Text   // what is wrong, in a few words
	Want Text   // what would have been right; may be empty
	Got  string // what was found; may be empty
	Hint Text   // what to do; may be empty
	Err  error  // the cause, when a library reported one; may be nil
}

// Error renders the fault on one line, the hint last in parentheses.
func (e *Error) Error() string { return e.word(Words{}) }

func (e *Error) word(w Words) string {
	spell := w.options()
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(e.At.String())
	add(e.Kind.Error())
	add(e.What.Word(spell))
	switch want := e.Want.Word(spell); {
	case want != "" && e.Got != "":
		add("want " + want + ", got " + e.Got)
	case want != "":
		add("want " + want)
	case e.Got != "":
		add("got " + e.Got)
	}
	if e.Err != nil {
		add(w.Text(e.Err))
	}
	text := strings.Join(parts, ": ")
	if hint := e.hint().Word(spell); hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// hint returns the advice. A damaged file has a default, since it is the same
// wherever the damage is. A line of text has none: lines differ.
func (e *Error) hint() Text {
	if e.Hint == "" && errors.Is(e.Kind, ErrCorrupt) && e.At.File != "" && e.At.Line == 0 {
		return "get a good copy of the file, or write it again; if other programs read it, report a bug"
	}
	return e.Hint
}

// Unwrap makes errors.Is find the sentinel and the cause.
func (e *Error) Unwrap() []error {
	if e.Err != nil {
		return []error{e.Kind, e.Err}
	}
	return []error{e.Kind}
}

// Corrupt reports bytes that break the rules of their format.
func Corrupt(at At, format string, args ...any) *Error {
	return &Error{Kind: ErrCorrupt, At: at, What: Textf(format, args...)}
}

// Unsupported reports something valid that is not handled.
func Unsupported(at At, format string, args ...any) *Error {
	return &Error{Kind: ErrUnsupported, At: at, What: Textf(format, args...)}
}

// Mismatch reports two things that must agree and do not. The strings name no
// options: a brace in them stands for itself.
func Mismatch(at At, what, want, got string) *Error {
	return (&Error{Kind: ErrMismatch, At: at, What: Text(escape(what))}).Wanted(want, got)
}

// Size renders a number of bytes for people, as 512 B, 1.5 KiB or 12.66 MiB.
func Size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	v, i := float64(n), 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) + " " + units[i]
}

// Memory reports that what takes need bytes, which may be one part in share of
// a memory budget. The hint names the smallest budget that suffices.
func Memory(at At, what string, need, budget, share int64) *Error {
	const unit = 1 << 20
	mib := min(need, math.MaxInt64/2/share)*share/unit + 1
	e := &Error{Kind: ErrMemory, At: at, What: Text(escape(what)), Got: Size(need)}
	e.Want = Textf("at most %s, 1/%d of the budget", Size(budget/share), share)
	return e.WithHint("raise {Memory to %dMiB} or more", mib)
}

// About sets what is wrong and returns e. The format may name options.
func (e *Error) About(format string, args ...any) *Error {
	e.What = Textf(format, args...)
	return e
}

// Wanted sets what would have been right and what was found, and returns e. A
// brace in them stands for itself.
func (e *Error) Wanted(want, got string) *Error {
	e.Want, e.Got = Text(escape(want)), got
	return e
}

// WithHint sets what to do and returns e. The format may name options.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = Textf(format, args...)
	return e
}

// ErrPanicked marks an error made of a recovered panic, as errors.Is reports.
// Input is checked where it is read, so such an error means a missing check:
// tests over hostile input fail on it.
var ErrPanicked = errors.New("recovered panic")

// panicked is a recovered panic as an error.
type panicked struct{ value any }

func (p panicked) Error() string        { return fmt.Sprint(p.value) }
func (p panicked) Is(target error) bool { return target == ErrPanicked }

// Recovered turns a panic of a decoder into a Corrupt error that wraps
// [ErrPanicked]. It is used as
//
//	defer fault.Recovered(at, &err)
//
// and is the last resort: bounds are checked where they are read. A memory
// fault in mapped bytes, which is a panic where debug.SetPanicOnFault says so,
// becomes an error that wraps ErrGone instead.
func Recovered(at At, err *error) {
	if r := recover(); r != nil {
		*err = Panicked(at, r)
	}
}

// Panicked is what Recovered makes of a recovered panic, for deferred functions
// that find out the place then.
func Panicked(at At, r any) error {
	if Gone(r) {
		return fmt.Errorf("%s: %w", at, ErrGone)
	}
	e := Corrupt(at, "the decoder gave up")
	e.Err = panicked{r}
	return e
}

// ErrGone says that bytes of a mapped file can no longer be read. Another
// attempt finds the file as it is then.
var ErrGone = fmt.Errorf("the mapped file can no longer be read: it was cut short, or its disk fails: %w", syscall.ESTALE)

// Gone reports whether a recovered panic is a memory fault.
func Gone(r any) bool {
	_, ok := r.(interface{ Addr() uintptr })
	return ok
}
