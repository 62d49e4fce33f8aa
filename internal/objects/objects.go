// Package objects calls the optional methods of sources, storages, readers and writers of
// package storage. Without the method, a call returns what holds then: nothing changed, one
// request at a time, nothing to do. Any package may call it.
package objects

import (
	"context"
	"os"

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
