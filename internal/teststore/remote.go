package teststore

import (
	"context"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// tail is the number of bytes at the end of an object that may be read without an
// announcement.
const tail = 64 << 10

// Remote is a storage whose readers behave as if they were over a network. It records
// announcements and reads.
type Remote struct {
	storage.Storage
	T interface {
		Errorf(format string, args ...any)
	} // the test; wrong announcements are its failures
	At  int   // see Concurrency
	Gap int64 // see [storage.Prefetcher]

	mu    sync.Mutex
	count RemoteCounts
}

// RemoteCounts are the records of a Remote, in bytes unless noted.
type RemoteCounts struct {
	Announced   int64 // in sum, however often
	Unannounced int64 // read without an announcement, except at the end of objects
	Read        int64
	Kept        int // announcements that were not released
}

// Concurrency implements [storage.Concurrent].
func (r *Remote) Concurrency(string) int { return max(r.At, 1) }

// Counts returns the counts since its last call.
func (r *Remote) Counts() RemoteCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.count
	r.count = RemoteCounts{Kept: c.Kept}
	return c
}

// Open implements [storage.Source].
func (r *Remote) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	src, err := r.Storage.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &remoteReader{src: src, of: r, live: map[int][]storage.Range{}}, nil
}

// remoteReader hides all optional methods of its reader.
type remoteReader struct {
	src  storage.Reader
	of   *Remote
	next int
	live map[int][]storage.Range // announcements that were not released
}

func (r *remoteReader) Object() storage.Object { return r.src.Object() }
func (r *remoteReader) Close() error           { return r.src.Close() }
func (r *remoteReader) Rest() error            { return objects.Rest(r.src) }

func (r *remoteReader) Gap() int64 { return r.of.Gap }

func (r *remoteReader) Prefetch(ranges []storage.Range) (release func()) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	n := r.next
	r.next++
	r.live[n] = ranges
	r.of.count.Kept++
	for _, g := range ranges {
		if g.Off < 0 || g.Len <= 0 || g.Off+g.Len > r.src.Object().Size {
			r.of.T.Errorf("%s, %d bytes: want announcements inside, got %d bytes at %d", r.src.Object().Name, r.src.Object().Size, g.Len, g.Off)
		}
		r.of.count.Announced += g.Len
	}
	return sync.OnceFunc(func() {
		r.of.mu.Lock()
		defer r.of.mu.Unlock()
		delete(r.live, n)
		r.of.count.Kept--
	})
}

func (r *remoteReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.src.ReadAt(p, off)
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.count.Read += int64(n)
	at, end := off, min(off+int64(n), r.src.Object().Size-tail)
	for further := true; further && at < end; {
		further = false
		for _, ranges := range r.live {
			for _, g := range ranges {
				if g.Off <= at && at < g.Off+g.Len {
					at, further = g.Off+g.Len, true
				}
			}
		}
	}
	r.of.count.Unannounced += max(end-at, 0)
	return n, err
}
