package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Exit codes, by which batch systems decide whether another attempt makes sense.
const (
	ExitDone     = 0
	ExitFailed   = 1   // would fail again
	ExitGate     = 2   // a --require-* or --max-* condition is not met
	ExitUsage    = 64  // wrong usage, detected before any input was opened
	ExitTryAgain = 75  // may succeed another time
	exitSignal   = 128 // plus its number: 129 SIGHUP, 130 SIGINT, 143 SIGTERM
)

// Run calls do for a command line, ends the session, and returns the exit code.
func (c *Session) Run(args []string, stdin io.Reader, stdout, stderr io.Writer, do func(ctx context.Context) error) int {
	ctx, cancel := untilSignal(context.Background())
	defer cancel(nil)
	c.cancel, c.started = cancel, time.Now()
	data := &interruptibleWriter{ctx: ctx, w: stdout}
	c.Stdin, c.Stdout = &interruptibleReader{ctx: ctx, r: stdin}, data
	c.Stderr, c.terminal = words.Printable{Writer: stderr}, stderr
	if f, ok := stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		c.screen, c.Shown = f, true
	}
	c.remote = slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "://") }) // also in --ids=URL
	c.jsonLog = wantsJSONLog(args)
	err := guarded(func() error { return do(ctx) })
	if c.closeStore != nil {
		_ = c.closeStore() // connections are idle
	}
	if err == nil {
		err = data.err // of a report that could not be written
	}
	if err == nil {
		return ExitDone
	}
	said := c.explain(err)
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
		said = cause
	}
	code := exitCode(ctx, err)
	if code == ExitTryAgain {
		said = fmt.Errorf("%w%s", said, passes(err))
	}
	c.logError(code, err, words.Error(said))
	return code
}

// errInternal reports a panic.
var errInternal = errors.New("internal error")

// guarded turns a panic, which is always a bug, into an error, so that unfinished
// outputs are removed.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v\n%s", errInternal, r, debug.Stack())
		}
	}()
	return f()
}

// exitCode returns the exit code for an error.
func exitCode(ctx context.Context, err error) int {
	var usage flags.UsageError
	switch {
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(context.Cause(ctx), ErrClosed): // whatever the error
		return ExitFailed
	case ctx.Err() != nil: // likewise
		var by signalError
		if errors.As(context.Cause(ctx), &by) {
			return exitSignal + int(by.Signal)
		}
		return exitSignal + int(syscall.SIGINT)
	case passing(err):
		return ExitTryAgain
	case errors.Is(err, output.ErrRequire):
		return ExitGate
	}
	return ExitFailed
}

// passes returns the hint for an error that may not recur.
func passes(err error) string {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return " (free some space, then run it again)"
	}
	return " (this may pass: run it again)"
}

// passing reports whether the cause of an error may not recur: a full disk, the
// network, an interruption of storage.
func passing(err error) bool {
	if errors.Is(err, inputs.ErrOutdated) { // until the inputs are listed again
		return false
	}
	for _, e := range []error{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EAGAIN, syscall.EINTR, syscall.ETIMEDOUT,
		syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ESTALE,
		syscall.EMFILE, syscall.ENFILE, os.ErrDeadlineExceeded, storage.ErrChanged, storage.ErrAgain,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
