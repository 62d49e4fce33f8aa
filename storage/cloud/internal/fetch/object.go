package fetch

import (
	"container/list"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sort"

	"github.com/bloomjoin/bloomjoin/storage"
)

// Object reads one object. Its methods may be called from many goroutines at once.
type Object struct {
	q      *Queue
	source Source
	link   *Link
	size   int64

	ctx    context.Context // that of Open, for all requests; it ends with Close
	cancel context.CancelCauseFunc

	// Guarded by q.mu.
	pieces []*piece // in ascending order of off; they do not overlap
	closed bool
}

// piece is a range that an announcement or a read wants, or that is kept for later reads.
type piece struct {
	object *Object
	off, n int64
	have   int64 // bytes of buf; the request's alone

	// Guarded by q.mu.
	state   state
	buf     []byte
	err     error         // why it failed
	ready   chan struct{} // closed when it is no longer queued or fetching; nil if no read waits
	needed  bool          // a read waits for it
	charged bool          // its bytes are counted as used memory

	owners int   // announcements
	unread int64 // bytes that announcements have and reads have not
	copies int   // reads that copy from buf at the moment
	ended  bool  // the last byte has been read
	kept   bool  // without an owner

	rests     int // how often the object of a kept piece has rested
	resting   *list.Element
	restingIn *list.List
}

// state is the state of a piece.
type state uint8

const (
	queued state = iota
	fetching
	done
	failed
	dropped
)

func (p *piece) end() int64 { return p.off + p.n }

func (p *piece) wake() {
	if p.ready != nil {
		close(p.ready)
		p.ready = nil
	}
}

func (p *piece) uncharge() {
	if p.charged {
		p.object.q.free(p.n)
		p.charged = false
	}
}

// recycle gives up the buffer. If a read copies from it, that read does so afterwards. q.mu
// is held.
func (p *piece) recycle() {
	if p.copies > 0 || p.buf == nil {
		return
	}
	if len(p.buf) == pieceSize {
		buffers.Put((*[pieceSize]byte)(p.buf))
	}
	p.buf = nil
}

// drop forgets a piece. q.mu is held, and pump called afterwards.
func (p *piece) drop() {
	if p.state == dropped {
		return
	}
	q := p.object.q
	if p.state != fetching { // else its request is writing to it
		p.recycle()
	}
	q.leave(p, dropped)
	q.wake(p)
	p.uncharge()
	p.wake()
	if i := p.object.index(p.off); i < len(p.object.pieces) && p.object.pieces[i] == p {
		p.object.pieces = slices.Delete(p.object.pieces, i, i+1)
	}
}

// Open returns an Object of a size in bytes. It sends no request. ctx holds for all
// reads.
func (q *Queue) Open(ctx context.Context, s Source, size int64, l *Link) *Object {
	o := &Object{q: q, source: s, link: l, size: size}
	o.ctx, o.cancel = context.WithCancelCause(ctx)
	return o
}

// Gap returns how many bytes take as long as another request.
func (o *Object) Gap() int64 { return o.link.gap() }

// Close drops all that was fetched, and ends the requests.
func (o *Object) Close() {
	o.q.mu.Lock()
	defer o.q.mu.Unlock()
	o.closed = true
	o.cancel(fs.ErrClosed)
	for len(o.pieces) > 0 {
		o.pieces[len(o.pieces)-1].drop()
	}
	o.q.pump()
}

// Rest drops kept pieces, unless enough memory is free to keep them for the next read.
func (o *Object) Rest() {
	o.q.mu.Lock()
	defer o.q.mu.Unlock()
	for _, p := range slices.Clone(o.pieces) {
		switch {
		case !p.kept || p.owners > 0 || p.resting != nil:
		case p.state == done:
			o.q.rest(p)
		default:
			p.drop()
		}
	}
	o.q.pump()
}

// index returns the position of the first piece that ends after off. q.mu is held.
func (o *Object) index(off int64) int {
	return sort.Search(len(o.pieces), func(i int) bool { return o.pieces[i].end() > off })
}

// Prefetch announces ranges, see [storage.Prefetcher].
func (o *Object) Prefetch(ranges []storage.Range) (release func()) {
	o.q.mu.Lock()
	defer o.q.mu.Unlock()
	if o.closed {
		return func() {}
	}
	if o.size <= smallObject {
		for off := int64(0); off < o.size; {
			off = o.keep(off).end()
		}
		o.q.pump()
		return func() {} // Rest or Close drops it
	}
	var owned []*piece
	for _, r := range ranges {
		off, end := max(r.Off, 0), o.size
		if r.Len < end-r.Off {
			end = r.Off + r.Len
		}
		owned = o.announce(owned, off, end)
	}
	o.q.pump()
	return func() { o.release(&owned) }
}

// announce adds the pieces of a range to owned, those of others included. q.mu is
// held.
func (o *Object) announce(owned []*piece, off, end int64) []*piece {
	for i := o.index(off); off < end; i++ {
		next := end
		if i < len(o.pieces) {
			if p := o.pieces[i]; p.off <= off {
				last := min(p.end(), end)
				o.q.wake(p)
				p.owners++
				p.unread += last - off
				owned, off = append(owned, p), last
				continue
			}
			next = min(end, o.pieces[i].off)
		}
		if last := len(owned) - 1; last >= 0 && owned[last].end() == off && owned[last].grow(next-off) {
			off = owned[last].end()
			i-- // it is the one before
			continue
		}
		p := &piece{object: o, off: off, n: min(next-off, pieceSize), owners: 1}
		p.unread = p.n
		o.pieces = slices.Insert(o.pieces, i, p)
		o.enqueue(p)
		owned, off = append(owned, p), p.end()
	}
	return owned
}

// grow makes a new piece longer by up to n bytes that were not announced, and reports
// whether it could. q.mu is held.
func (p *piece) grow(n int64) bool {
	n = min(n, pieceSize-p.n)
	if n <= 0 || p.state != queued || p.owners != 1 || p.kept {
		return false
	}
	p.n += n
	p.unread += n
	p.object.q.queued += n
	return true
}

func (o *Object) enqueue(p *piece) {
	o.q.order = append(o.q.order, p)
	o.q.queued += p.n
}

// release ends an announcement. What others have announced too stays.
func (o *Object) release(owned *[]*piece) {
	o.q.mu.Lock()
	defer o.q.mu.Unlock()
	for _, p := range *owned {
		if p.owners--; p.owners == 0 && !p.kept {
			p.drop()
		}
	}
	*owned = nil // it may be called again
	o.q.pump()
}

// keep returns the piece at off. If there is none, one is fetched that reaches to the
// next piece or the end of the object, and is kept without having been announced. q.mu
// is held.
func (o *Object) keep(off int64) *piece {
	i, end := o.index(off), o.size
	if i < len(o.pieces) {
		if p := o.pieces[i]; p.off <= off {
			o.q.wake(p)
			return p
		}
		end = o.pieces[i].off
	}
	p := &piece{object: o, off: off, n: end - off, kept: true}
	o.pieces = slices.Insert(o.pieces, i, p)
	o.enqueue(p)
	return p
}

// ReadAt implements [io.ReaderAt].
func (o *Object) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("a read at a negative offset")
	}
	if o.ctx.Err() != nil {
		return 0, context.Cause(o.ctx)
	}
	want := b
	if rest := max(o.size-off, 0); int64(len(b)) > rest {
		want = b[:rest]
	}
	for n < len(want) {
		k, err := o.read(want[n:], off+int64(n))
		n += k
		if err != nil {
			return n, err
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// read reads at least one byte.
func (o *Object) read(b []byte, off int64) (int, error) {
	q := o.q
	q.mu.Lock()
	i := o.index(off)
	var p *piece
	switch {
	case i < len(o.pieces) && o.pieces[i].off <= off:
		p = o.pieces[i]
	case i == len(o.pieces) && off >= o.size-tailSize:
		p = o.keep(max(o.size-tailSize, o.endBefore(i)))
	case o.size <= smallObject:
		p = o.keep(o.endBefore(i))
	default:
		if i < len(o.pieces) {
			b = b[:min(int64(len(b)), o.pieces[i].off-off)]
		}
		q.mu.Unlock()
		return o.direct(b, off)
	}
	switch p.state {
	case done:
		q.wake(p)
		p.copies++
		q.mu.Unlock()
		n := copy(b, p.buf[off-p.off:])
		q.mu.Lock()
		defer q.mu.Unlock()
		p.copies--
		// A piece is dropped when its last byte and as many as were announced have been
		// read: some are read twice.
		p.unread -= int64(n)
		p.ended = p.ended || off+int64(n) == p.end()
		if p.ended && p.unread <= 0 && !p.kept {
			p.drop()
			p.object.q.pump()
		}
		if p.state == dropped { // maybe by another read
			p.recycle()
		}
		return n, nil
	case failed:
		defer q.mu.Unlock()
		if p.kept {
			p.drop() // the next read tries again
		}
		return 0, p.err
	}
	ready := o.await(p, off+int64(len(b)))
	q.mu.Unlock()
	select {
	case <-ready:
		return 0, nil // look again
	case <-o.ctx.Done():
		return 0, context.Cause(o.ctx)
	}
}

// endBefore returns where the piece before piece i ends. q.mu is held.
func (o *Object) endBefore(i int) int64 {
	if i == 0 {
		return 0
	}
	return o.pieces[i-1].end()
}

// await puts a piece, and what else the read until end needs, before all that is
// queued, and returns a channel that is closed when the piece is there. q.mu is held.
func (o *Object) await(p *piece, end int64) <-chan struct{} {
	for i := o.index(p.off); i < len(o.pieces) && o.pieces[i].off < end; i++ {
		if next := o.pieces[i]; next.state == queued && !next.needed {
			next.needed = true
			o.q.waiting = append(o.q.waiting, &waiter{piece: next})
		}
	}
	if p.ready == nil {
		p.ready = make(chan struct{})
	}
	ready := p.ready
	o.q.pump()
	return ready
}

// direct reads bytes that were not announced.
func (o *Object) direct(b []byte, off int64) (int, error) {
	p := &piece{object: o, off: off, n: int64(len(b)), state: fetching, buf: b}
	if err := o.q.Acquire(o.ctx); err != nil {
		return 0, err
	}
	defer o.q.Release()
	r := request{o, []*piece{p}}
	err := r.run(o.ctx)
	return int(p.have), err
}
