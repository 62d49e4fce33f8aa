package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/storage"
)

type timeout struct{}

func (timeout) Error() string { return "i/o timeout" }

func (timeout) Timeout() bool { return true }

func (timeout) Temporary() bool { return true }

func TestExitCode(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(signalError{syscall.SIGTERM})
	hungUp, hangUp := context.WithCancelCause(t.Context())
	hangUp(signalError{syscall.SIGHUP})
	wrap := func(err error) error {
		return fmt.Errorf("out.parquet: %w", errors.Join(&fs.PathError{Op: "write", Path: "x", Err: err}, errors.New("and then")))
	}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), flags.Usagef("no"), ExitUsage},
		{t.Context(), fmt.Errorf("x: %w", flags.Usagef("no")), ExitUsage},
		{t.Context(), errors.New("bad data"), ExitFailed},
		{t.Context(), fault.ErrCorrupt, ExitFailed},
		{t.Context(), wrap(syscall.ENOSPC), ExitTryAgain},
		{t.Context(), wrap(syscall.EDQUOT), ExitTryAgain},
		{t.Context(), wrap(syscall.EIO), ExitTryAgain},
		{t.Context(), wrap(syscall.EMFILE), ExitTryAgain},
		{t.Context(), &net.OpError{Op: "read", Err: timeout{}}, ExitTryAgain},
		{t.Context(), wrap(syscall.ECONNRESET), ExitTryAgain},
		{t.Context(), wrap(syscall.EACCES), ExitFailed},
		{t.Context(), wrap(syscall.ENOENT), ExitFailed},
		{t.Context(), wrap(syscall.EFBIG), ExitFailed},
		{t.Context(), wrap(syscall.EROFS), ExitFailed},
		{ended, errors.New("whatever came of it"), 143},
		{ended, wrap(syscall.ENOSPC), 143},
		{hungUp, wrap(syscall.ENOSPC), 129},
		{t.Context(), wrap(storage.ErrAgain), ExitTryAgain},
		{ended, flags.Usagef("no"), ExitUsage},
	} {
		if got := exitCode(c.ctx, c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

func TestInternalErrorIsAnError(t *testing.T) {
	err := guarded(func() error { panic("a mistake") })
	if err == nil || !strings.Contains(err.Error(), "internal error: a mistake") {
		t.Error(err)
	}
}
