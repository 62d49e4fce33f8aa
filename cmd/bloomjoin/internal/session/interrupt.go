package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/cause"
)

// signalError reports the signal that interrupted the command.
type signalError struct{ syscall.Signal }

func (e signalError) Error() string { return fmt.Sprintf("interrupted by a signal: %v", e.Signal) }

func (signalError) Is(target error) bool { return target == context.Canceled }

// untilSignal returns a context that is canceled by the first SIGINT, SIGTERM or
// SIGHUP, with a signalError as its cause. A second signal kills the process.
// Signals that the parent process set to be ignored, as nohup does, stay ignored.
// The function returned cancels the context for another cause.
func untilSignal(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	got := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(got, sig)
		}
	}
	go func() {
		select {
		case sig := <-got:
			if s, ok := sig.(syscall.Signal); ok {
				cancel(signalError{s})
			}
		case <-ctx.Done():
		}
		signal.Stop(got)
	}()
	return ctx, cancel
}

// ErrClosed reports that the reader of standard output has closed it. It is also the cause
// of the context that [Session.WatchReader] cancels.
var ErrClosed = cause.Mark(cause.Closed, fmt.Errorf("standard output was closed (%w)", syscall.EPIPE))

// WatchReader ends the run as soon as the reader of standard output has gone, if the data
// goes there. Writes would notice it, too, but a run may read for hours until it writes the
// next row.
func (c *Session) WatchReader(ctx context.Context, output string) {
	data, _ := c.Stdout.(*interruptibleWriter)
	if output != "-" || data == nil {
		return
	}
	if f, ok := data.w.(*os.File); ok {
		go func() {
			if untilHangup(ctx, f) {
				c.cancel(ErrClosed)
			}
		}()
	}
}

// interruptibleReader is standard input. Reads end with ctx, since the process at
// the other end of a pipe may never write. The pending call is abandoned: the
// process is about to exit.
type interruptibleReader struct {
	ctx  context.Context
	r    io.Reader
	buf  []byte // used by the pending call alone
	rest []byte // read but not yet returned
	err  error  // returned after rest
}

func (i *interruptibleReader) Read(p []byte) (int, error) {
	for len(i.rest) == 0 && i.err == nil {
		if i.buf == nil {
			i.buf = make([]byte, 64<<10)
		}
		var n int
		err := await(i.ctx, func() (err error) {
			n, err = i.r.Read(i.buf)
			return err
		})
		if i.ctx.Err() != nil {
			return 0, context.Cause(i.ctx)
		}
		i.rest, i.err = i.buf[:n], err
	}
	n := copy(p, i.rest)
	if i.rest = i.rest[n:]; len(i.rest) == 0 && n == 0 {
		return 0, i.err
	}
	return n, nil
}

// interruptibleWriter is standard output. Writes end with ctx, like the reads of
// an interruptibleReader.
type interruptibleWriter struct {
	ctx context.Context
	w   io.Writer
	err error // the first write error; fails the command even if its caller ignored it
}

// grace is how long a write may take after a signal, so that the report of what
// was published is not lost.
const grace = time.Second

func (i *interruptibleWriter) Write(p []byte) (n int, err error) {
	type written struct {
		n   int
		err error
	}
	done := make(chan written, 1)
	go func() {
		n, err := i.w.Write(p)
		done <- written{n, err}
	}()
	var w written
	select {
	case w = <-done:
	case <-i.ctx.Done():
		select {
		case w = <-done:
		case <-time.After(grace):
			return 0, context.Cause(i.ctx)
		}
	}
	if errors.Is(w.err, syscall.EPIPE) {
		w.err = ErrClosed
	}
	if i.err == nil {
		i.err = w.err
	}
	return w.n, w.err
}

// await returns the result of f, or the cause of ctx if that ends first. In that
// case f may still be running when await returns.
func await(ctx context.Context, f func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		if ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
