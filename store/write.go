package store

import (
	"context"
	"errors"
	"io/fs"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/bloomjoin/bloomjoin/storage"
)

// Create implements [storage.Storage].
func (s *Store) Create(ctx context.Context, given string, o storage.CreateOptions) (storage.Writer, error) {
	n, err := parse(given)
	if err != nil {
		return nil, err
	}
	if n.local {
		return s.opts.Local.Create(ctx, n.key, o)
	}
	if err := n.readOnly(); err != nil {
		return nil, err
	}
	b, err := s.bucketOf(ctx, n.place)
	if err != nil {
		return nil, err
	}
	return &writer{ctx: ctx, b: b, name: n}, nil
}

// writer keeps the object in memory until Commit.
type writer struct {
	ctx  context.Context
	b    *bucket
	name name
	all  []byte
}

func (w *writer) Write(p []byte) (int, error) {
	w.all = append(w.all, p...)
	return len(p), nil
}

func (w *writer) Commit(replace bool) error {
	return w.b.s.do(w.ctx, w.b, put, w.name.key, func(ctx context.Context) error {
		err := w.b.WriteAll(ctx, w.name.key, w.all, &blob.WriterOptions{IfNotExist: !replace})
		if !replace && gcerrors.Code(err) == gcerrors.FailedPrecondition {
			return errors.Join(err, fs.ErrExist)
		}
		return err
	})
}

func (w *writer) Abort() error { return nil }

// Delete implements [storage.Storage].
func (s *Store) Delete(ctx context.Context, o storage.Object) error {
	n, err := parse(o.Name)
	if err != nil {
		return err
	}
	if n.local {
		o.Name = n.key
		return s.opts.Local.Delete(ctx, o)
	}
	if err := n.readOnly(); err != nil {
		return err
	}
	b, err := s.bucketOf(ctx, n.place)
	if err != nil {
		return err
	}
	e, err := b.stat(ctx, n.key)
	if err != nil {
		return err
	}
	if o.Identity != "" && o.Identity != e.identity {
		return changed(o.Name)
	}
	return s.do(ctx, b, del, n.key, func(ctx context.Context) error { return b.Bucket.Delete(ctx, n.key) })
}

// Sweep implements [storage.Sweeper].
func (s *Store) Sweep(ctx context.Context, given string) error {
	n, err := parse(given)
	if err != nil || !n.local {
		return err
	}
	return storage.Sweep(ctx, s.opts.Local, n.key)
}
