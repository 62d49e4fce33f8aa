// Package stopped turns the end of a context into an error. Code that finds a context
// ended returns [Err] rather than ctx.Err, so that the text has the cause.
package stopped

import (
	"context"
	"errors"
)

// Err returns nil while ctx goes on, and otherwise an error that wraps both
// ctx.Err() and the cause of its end. So errors.Is(err, context.Canceled) and
// errors.Is(err, context.DeadlineExceeded) hold whatever the cause is.
func Err(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return &ended{cause, err}
}

// ended is the cause of a context's end. It wraps ctx.Err() too; its text is the
// cause's.
type ended struct{ cause, end error }

func (e *ended) Error() string { return e.cause.Error() }

func (e *ended) Unwrap() []error { return []error{e.cause, e.end} }

// Needs panics if ctx is nil. Calls that are given a context use it first thing, so
// that the mistake shows on the caller's goroutine and not on one that the call has
// started, where a panic would end the process.
func Needs(ctx context.Context, call string) {
	if ctx == nil {
		panic(call + ": nil context")
	}
}
