package fetch

import (
	"context"
	"io"
	"sync"
	"time"
)

// request fetches pieces of one object, in ascending order. It discards the bytes
// between them.
type request struct {
	o      *Object
	pieces []*piece
}

// run sends the request, and requests the rest again when the answer breaks off. The caller has
// a slot, which run gives back between attempts. If run fails without a slot, it counts one as
// taken all the same, so that the caller can always give it back.
func (r *request) run(ctx context.Context) error {
	q := r.o.q
	since := time.Now()
	for attempt := 0; ; attempt++ {
		n, err := r.send(ctx, attempt)
		if err == nil {
			return nil
		}
		if n > 0 {
			attempt, since = 0, time.Now()
		}
		q.Release()
		err = r.o.source.Again(ctx, err, attempt, since)
		if err == nil {
			err = q.Acquire(ctx)
			if err == nil {
				continue
			}
		}
		q.mu.Lock()
		q.taken++ // the caller gives it back
		q.mu.Unlock()
		return err
	}
}

// send sends one request for the rest, and returns how many bytes it got.
func (r *request) send(ctx context.Context, attempt int) (got int64, err error) {
	off, n := r.left()
	if n == 0 {
		return 0, nil
	}
	begin := time.Now()
	body, err := r.o.source.Get(ctx, off, n, attempt)
	if err != nil {
		return 0, err
	}
	answer := time.Now()
	r.o.link.answered(answer.Sub(begin))
	got, err = r.receive(body, off)
	r.o.link.received(got, time.Since(answer))
	if e := body.Close(); err == nil && e != nil && got < n {
		err = e
	}
	return got, err
}

// left returns the range that is still needed.
func (r *request) left() (off, n int64) {
	q := r.o.q
	q.mu.Lock()
	defer q.mu.Unlock()
	off, end := int64(-1), int64(0)
	for _, p := range r.pieces {
		if p.state == fetching {
			if off < 0 {
				off = p.off + p.have
			}
			end = p.end()
		}
	}
	return off, end - max(off, 0)
}

// receive distributes the bytes that begin at off, and returns their number. It does not
// read the rest when the remaining pieces are no longer needed.
func (r *request) receive(body io.Reader, off int64) (int64, error) {
	at := off
	for _, p := range r.pieces {
		buf := r.begin(p)
		if buf == nil {
			continue
		}
		if skip := p.off + p.have - at; skip > 0 {
			n, err := io.CopyN(io.Discard, body, skip)
			at += n
			if err != nil {
				return at - off, short(err)
			}
		}
		n, err := io.ReadFull(body, buf[p.have:])
		at, p.have = at+int64(n), p.have+int64(n)
		if err != nil {
			return at - off, short(err)
		}
		r.done(p)
	}
	return at - off, nil
}

// begin returns the buffer of a piece, or nil if the piece is no longer needed.
func (r *request) begin(p *piece) []byte {
	q := r.o.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.state != fetching {
		return nil
	}
	if p.buf == nil {
		p.buf = newBuffer(p.n)
	}
	return p.buf
}

// buffers are reused, as large ones are expensive to make. They hold arrays of
// pieceSize.
var buffers = sync.Pool{New: func() any { return new([pieceSize]byte) }}

func newBuffer(n int64) []byte {
	if n == pieceSize {
		return buffers.Get().(*[pieceSize]byte)[:]
	}
	return make([]byte, n)
}

// done passes a piece to the reads that wait for it.
func (r *request) done(p *piece) {
	q := r.o.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.state == fetching {
		p.state = done
		p.wake()
	}
}

// short returns the error of a body that ends too soon.
func short(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
