package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// localWriter writes a temporary file beside the final one.
type localWriter struct {
	f            *os.File
	buf          []byte // not written yet
	final        string
	closed, done bool
}

var _ Rester = (*localWriter)(nil)

// Create implements [Storage]. It makes missing directories. A private file has
// the mode 0600.
func (l local) Create(ctx context.Context, name string, o CreateOptions) (Writer, error) {
	return l.create(ctx, name, "", tmpEnding, o)
}

// create is Create with a tag and the ending of the temporary name.
func (local) create(_ context.Context, name, tag, ending string, o CreateOptions) (Writer, error) {
	if err := isLocal(name); err != nil {
		return nil, err
	}
	dir, base := filepath.Split(name)
	if dir == "" {
		dir = "."
	}
	mode := fs.FileMode(0o666)
	if o.Private {
		mode = 0o600
	}
	for try := 0; ; try++ {
		err := os.MkdirAll(dir, 0o777)
		if err == nil {
			var f *os.File
			if f, err = openMode(filepath.Join(dir, tmpName(base, tag, ending)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); err == nil {
				return &localWriter{f: f, final: name}, nil
			}
		}
		if try == 100 || !errors.Is(err, fs.ErrNotExist) { // else another process has just removed the empty directory
			return nil, err
		}
	}
}

// maxBuffered is how many bytes a file collects before it writes them. Without it, a small
// Parquet file is some forty writes.
const maxBuffered = 64 << 10

// Write implements [io.Writer].
func (w *localWriter) Write(p []byte) (int, error) {
	if len(w.buf)+len(p) > maxBuffered {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) > maxBuffered {
		return w.f.Write(p)
	}
	w.buf = append(w.buf, p...)
	return len(p), nil
}

// flush writes what was collected.
func (w *localWriter) flush() error {
	_, err := w.f.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// Rest implements [Rester]: it syncs the file and closes its descriptor.
func (w *localWriter) Rest() error {
	if w.closed {
		return nil
	}
	if err := errors.Join(w.flush(), w.f.Sync(), w.f.Close()); err != nil {
		return err
	}
	w.closed, w.buf = true, nil
	return nil
}

// Commit implements [Writer].
func (w *localWriter) Commit(replace bool) error {
	_, settle, err := w.CommitOver(replace, "")
	if err != nil {
		return err
	}
	return settle()
}

// CommitOver is Commit that replaces only a file with the identity over, unless that is empty. It
// compares them first, but not in one step with the renaming. The name is sure to survive a crash
// only after settle. One call of settle is enough for all files in a directory.
func (w *localWriter) CommitOver(replace bool, over string) (identity string, settle func() error, err error) {
	if err := w.Rest(); err != nil {
		return "", nil, err
	}
	info, err := os.Lstat(w.f.Name())
	if err != nil {
		return "", nil, err
	}
	if replace && over != "" {
		if was, err := os.Lstat(w.final); err != nil || identityOf(was) != over {
			return "", nil, cmp.Or(err, changed(w.final))
		}
	}
	publish := linkNew
	if replace {
		publish = os.Rename
	}
	if err := publish(w.f.Name(), w.final); err != nil {
		return "", nil, err
	}
	w.done = true
	return identityOf(info), func() error { return syncDir(filepath.Dir(w.final)) }, nil
}

// linkNew renames the file tmp, and fails if the name is taken, which os.Rename
// would not. On a file system without hard links, a file that appears between
// the check and the renaming is replaced.
func linkNew(tmp, final string) error { return linkBy(os.Link, tmp, final) }

// linkBy is linkNew with the function that makes a hard link.
func linkBy(link func(tmp, final string) error, tmp, final string) error {
	err := link(tmp, final)
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

// Abort implements [Writer].
func (w *localWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	_ = w.f.Close() // closed already if Commit failed after Rest
	return os.Remove(w.f.Name())
}

// syncDir makes a new name in a directory survive a crash.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
