package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// FS returns a source of the files of a file system, such as an embed.FS or an
// [os.Root]'s. Names are paths with slashes, see [fs.ValidPath]; patterns, markers and
// tables are as of [Local]. Links to files are followed; one to a directory that is
// listed is an error.
//
// Files must have the method ReadAt, as those of package embed and of the operating system
// do; those of zip archives do not. The identity of a file is its size and modification
// time. FS is a [ManifestLister], and its readers are [Checker]s.
func FS(files fs.FS) Source { return fsSource{files} }

type fsSource struct{ files fs.FS }

// Stat implements [Source].
func (s fsSource) Stat(_ context.Context, name string) (Object, error) {
	info, err := fs.Stat(s.files, path.Clean(name))
	if err != nil {
		return Object{}, missing(name, err)
	}
	return objectOf(path.Clean(name), "", info), nil
}

// List implements [Source].
func (s fsSource) List(ctx context.Context, name string) ([]Object, error) {
	objects, _, err := list(ctx, s, name)
	return objects, err
}

// ListManifests implements [ManifestLister].
func (s fsSource) ListManifests(ctx context.Context, name string) (objects []Object, manifests []string, err error) {
	return list(ctx, s, name)
}

// Tree is that of [Storage].
func (s fsSource) Tree(ctx context.Context, dir string) (objects []Object, err error) {
	root := path.Clean(dir)
	err = fs.WalkDir(s.files, root, func(name string, d fs.DirEntry, err error) error {
		if name == root && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := errors.Join(err, ctx.Err()); err != nil || d.IsDir() {
			return err
		}
		info, err := fs.Stat(s.files, name)
		if err != nil {
			return err
		}
		rel := name
		if root != "." {
			rel = name[min(len(root)+1, len(name)):]
		}
		objects = append(objects, objectOf(name, rel, info))
		return nil
	})
	return objects, err
}

// Open implements [Source].
func (s fsSource) Open(_ context.Context, o Object) (Reader, error) {
	f, err := s.files.Open(path.Clean(o.Name))
	if err != nil {
		return nil, missing(o.Name, err)
	}
	r := &fsReader{s: s, f: f}
	if err := r.is(o); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

type fsReader struct {
	io.ReaderAt
	s      fsSource
	f      fs.File
	object Object
}

// is examines the file that was opened as o.
func (r *fsReader) is(o Object) error {
	info, err := r.f.Stat()
	if err != nil {
		return err
	}
	r.object = objectOf(o.Name, o.Rel, info)
	r.object.Found = o.Found
	switch at, ok := r.f.(io.ReaderAt); {
	case r.object.Type != 0:
		return notRegular(r.object)
	case o.Identity != "" && o.Identity != r.object.Identity:
		return changed(o.Name)
	case !ok:
		return faults.Unsupported(fault.At{File: o.Name}, "a file that can be read from its start only (a %T, without ReadAt)", r.f).
			WithHint("extract it to a file, or into storage.Memory")
	default:
		r.ReaderAt = at
	}
	return nil
}

func (r *fsReader) Object() Object { return r.object }
func (r *fsReader) Close() error   { return r.f.Close() }

// Changed implements [Checker].
func (r *fsReader) Changed() error {
	info, err := fs.Stat(r.s.files, path.Clean(r.object.Name))
	if err == nil && identityOf(info) != r.object.Identity {
		err = changed(r.object.Name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.object.Name, err)
	}
	return nil
}

var (
	_ ManifestLister = fsSource{}
	_ Checker        = (*fsReader)(nil)
)

func (s fsSource) match(ctx context.Context, pattern string) ([]Object, error) {
	return matchFlat(ctx, s, pattern)
}

func (s fsSource) walk(ctx context.Context, dir string) (objects []Object, manifests []string, err error) {
	return walkFlat(ctx, s, dir)
}
