package source

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// Opener opens one file. If the entry is certainly not data, it returns the reason.
type Opener[T any] struct {
	Open  func(ctx context.Context, i int, e Entry) (f T, why string, err error) // of the portion
	Close func(T)
	Least int // number of files to open at once, if the storage does not want more
	// Keep, if not nil, receives the files in order, instead of the caller of Open.
	Keep func(T) error
}

// files opens files that stay open.
func (o *Opening) files() Opener[*File] {
	return Opener[*File]{
		Least: runtime.GOMAXPROCS(0),
		Open:  func(ctx context.Context, _ int, e Entry) (*File, string, error) { return o.OpenFound(ctx, e) },
		Close: func(f *File) { _ = f.Close() }, // an error is being returned already
	}
}

// opening opens many files at once. The results are taken in order, and the number of results
// that wait is limited.
type opening[T any] struct {
	by      Opener[T]
	entries []Entry
	results []opened[T]   // of entry i: at i modulo their number
	free    chan struct{} // has an element for each result that may be set; nil: entries are opened when they are taken
	next    atomic.Int64  // entry to open
	taken   int
	cancel  context.CancelFunc
	workers sync.WaitGroup
}

// opened is the result for an entry.
type opened[T any] struct {
	done chan struct{} // has an element when the rest is set
	file T
	open bool   // file is to be closed if it is not taken
	why  string // why the entry is not data
	err  error
}

// waitingResults is the number of results that may wait to be taken, for each worker.
const waitingResults = 16

// openMany begins to open entries, as many at once as the storage wants. The caller
// takes the results and then calls stop.
func openMany[T any](ctx context.Context, o *Opening, entries []Entry, by Opener[T]) *opening[T] {
	p := &opening[T]{by: by, entries: entries, cancel: func() {}}
	n := min(by.Least, len(entries))
	if n > 0 {
		n = min(max(objects.Concurrency(o.Store, entries[0].Name), n), len(entries))
	}
	if n <= 1 {
		p.results = make([]opened[T], 1)
		return p
	}
	p.results = make([]opened[T], min(n*waitingResults, len(entries)))
	p.free = make(chan struct{}, len(p.results))
	for i := range p.results {
		p.results[i].done = make(chan struct{}, 1)
		p.free <- struct{}{}
	}
	stopping, cancel := context.WithCancel(ctx)
	p.cancel = cancel
	for range n {
		p.workers.Go(func() {
			for {
				select {
				case <-p.free:
				case <-stopping.Done():
					return
				}
				i := int(p.next.Add(1) - 1)
				if i >= len(entries) || stopping.Err() != nil {
					return
				}
				p.open(ctx, i)
				p.results[i%len(p.results)].done <- struct{}{}
			}
		})
	}
	return p
}

// open opens entry i.
func (p *opening[T]) open(ctx context.Context, i int) {
	r := &p.results[i%len(p.results)]
	r.file, r.why, r.err = p.by.Open(ctx, i, p.entries[i])
	r.open = r.why == "" && r.err == nil
}

// take returns the result for the next entry.
func (p *opening[T]) take(ctx context.Context) (f T, why string, err error) {
	r := &p.results[p.taken%len(p.results)]
	if p.free == nil {
		p.open(ctx, p.taken)
	} else {
		select {
		case <-r.done:
		case <-ctx.Done():
			return f, "", stopped.Err(ctx)
		}
	}
	p.taken++
	f, why, err = r.file, r.why, r.err
	*r = opened[T]{done: r.done}
	if p.free != nil {
		p.free <- struct{}{}
	}
	return f, why, err
}

// stop closes the files that were not taken.
func (p *opening[T]) stop() {
	p.cancel()
	p.workers.Wait()
	for _, r := range p.results {
		if r.open {
			p.by.Close(r.file)
		}
	}
}
