package cloud

import (
	"context"
	"math"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/bloomjoin/bloomjoin/storage/cloud/internal/fetch"
)

const (
	firstPart = 8 << 20 // bytes
	evenParts = 2000    // of equal size, which some services want
	maxParts  = 10_000  // the most that S3 takes
)

// partSize returns the size of the n-th part, from 0. Parts grow so that the most
// that S3 takes hold 5 TiB, its largest object.
func partSize(n int) int {
	if n < evenParts {
		return firstPart
	}
	x := float64(n-evenParts) / (maxParts - evenParts)
	size := int64(math.Ceil(firstPart/(1<<20)*math.Exp(6.25*x))) << 20
	return int(min(size, math.MaxInt>>20<<20)) // where an int has 32 bits, objects are smaller
}

// parts bounds the memory of the parts that are being uploaded. What a writer has
// not passed on yet is not bounded, since waiting for it might never end.
type parts struct {
	limit int64
	room  *semaphore.Weighted
	queue *fetch.Queue // whose memory they use, too

	mu   sync.Mutex
	free [][]byte // of firstPart bytes
}

func newParts(limit int64, q *fetch.Queue) *parts {
	limit = max(limit, firstPart)
	return &parts{limit: limit, room: semaphore.NewWeighted(limit), queue: q}
}

// take waits until n bytes may be uploaded. The caller passes the part's buffer to
// done afterwards, or nil if it must not be used again.
func (p *parts) take(ctx context.Context, n int) (done func([]byte), err error) {
	weight := min(int64(n), p.limit)
	if err := p.room.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	p.queue.Reserve(int64(n), true)
	return func(b []byte) {
		p.mu.Lock()
		if cap(b) == firstPart && int64(len(p.free)) < p.limit/firstPart {
			p.free = append(p.free, b[:0])
		}
		p.mu.Unlock()
		p.queue.Free(int64(n))
		p.room.Release(weight)
	}, nil
}

// grow returns b with room for n more bytes. It doubles the room, up to most, so
// that small objects need little; buffers of the usual size are used again.
func (p *parts) grow(b []byte, n, most int) []byte {
	if len(b)+n <= cap(b) {
		return b
	}
	size := min(max(2*cap(b), len(b)+n, 64<<10), most)
	if size > firstPart/4 && most == firstPart {
		return append(p.buffer(), b...)
	}
	return append(make([]byte, 0, size), b...)
}

// buffer returns an empty buffer of the usual size.
func (p *parts) buffer() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	return make([]byte, 0, firstPart)
}
