package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud/internal/fetch"
)

// bucket is a bucket of one cloud.
type bucket struct {
	cloud
	sink                      // nil: HTTP
	unconditional atomic.Bool // the service has no exclusive writes
	place         place
	s             *store
	link          fetch.Link
	grant         *grant // of a catalog; nil: none
	free          bool   // requests need no slot of the queue, as others may wait for them
}

// cloud reads from one cloud. Each call is one request that can be sent again.
type cloud interface {
	// page lists keys that begin with prefix, at most that many, those after the page that
	// returned the token. It returns the next page's token, or "" if there is none. With a
	// delimiter, keys that have it after the prefix are one entry per directory.
	page(ctx context.Context, prefix, delimiter, token string, most int) (entries []entry, next string, err error)
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
		err = b.openAzure()
	case schemeHTTP:
		b.cloud = web{s.http}
	default:
		m := &memory{objects: map[string]memoryObject{}}
		b.cloud, b.sink = m, m
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

func (e entry) object(name string) storage.Object {
	return storage.Object{Name: name, Size: e.size, ModTime: e.at, Identity: e.identity}
}

const pageSize = 1000 // the most that S3 returns

// list calls f with all keys that begin with prefix, in ascending order, until f
// returns false. With a delimiter "/" those with a slash after the prefix are one
// entry per directory. most limits the entries of a request.
func (b *bucket) list(ctx context.Context, prefix, delimiter string, most int, f func(entry) bool) error {
	for token, more := "", true; more; more = token != "" {
		var entries []entry
		err := b.s.do(ctx, b, list, prefix, func(ctx context.Context) error {
			page, next, err := b.page(ctx, prefix, delimiter, token, most)
			if err == nil {
				entries, token = page, next
			}
			return err
		})
		if err != nil {
			return err
		}
		// Clouds list objects and directories apart.
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
		for _, e := range entries {
			if !f(e) {
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
