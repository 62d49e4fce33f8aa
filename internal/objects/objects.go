// Package objects calls the optional methods of sources, storages, readers and writers of
// package storage. Without the method, a call returns what holds then: nothing changed, one
// request at a time, nothing to do. Any package may call it.
package objects

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Rest calls [storage.Rester.Rest] if a reader or a writer has that method.
func Rest(r any) error {
	if r, ok := r.(storage.Rester); ok {
		return r.Rest()
	}
	return nil
}

// CommitOver is [storage.Writer.Commit] that replaces only an object with the identity over,
// unless that is empty; if there is another or none, the error wraps [storage.ErrChanged] or
// [fs.ErrNotExist]. It returns the identity of what it wrote, if that is known. The name may need
// a call of settle to be durable, for a storage that settles all names of a directory at once.
// A nil settle has nothing to do.
func CommitOver(w storage.Writer, replace bool, over string) (identity string, settle func() error, err error) {
	if w, ok := w.(interface {
		CommitOver(replace bool, over string) (identity string, settle func() error, err error)
	}); ok {
		return w.CommitOver(replace, over)
	}
	return "", nil, w.Commit(replace)
}

// Prefetch calls [storage.Prefetcher.Prefetch] if r has that method.
func Prefetch(r storage.Reader, ranges []storage.Range) (release func()) {
	if r, ok := r.(storage.Prefetcher); ok && len(ranges) > 0 {
		return r.Prefetch(ranges)
	}
	return func() {}
}

// Concurrency calls [storage.Concurrent.Concurrency] if s has that method, else it returns 1.
func Concurrency(s storage.Source, name string) int {
	if s, ok := s.(storage.Concurrent); ok {
		return max(s.Concurrency(name), 1)
	}
	return 1
}

// Changed calls [storage.Checker.Changed] if r has that method.
func Changed(r storage.Reader) error {
	if r, ok := r.(storage.Checker); ok {
		return r.Changed()
	}
	return nil
}

// Sweep calls [storage.Sweeper.Sweep] if s has that method.
func Sweep(ctx context.Context, s storage.Storage, name string) error {
	if s, ok := s.(storage.Sweeper); ok {
		return s.Sweep(ctx, name)
	}
	return nil
}

// RemoveDir calls [storage.DirRemover.RemoveDir] if s has that method.
func RemoveDir(ctx context.Context, s storage.Storage, name string) error {
	if s, ok := s.(storage.DirRemover); ok {
		return s.RemoveDir(ctx, name)
	}
	return nil
}

// Resolve calls [storage.Resolver.Resolve] if s has that method, else it returns name.
func Resolve(s storage.Source, name string) string {
	if s, ok := s.(storage.Resolver); ok {
		return s.Resolve(name)
	}
	return name
}

// IsDir reports whether name is a directory, or must be one because it ends in
// a slash.
func IsDir(ctx context.Context, s storage.Source, name string) bool {
	if name != "" && os.IsPathSeparator(name[len(name)-1]) {
		return true
	}
	o, err := s.Stat(ctx, name)
	return err == nil && o.Type.IsDir()
}

// walker is a source that reads directories, or has a service that does.
type walker interface {
	Walk(ctx context.Context, prefix string, enter func(dir string) bool, yield func(storage.Object) error) error
}

// Walks reports whether a source can list one level of a tree, without what is below.
func Walks(s storage.Source) bool {
	_, ok := s.(walker)
	return ok
}

// Walk is [storage.Source.List] that yields a directory for which enter returns false as one
// object of Type fs.ModeDir, in place of what is below it. A nil enter enters none.
func Walk(ctx context.Context, s storage.Source, prefix string, enter func(dir string) bool, yield func(storage.Object) error) error {
	if s, ok := s.(walker); ok {
		return s.Walk(ctx, prefix, enter, yield)
	}
	return s.List(ctx, prefix, Collapse(prefix, enter, yield))
}

// Collapse makes the yield of a Walk that of a list of all below prefix.
func Collapse(prefix string, enter func(dir string) bool, yield func(storage.Object) error) func(storage.Object) error {
	inside, closed := prefix, ""
	return func(o storage.Object) error {
		if closed != "" && strings.HasPrefix(o.Name, closed) {
			return nil
		}
		from := len(prefix)
		if strings.HasPrefix(o.Name, inside) {
			from = len(inside)
		}
		for at := from; at < len(o.Name); at++ {
			if o.Name[at] != '/' {
				continue
			}
			if enter == nil || !enter(o.Name[:at]) {
				closed = o.Name[:at+1]
				return yield(storage.Object{Name: o.Name[:at], Type: fs.ModeDir})
			}
			inside = o.Name[:at+1]
		}
		return yield(o)
	}
}

// Head is [storage.Source.Stat], except that a source for which it is another request may not
// look for a directory.
func Head(ctx context.Context, s storage.Source, name string) (storage.Object, error) {
	if s, ok := s.(interface {
		Head(ctx context.Context, name string) (storage.Object, error)
	}); ok {
		return s.Head(ctx, name)
	}
	return s.Stat(ctx, name)
}

// Below returns all objects below a directory, with their paths there as Rels.
func Below(ctx context.Context, s storage.Source, dir string) (all []storage.Object, err error) {
	prefix := strings.TrimRight(Slashes(dir), "/") + "/"
	err = s.List(ctx, prefix, func(o storage.Object) error {
		o.Rel = address.Unescaped(Slashes(o.Name))[len(address.Unescaped(prefix)):]
		all = append(all, o)
		return nil
	})
	return all, err
}

// Slashes returns a name with slashes in place of the system's separators.
func Slashes(name string) string {
	if filepath.Separator == '/' || address.IsURL(name) {
		return name
	}
	return filepath.ToSlash(name)
}
