//go:build unix

package partition

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
)

var _ Mapper = (*localFile)(nil)

// Map implements [Mapper]. The map keeps a descriptor of its own, by which it
// is seen at the end whether the file changed.
func (l *localFile) Map() ([]byte, func() error, error) {
	f, err := l.reopen()
	if err != nil {
		return nil, nil, err
	}
	size := l.Size()
	if int64(int(size)) != size {
		return nil, nil, errors.Join(fmt.Errorf("%s: %d bytes are more than there are addresses", l.name, size), f.Close())
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: mmap of %d bytes: %w", l.name, size, err), f.Close())
	}
	unmap := sync.OnceValue(func() error {
		return errors.Join(l.unchanged(f), syscall.Munmap(b), f.Close())
	})
	return b, unmap, nil
}

// descriptors returns how many files the process may have open.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), 1<<20)) //nolint:unconvert // signed on some systems
}

// seenDirs are directories that were walked.
type seenDirs map[[2]uint64]bool

// add notes a directory, and reports whether it was noted before.
func (s *seenDirs) add(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	key := [2]uint64{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // the types differ between systems
	if *s == nil {
		*s = seenDirs{}
	}
	seen := (*s)[key]
	(*s)[key] = true
	return seen
}
