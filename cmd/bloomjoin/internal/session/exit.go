package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/cause"
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
	start := time.Now()
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
	format, _ := given(args, "--log-format")
	c.args, c.jsonLog = args, format == logJSON
	c.shell = len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
	err := c.openReports()
	if err == nil {
		err = guarded(func() error { return do(ctx) })
	}
	if c.closeStore != nil {
		_ = c.closeStore() // connections are idle
	}
	if err == nil {
		err = data.err // of a report that could not be written
	}
	var f Failure
	if err != nil {
		f = c.failure(ctx, err)
		c.logError(f)
		c.reportFailure(start, f)
	}
	c.endReports(f)
	return f.ExitCode
}

// Failure returns what the report of a run says of the error with which it ends.
func (c *Session) Failure(ctx context.Context, err error) *Failure {
	f := c.failure(ctx, err)
	f.Message = words.Safe(f.Message)
	return &f
}

func (c *Session) failure(ctx context.Context, err error) Failure {
	said := c.explain(err)
	if by := context.Cause(ctx); by != nil && (errors.Is(err, context.Canceled) || errors.Is(err, by)) {
		said = by
	}
	f := failureOf(ctx, err)
	switch {
	case f.Code == cause.DiskFull:
		said = fmt.Errorf("%w (free some space, then run it again)", said)
	case f.ExitCode == ExitTryAgain:
		said = fmt.Errorf("%w (this may pass: run it again)", said)
	case f.Code == cause.NoAccess:
		said = fmt.Errorf("%w (check who may read or write it)", said)
	}
	f.Message = words.Error(said)
	if c.owner != nil {
		f.Message = words.ErrorOf(said, c.owner)
	}
	return f
}

// failureOf returns what machines learn of an error, without its text.
func failureOf(ctx context.Context, err error) Failure {
	exit := exitCode(ctx, err)
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, storage.ErrNoFiles)
	return Failure{ExitCode: exit, Class: classOf(exit, err), Code: codeOf(ctx, exit, err), NotFound: missing}
}

// errInternal reports a panic.
var errInternal = cause.New(cause.Internal, "internal error")

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
	case cause.Passes(err):
		return ExitTryAgain
	case cause.Of(err) == cause.Gate:
		return ExitGate
	}
	return ExitFailed
}

// codeOf returns the code of the cause of an error that ends the command with an exit code.
func codeOf(ctx context.Context, exit int, err error) cause.Code {
	switch {
	case exit > exitSignal:
		return cause.Interrupted
	case exit == ExitFailed && errors.Is(context.Cause(ctx), ErrClosed):
		return cause.Closed
	}
	return cause.Of(err)
}
