package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// FS returns a source of the files of a file system, such as an embed.FS or an [os.Root]'s.
// Names are paths with slashes, see [fs.ValidPath].
//
// Files must have the method ReadAt, as those of package embed and of the operating system
// do; those of zip archives do not. The identity of a file is its size and modification
// time; without a time it has none, and must not change. Readers
// are [Rester]s and [Checker]s.
func FS(files fs.FS) Source { return fsSource{files} }

type fsSource struct{ fs.FS }

func (s fsSource) stat(name string) (fs.FileInfo, error) {
	if name == "" {
		return nil, errNoName
	}
	if !fs.ValidPath(path.Clean(name)) {
		return nil, fmt.Errorf("%s: no path of an fs.FS (name it from its root on, without a slash at the start)%w", name, quiet.Error{Err: fs.ErrNotExist})
	}
	info, err := fs.Stat(s.FS, path.Clean(name))
	if err == nil && !info.IsDir() && strings.HasSuffix(name, "/") {
		err = syscall.ENOTDIR
	}
	return info, err
}

func (s fsSource) readDir(name string) ([]fs.DirEntry, error) {
	if info, err := s.stat(name); err != nil || !info.IsDir() {
		return nil, cmp.Or[error](err, syscall.ENOTDIR)
	}
	return fs.ReadDir(s.FS, path.Clean(name))
}

func (fsSource) same(_, _ fs.FileInfo) bool { return true }
func (s fsSource) open(name string) (file, error) {
	f, err := s.FS.Open(path.Clean(name))
	if err != nil {
		return nil, err
	}
	if f, ok := f.(file); ok {
		return f, nil
	}
	err = faults.Unsupported(fault.At{File: name}, "a file that can be read from its start only (a %T, without ReadAt)", f).
		WithHint("extract it to a file, or into storage.Memory")
	return nil, errors.Join(err, f.Close())
}

// Stat implements [Source].
func (s fsSource) Stat(_ context.Context, name string) (Object, error) {
	info, err := s.stat(name)
	if err != nil {
		return Object{}, missing(name, err)
	}
	return objectOf(path.Clean(name), info), nil
}

// List implements [Source].
func (s fsSource) List(ctx context.Context, prefix string, yield func(Object) error) error {
	return walkFiles(ctx, s, prefix, enterAll, yield)
}

// Walk is that of Local.
func (s fsSource) Walk(ctx context.Context, prefix string, enter func(dir string) bool, yield func(Object) error) error {
	return walkFiles(ctx, s, prefix, enter, yield)
}

// Open implements [Source].
func (s fsSource) Open(ctx context.Context, o Object) (Reader, error) {
	if o.Identity == "" { // else it was a regular file; opening a pipe would wait for its other end
		now, err := s.Stat(ctx, o.Name)
		if err != nil {
			return nil, err
		}
		if now.Type != 0 {
			return nil, notRegular(now)
		}
	}
	r := &fileReader{in: s}
	if err := r.begin(o); err != nil {
		return nil, err
	}
	return r, nil
}
