//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package dedups

import (
	"os"
	"syscall"
)

// lock locks a file until it is closed, or its process ends. A file that another process has
// locked is an error.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
