package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud/internal/fetch"
)

// bucket is a bucket as gocloud sees it, and what gocloud leaves to each cloud.
type bucket struct {
	*blob.Bucket // nil: HTTP
	cloud
	sink
	unconditional atomic.Bool // the service has no exclusive writes
	place         place
	s             *store
	link          fetch.Link
}

// cloud has what gocloud does not offer for all clouds alike. Keys are those stored:
// gocloud escapes some characters.
type cloud interface {
	// beforeList sets the prefix of a list and adds options. as is gocloud's As.
	beforeList(prefix string, as func(any) bool) error
	// listed describes a line of a list.
	listed(o *blob.ListObject) entry
	// head describes an object.
	head(ctx context.Context, key string) (entry, error)
	// get begins to read n bytes, at least 1, of an object that has the identity.
	get(ctx context.Context, key, identity string, off, n int64) (answer, error)
	// code returns the service's name for an error, such as AccessDenied, and its
	// text. Both may be empty.
	code(err error) (code, text string)
}

// answer has the bytes of a range.
type answer struct {
	io.ReadCloser
	size     int64  // of the whole object; negative: unknown
	identity string // empty: unknown
}

func (s *store) openBucket(ctx context.Context, p place) (*bucket, error) {
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
		b.cloud = web{s.http}
	default:
		b.Bucket = memblob.OpenBucket(nil)
		b.cloud, b.sink = memory{b.Bucket}, memorySink{b.Bucket}
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
	dir      bool // no object but a directory; if it is a common prefix, the key ends in a slash
}

func (e entry) object(name, rel string) storage.Object {
	return storage.Object{Name: name, Rel: rel, Size: e.size, ModTime: e.at, Identity: e.identity}
}

const pageSize = 1000 // the most that S3 returns

// list calls f with all keys that begin with prefix, in ascending order, until f
// returns false. With a delimiter "/" those with a slash after the prefix are one
// entry per directory. most limits the entries of a request.
func (b *bucket) list(ctx context.Context, prefix, delimiter string, most int, f func(entry) bool) error {
	o := &blob.ListOptions{Prefix: prefix, Delimiter: delimiter}
	o.BeforeList = func(as func(any) bool) error { return b.beforeList(prefix, as) }
	for token := blob.FirstPageToken; len(token) > 0; {
		var page []*blob.ListObject
		err := b.s.do(ctx, b, list, prefix, func(ctx context.Context) (err error) {
			objects, next, err := b.ListPage(ctx, token, most, o)
			if err == nil {
				page, token = objects, next
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, l := range page {
			if !f(b.listed(l)) {
				return nil
			}
		}
	}
	return nil
}

// stat describes an object.
func (b *bucket) stat(ctx context.Context, key string) (e entry, err error) {
	err = b.s.do(ctx, b, head, key, func(ctx context.Context) (err error) {
		e, err = b.head(ctx, key)
		return err
	})
	return e, err
}

// read begins to read n bytes of an object. It sends one request.
func (b *bucket) read(ctx context.Context, o storage.Object, key string, off, n int64) (io.ReadCloser, error) {
	ctx, c := withCall(ctx, get)
	b.s.note(b, get)
	a, err := b.get(ctx, key, o.Identity, off, n)
	if err != nil {
		f := b.failed(c, key, err)
		switch f.status {
		case http.StatusNotFound, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
			return nil, changed(o.Name) // it was there
		}
		return nil, f
	}
	known := a.identity != "" || b.place.scheme == schemeHTTP // where an answer without one may be of another version
	if known && a.identity != o.Identity || a.size >= 0 && a.size != o.Size {
		_ = a.Close() // not read
		return nil, changed(o.Name)
	}
	return a, nil
}

// name returns the address of a key, which is not redacted.
func (b *bucket) name(key string) string {
	if b.place.scheme == schemeHTTP {
		return key
	}
	return b.place.String() + key
}

// note counts a request that no transport sees.
func (s *store) note(b *bucket, k kind) {
	if b.place.scheme == schemeMem {
		s.stats.requests[k].Add(1)
	}
}

// memory is the cloud of mem://, where objects have a time of writing.
type memory struct{ *blob.Bucket }

func (memory) beforeList(string, func(any) bool) error { return nil }
func (memory) code(error) (code, text string)          { return "", "" }

func (memory) listed(o *blob.ListObject) entry {
	return entry{o.Key, o.Size, o.ModTime, timeID(o.ModTime), o.IsDir}
}

func (m memory) head(ctx context.Context, key string) (entry, error) {
	a, err := m.Attributes(ctx, key)
	if err != nil {
		return entry{}, err
	}
	return entry{key, a.Size, a.ModTime, timeID(a.ModTime), false}, nil
}

func (m memory) get(ctx context.Context, key, _ string, off, n int64) (answer, error) {
	r, err := m.NewRangeReader(ctx, key, off, n, nil)
	if err != nil {
		return answer{}, err
	}
	return answer{r, r.Size(), timeID(r.ModTime())}, nil
}

func timeID(t time.Time) string { return t.UTC().Format("20060102T150405.000000000") }

// etag returns an ETag without quotes, since services disagree about them.
func etag(s string) string { return strings.Trim(s, `"`) }

// ranged returns the answer to a request for the bytes from off, or an error if it holds
// other bytes. contentRange is its header: "bytes FIRST-LAST/SIZE"; length is -1 if it is unknown.
func ranged(body io.ReadCloser, contentRange string, length int64, identity string, off int64) (answer, error) {
	a := answer{body, -1, identity}
	if contentRange == "" { // the whole object
		if off == 0 {
			a.size = length
			return a, nil
		}
		return a, errors.Join(errNoRanges, body.Close())
	}
	var first, last int64
	if _, err := fmt.Sscanf(contentRange, "bytes %d-%d/%d", &first, &last, &a.size); err != nil || first != off || length >= 0 && last-first+1 != length {
		return a, errors.Join(fmt.Errorf("asked for the bytes from %d, got %q and %d bytes", off, contentRange, length), body.Close())
	}
	return a, nil
}

// errNoRanges means that a service sends whole objects only.
var errNoRanges = errors.New("the server sends no ranges of bytes, only the whole")
