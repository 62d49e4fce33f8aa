package objects

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/bloomjoin/bloomjoin/storage"
)

// A staged object is written whole and durably before it has its name. Publish, perhaps of
// another process, gives it the name, and can do so only once: a request that arrives late finds
// nothing to publish. A storage without these methods stages an object with a hidden name, which
// Publish copies.

// Seal makes a staged object durable, except for the directory of its name, which settle (may be
// nil) syncs. The identity is that of the object once it has its name; empty: unknown.
type Seal = func() (token, identity string, settle func() error, err error)

// Stage creates an object without its name, which it gets from Publish. The caller calls Seal or
// Abort, as of any Writer. owner is where the tokens are kept, see SweepStaged.
func Stage(ctx context.Context, s storage.Storage, name, owner string) (w storage.Writer, seal Seal, err error) {
	if s, ok := s.(interface {
		Stage(ctx context.Context, name, owner string) (storage.Writer, Seal, error)
	}); ok {
		return s.Stage(ctx, name, owner)
	}
	token := "_" + path.Base(name) + "." + rand.Text() + ".staged"
	w, err = s.Create(ctx, beside(name, token), storage.CreateOptions{})
	return w, func() (string, string, func() error, error) { return token, "", nil, w.Commit(false) }, err
}

// Publish gives a staged object its name, and replaces what has that name. The error wraps
// fs.ErrNotExist if the token was published or discarded before, except that a storage may know
// that the object is the one that was published, or, in S3, say so of one that is gone: a listing
// then shows another identity.
func Publish(ctx context.Context, s storage.Storage, name, token string) (identity string, settle func() error, err error) {
	if s, ok := s.(interface {
		Publish(ctx context.Context, name, token string) (string, func() error, error)
	}); ok {
		return s.Publish(ctx, name, token)
	}
	from := beside(name, token)
	was, err := s.Stat(ctx, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	there := err == nil
	src, err := s.Open(ctx, storage.Object{Name: from})
	if err != nil {
		return "", nil, err
	}
	w, err := s.Create(ctx, name, storage.CreateOptions{})
	if err != nil {
		return "", nil, errors.Join(err, src.Close())
	}
	_, err = io.Copy(w, io.NewSectionReader(src, 0, src.Object().Size))
	if err == nil {
		_, settle, err = CommitOver(w, there, was.Identity)
	}
	if errors.Is(err, storage.ErrChanged) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) { // another process has published it
		err = fmt.Errorf("%s: %w", from, fs.ErrNotExist)
	}
	if err = errors.Join(err, src.Close()); err != nil {
		return "", nil, errors.Join(err, w.Abort())
	}
	if err := Discard(ctx, s, name, token); err != nil {
		return "", nil, err
	}
	was, err = s.Stat(ctx, name) // another process may have copied it once more before
	return was.Identity, settle, err
}

// Discard drops a staged object, if it is still there.
func Discard(ctx context.Context, s storage.Storage, name, token string) error {
	if s, ok := s.(interface {
		Discard(ctx context.Context, name, token string) error
	}); ok {
		return s.Discard(ctx, name, token)
	}
	if err := s.Delete(ctx, storage.Object{Name: beside(name, token)}); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Unfinished lists uploads below a directory that were not completed, and whose tokens are not kept.
// The identity of each is a token for Discard.
func Unfinished(ctx context.Context, s storage.Storage, dir string, kept map[string]bool) ([]storage.Object, error) {
	if s, ok := s.(interface {
		Unfinished(ctx context.Context, dir string, kept map[string]bool) ([]storage.Object, error)
	}); ok {
		return s.Unfinished(ctx, dir, kept)
	}
	return nil, nil
}

// beside returns the name of an object in the same directory.
func beside(name, token string) string {
	return name[:len(name)-len(path.Base(name))] + path.Base(token)
}

// SweepStaged drops what killed processes have staged for an owner below a directory, unless kept
// has its token. kept is asked after it is known which processes have ended.
func SweepStaged(ctx context.Context, s storage.Storage, dir, owner string, kept func() (map[string]bool, error)) error {
	if s, ok := s.(interface {
		SweepStaged(ctx context.Context, dir, owner string, kept func() (map[string]bool, error)) error
	}); ok {
		return s.SweepStaged(ctx, dir, owner, kept)
	}
	return nil
}
