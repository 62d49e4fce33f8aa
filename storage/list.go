package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// finder is how a storage finds what names stand for.
type finder interface {
	Stat(ctx context.Context, name string) (Object, error)
	// match yields the objects and directories that match a pattern without ** and whose
	// names, with slashes, are wanted. It does not examine others: a marker may be a link to
	// nothing, or a temporary file that is gone by now. An error ends it.
	match(ctx context.Context, pattern string, wanted func(name string) bool) iter.Seq2[Object, error]
	// walk returns the data below a directory, with Rels below it, and the directories of
	// manifests there.
	walk(ctx context.Context, dir string) (objects []Object, manifests []string, err error)
	// notInTable refuses a directory of a Delta Lake, Hudi or Iceberg table, and those in it
	// that have its files.
	notInTable(ctx context.Context, dir string) error
	// slashes returns a name with slashes in place of the system's separators.
	slashes(name string) string
}

// list lists what a name stands for, see [Source].List and [ManifestLister].
func list(ctx context.Context, in finder, name string) (objects []Object, manifests []string, err error) {
	ctx = hive.Looking(ctx, false)
	o, err := in.Stat(ctx, name)
	switch {
	case err == nil && o.Type.IsDir():
		return in.walk(ctx, name)
	case err == nil:
		o.Rel = path.Base(in.slashes(o.Name))
		return []Object{o}, nil, in.notInTable(ctx, dirOf(in, o.Name))
	case !errors.Is(err, fs.ErrNotExist) || !glob.Is(name):
		return nil, nil, missing(name, err)
	}
	if err := glob.Check(in.slashes(clean(name))); err != nil {
		return nil, nil, fmt.Errorf("pattern %s: %w", name, err)
	}
	var empty error
	for _, p := range glob.Alternatives(in.slashes(name)) {
		find := beside
		if p = in.slashes(clean(p)); glob.Deep(p) {
			find = below
		}
		found, seen, err := find(ctx, in, p)
		if err != nil && !errors.Is(err, ErrNoFiles) {
			return nil, nil, err
		}
		empty = cmp.Or(empty, err)
		objects, manifests = append(objects, found...), append(manifests, seen...)
	}
	if strings.HasSuffix(in.slashes(name), "/") { // directories only
		objects = slices.DeleteFunc(objects, func(o Object) bool { return !o.Found })
	}
	if len(objects) == 0 {
		return nil, manifests, cmp.Or(empty, fmt.Errorf("pattern %s: it matches no file (check the path, and quote the pattern)%w", name, quiet.Error{Err: fs.ErrNotExist}))
	}
	return objects, manifests, nil
}

// dirOf returns the directory of a file.
func dirOf(in finder, name string) string {
	name = in.slashes(name)
	return cmp.Or(name[:strings.LastIndexByte(name, '/')+1], "./")
}

// below lists what matches a pattern with **. The objects' Rels are their paths below the
// directory before the first wildcard, as if it had been named.
func below(ctx context.Context, in finder, pattern string) (objects []Object, manifests []string, err error) {
	root := glob.Static(pattern)
	var dirs []Object
	if first, _, _ := strings.Cut("/"+pattern, "/**"); len(first) > len(root)+1 { // wildcards before the first **
		isDir := func(name string) bool {
			dir, err := in.Stat(ctx, name) // what cannot be examined is no directory to look into
			return !glob.Marked(pattern, name) && err == nil && dir.Type.IsDir()
		}
		for dir, failed := range in.match(ctx, first[1:], isDir) {
			dirs, err = append(dirs, dir), failed
		}
	} else if dir, failed := in.Stat(ctx, clean(root)); !errors.Is(failed, fs.ErrNotExist) && !errors.Is(failed, syscall.ENOTDIR) {
		dir.Name = root
		dirs, err = []Object{dir}, failed
	}
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range dirs {
		if !dir.Type.IsDir() {
			continue
		}
		found, seen, err := in.walk(ctx, clean(dir.Name))
		if err != nil && !errors.Is(err, ErrNoFiles) {
			return nil, nil, err
		}
		manifests = append(manifests, seen...)
		for _, o := range found {
			whole := in.slashes(o.Name)
			if _, ok := glob.Top(pattern, whole); ok {
				o.Rel = strings.TrimPrefix(whole, root)
				objects = append(objects, o)
			}
		}
	}
	return objects, manifests, nil
}

// beside lists what matches a pattern without **. Objects have their names as Rels; those
// of a directory, its name before their paths. If a directory holds no data, the error wraps
// ErrNoFiles, and the rest is valid.
func beside(ctx context.Context, in finder, pattern string) (objects []Object, manifests []string, err error) {
	looked := ""
	var empty error
	for m, err := range in.match(ctx, pattern, func(name string) bool { return !glob.Marked(pattern, name) }) {
		if err != nil {
			return nil, nil, err
		}
		name := in.slashes(m.Name)
		if !m.Type.IsDir() {
			if dir := dirOf(in, name); dir != looked {
				if err := in.notInTable(ctx, dir); err != nil {
					return nil, nil, err
				}
				looked = dir
			}
			m.Rel = path.Base(name)
			objects = append(objects, m)
			continue
		}
		found, seen, err := in.walk(ctx, m.Name)
		if err != nil && !errors.Is(err, ErrNoFiles) {
			return nil, nil, err
		}
		if err != nil { // of an output that nobody has committed, all files are staged
			empty, seen = cmp.Or(empty, err), append(seen, m.Name+address.ManifestSuffix)
		}
		manifests = append(manifests, seen...)
		for _, o := range found {
			o.Rel = path.Base(name) + "/" + o.Rel
			objects = append(objects, o)
		}
	}
	return objects, manifests, empty
}

// inDirectory returns the error of an entry of a directory that is not a regular file.
func inDirectory(name string, is fs.FileMode) error {
	return faults.Unsupported(fault.At{File: name}, "%s in a directory that is read; want regular files", kindOf(is)).
		WithHint("name the files by a pattern, or begin its name with _ or .")
}

// kindOf names the type of something other than a regular file.
func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe (FIFO)"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m.IsDir():
		return "a directory"
	}
	return "a special file"
}
