package cloud

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Stat implements [storage.Source].
func (s *store) Stat(ctx context.Context, given string) (storage.Object, error) {
	stopped.Needs(ctx, "Store.Stat")
	o, err := s.Head(ctx, given)
	n, invalid := parse(given)
	if invalid != nil || n.local || n.scheme == schemeHTTP || !errors.Is(err, fs.ErrNotExist) {
		return o, err
	}
	b, err := s.readOf(ctx, n)
	if err == nil {
		err = b.dir(ctx, n)
	}
	if err != nil {
		return storage.Object{}, err
	}
	return storage.Object{Name: given, Type: fs.ModeDir}, nil
}

// Head is Stat that does not look for a directory in a bucket.
func (s *store) Head(ctx context.Context, given string) (storage.Object, error) {
	n, err := parse(given)
	if err != nil {
		return storage.Object{}, err
	}
	if n.local {
		o, err := s.opts.Local.Stat(ctx, n.key)
		return localObject(n, o), err
	}
	b, err := s.readOf(ctx, n)
	if err != nil {
		return storage.Object{}, err
	}
	if n.key == "" || n.scheme != schemeHTTP && strings.HasSuffix(n.key, "/") {
		return storage.Object{}, fs.ErrNotExist
	}
	e, err := b.stat(ctx, n.key)
	if err != nil {
		return storage.Object{}, err
	}
	return e.object(given), nil
}

// dir returns an error that wraps fs.ErrNotExist unless the name is a directory.
func (b *bucket) dir(ctx context.Context, n name) error {
	found := n.key == "" // the bucket itself: listing it shows that it exists
	err := b.list(ctx, below(n.key), "", 1, func(entry) bool { found = true; return false })
	if err == nil && !found {
		err = &faults.NotExist{Name: address.Redact(n.given)}
	}
	return err
}

// below returns the prefix of the keys in a directory.
func below(key string) string {
	if key = strings.TrimRight(key, "/"); key == "" {
		return ""
	}
	return key + "/"
}

// localObject makes the name of an object that a file URL stands for a file URL again.
func localObject(n name, o storage.Object) storage.Object {
	if isFile(n.given) && o.Name != "" {
		o.Name = address.FileURL(o.Name)
	}
	return o
}

// Open implements [storage.Source]. An object that has an identity is opened without
// a request; if it has another one by now, the first read fails.
func (s *store) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	stopped.Needs(ctx, "Store.Open")
	n, err := parse(o.Name)
	if err != nil {
		return nil, err
	}
	if n.local {
		local := o
		local.Name = n.key
		r, err := s.opts.Local.Open(ctx, local)
		if err != nil || !isFile(o.Name) {
			return r, err
		}
		return fileReader{r, n}, nil
	}
	if o.Identity == "" {
		now, err := s.Stat(ctx, o.Name)
		if err != nil {
			return nil, err
		}
		if now.Type.IsDir() {
			return nil, &faults.NotExist{Name: address.Redact(o.Name)}
		}
		now.Rel, now.Found = o.Rel, o.Found
		o = now
	}
	b, err := s.readOf(ctx, n)
	if err != nil {
		return nil, err
	}
	return &reader{o, b.s.queue.Open(ctx, &source{b, n.key, o}, o.Size, &b.link)}, nil
}

type fileReader struct {
	storage.Reader
	n name
}

func (r fileReader) Object() storage.Object { return localObject(r.n, r.Reader.Object()) }
func (r fileReader) Rest() error            { return objects.Rest(r.Reader) }
func (r fileReader) Changed() error         { return objects.Changed(r.Reader) }

// Map implements [storage.Mapper] if the local reader does.
func (r fileReader) Map() ([]byte, func() error, error) {
	if m, ok := r.Reader.(storage.Mapper); ok {
		return m.Map()
	}
	return nil, nil, errors.ErrUnsupported
}
