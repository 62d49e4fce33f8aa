package partition

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// opening is the opening of many files at once, whose results are taken in order.
type opening struct {
	options *OpenOptions
	entries []storage.Object
	results []opened
	next    atomic.Int64 // entry to open
	taken   int
	workers sync.WaitGroup
}

// opened is the result for an entry.
type opened struct {
	done chan struct{} // closed when the rest is set
	file *File
	why  string // why the entry is not data, or left out
	err  error
}

// openMany begins to open entries, as many at once as the storage wants. The caller
// takes the results and then calls stop.
func (o *OpenOptions) openMany(ctx context.Context, name string, entries []storage.Object) *opening {
	p := &opening{options: o, entries: entries, results: make([]opened, len(entries))}
	n := min(storage.Concurrency(o.Store, name), len(entries))
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

// open opens entry i, unless the options leave it out.
func (p *opening) open(ctx context.Context, i int) {
	r := &p.results[i]
	if r.why, r.err = p.options.whyLeftOut(p.entries[i]); r.why == "" && r.err == nil {
		r.file, r.why, r.err = p.options.openFound(ctx, p.entries[i])
	}
}

// take returns the result for the next entry.
func (p *opening) take(ctx context.Context) (f *File, why string, err error) {
	r := &p.results[p.taken]
	if r.done == nil {
		p.open(ctx, p.taken)
	} else {
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, "", stopped.Err(ctx)
		}
	}
	p.taken++
	f, why, err = r.file, r.why, r.err
	*r = opened{done: r.done}
	return f, why, err
}

// stop closes the files that were not taken.
func (p *opening) stop() {
	p.next.Store(int64(len(p.entries)))
	p.workers.Wait()
	for _, r := range p.results {
		if r.file != nil {
			_ = r.file.Close() // an error is being returned already
		}
	}
}
