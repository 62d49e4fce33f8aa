//go:build unix

package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

var _ Mapper = (*localReader)(nil)

func openFile(name string) (file, error) { return openMode(name, syscall.O_RDONLY, 0) }

// openMode is [os.OpenFile] without five system calls that try to poll the file, which is of no
// use for a regular file and slow for a log of many files.
func openMode(name string, flags int, mode fs.FileMode) (*os.File, error) {
	for {
		fd, err := syscall.Open(name, flags|syscall.O_CLOEXEC, uint32(mode))
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), name), nil
		case syscall.EINTR: // as with slow file systems
		default:
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// Map implements [Mapper]. The mapping keeps a descriptor of its own, with which
// unmap checks whether the file has changed.
func (l *localReader) Map() ([]byte, func() error, error) {
	f, err := l.another()
	if err != nil {
		return nil, nil, err
	}
	size := l.object.Size
	if int64(int(size)) != size {
		return nil, nil, errors.Join(fmt.Errorf("%s: %d bytes are more than there are addresses", l.object.Name, size), f.Close())
	}
	b, err := syscall.Mmap(int(f.(*os.File).Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: mmap of %d bytes: %w", l.object.Name, size, err), f.Close())
	}
	unmap := sync.OnceValue(func() error {
		return errors.Join(l.unchanged(f), syscall.Munmap(b), f.Close())
	})
	return b, unmap, nil
}

// ReadAll fills b, which has the size of the file, with its bytes. Like Map it returns an
// error if the file has changed.
func (l *localReader) ReadAll(b []byte) error {
	f, err := l.another()
	if err != nil {
		return err
	}
	_, err = f.ReadAt(b, 0)
	return errors.Join(err, l.unchanged(f), f.Close())
}

// dirIdentity tells a directory from all others, whatever its name; empty: unknown.
func dirIdentity(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%x-%x", st.Dev, st.Ino)
}
