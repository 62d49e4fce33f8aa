package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// localReader reads a file. It can give its descriptor back between reads, since
// a log may have more files than a process may have open.
type localReader struct {
	object Object
	info   fs.FileInfo // when it was first opened

	mu     sync.RWMutex
	f      *os.File // nil while at rest
	closed bool
}

var (
	_ Rester  = (*localReader)(nil)
	_ Checker = (*localReader)(nil)
)

// Open implements [Source]. It refuses what is not a regular file.
func (l local) Open(ctx context.Context, o Object) (Reader, error) {
	if err := isLocal(o.Name); err != nil {
		return nil, err
	}
	if o.Identity == "" { // else it was a regular file; opening a pipe would wait for its other end
		now, err := l.Stat(ctx, o.Name)
		if err != nil {
			return nil, missing(o.Name, err)
		}
		if now.Type != 0 {
			return nil, notRegular(now)
		}
	}
	f, err := os.Open(o.Name)
	if err != nil {
		return nil, missing(o.Name, err)
	}
	info, err := f.Stat()
	if err == nil && o.Identity != "" && identityOf(info) != o.Identity {
		err = changed(o.Name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	now := objectOf(o.Name, o.Rel, info)
	now.Found = o.Found
	return &localReader{object: now, info: info, f: f}, nil
}

func notRegular(o Object) error {
	e := faults.Unsupported(fault.At{File: o.Name}, "%s where a regular file is needed", kindOf(o.Type))
	if o.Type.IsDir() {
		return e.WithHint("name a file")
	}
	return e.WithHint(`name a file; a pipe can be read as standard input, "-"`)
}

// changed returns the error of a file that is no longer as it was.
func changed(name string) error {
	return fmt.Errorf("%s: the file changed while it was read: %w%w", name, syscall.ESTALE, quiet.Error{Err: ErrChanged})
}

// Object implements [Reader].
func (l *localReader) Object() Object { return l.object }

// ReadAt implements [io.ReaderAt].
func (l *localReader) ReadAt(p []byte, off int64) (int, error) {
	l.mu.RLock()
	for l.f == nil {
		l.mu.RUnlock()
		if err := l.wake(); err != nil {
			return 0, err
		}
		l.mu.RLock()
	}
	defer l.mu.RUnlock()
	return l.f.ReadAt(p, off)
}

// wake opens a file at rest again.
func (l *localReader) wake() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		return nil
	}
	if l.closed {
		return l.closedError()
	}
	f, err := l.reopen()
	if err != nil {
		return err
	}
	l.f = f
	return nil
}

// reopen opens the file once more, and returns an error if it has changed.
func (l *localReader) reopen() (*os.File, error) {
	f, err := os.Open(l.object.Name)
	if err != nil {
		return nil, err
	}
	if err := l.unchanged(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Changed implements [Checker].
func (l *localReader) Changed() error {
	l.mu.RLock()
	closed := l.closed
	l.mu.RUnlock()
	if closed {
		return l.closedError()
	}
	f, err := l.reopen()
	if err != nil {
		return err
	}
	return f.Close()
}

// unchanged returns an error unless f is the file that was opened first, as it
// was then.
func (l *localReader) unchanged(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !(os.SameFile(info, l.info) && identityOf(info) == l.object.Identity) {
		err = changed(l.object.Name)
	}
	return err
}

// Rest implements [Rester]: it closes the descriptor until the next read.
func (l *localReader) Rest() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}

// Close implements [io.Closer]. Nothing opens the file again afterwards; what is mapped
// stays so.
func (l *localReader) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.Rest()
}

func (l *localReader) closedError() error {
	return fmt.Errorf("%s: %w", l.object.Name, fs.ErrClosed)
}
