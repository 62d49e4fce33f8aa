package cloud

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud/internal/fetch"
)

// Options configures a [Store]. The zero value is ready to use.
type Options struct {
	// Requests limits the requests that are under way at once. 0: 64.
	Requests int
	// Memory limits the bytes that are fetched ahead and not read yet, and those
	// that are written and not uploaded yet. A read never waits for memory, and a
	// writer always gets one part, so current reads and writes can exceed the
	// limit. 0: 256 MiB.
	Memory int64
	// Retries is how often a request is sent again before it counts as failed. 0: 8;
	// negative: never.
	Retries int
	// Local holds names that are not URLs. nil: the file system.
	Local storage.Storage

	// Region is the region of S3 buckets. Empty: as the environment and the profile
	// say, else us-east-1.
	Region string
	// Endpoint is the URL of an S3 service other than Amazon's. Buckets are then
	// addressed by path. Empty: as the environment and the profile say.
	Endpoint string
	// Profile is the section of the AWS configuration files to use. Empty: as the
	// environment says.
	Profile string
	// PathStyle puts the bucket into the path of S3 requests instead of the host.
	PathStyle bool
	// Anonymous sends requests without credentials.
	Anonymous bool
	// Credentials, if not nil, is asked for the credentials of a bucket, in place of the
	// environment and configuration files: once, and again shortly before they expire.
	// bucket is the bucket's URL without a key, as s3://logs. It may be called
	// concurrently for different buckets.
	Credentials func(ctx context.Context, bucket string) (Credentials, error)
	// RequesterPays accepts the costs of reading buckets whose owners don't. For
	// Google, GOOGLE_CLOUD_PROJECT names the project that pays.
	RequesterPays bool
	// SSE is the encryption of objects written to S3: AES256, aws:kms or aws:kms:dsse. Empty:
	// as the bucket is configured.
	SSE string
	// KMSKey is the key of SSE aws:kms and aws:kms:dsse. Empty: the account's.
	KMSKey string
}

const (
	defaultRequests = 64
	defaultMemory   = 256 << 20
	defaultRetries  = 8
)

// Store is a [storage.Storage] whose names are URLs; other names are those of
// Options.Local. Its methods may be called from many goroutines at once.
//
// It is a [storage.Sweeper], [storage.Resolver], [storage.Concurrent] and
// [storage.DirRemover]; its readers are [storage.Prefetcher]s.
type Store interface {
	storage.Storage
	// Stats returns the figures up to now. Requests for credentials are not counted.
	Stats() Stats
	// Close ends idle connections. Readers and writers must have been closed before.
	Close() error
}

type store struct {
	opts   Options
	stats  counters
	budget budget
	http   *http.Client // for all clouds; it sends each request once
	queue  *fetch.Queue // of all requests
	parts  *parts       // that are being uploaded

	mu      sync.Mutex // while a bucket is opened, too
	buckets map[place]*bucket
	closed  bool

	named    sync.Map // addresses of catalogs that names have, other than those in lists
	granting sync.RWMutex
	grants   []*grant // by catalogs
}

var (
	_ storage.Sweeper    = (*store)(nil)
	_ storage.Resolver   = (*store)(nil)
	_ storage.Concurrent = (*store)(nil)
	_ storage.DirRemover = (*store)(nil)
)

var errClosed = errors.New("the store is closed")

// New returns a Store. It opens no connection and reads no configuration before a
// URL is used.
func New(o Options) Store {
	if o.Requests <= 0 {
		o.Requests = defaultRequests
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	switch {
	case o.Retries == 0:
		o.Retries = defaultRetries
	case o.Retries < 0:
		o.Retries = 0
	}
	if o.Local == nil {
		o.Local = storage.Local()
	}
	s := &store{opts: o, queue: fetch.New(fetch.Options{Requests: o.Requests, Memory: o.Memory}), buckets: map[place]*bucket{}}
	s.parts = newParts(o.Memory/4, s.queue)
	s.http = newClient(s)
	return s
}

// Close implements [Store].
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.queue.Wait()
	s.http.CloseIdleConnections()
	return nil
}

// Concurrency implements [storage.Concurrent].
func (s *store) Concurrency(name string) int {
	if n, err := parse(name); err == nil && n.local {
		return objects.Concurrency(s.opts.Local, n.key)
	}
	return s.opts.Requests
}

// RemoveDir implements [storage.DirRemover]. Buckets have no directories.
func (s *store) RemoveDir(ctx context.Context, name string) error {
	stopped.Needs(ctx, "Store.RemoveDir")
	n, err := parse(name)
	if err != nil || !n.local {
		return err
	}
	return objects.RemoveDir(ctx, s.opts.Local, n.key)
}

// Resolve implements [storage.Resolver]: one spelling of the scheme, no slash at the
// end, no signature.
func (s *store) Resolve(name string) string {
	n, err := parse(name)
	switch {
	case err != nil:
		return name
	case n.local:
		return objects.Resolve(s.opts.Local, n.key)
	case n.scheme == schemeHTTP:
		return address.Redact(n.key)
	}
	return n.place.String() + strings.TrimRight(n.key, "/")
}

// bucketOf returns the bucket at a place, and opens it the first time.
func (s *store) bucketOf(ctx context.Context, p place) (*bucket, error) {
	return await(ctx, func() (*bucket, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return nil, errClosed
		}
		if b := s.buckets[p]; b != nil {
			return b, nil
		}
		b, err := s.openBucket(ctx, p)
		if err == nil {
			s.buckets[p] = b
		}
		return b, err
	})
}

// await returns what f returns, or the context's error when that ends before.
func await[T any](ctx context.Context, f func() (T, error)) (v T, err error) {
	done := make(chan struct{})
	var now T
	var failed error
	go func() {
		defer close(done)
		now, failed = f()
	}()
	select {
	case <-done:
		return now, failed
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}
