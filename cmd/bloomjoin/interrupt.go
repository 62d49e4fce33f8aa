package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/show"
)

// signalError says which signal has ended the command.
type signalError struct{ syscall.Signal }

func (e signalError) Error() string { return fmt.Sprintf("interrupted by a signal: %v", e.Signal) }

func (signalError) Is(target error) bool { return target == context.Canceled }

// untilSignal returns a context that ends with the first SIGINT, SIGTERM or
// SIGHUP, whose cause is a signalError. A second signal ends the process at once.
// A signal that whoever started the process wants ignored, as nohup does, stays so.
func untilSignal(ctx context.Context) (context.Context, func()) {
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
	return ctx, func() { cancel(nil) }
}

// printable is a stream that people read, perhaps on a terminal: control
// characters, which names of files and columns may have, are written as \x1b.
type printable struct{ io.Writer }

func (p printable) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.Writer, show.Printable(string(b), "\n\t")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// errClosed says that nobody reads standard output any more.
var errClosed = fmt.Errorf("standard output was closed (%w)", syscall.EPIPE)

// A process at the other end of a pipe may let us wait for ever. These let go
// of it when ctx ends, so that a signal always ends the command; the call that
// waits is left behind, as the process is about to end.

type interruptibleReader struct {
	ctx  context.Context
	r    io.Reader
	buf  []byte // of the call that is under way, so that nobody else uses it
	rest []byte // read and not yet handed on
	err  error  // that came with it
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

// interruptibleWriter is standard output.
type interruptibleWriter struct {
	ctx context.Context
	w   io.Writer
	err error // the first, so that a command that does not look fails all the same
}

// grace is how long a write may take after a signal: enough for a report of what
// has been published, which would otherwise be lost.
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
		w.err = errClosed
	}
	if i.err == nil {
		i.err = w.err
	}
	return w.n, w.err
}

// await returns what f returns, or the cause when ctx ends first. Only in the
// latter case may f still run; nothing else is begun then.
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
