package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strings"
	"syscall"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// FS returns a source of the files of a file system, such as an embed.FS or an [os.Root]'s.
// Names are paths with slashes, see [fs.ValidPath]; patterns, markers, links and tables are
// treated as by [Local].
//
// Files must have the method ReadAt, as those of package embed and of the operating system
// do; those of zip archives do not. The identity of a file is its size and modification
// time; without a time it has none, and must not change. FS is a [ManifestLister], and its
// readers are [Rester]s and [Checker]s.
func FS(files fs.FS) Source { return fsSource{files} }

type fsSource struct{ fs.FS }

var _ ManifestLister = fsSource{}

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
	return fs.ReadDir(s.FS, path.Clean(name))
}

func (s fsSource) glob(pattern string) ([]string, error) { return glob.FilesOf(s.FS, pattern) }
func (fsSource) join(elem ...string) string              { return path.Join(elem...) }
func (fsSource) same(_, _ fs.FileInfo) bool              { return true }
func (fsSource) slashes(name string) string              { return name }

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

func (s fsSource) match(_ context.Context, pattern string, wanted func(string) bool) iter.Seq2[Object, error] {
	return matchFiles(s, pattern, wanted)
}

func (s fsSource) paths(dir string) []string { return []string{withSlash(path.Clean(dir))} }

func (s fsSource) notInTable(ctx context.Context, dir string) error { return notInTable(ctx, s, dir) }

func (s fsSource) walk(ctx context.Context, dir string) ([]Object, []string, error) {
	return walkFiles(ctx, s, dir)
}

// Stat implements [Source].
func (s fsSource) Stat(_ context.Context, name string) (Object, error) {
	info, err := s.stat(name)
	if err != nil {
		return Object{}, missing(name, err)
	}
	return objectOf(path.Clean(name), "", info), nil
}

// List implements [Source].
func (s fsSource) List(ctx context.Context, name string) ([]Object, error) {
	objects, _, err := s.ListManifests(ctx, name)
	return objects, err
}

// ListManifests implements [ManifestLister].
func (s fsSource) ListManifests(ctx context.Context, name string) ([]Object, []string, error) {
	return list(ctx, s, name)
}

// Tree is [Storage].Tree.
func (s fsSource) Tree(ctx context.Context, dir string) (objects []Object, err error) {
	root := path.Clean(dir)
	if !fs.ValidPath(root) {
		return nil, nil // there is no such directory
	}
	err = fs.WalkDir(s.FS, root, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the directory does not exist, or was removed meanwhile
		}
		if err := errors.Join(err, ctx.Err()); err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			objects = append(objects, objectOf(name, strings.TrimPrefix(name, inside(root)), info))
		}
		return err
	})
	return objects, err
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
