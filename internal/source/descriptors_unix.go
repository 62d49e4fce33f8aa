//go:build unix

package source

import "syscall"

// descriptors returns how many files the process may have open.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), 1<<20)) //nolint:unconvert // signed on some systems
}
