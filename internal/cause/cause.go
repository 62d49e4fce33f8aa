// Package cause gives an error the code of its cause, by which programs branch and users
// find the explanation.
//
// A sentinel made by [New], or an error marked by [Mark], carries its code to every error that
// wraps it. [Of] decides which one counts. The command's registry explains each code; codes
// are never renumbered.
package cause

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// Code is the code of a cause.
type Code string

// The codes, by theme.
const (
	UnknownName Code = "E101" // a command or flag
	Required    Code = "E102" // a flag or argument
	Usage       Code = "E103" // any other wrong usage
	Condition   Code = "E104"
	ArrayJob    Code = "E105"

	NoFile     Code = "E201"
	NoInputs   Code = "E202"
	NotData    Code = "E203"
	Changed    Code = "E204" // while it was read
	NoAccess   Code = "E205"
	Unfinished Code = "E206" // an output that is read
	Listed     Code = "E207" // a list of inputs that is out of date, or without an index

	BadLine   Code = "E301"
	BadValue  Code = "E302"
	Header    Code = "E303"
	Encoding  Code = "E304"
	LooksLike Code = "E305" // another format

	NoColumn   Code = "E401"
	KeyTypes   Code = "E402"
	Misfit     Code = "E403" // a value and a type
	Normalized Code = "E404"
	KeyColumn  Code = "E405" // whose type cannot be a key
	Schemas    Code = "E406"

	NotFilter Code = "E501"
	Partial   Code = "E502"
	Shards    Code = "E503" // missing, twice, or of another build
	Unlike    Code = "E504" // filters that cannot be combined
	OtherIDs  Code = "E505"
	NotExact  Code = "E506"
	TooFull   Code = "E507"
	NotIn     Code = "E508" // keys to remove
	Uncounted Code = "E509"
	State     Code = "E510" // of a run that continues

	Exists       Code = "E601"
	IsInput      Code = "E602"
	NotCommitted Code = "E603"
	Workers      Code = "E604" // that disagree
	OutputPath   Code = "E605"
	Gate         Code = "E606"

	DiskFull    Code = "E701"
	Memory      Code = "E702"
	System      Code = "E703"
	Interrupted Code = "E704"
	Closed      Code = "E705" // standard output

	Credentials Code = "E801"
	NoObject    Code = "E802"
	Network     Code = "E803"
	Denied      Code = "E804"

	Damaged     Code = "E901"
	Unsupported Code = "E902"
	Mismatch    Code = "E903"
	Internal    Code = "E904"
	Other       Code = "E905" // an error without a code
)

// New returns a sentinel error whose cause has the code.
func New(c Code, text string) error { return Mark(c, errors.New(text)) }

// Mark returns err, which is not nil, with the code of its cause and the same text.
func Mark(c Code, err error) error { return &marked{err, c} }

type marked struct {
	error
	code Code
}

// Unwrap returns the error that was marked.
func (m *marked) Unwrap() error { return m.error }

// Cause returns the code.
func (m *marked) Cause() Code { return m.code }

// Of returns the code of an error's cause: of all codes in its tree the first of those that
// say most. It is empty for nil and [Other] for an error without a code.
func Of(err error) Code {
	if err == nil {
		return ""
	}
	best := Other
	visit(err, func(e error) {
		if c := codeOf(e); rank(c) > rank(best) {
			best = c
		}
	})
	return best
}

// Passes reports whether another attempt may succeed although nothing was changed: whether the
// error's tree has a cause that passes, and none that lasts whatever its reason is.
func Passes(err error) bool {
	passes := false
	visit(err, func(e error) { passes = passes || slices.Contains(passing, codeOf(e)) })
	return passes && Of(err) != Listed
}

var passing = []Code{Changed, DiskFull, System, Network}

// rank orders codes by what they say. An outdated list fails until it is made again, although
// an input that has changed is usually a cause that passes.
func rank(c Code) int {
	switch c {
	case "":
		return -1
	case Other:
		return 0
	case Usage, Damaged, Unsupported, Mismatch:
		return 1
	case NoFile, NoAccess:
		return 2
	case Changed, DiskFull, System, Network, Credentials, Workers: // the reason of the others
		return 4
	case Listed:
		return 5
	}
	return 3
}

// visit calls f with the errors of a tree, each before those that it wraps.
func visit(err error, f func(error)) {
	if err == nil {
		return
	}
	f(err)
	switch e := err.(type) { //nolint:errorlint // each error of the tree in turn
	case interface{ Unwrap() error }:
		visit(e.Unwrap(), f)
	case interface{ Unwrap() []error }:
		for _, child := range e.Unwrap() {
			visit(child, f)
		}
	}
}

// codeOf returns the code of one error of a tree, without those that it wraps; empty: none.
func codeOf(err error) Code {
	switch e := err.(type) { //nolint:errorlint // each error of the tree in turn
	case interface{ Cause() Code }:
		return e.Cause()
	case syscall.Errno:
		return codeOfErrno(e)
	case interface{ Timeout() bool }:
		if e.Timeout() {
			return Network
		}
	}
	switch err {
	case os.ErrDeadlineExceeded, context.DeadlineExceeded: //nolint:errorlint // this error, not what it wraps
		return Network
	case context.Canceled:
		return Interrupted
	case fs.ErrNotExist:
		return NoFile
	case fs.ErrPermission:
		return NoAccess
	}
	return ""
}

func codeOfErrno(e syscall.Errno) Code {
	switch e {
	case syscall.ENOSPC, syscall.EDQUOT:
		return DiskFull
	case syscall.ETIMEDOUT, syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH:
		return Network
	case syscall.EIO, syscall.EAGAIN, syscall.EINTR, syscall.ESTALE, syscall.EMFILE, syscall.ENFILE:
		return System
	}
	switch {
	case e.Is(fs.ErrNotExist), e == syscall.ENOTDIR:
		return NoFile
	case e.Is(fs.ErrPermission), e == syscall.EROFS:
		return NoAccess
	}
	return ""
}
