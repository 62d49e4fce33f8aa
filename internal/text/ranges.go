package text

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// A large input has several ranges of stored bytes, its row groups. Where they end
// depends on the input alone. A range owns the rows that start after its first byte and
// up to the byte after its last one: the row that starts right after a range belongs
// to it, so that a range needs to know nothing about the byte before it. The first
// range owns the row at its start, too. In CSV, the number of quotes before a range
// tells whether it begins within quotes.

// Sizes of ranges in bytes as stored.
const (
	nearRange = 2 << 20  // of a file
	farRange  = 16 << 20 // of an object over a network, which is one or a few requests
	maxRanges = 16 << 10 // in an input; ranges of larger ones are longer
)

// farCount is how much of an object over a network is read only to count lines for a
// message.
const farCount = 256 << 20

// rangeBytes returns the size of the input's ranges.
func (in *input) rangeBytes() int64 {
	n := int64(nearRange)
	if in.opts.At == nil {
		n = farRange
	}
	if in.opts.RangeBytes > 0 {
		n = in.opts.RangeBytes
	}
	for in.opts.Size/n > maxRanges {
		n *= 2
	}
	return n
}

// divide finds the input's ranges. p has read the header.
func (in *input) divide(p *pass) (err error) {
	in.kind = p.s.kind
	size, least := in.opts.Size, in.rangeBytes()
	in.bounds = []int64{0, size}
	switch {
	case in.kind == "gzip":
		in.whole = "gzip"
		return nil
	case p.s.encoding != "":
		in.whole = p.s.encoding
		return nil
	case in.cr:
		in.whole = "lines that end with CR"
		return nil
	case in.opts.Once || in.opts.At == nil && in.opts.From == nil || size < 2*least && in.kind == "":
		return nil
	case in.kind == "zstd" && in.opts.At == nil:
		in.whole = "zstd over a network"
		return nil
	case in.opts.Format == CSV && in.opts.At == nil:
		in.whole = "CSV over a network"
		return nil
	case in.kind == "zstd":
		w := &frameWalk{r: in.opts.At, size: size}
		if in.bounds, err = w.bounds(least); err == nil {
			err = in.coverHeader()
		}
		if in.ranges() == 1 {
			in.whole = "a single zstd frame" // or one that is large, and others
		}
		return err
	}
	for end := least; end <= size-least; end += least {
		if end >= p.body { // the first range has the header
			in.bounds = slices.Insert(in.bounds, len(in.bounds)-1, end)
		}
	}
	return nil
}

// coverHeader extends the first range of a compressed input until it has the whole
// header.
func (in *input) coverHeader() error {
	for n := 1; in.ranges() > 1; n *= 2 {
		p, err := in.pass(0, 1)
		if err != nil {
			return err
		}
		covers := p.covers
		if err := p.close(); err != nil || covers {
			return err
		}
		in.bounds = slices.Delete(in.bounds, 1, min(1+n, len(in.bounds)-1))
	}
	return nil
}

// ranges returns the number of ranges.
func (in *input) ranges() int { return max(len(in.bounds)-1, 1) }

// openAt opens the stored bytes from a position on, of which those up to another are
// certainly needed.
func (in *input) openAt(from, to int64) (io.ReadCloser, error) {
	if in.opts.At == nil {
		return in.opts.From(from, to)
	}
	return io.NopCloser(io.NewSectionReader(in.opts.At, from, in.opts.Size-from)), nil
}

// Undivided returns why the input has one range however large it is, in a few words;
// "" if it has several, or is small.
func (in *input) Undivided() string { return in.whole }

// Compressed reports whether the input is compressed.
func (in *input) Compressed() bool { return in.kind != "" }

// tally counts characters of a range.
type tally struct{ quotes, breaks int64 }

// tallies are the tallies of an input's ranges, each made once, when it is needed.
type tallies struct {
	mu     sync.Mutex
	claims []claim
	sums   []tally // of the ranges before range i, as far as is known
}

// claim is a range that a goroutine counts.
type claim struct {
	done chan struct{} // closed when the range is counted, or the attempt has failed; nil: unclaimed
	ok   bool
	tally
}

// before returns the sum over the ranges before range k. Concurrent calls share the
// work.
func (in *input) before(ctx context.Context, k int) (tally, error) {
	c := &in.tallies
	for wait := range 2 { // first the ranges that nobody counts
		for i := range k {
			if err := c.count(ctx, in, i, wait > 0); err != nil {
				return tally{}, err
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sums == nil {
		c.sums = []tally{{}}
	}
	for i := len(c.sums); i <= k; i++ {
		sum, last := c.sums[i-1], c.claims[i-1].tally
		c.sums = append(c.sums, tally{sum.quotes + last.quotes, sum.breaks + last.breaks})
	}
	return c.sums[k], nil
}

// count counts range i, unless that is done. If another goroutine does it, count waits
// for it or, unless wait is set, returns.
func (c *tallies) count(ctx context.Context, in *input, i int, wait bool) error {
	for {
		c.mu.Lock()
		if c.claims == nil {
			c.claims = make([]claim, in.ranges())
		}
		own := &c.claims[i]
		if own.ok || own.done != nil && !wait {
			c.mu.Unlock()
			return nil
		}
		if done := own.done; done != nil {
			c.mu.Unlock()
			select {
			case <-done:
				continue // it may have failed
			case <-ctx.Done():
				return stopped.Err(ctx)
			}
		}
		done := make(chan struct{})
		own.done = done
		c.mu.Unlock()
		t, err := in.tally(ctx, i)
		c.mu.Lock()
		own.tally, own.ok, own.done = t, err == nil, nil
		c.mu.Unlock()
		close(done)
		return err
	}
}

// tally counts range k.
func (in *input) tally(ctx context.Context, k int) (t tally, err error) {
	defer panics.Recover(in.at, &err)
	s, err := in.openRange(k, k+1)
	if err != nil {
		return t, err
	}
	defer faults.Join(&err, s.close)
	s.more = false // to the end of the range
	buf := make([]byte, readSize)
	for {
		if err := stopped.Err(ctx); err != nil {
			return t, err
		}
		n, err := s.Read(buf)
		t.breaks += int64(bytes.Count(buf[:n], []byte{'\n'}))
		t.quotes += int64(bytes.Count(buf[:n], []byte{'"'}))
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return t, err
		}
	}
}

// linesBefore returns the number of lines before range k, false if it is too costly to
// count them.
func (in *input) linesBefore(ctx context.Context, k int) (int, bool) {
	if in.opts.At == nil && k > 0 && in.bounds[k] > farCount {
		return 0, false
	}
	t, err := in.before(ctx, k)
	return int(t.breaks), err == nil
}

// numbered makes the line number of an error that of the input. p counts from the start
// of its range.
func (in *input) numbered(ctx context.Context, p *pass, err error) error {
	var e *fault.Error
	if p.group == 0 || !errors.As(err, &e) || e.At.Line == 0 {
		return err
	}
	if n, ok := in.linesBefore(ctx, p.group); ok {
		e.At.Line += n
		return err
	}
	e.What += faults.Textf(" (line %d after byte %d)", e.At.Line, in.bounds[p.group])
	e.At.Line = 0
	return err
}
