package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
)

// Source is an object that does not change while it is read. ReadAt may be
// called from many goroutines at once. A Source that holds something scarce,
// such as a file descriptor, may have a method Rest() error, which is called
// when nothing will be read for a while. One that knows when the object was
// last written says so by a method ModTime() time.Time, one that knows whether it
// has changed since it was opened by a method Changed() error.
type Source interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Mapper is a Source whose object can be mapped into memory. Sources of [Local]
// are, on systems of the Unix family.
type Mapper interface {
	// Map returns all bytes of the object, to be read only, and the function
	// that gives them back, whose error may say that the object has changed
	// since it was opened. The map outlives Close. Bytes that can no longer
	// be read, because the object shrank or its disk fails, are a memory
	// fault: the end of the process except for goroutines that call
	// debug.SetPanicOnFault. An error means that the object must be read.
	Map() (b []byte, unmap func() error, err error)
}

// Sink is an object that is being written. Nobody sees it until Commit, and
// then whole. A Sink that holds something scarce, such as a file descriptor, may
// have a method Finish() error, which is called where Commit may follow long
// after the last Write.
type Sink interface {
	io.Writer
	// Commit makes what was written durable and visible under its name. If
	// another object has that name, it is replaced if replace, else left alone
	// and the error wraps fs.ErrExist; Commit may then be called again.
	Commit(replace bool) error
	// Abort drops what was written. After Commit it does nothing.
	Abort() error
}

// Entry is one object that a name given by the user stands for.
type Entry struct {
	Name string // opens it
	// Rel is its path below the directory that the user named, with slashes,
	// or its last element where the user named the object or a pattern: what
	// identifies it on every machine.
	Rel string
	// Found is true if a directory was searched, so that the object may be
	// something else than data.
	Found bool
}

// Object is something that stands below a directory and is no directory itself.
type Object struct {
	Rel     string // its path below the directory, with slashes
	Regular bool   // false: a link, a pipe, a device
	Size    int64
	ModTime time.Time // zero: not known
}

// Store is where objects live. [Local] is the file system; a program that
// keeps its objects elsewhere brings its own.
type Store interface {
	// List returns the objects that name stands for: itself, those that a
	// pattern matches, or those below a directory, except where an element of
	// the path that name does not spell out begins with '_' or '.'. Those of a
	// directory are in ascending order of Rel. No object at all is an error, of
	// a directory one that wraps ErrNoFiles.
	List(ctx context.Context, name string) ([]Entry, error)
	// Tree returns what stands below a directory that is written, whatever its
	// name, and follows no link. Of no directory it returns nothing.
	Tree(ctx context.Context, dir string) ([]Object, error)
	Open(ctx context.Context, name string) (Source, error)
	// Create begins an object. private keeps other users from reading it,
	// where the store knows users.
	Create(ctx context.Context, name string, private bool) (Sink, error)
	Remove(ctx context.Context, name string) error
	// IsDir reports whether name is a directory, or must be one by its form.
	IsDir(ctx context.Context, name string) bool
}

// Local is the local file system. The zero value is ready.
type Local struct{}

var _ Store = Local{}

// local refuses names of objects elsewhere, which would do as file names.
func local(name string) error {
	if i := strings.Index(name, "://"); i > 0 {
		return fault.Unsupported(fault.At{File: name}, "%s:// addresses", name[:i]).WithHint("copy the data to a local disk; only local files are read and written")
	}
	return nil
}

// localFile reads a file. Its descriptor can be given back between reads: a
// log may have more files than a process may have open.
type localFile struct {
	name string
	info fs.FileInfo // as it was first opened

	mu sync.RWMutex
	f  *os.File // nil while at rest
}

// Open implements [Store].
func (Local) Open(_ context.Context, name string) (Source, error) {
	if err := local(name); err != nil {
		return nil, err
	}
	info, err := os.Stat(name) // before it is opened, at which a pipe would wait for its other end
	if err != nil {
		return nil, missing(name, err)
	}
	if !info.Mode().IsRegular() {
		e := fault.Unsupported(fault.At{File: name}, "%s where a regular file is needed", kindOf(info.Mode()))
		e.Hint = "name a file"
		if !info.IsDir() {
			e.Hint = `name a file; a pipe can be read as standard input, "-"`
		}
		return nil, e
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &localFile{name: name, info: info, f: f}, nil
}

func (l *localFile) Size() int64 { return l.info.Size() }

// ModTime returns when the file was last written.
func (l *localFile) ModTime() time.Time { return l.info.ModTime() }

// ReadAt implements [io.ReaderAt].
func (l *localFile) ReadAt(p []byte, off int64) (int, error) {
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

// wake opens the file again, and makes sure that it is the same.
func (l *localFile) wake() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		return nil
	}
	f, err := l.reopen()
	if err != nil {
		return err
	}
	l.f = f
	return nil
}

// reopen opens the file once more.
func (l *localFile) reopen() (*os.File, error) {
	f, err := os.Open(l.name)
	if err != nil {
		return nil, err
	}
	if err := l.unchanged(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Changed returns an error if the file is no longer as it was opened.
func (l *localFile) Changed() error {
	f, err := l.reopen()
	if err != nil {
		return err
	}
	return f.Close()
}

// unchanged returns an error unless f is the file that was opened first, as it
// was.
func (l *localFile) unchanged(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !(os.SameFile(info, l.info) && info.Size() == l.info.Size() && info.ModTime().Equal(l.info.ModTime())) {
		// Another attempt reads one file from its beginning to its end.
		err = fmt.Errorf("%s: the file changed while it was read: %w", l.name, syscall.ESTALE)
	}
	return err
}

// Rest gives the descriptor back until the next read.
func (l *localFile) Rest() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}

func (l *localFile) Close() error { return l.Rest() }

// IsDir implements [Store]: a directory, or a name that ends in a slash.
func (Local) IsDir(_ context.Context, name string) bool {
	if strings.HasSuffix(name, "/") || strings.HasSuffix(name, string(filepath.Separator)) {
		return true
	}
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// Remove implements [Store].
func (Local) Remove(_ context.Context, name string) error { return os.Remove(name) }

// localSink writes a temporary file beside the final one.
type localSink struct {
	f            *os.File
	final        string
	closed, done bool
}

// Create implements [Store]. It makes the directories that are missing.
func (Local) Create(_ context.Context, name string, private bool) (Sink, error) {
	if err := local(name); err != nil {
		return nil, err
	}
	dir, base := filepath.Split(name)
	if dir == "" {
		dir = "."
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	// A name that begins with a dot is no data to anyone who reads the
	// directory meanwhile.
	tmp := filepath.Join(dir, tmpName(base))
	mode := fs.FileMode(0o666)
	if private {
		mode = 0o600
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return &localSink{f: f, final: name}, nil
}

func (s *localSink) Write(p []byte) (int, error) { return s.f.Write(p) }

// Finish makes what was written durable and gives the descriptor back.
func (s *localSink) Finish() error {
	if s.closed {
		return nil
	}
	if err := errors.Join(s.f.Sync(), s.f.Close()); err != nil {
		return err
	}
	s.closed = true
	return nil
}

func (s *localSink) Commit(replace bool) error {
	if err := s.Finish(); err != nil {
		return err
	}
	tmp := s.f.Name()
	if replace {
		if err := os.Rename(tmp, s.final); err != nil {
			return err
		}
	} else {
		if err := linkNew(tmp, s.final); err != nil {
			return err
		}
	}
	s.done = true
	return syncDir(filepath.Dir(s.final))
}

// linkNew gives the file tmp its final name, and fails if that is taken, which
// rename would not. Where a file system knows no links, a rival that comes
// between the look and the rename is overwritten by a whole file.
func linkNew(tmp, final string) error {
	err := os.Link(tmp, final)
	switch {
	case err == nil:
		return os.Remove(tmp)
	case !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission):
		return err
	}
	if _, err := os.Lstat(final); err == nil {
		return fmt.Errorf("%s: %w", final, fs.ErrExist)
	}
	return os.Rename(tmp, final)
}

func (s *localSink) Abort() error {
	if s.done {
		return nil
	}
	s.done = true
	_ = s.f.Close() // closed already if Commit failed half-way
	return os.Remove(s.f.Name())
}

// syncDir makes a new name in a directory survive a crash.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
