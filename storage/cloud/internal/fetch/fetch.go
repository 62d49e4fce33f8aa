// Package fetch reads ranges of objects over a network before they are needed.
//
//	Prefetch ──► pieces, queued in the order of announcement
//	                │   a slot is free, and memory
//	                ▼
//	             request: neighbouring pieces ──► Source.Get ──► pieces with bytes
//	                                                                 │
//	ReadAt ── waits for its piece, or sends a request of its own ◄───┘
//
// A [Queue] limits the requests and the memory of all its objects. A ReadAt that waits
// for a piece takes precedence over everything queued and does not wait for memory, so
// it cannot be blocked by pieces that are kept for later.
//
// Pieces are at most 1 MiB long, so a read can take the first bytes of a request
// while the rest arrives, and memory is free again soon. Requests are longer. They
// also fetch what lies between two pieces if that takes less time than a request, by
// what the [Link] has measured.
package fetch

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"
)

// Source reads one object, always the same version.
type Source interface {
	// Get begins to read n bytes at off. It sends one request, and ends it if no bytes come for
	// long. attempt counts the attempts since the last progress.
	Get(ctx context.Context, off, n int64, attempt int) (io.ReadCloser, error)
	// Again waits until the request should be sent again after err, which came from
	// Get or from reading. The last progress was at
	// since. If the request should not be sent again, Again returns the error
	// of the reads.
	Again(ctx context.Context, err error, attempt int, since time.Time) error
}

// Options configures a Queue.
type Options struct {
	Requests int   // at once; at least 1
	Memory   int64 // bytes that are fetched and not read, without those that a read waits for
}

const (
	pieceSize   = 1 << 20
	requestSize = 8 << 20 // and up to the end of a piece
	minShare    = 4 << 20 // of a range that is divided among connections
	// The end of an object is fetched in one request: what reads a Parquet file begins
	// there, and does not know how much it will need. Of small objects the rest is
	// fetched whole.
	smallObject = 256 << 10
	tailSize    = 32 << 10
)

// Queue limits the requests and the memory of the objects that it has opened. Its
// methods may be called from many goroutines at once.
type Queue struct {
	o       Options
	largest int64 // bytes of a request, about
	running sync.WaitGroup

	mu      sync.Mutex
	taken   int       // slots
	most    float64   // of taken; halved when a service is asked too much, and grows again
	halved  time.Time // when that was
	waiting []*waiter // for a slot; before all that is queued
	order   []*piece  // queued, in the order of announcement, and others to be skipped
	queued  int64     // bytes
	used    int64     // bytes of memory
	idle    idle
}

// waiter waits for a slot: a goroutine, or a piece that a goroutine waits for.
type waiter struct {
	granted chan struct{}
	piece   *piece // not nil: granted is nil
}

// New returns a Queue.
func New(o Options) *Queue {
	o.Requests = max(o.Requests, 1)
	return &Queue{o: o, most: float64(o.Requests), largest: min(requestSize, max(o.Memory/int64(o.Requests), pieceSize))}
}

// Wait waits until the requests of closed objects have ended.
func (q *Queue) Wait() { q.running.Wait() }

// Acquire waits for a slot, which permits one request. Until it is released, the caller
// must wait for the network alone.
func (q *Queue) Acquire(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	w := &waiter{granted: make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	q.pump()
	q.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else { // granted in the meantime
		q.release()
	}
	return context.Cause(ctx)
}

// TryAcquire takes a slot if one is free, and reports whether it has.
func (q *Queue) TryAcquire() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken >= int(q.most) || len(q.waiting) > 0 {
		return false
	}
	q.taken++
	return true
}

// Release gives a slot back.
func (q *Queue) Release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release()
}

// release gives a slot back. After as many as there are, there is one more, up to the limit. q.mu
// is held.
func (q *Queue) release() {
	q.taken--
	q.most = min(q.most+1/q.most, float64(q.o.Requests))
	q.pump()
}

// Throttle halves the number of slots, once a second at most.
func (q *Queue) Throttle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now(); now.Sub(q.halved) >= time.Second {
		q.most, q.halved = max(q.most/2, 1), now
	}
}

// Reserve takes n bytes of the memory if they are free, or if force is true. It
// reports whether it has taken them; Free gives them back.
func (q *Queue) Reserve(n int64, force bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.room(n) && !force {
		return false
	}
	q.used += n
	return true
}

// Free gives back n bytes of memory.
func (q *Queue) Free(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free(n)
	q.pump()
}

func (q *Queue) free(n int64) { q.used -= n }

// pump starts what can be started. q.mu is held.
func (q *Queue) pump() {
	for q.taken < int(q.most) {
		var p *piece
		if len(q.waiting) > 0 {
			w := q.waiting[0]
			q.waiting = q.waiting[1:]
			if w.piece == nil {
				q.taken++
				close(w.granted)
				continue
			}
			if p = w.piece; p.state != queued {
				continue
			}
		} else if p = q.next(); p == nil || !q.room(max(p.n, min(minShare, q.o.Memory/4, q.queued))) {
			return // a request begun ahead with less room would be as small as the reads that free memory
		}
		q.start(p)
	}
}

// next returns the first queued piece, or nil. q.mu is held.
func (q *Queue) next() *piece {
	for i, p := range q.order {
		if p.state == queued {
			q.order = q.order[i:]
			return p
		}
	}
	q.order = nil
	return nil
}

// start sends a request for a piece and its neighbours. q.mu is held.
func (q *Queue) start(p *piece) {
	pieces := q.neighbours(p)
	for _, p := range pieces {
		q.leave(p, fetching)
		q.used += p.n
		p.charged = true
	}
	q.taken++
	q.running.Go(func() {
		r := request{p.object, pieces}
		q.finish(pieces, r.run(p.object.ctx))
	})
}

// leave changes the state of a piece that may be queued. q.mu is held.
func (q *Queue) leave(p *piece, s state) {
	if p.state == queued {
		q.queued -= p.n
	}
	p.state = s
}

// neighbours returns the pieces that one request fetches together with p, in
// ascending order. q.mu is held.
func (q *Queue) neighbours(p *piece) []*piece {
	o := p.object
	gap := o.link.gap()
	// If little is queued, several connections share it.
	most := min(q.largest, max(q.queued/int64(q.o.Requests), o.link.product(), minShare))
	at := o.index(p.off)
	first, last := at, at
	bytes := p.n
	joins := func(i int, distance int64) bool {
		next := o.pieces[i]
		return next.state == queued && distance <= gap && bytes+next.n <= most && (next.needed || q.used+bytes+next.n <= q.o.Memory)
	}
	for ; last+1 < len(o.pieces) && joins(last+1, o.pieces[last+1].off-o.pieces[last].end()); last++ {
		bytes += o.pieces[last+1].n
	}
	for ; first > 0 && !p.needed && joins(first-1, o.pieces[first].off-o.pieces[first-1].end()); first-- {
		bytes += o.pieces[first-1].n
	}
	return slices.Clone(o.pieces[first : last+1])
}

// finish ends a request. Pieces that it has not fetched get the error err.
func (q *Queue) finish(pieces []*piece, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range pieces {
		if p.state == fetching {
			p.state, p.err, p.buf = failed, err, nil
			p.uncharge()
			p.wake()
		}
	}
	q.release()
}
