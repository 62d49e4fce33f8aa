package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud/internal/fetch"
)

// source sends the requests for one version of an object.
type source struct {
	b   *bucket
	key string
	o   storage.Object
}

// Get implements [fetch.Source].
func (s *source) Get(ctx context.Context, off, n int64, attempt int) (io.ReadCloser, error) {
	b, o := s.b, s.o
	ctx, c := withCall(ctx, get, attempt)
	b.s.note(b, get)
	a, err := b.get(ctx, s.key, o.Identity, off, n)
	if err != nil {
		f := b.failed(c, s.key, err)
		switch f.status {
		case http.StatusNotFound, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
			return nil, changed(o.Name) // it was there
		}
		return nil, f
	}
	known := a.identity != "" || b.place.scheme == schemeHTTP // over HTTP, an answer without identity may be of another version
	if known && a.identity != o.Identity || a.size >= 0 && a.size != o.Size {
		_ = a.Close() // not read
		return nil, changed(o.Name)
	}
	return a, nil
}

// Again implements [fetch.Source].
func (s *source) Again(ctx context.Context, err error, attempt int, since time.Time) error {
	var f *failure
	if !errors.As(err, &f) && !errors.Is(err, storage.ErrChanged) { // the connection broke
		err = s.b.failed(new(call), s.key, err)
	}
	return s.b.s.again(ctx, err, attempt, since)
}

// reader is a [storage.Reader] of an object in a bucket.
type reader struct {
	of      storage.Object
	fetched *fetch.Object
}

var (
	_ storage.Prefetcher = (*reader)(nil)
	_ storage.Rester     = (*reader)(nil)
)

// Object implements [storage.Reader].
func (r *reader) Object() storage.Object { return r.of }

// ReadAt implements [io.ReaderAt].
func (r *reader) ReadAt(p []byte, off int64) (int, error) { return r.fetched.ReadAt(p, off) }

// Prefetch implements [storage.Prefetcher].
func (r *reader) Prefetch(ranges []storage.Range) (release func()) {
	return r.fetched.Prefetch(ranges)
}

// Gap implements [storage.Prefetcher].
func (r *reader) Gap() int64 { return r.fetched.Gap() }

// Rest implements [storage.Rester]: it drops fetched bytes that were not announced.
func (r *reader) Rest() error {
	r.fetched.Rest()
	return nil
}

// Close implements [io.Closer].
func (r *reader) Close() error {
	r.fetched.Close()
	return nil
}
