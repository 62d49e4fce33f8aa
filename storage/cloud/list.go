package cloud

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// List implements [storage.Source]. Objects come from lists alone, with no request for each.
func (s *store) List(ctx context.Context, prefix string, yield func(storage.Object) error) error {
	stopped.Needs(ctx, "Store.List")
	all := func(string) bool { return true }
	var ended error
	err := s.Walk(ctx, prefix, all, func(o storage.Object) error {
		ended = yield(o)
		return ended
	})
	if ended == nil && errors.Is(err, fs.ErrNotExist) {
		return nil // no such bucket
	}
	return err
}

// Walk is List that does not enter all directories; none with a nil enter, for which it lists one
// level. That the bucket does not exist is an error.
func (s *store) Walk(ctx context.Context, prefix string, enter func(dir string) bool, yield func(storage.Object) error) error {
	stopped.Needs(ctx, "Store.Walk")
	n, err := parse(prefix)
	switch {
	case err != nil:
		return err
	case n.local:
		return objects.Walk(ctx, s.opts.Local, n.key, enter, func(o storage.Object) error {
			if isFile(prefix) {
				o.Name = prefix + address.Escaped(filepath.ToSlash(o.Name)[len(n.key):])
			}
			return yield(o)
		})
	case n.scheme == schemeHTTP:
		return fmt.Errorf("%s: nothing can be listed over HTTP: %w", address.Redact(prefix), errors.ErrUnsupported)
	}
	b, err := s.readOf(ctx, n)
	if err != nil {
		return err
	}
	delimiter, take := "/", yield
	if enter != nil {
		delimiter, take = "", objects.Collapse(prefix, enter, yield)
	}
	var ended error
	err = b.list(ctx, n.key, delimiter, pageSize, func(e entry) bool {
		switch dir, isDir := strings.CutSuffix(e.key, "/"); {
		case e.dir && isDir:
			ended = take(storage.Object{Name: n.of(dir), Type: fs.ModeDir})
		case !e.dir && !placeholder(e.key):
			ended = take(e.object(n.of(e.key)))
		}
		return ended == nil
	})
	return errors.Join(err, ended)
}

// of returns the name of another key of the same bucket, in the spelling of n.
func (n name) of(key string) string {
	base := strings.TrimSuffix(n.given, n.key)
	if !strings.HasSuffix(base, "/") {
		base += "/" // the name of a bucket
	}
	return base + key
}

// placeholder reports whether a key stands for a directory: consoles and Hadoop
// create such objects.
func placeholder(key string) bool {
	return strings.HasSuffix(key, "/") || strings.HasSuffix(key, "_$folder$")
}
