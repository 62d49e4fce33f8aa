//go:build unix

package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// hangupEvery is how often untilHangup looks whether it is still wanted.
const hangupEvery = 250 * time.Millisecond

// untilHangup waits until f, a pipe or a socket, has no reader left. It returns false if ctx
// ends first, or if f is neither.
func untilHangup(ctx context.Context, f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return false
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	for ctx.Err() == nil && !gone && err == nil {
		var failed error
		err = conn.Control(func(fd uintptr) {
			// Errors and hangups are reported without being asked for. POLLHUP makes
			// macOS look at a pipe's other end at all.
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLHUP}}
			var n int
			n, failed = unix.Poll(fds, int(hangupEvery.Milliseconds()))
			gone = n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		})
		if err == nil && failed != nil && !errors.Is(failed, unix.EINTR) {
			err = failed
		}
	}
	return gone && ctx.Err() == nil
}
