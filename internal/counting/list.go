package counting

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

const (
	partBits = 8       // top bits of a hash that choose its part of a list
	buffered = 1 << 8  // hashes of a part that an Adder holds
	foldMost = 1 << 20 // hashes from disk that are sorted at a time
)

// List is a list of hashes that are sorted before they change a filter, so that their order
// does not matter and a set counts each once. Hashes that exceed its memory wait on disk.
//
//	List ── Adder ── Add … Flush ──► Sort ──► Each
type List struct {
	disk     *spill.File
	most     uint64 // bytes in memory; 0: no limit
	multiset bool
	held     atomic.Uint64
	parts    [1 << partBits]part
}

// part is the hashes with the same top bits.
type part struct {
	mu     sync.Mutex
	chunks [][]uint64    // as they were added
	stream *spill.Stream // nil: nothing is on disk
	sorted Run           // after Sort; empty if there is a stream
}

// Run is hashes in ascending order, each once.
type Run struct {
	Hashes []uint64
	Copies []uint64 // of a multiset: how often each was added; else nil, for once
}

func (r Run) copies(i int) uint64 {
	if r.Copies == nil {
		return 1
	}
	return r.Copies[i]
}

func (r Run) bytes() uint64 { return 8 * uint64(len(r.Hashes)+len(r.Copies)) }

// with returns a run with further hashes, which are sorted in place.
func (r Run) with(raw []uint64, multiset bool) (out Run) {
	slices.Sort(raw)
	for i := 0; i < len(r.Hashes) || len(raw) > 0; {
		var h uint64
		n := uint64(1)
		if len(raw) == 0 || i < len(r.Hashes) && r.Hashes[i] <= raw[0] {
			h, n = r.Hashes[i], r.copies(i)
			i++
		} else {
			h, raw = raw[0], raw[1:]
		}
		last := len(out.Hashes) - 1
		if last < 0 || out.Hashes[last] != h {
			out.Hashes = append(out.Hashes, h)
			if multiset {
				out.Copies = append(out.Copies, n)
			}
		} else if multiset {
			out.Copies[last] += n
		}
	}
	return out
}

// NewList returns an empty list, which keeps copies of hashes apart if it is of a multiset.
// It takes up to most bytes of memory, beside 512 KiB for each Adder; 0: no limit.
func NewList(multiset bool, disk *spill.File, most uint64) *List {
	return &List{multiset: multiset, disk: disk, most: most}
}

// Held returns the bytes in memory.
func (l *List) Held() uint64 { return l.held.Load() }

// Adder adds hashes to a list. One goroutine uses it at a time.
type Adder struct {
	list  *List
	parts [1 << partBits][]uint64
}

// Adder returns a new Adder. It may be called concurrently.
func (l *List) Adder() *Adder { return &Adder{list: l} }

// Add adds hashes.
func (a *Adder) Add(hashes []uint64) error {
	for _, h := range hashes {
		p := h >> (64 - partBits)
		if a.parts[p] == nil {
			a.parts[p] = make([]uint64, 0, buffered)
		}
		if a.parts[p] = append(a.parts[p], h); len(a.parts[p]) == buffered {
			if err := a.put(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// Flush adds what the Adder still holds.
func (a *Adder) Flush() error {
	for p, hashes := range a.parts {
		if len(hashes) > 0 {
			if err := a.put(uint64(p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// put moves the hashes of a part to the list.
func (a *Adder) put(i uint64) error {
	l, p, hashes := a.list, &a.list.parts[i], a.parts[i]
	size := uint64(8 * len(hashes))
	if held := l.held.Add(size); l.most == 0 || held <= l.most {
		a.parts[i] = nil
		p.mu.Lock()
		defer p.mu.Unlock()
		p.chunks = append(p.chunks, hashes)
		return nil
	}
	l.held.Add(-size)
	a.parts[i] = hashes[:0]
	p.mu.Lock()
	if p.stream == nil {
		p.stream = l.disk.Stream()
	}
	stream := p.stream
	p.mu.Unlock()
	return stream.Write(spill.AppendInts(nil, hashes), false)
}

// Sort sorts the list, once all Adders are flushed, and returns the number of hashes added
// and of different ones.
func (l *List) Sort(ctx context.Context, threads int) (added, distinct uint64, err error) {
	var all, different atomic.Uint64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(threads)
	for i := range l.parts {
		group.Go(func() error {
			if err := stopped.Err(ctx); err != nil {
				return err
			}
			n, run, err := l.sort(&l.parts[i])
			all.Add(n)
			different.Add(uint64(len(run.Hashes)))
			return err
		})
	}
	err = group.Wait()
	return all.Load(), different.Load(), err
}

// sort sorts a part, of n hashes.
func (l *List) sort(p *part) (n uint64, run Run, err error) {
	raw := slices.Concat(p.chunks...)
	n, p.chunks = uint64(len(raw)), nil
	l.held.Add(-(8 * n))
	run = run.with(raw, l.multiset)
	if p.stream == nil {
		p.sorted = run
		l.held.Add(run.bytes())
		return n, run, nil
	}
	raw = raw[:0]
	for chunk, err := range l.chunks(p.stream) {
		if err != nil {
			return n, run, err
		}
		n += uint64(len(chunk))
		if raw = append(raw, chunk...); len(raw) >= max(foldMost, len(run.Hashes)) {
			run, raw = run.with(raw, l.multiset), raw[:0]
		}
	}
	run = run.with(raw, l.multiset)
	p.stream.Free()
	return n, run, l.write(p, run)
}

// chunks yields the chunks of a stream, each until the next one.
func (l *List) chunks(s *spill.Stream) func(func([]uint64, error) bool) {
	return func(yield func([]uint64, error) bool) {
		var raw []byte
		var chunk []uint64
		for r := s.Reader(); ; {
			var err error
			if raw, err = r.Next(raw); errors.Is(err, io.EOF) {
				return
			}
			if err == nil {
				chunk, err = spill.Ints(chunk, raw)
			}
			if !yield(chunk, err) || err != nil {
				return
			}
		}
	}
}

// write moves a sorted part to disk.
func (l *List) write(p *part, run Run) error {
	p.sorted, p.stream = Run{}, l.disk.Stream()
	err := p.stream.Write(spill.AppendInts(nil, run.Hashes), false)
	if err == nil && l.multiset {
		err = p.stream.Write(spill.AppendInts(nil, run.Copies), true)
	}
	return err
}

// Unload moves all of a sorted list to disk.
func (l *List) Unload() error {
	for i := range l.parts {
		if p := &l.parts[i]; p.stream == nil && len(p.sorted.Hashes) > 0 {
			l.held.Add(-p.sorted.bytes())
			if err := l.write(p, p.sorted); err != nil {
				return err
			}
		}
	}
	return nil
}

// Each calls fn with the hashes of a sorted list, in ascending order.
func (l *List) Each(ctx context.Context, fn func(Run) error) error {
	for i := range l.parts {
		if err := stopped.Err(ctx); err != nil {
			return err
		}
		run, err := l.load(&l.parts[i])
		if err == nil {
			err = fn(run)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// load returns a sorted part.
func (l *List) load(p *part) (Run, error) {
	if p.stream == nil {
		return p.sorted, nil
	}
	var both [2][]uint64
	i := 0
	for chunk, err := range l.chunks(p.stream) {
		if err != nil {
			return Run{}, err
		}
		both[i] = slices.Clone(chunk)
		i++
	}
	return Run{both[0], both[1]}, nil
}
