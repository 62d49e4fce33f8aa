package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/show"
	"github.com/bloomjoin/bloomjoin/internal/wording"
)

// Corrupt returns an error of kind [fault.ErrCorrupt]. The format may name options.
func Corrupt(at fault.At, format string, args ...any) *fault.Error {
	return &fault.Error{Kind: fault.ErrCorrupt, At: at, What: Textf(format, args...)}
}

// Unsupported returns an error of kind [fault.ErrUnsupported]. The format may name
// options.
func Unsupported(at fault.At, format string, args ...any) *fault.Error {
	return &fault.Error{Kind: fault.ErrUnsupported, At: at, What: Textf(format, args...)}
}

// Mismatch returns an error of kind [fault.ErrMismatch]. Its arguments are literal:
// they name no options. want and got are printed as fmt.Sprint does.
func Mismatch(at fault.At, what string, want, got any) *fault.Error {
	return Wanted(&fault.Error{Kind: fault.ErrMismatch, At: at, What: fault.Text(wording.Escape(what))}, want, got)
}

// Memory returns an error of kind [fault.ErrMemory]: what takes need bytes, but may
// take at most 1/share of the budget, also in bytes. The hint names the smallest
// budget that suffices.
func Memory(at fault.At, what string, need, budget, share int64) *fault.Error {
	const unit = 1 << 20
	share = max(share, 1)
	mib := min(need, math.MaxInt64/2/share)*share/unit + 1
	e := &fault.Error{Kind: fault.ErrMemory, At: at, What: fault.Text(wording.Escape(what)), Got: show.Size(need)}
	e.Want = Textf("at most %s, 1/%d of the budget", show.Size(budget/share), share)
	return e.WithHint("raise {Memory to %dMiB} or more", mib)
}

// Of sets the cause of e, which has a kind, and returns e.
func Of(c cause.Code, e *fault.Error) *fault.Error {
	e.Kind = cause.Mark(c, e.Kind)
	return e
}

// Textf formats a text. The format may name options, and so may arguments of
// type [fault.Text]; braces in other arguments stand for themselves.
func Textf(format string, args ...any) fault.Text {
	return new(fault.Error).WithHint(format, args...).Hint
}

// About sets What and returns e. The format may name options.
func About(e *fault.Error, format string, args ...any) *fault.Error {
	e.What = Textf(format, args...)
	return e
}

// Wanted sets Want and Got, as fmt.Sprint prints them, and returns e. The arguments are
// literal: they name no options.
func Wanted(e *fault.Error, want, got any) *fault.Error {
	e.Want, e.Got = fault.Text(wording.Escape(fmt.Sprint(want))), fmt.Sprint(got)
	return e
}

// Join is for defer: it calls end and joins its error to err.
func Join(err *error, end func() error) { *err = errors.Join(*err, end()) }

// NotExist reports a name that stands for no file. It wraps [fs.ErrNotExist].
type NotExist struct {
	Name string // as the caller gave it
}

func (e *NotExist) Error() string {
	return e.Name + ": no such file or directory (check the path)"
}

// Unwrap returns fs.ErrNotExist.
func (e *NotExist) Unwrap() error { return fs.ErrNotExist }
