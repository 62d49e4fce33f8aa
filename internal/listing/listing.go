// Package listing finds the inputs that a name stands for: an object, those that a pattern
// matches, or those below a directory.
//
// Path elements that begin with '_' or '.' are skipped unless a name or pattern spells them out,
// see [storage.Marker]. Patterns are those of package glob. Links are followed. Files of Delta
// Lake, Hudi and Iceberg tables are refused, since not all of them are current.
//
//	name ── List ──► objects with Rel and Found, directories of manifests beside them
package listing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// List returns what Each yields; objects of a directory in ascending order of Rel.
func List(ctx context.Context, src storage.Source, name string) (all []storage.Object, manifests []string, err error) {
	manifests, err = Each(ctx, src, name, func(o storage.Object) error {
		o.Type = 0
		all = append(all, o)
		return nil
	})
	if err != nil {
		return nil, manifests, err
	}
	if byRel := func(a, b storage.Object) int { return strings.Compare(a.Rel, b.Rel) }; !glob.Is(name) && !slices.IsSortedFunc(all, byRel) {
		slices.SortFunc(all, byRel)
	}
	return all, manifests, nil
}

// Each calls yield with the objects that name stands for, until yield returns an error, which
// Each returns. They come in ascending order of names, except that those behind links to
// directories come after all others of a directory, and alternatives of a pattern that have slashes one after the
// other. If there is none, the error wraps [storage.ErrNoFiles] if name is a directory, else
// [fs.ErrNotExist]. Objects of a directory that links lead to have the Type [fs.ModeSymlink].
//
// manifests are the directories of manifests, as out.bloomjoin, of directories that are listed;
// also with ErrNoFiles. Those of directories that match a pattern and hold no data need not exist.
func Each(ctx context.Context, src storage.Source, name string, yield func(storage.Object) error) (manifests []string, err error) {
	l := lister{ctx: hive.Looking(ctx, false), src: src, yield: yield}
	if file, isFile, _ := address.FilePath(name); isFile && !address.IsURL(objects.Resolve(src, name)) { // the source takes it for a path
		manifests, err = Each(l.ctx, src, file, func(o storage.Object) error {
			o.Name = address.FileURL(o.Name)
			return yield(o)
		})
		for i, m := range manifests {
			manifests[i] = address.FileURL(m)
		}
		return manifests, err
	}
	l.atOnce = objects.Concurrency(src, name)
	// To the system, .. after a link is the directory above the one that it leads to.
	if end := strings.LastIndex(objects.Slashes(name)+"/", "/../") + len("/.."); end > len("/..") {
		if real := objects.Resolve(src, name[:end]); real != objects.Resolve(src, clean(name[:end])) {
			name = real + name[end:]
		}
	}
	err = l.find(name)
	return l.manifests, cmp.Or(l.stopped, err)
}

// NotInTable refuses an object of a table.
func NotInTable(ctx context.Context, src storage.Source, name string) error {
	name = address.Local(name)
	l := lister{ctx: hive.Looking(ctx, false), src: src, atOnce: objects.Concurrency(src, name)}
	return l.notInTable(dirOf(objects.Slashes(name)), false)
}

// lister lists what one name stands for.
type lister struct {
	ctx       context.Context
	src       storage.Source
	atOnce    int // requests; more than one: each takes time
	yield     func(storage.Object) error
	stopped   error // of yield
	dirsOnly  bool  // objects that are not below a directory of the name are left out
	listed    bool  // something was yielded
	empty     error // of a directory without data
	manifests []string
}

// clean returns a pattern or directory without what means nothing in it.
func clean(name string) string {
	if address.IsURL(name) {
		return strings.TrimRight(name, "/")
	}
	return filepath.ToSlash(filepath.Clean(name))
}

// below returns what the names below a directory begin with.
func below(dir string) string {
	if dir = clean(dir); dir == "." {
		return ""
	}
	return strings.TrimSuffix(dir, "/") + "/"
}

// dirOf returns the directory of a file, with a slash at its end; of a name without any: "".
func dirOf(name string) string { return name[:strings.LastIndexByte(name, '/')+1] }

// out passes on an object.
func (l *lister) out(o storage.Object) error {
	if l.stopped == nil && (o.Found || !l.dirsOnly) {
		l.listed = true
		l.stopped = l.yield(o)
	}
	return l.stopped
}

// find lists what a name stands for.
func (l *lister) find(name string) error {
	o, err := objects.Head(l.ctx, l.src, name)
	known := err == nil // it is a directory, if not an object
	switch {
	case known && !o.Type.IsDir():
		if err := l.notInTable(dirOf(objects.Slashes(o.Name)), false); err != nil {
			return err
		}
		o.Rel = path.Base(objects.Slashes(address.WithoutQuery(o.Name)))
		return l.out(o)
	case known:
		name = o.Name
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if !known && strings.ContainsAny(name, "*?[") { // braces may be a name's own
		return l.pattern(name, err)
	}
	w := walk{dir: below(name)}
	failed := l.walk(&w)
	switch {
	case errors.Is(failed, errors.ErrUnsupported) && !known:
		return err
	case failed != nil || l.listed:
		return failed
	case !w.any && !known && glob.Is(name):
		return l.pattern(name, err)
	case !w.any && !known:
		if _, err := l.src.Stat(l.ctx, name); err != nil {
			return err
		}
	}
	return noFiles(below(name))
}

// noFiles is the error of a directory without data.
func noFiles(dir string) error {
	return fmt.Errorf("directory %s holds %w (name the directory with the data)", shown(dir), storage.ErrNoFiles)
}

// shown returns a directory for a text.
func shown(dir string) string { return cmp.Or(address.Redact(strings.TrimRight(dir, "/")), dir, ".") }

// pattern lists what a pattern matches. missing is the error of an object of that name.
func (l *lister) pattern(name string, missing error) error {
	if err := glob.Check(clean(name)); err != nil {
		return fmt.Errorf("pattern %s: %w", name, err)
	}
	l.dirsOnly = strings.HasSuffix(objects.Slashes(name), "/")
	for _, p := range glob.Alternatives(objects.Slashes(name)) {
		find := l.beside
		if p = clean(p); glob.Deep(p) {
			find = l.deep
		}
		if err := find(p); errors.Is(err, errors.ErrUnsupported) {
			return missing
		} else if err != nil {
			return err
		}
	}
	if l.listed {
		return nil
	}
	what := "file (check the path"
	if address.IsURL(name) {
		what = "object (check the address"
	}
	return cmp.Or(l.empty, fmt.Errorf("pattern %s: it matches no %s, and quote the pattern)%w", name, what, quiet.Error{Err: fs.ErrNotExist}))
}
