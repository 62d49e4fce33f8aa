package partition

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// opener opens one file. If the entry is certainly not data, it returns the reason.
type opener[T any] struct {
	open  func(ctx context.Context, e storage.Object) (f T, why string, err error)
	close func(T)
	least int // number of files to open at once, if the storage does not want more
}

// files opens files that stay open.
func (o *OpenOptions) files() opener[*File] {
	return opener[*File]{
		open:  o.openFound,
		close: func(f *File) { _ = f.Close() }, // an error is being returned already
	}
}

// opening is the opening of many files at once, whose results are taken in order.
type opening[T any] struct {
	by      opener[T]
	entries []storage.Object
	results []opened[T]
	next    atomic.Int64 // entry to open
	taken   int
	workers sync.WaitGroup
}

// opened is the result for an entry.
type opened[T any] struct {
	done chan struct{} // closed when the rest is set
	file T
	open bool   // file is to be closed if it is not taken
	why  string // why the entry is not data
	err  error
}

// openMany begins to open entries, as many at once as the storage wants. The caller
// takes the results and then calls stop.
func openMany[T any](ctx context.Context, o *OpenOptions, name string, entries []storage.Object, by opener[T]) *opening[T] {
	p := &opening[T]{by: by, entries: entries, results: make([]opened[T], len(entries))}
	n := min(max(storage.Concurrency(o.Store, name), by.least), len(entries))
	if n <= 1 {
		return p
	}
	for i := range p.results {
		p.results[i].done = make(chan struct{})
	}
	for range n {
		p.workers.Go(func() {
			for {
				i := int(p.next.Add(1) - 1)
				if i >= len(entries) || ctx.Err() != nil {
					return
				}
				p.open(ctx, i)
				close(p.results[i].done)
			}
		})
	}
	return p
}

// open opens entry i.
func (p *opening[T]) open(ctx context.Context, i int) {
	r := &p.results[i]
	r.file, r.why, r.err = p.by.open(ctx, p.entries[i])
	r.open = r.why == "" && r.err == nil
}

// take returns the result for the next entry.
func (p *opening[T]) take(ctx context.Context) (f T, why string, err error) {
	r := &p.results[p.taken]
	if r.done == nil {
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
	return f, why, err
}

// stop closes the files that were not taken.
func (p *opening[T]) stop() {
	p.next.Store(int64(len(p.entries)))
	p.workers.Wait()
	for _, r := range p.results {
		if r.open {
			p.by.close(r.file)
		}
	}
}
