package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"syscall"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// fileReader reads a file. It can give its descriptor back between reads, since
// a log may have more files than a process may have open.
type fileReader struct {
	in     files
	object Object
	info   fs.FileInfo // when it was first opened

	mu     sync.RWMutex
	f      file // nil while at rest
	closed bool
}

// file is an open file.
type file interface {
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// localReader is a fileReader of the local file system, which may map its file.
type localReader struct{ fileReader }

var (
	_ Rester  = (*fileReader)(nil)
	_ Checker = (*fileReader)(nil)
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
	r := &localReader{fileReader{in: osFiles{}}}
	if err := r.begin(o); err != nil {
		return nil, err
	}
	return r, nil
}

// begin opens the file as o.
func (l *fileReader) begin(o Object) error {
	f, err := l.in.open(o.Name)
	if err != nil {
		return missing(o.Name, err)
	}
	info, err := f.Stat()
	if err == nil && o.Identity != "" && identityOf(info) != o.Identity {
		err = changed(o.Name)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.object, l.info, l.f = objectOf(o.Name, info), info, f
	l.object.Rel, l.object.Found = o.Rel, o.Found
	return nil
}

func notRegular(o Object) error {
	e := faults.Unsupported(fault.At{File: o.Name}, "%s where a regular file is needed", faults.KindOf(o.Type))
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
func (l *fileReader) Object() Object { return l.object }

// ReadAt implements [io.ReaderAt].
func (l *fileReader) ReadAt(p []byte, off int64) (int, error) {
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
func (l *fileReader) wake() error {
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
func (l *fileReader) reopen() (file, error) {
	f, err := l.in.open(l.object.Name)
	if err != nil {
		return nil, err
	}
	if err := l.unchanged(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Changed implements [Checker].
func (l *fileReader) Changed() error {
	f, err := l.another()
	if err != nil {
		return err
	}
	return f.Close()
}

// another is reopen for a caller of its own, unless the reader is closed.
func (l *fileReader) another() (file, error) {
	l.mu.RLock()
	closed := l.closed
	l.mu.RUnlock()
	if closed {
		return nil, l.closedError()
	}
	return l.reopen()
}

// unchanged returns an error unless f is the file that was opened first, as it
// was then.
func (l *fileReader) unchanged(f file) error {
	info, err := f.Stat()
	if err == nil && !(l.in.same(l.info, info) && identityOf(info) == l.object.Identity) {
		err = changed(l.object.Name)
	}
	return err
}

// Rest implements [Rester]: it closes the descriptor until the next read.
func (l *fileReader) Rest() error {
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
func (l *fileReader) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.Rest()
}

func (l *fileReader) closedError() error {
	return fmt.Errorf("%s: %w", l.object.Name, fs.ErrClosed)
}
