package text

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

const (
	// splitBytes is the approximate size of the text that a goroutine parses at a
	// time.
	splitBytes = 128 << 10
	// longBytes is the largest part that is parsed at the same time as others: a
	// long line has the memory for itself.
	longBytes = 1 << 20
	// maxParsers is the number of goroutines that the one that divides the input
	// can keep busy.
	maxParsers = 8
)

// splitter is implemented by rows whose lines can be parsed in any order.
type splitter interface {
	// over returns rows of the same format over other lines. It reuses the memory
	// of old, which may be nil.
	over(l *lines, old rows) rows
	// early returns rows over lines that were read but not returned yet, or nil if
	// there are none.
	early() rows
}

func (r *idLines) over(l *lines, _ rows) rows { return &idLines{lines: l, name: r.name} }
func (r *idLines) early() rows                { return nil }

func (r *tsv) over(l *lines, _ rows) rows { return &tsv{lines: l, header: r.header} }
func (r *tsv) early() rows                { return nil }

func (r *ndjson) over(l *lines, old rows) rows {
	if o, ok := old.(*ndjson); ok {
		o.l, o.at = l, l.at
		return o
	}
	return &ndjson{l: l, names: r.names, index: r.index, inner: r.inner, at: l.at, row: make([][]byte, len(r.names)), other: map[string]bool{}}
}

func (r *ndjson) early() rows {
	ahead := r.over(&lines{at: r.at, err: io.EOF, mark: noMark}, nil).(*ndjson)
	ahead.ahead = r.ahead
	return ahead
}

// part is a sequence of whole lines that one goroutine parses.
type part struct {
	plainReader
	text []byte
	rows rows // the rows of text
	bad  Bad
	good int64 // rows that are not bad
	err  error
	done chan struct{} // receives a value when the part is parsed
}

// fillParts parses an input's parts with the given number of goroutines and passes
// their values to yield in order. It returns io.EOF at the end, and nil once yield
// has returned false.
func (p *pass) fillParts(ctx context.Context, r *plainReader, s splitter, threads int, yield func(Values) bool) error {
	threads = min(threads, maxParsers)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer p.s.stop() // cut may be waiting for input
	work, queue, free := make(chan *part), make(chan *part, 2*threads), make(chan *part, 2*threads+2)
	for range cap(free) {
		free <- &part{plainReader: *r, done: make(chan struct{}, 1)}
	}
	wg.Go(func() {
		defer close(work)
		p.cut(ctx, s, work, queue, free)
	})
	for range threads {
		wg.Go(func() {
			for c := range work {
				c.parse(ctx, p)
				c.done <- struct{}{}
			}
		})
	}
	for {
		var c *part
		select {
		case c = <-queue:
		case <-ctx.Done():
			return stopped.Err(ctx)
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return stopped.Err(ctx)
		}
		if p.bad != nil {
			p.bad.merge(c.bad)
		}
		p.good += c.good
		if c.Rows > 0 && (c.err == nil || c.err == io.EOF) && !yield(c.Values) {
			return nil
		}
		if c.err != nil {
			return c.err
		}
		if cap(c.text)+cap(c.Plain) > 4*longBytes {
			c.text, c.Plain, c.rows = nil, nil, nil
		}
		free <- c
	}
}

// cut sends the parts of the input to work, and also to queue, which keeps their
// order.
func (p *pass) cut(ctx context.Context, s splitter, work, queue chan<- *part, free chan *part) {
	rows := s.early()
	for {
		var c *part
		select {
		case c = <-free:
		case <-ctx.Done():
			return
		}
		c.bad, c.good, c.err = Bad{}, 0, nil
		if rows != nil {
			c.rows, rows = rows, nil
		} else {
			c.rows, c.err = p.cutOne(c, s)
		}
		end, long := c.err, len(c.text) > longBytes
		for _, to := range []chan<- *part{queue, work} {
			select {
			case to <- c:
			case <-ctx.Done():
				return
			}
		}
		if end != nil || long && !settle(ctx, free) {
			return
		}
	}
}

// settle waits until all parts are free. It returns false if ctx ends first.
func settle(ctx context.Context, free chan *part) bool {
	parts := make([]*part, 0, cap(free))
	for range cap(free) {
		select {
		case c := <-free:
			parts = append(parts, c)
		case <-ctx.Done():
			return false
		}
	}
	for _, c := range parts {
		free <- c
	}
	return true
}

// cutOne returns rows over the next lines, and the error after them. If there is
// some text, it does not wait for more.
func (p *pass) cutOne(c *part, s splitter) (r rows, err error) {
	at := p.lines.at
	c.text = c.text[:0]
	for len(c.text) == 0 && err == nil || len(c.text) < p.part && err == nil && p.s.ready() {
		c.text, err = p.lines.whole(c.text)
	}
	return s.over(&lines{at: at, max: p.lines.max, buf: c.text, err: io.EOF, mark: noMark}, c.rows), err
}

// parse fills the part's values. An error in its lines takes precedence over the
// one after them.
func (c *part) parse(ctx context.Context, p *pass) {
	own := &pass{at: p.at, rows: c.rows, texts: p.texts}
	if p.bad != nil {
		own.bad = &c.bad
	}
	err := func() (err error) {
		defer panics.Recover(p.at, &err)
		return c.fill(ctx, own)
	}()
	c.good = own.good
	if err != io.EOF {
		c.err = err
	}
}

// whole appends to dst the whole lines read so far or, if there are none, the next
// one. An error comes after these lines.
func (l *lines) whole(dst []byte) ([]byte, error) {
	for {
		if l.past() {
			return dst, io.EOF
		}
		end := len(l.buf)
		if last := max(l.mark, l.from); last < end { // the last line of the range starts here or before
			if i := bytes.IndexByte(l.buf[last:], '\n'); i >= 0 {
				end = last + i + 1
			}
		}
		if i := bytes.LastIndexByte(l.buf[l.seen:end], '\n'); i >= 0 {
			text := l.buf[l.from : l.seen+i+1]
			l.at.Line += bytes.Count(text, []byte{'\n'})
			l.from += len(text)
			l.seen = l.from
			return append(dst, text...), nil
		}
		switch l.seen = len(l.buf); {
		case len(l.rest()) > l.max+1:
			l.at.Line++
			return dst, l.tooLong(l.at)
		case l.err == nil:
			l.fill()
			continue
		case l.err == io.EOF && l.from < len(l.buf): // a last line without line end
			dst = append(dst, l.rest()...)
			l.from = len(l.buf)
			l.at.Line++
		}
		return dst, l.err
	}
}

// merge adds the counts of o.
func (b *Bad) merge(o Bad) {
	for _, line := range o.First {
		b.add(line)
	}
	b.Lines += o.Lines - int64(len(o.First))
}
