package store

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/store/internal/fetch"
)

// bucket is a bucket as gocloud sees it, and what gocloud leaves to each cloud.
type bucket struct {
	*blob.Bucket
	cloud
	sink
	unconditional atomic.Bool // the service has no exclusive writes
	place         place
	s             *Store
	link          fetch.Link
}

// cloud has what gocloud does not offer for all clouds alike. The functions get the
// As function or method of gocloud's values.
type cloud interface {
	// beforeList adds options to a request for a list.
	beforeList(as func(any) bool) error
	// listed and stated return the identity of an object.
	listed(o *blob.ListObject) string
	stated(a *blob.Attributes) string
	// pin makes a read fail unless the object has the identity.
	pin(as func(any) bool, identity string) error
	// read returns the identity of the object that is read. ok is false if the
	// response does not say.
	read(r *blob.Reader) (identity string, ok bool)
	// code returns the service's name for an error, such as AccessDenied, and its
	// text. Both may be empty.
	code(err error) (code, text string)
}

func (s *Store) openBucket(ctx context.Context, p place) (*bucket, error) {
	b := &bucket{place: p, s: s}
	var err error
	switch p.scheme {
	case schemeS3:
		err = b.openS3(ctx)
	case schemeGS:
		err = b.openGoogle(ctx)
	case schemeAzure:
		err = b.openAzure(ctx)
	case schemeHTTP:
		return nil, fault.Unsupported(fault.At{File: p.String()}, "%s:// addresses", p.scheme)
	default:
		b.Bucket, b.cloud = memblob.OpenBucket(nil), memory{}
		b.sink = memorySink{b}
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// entry is one line of a list, or the answer to a HEAD request.
type entry struct {
	key      string
	size     int64
	at       time.Time
	identity string
	dir      bool // a common prefix, which ends in a slash
}

func (e entry) object(name, rel string) storage.Object {
	return storage.Object{Name: name, Rel: rel, Size: e.size, ModTime: e.at, Identity: e.identity}
}

const pageSize = 1000 // the most that S3 returns

// list calls f with all keys that begin with prefix, in ascending order, until f
// returns false. With a delimiter "/" those with a slash after the prefix are one
// entry per directory.
func (b *bucket) list(ctx context.Context, prefix, delimiter string, most int, f func(entry) bool) error {
	o := &blob.ListOptions{Prefix: prefix, Delimiter: delimiter, BeforeList: b.beforeList}
	for token := blob.FirstPageToken; len(token) > 0; {
		var page []*blob.ListObject
		err := b.s.do(ctx, b, list, prefix, func(ctx context.Context) (err error) {
			next := token
			page, next, err = b.ListPage(ctx, token, most, o)
			if err == nil {
				token = next
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, l := range page {
			e := entry{key: l.Key, dir: l.IsDir}
			if !l.IsDir {
				e.size, e.at, e.identity = l.Size, l.ModTime, b.listed(l)
			}
			if !f(e) {
				return nil
			}
		}
	}
	return nil
}

// head describes an object.
func (b *bucket) head(ctx context.Context, key string) (e entry, err error) {
	err = b.s.do(ctx, b, head, key, func(ctx context.Context) error {
		a, err := b.Attributes(ctx, key)
		if err == nil {
			e = entry{key: key, size: a.Size, at: a.ModTime, identity: b.stated(a)}
		}
		return err
	})
	return e, err
}

// get begins to read n bytes of an object. It sends one request.
func (b *bucket) get(ctx context.Context, o storage.Object, key string, off, n int64) (io.ReadCloser, error) {
	ctx, c := withCall(ctx, get)
	r, err := b.NewRangeReader(ctx, key, off, n, &blob.ReaderOptions{BeforeRead: func(as func(any) bool) error { return b.pin(as, o.Identity) }})
	b.s.note(b, get)
	if err != nil {
		f := b.failed(c, key, err)
		switch f.status {
		case http.StatusNotFound, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
			return nil, changed(o.Name) // it was there
		}
		return nil, f
	}
	if id, ok := b.read(r); ok && id != o.Identity || r.Size() != o.Size {
		_ = r.Close() // not read
		return nil, changed(o.Name)
	}
	return r, nil
}

// note counts a request that no transport sees.
func (s *Store) note(b *bucket, k kind) {
	if b.place.scheme == schemeMem {
		s.stats.requests[k].Add(1)
	}
}

// memory is the cloud of mem://, where objects have a time of writing.
type memory struct{}

func (memory) beforeList(func(any) bool) error  { return nil }
func (memory) pin(func(any) bool, string) error { return nil }
func (memory) listed(o *blob.ListObject) string { return timeID(o.ModTime) }
func (memory) stated(a *blob.Attributes) string { return timeID(a.ModTime) }
func (memory) code(error) (code, text string)   { return "", "" }

func (memory) read(r *blob.Reader) (string, bool) { return timeID(r.ModTime()), true }

func timeID(t time.Time) string { return t.UTC().Format("20060102T150405.000000000") }

// etag returns an ETag without quotes, since services disagree about them.
func etag(s string) string { return strings.Trim(s, `"`) }
