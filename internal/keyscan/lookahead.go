package keyscan

import (
	"context"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Of files over a network, the engine finds and announces what the key tasks of coming
// jobs will read, while workers have tasks of earlier ones. Statistics and page indexes
// are read for that, many at once. What leaf tasks read is announced as soon as their
// job's rows are known.

// Limits for files over a network.
const (
	JobsAhead = 64 // jobs or tasks whose keys are announced before they are read
	Scouts    = 32 // goroutines that find ranges to announce
)

// Ahead holds the ranges that the key task of a job reads.
type Ahead struct {
	Found   chan struct{}          // closed when the rest is set
	Matches []*narrowed            // by match; nil: the task finds it itself
	Where   map[int]*parquet.Ahead // by leaf that the file's condition needs
	Again   []*parquet.Ahead       // of columns that are copied, too
}

// narrowed is the rows of a range whose keys are examined.
type narrowed struct {
	all   bool       // of the row group
	none  bool       // the row group cannot have a member
	spans [][2]int64 // ascending ranges of rows, unless all
	nulls int64      // rows elsewhere that are known to have no key
	Ahead *parquet.Ahead
}

// announce announces the pages of a leaf.
func (n *narrowed) announce(f *parquet.File, group, leaf int) {
	if n.all {
		n.Ahead = f.Ahead(group, leaf, nil)
	} else {
		n.Ahead = f.AheadOf(group, leaf, n.spans)
	}
}

// Release drops announced ranges that were not read. n may be nil.
func (n *narrowed) Release() {
	if n != nil {
		n.Ahead.Release()
	}
}

// Announce finds and announces what the scan of a range reads. Errors are those of the
// scan, too.
func (k *Finder) Announce(ctx context.Context, r tasks.Range) (where map[int]*parquet.Ahead, list []*narrowed) {
	list = make([]*narrowed, len(k.Matches))
	var spans [][2]int64 // of rows that may satisfy the condition
	if k.where != nil {
		within, err := k.within(ctx, r)
		if err != nil {
			return nil, list
		}
		if where, spans, err = k.where.Announce(ctx, r, within); err != nil || len(spans) == 0 {
			return where, list
		}
	}
	for i, m := range k.Matches {
		l, ok := m.(*LeafScan)
		if !ok {
			continue
		}
		n, err := l.narrow(ctx, r, k.where != nil)
		if err != nil {
			return where, list
		}
		if k.where != nil {
			n.restrict(spans, k.File.GroupRows(r.Group))
		}
		n.announce(k.File.Parquet().File(), r.Group, l.Number())
		list[i] = n
	}
	return where, list
}

// restrict restricts the rows to the given ones.
func (n *narrowed) restrict(spans [][2]int64, total int64) {
	if !n.all {
		spans = prune.Intersect(n.spans, spans)
	}
	n.spans, n.all = spans, len(spans) == 1 && spans[0] == [2]int64{0, total}
}

// Expect gives the next scan the ranges that were found for it; nil: none.
func (k *Finder) Expect(ctx context.Context, a *Ahead) error {
	found := make([]*narrowed, len(k.Matches))
	if k.where != nil {
		k.where.Expected = nil
	}
	if a != nil {
		select {
		case <-a.Found:
			copy(found, a.Matches)
			if k.where != nil {
				k.where.Expected = a.Where
			}
		case <-ctx.Done():
			return stopped.Err(ctx)
		}
	}
	for i, m := range k.Matches {
		if l, ok := m.(*LeafScan); ok {
			l.expected = found[i]
		}
	}
	return nil
}

// tasksAhead finds and announces the ranges of the tasks of Read, in order, while
// workers read the keys of earlier ones. A nil tasksAhead finds nothing.
type tasksAhead struct {
	tasks       []taskAhead
	free        chan struct{} // an element for each task that is ahead of the workers
	cancel      context.CancelFunc
	prefetchers sync.WaitGroup
}

// taskAhead holds the ranges that a task reads.
type taskAhead struct {
	found chan struct{} // closed when the rest is set
	keys  *narrowed     // nil: the task finds it itself
}

// lookAhead begins to find what the tasks read. The caller calls stop.
func (r *keyReading) lookAhead(ctx context.Context, tasks []tasks.Task) *tasksAhead {
	ctx, cancel := context.WithCancel(ctx)
	a := &tasksAhead{tasks: make([]taskAhead, len(tasks)), free: make(chan struct{}, JobsAhead), cancel: cancel}
	for i := range a.tasks {
		a.tasks[i].found = make(chan struct{})
	}
	var mu sync.Mutex
	next := 0
	take := func() (i int, ok bool) { // a task, in order
		mu.Lock()
		defer mu.Unlock()
		if next == len(tasks) {
			return 0, false
		}
		select {
		case a.free <- struct{}{}:
		case <-ctx.Done():
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range Scouts {
		a.prefetchers.Go(func() {
			w := newKeyWorker(r, nil)
			defer w.buf.Close()
			for {
				i, ok := take()
				if !ok {
					return
				}
				a.tasks[i].keys = w.announce(ctx, tasks[i])
				close(a.tasks[i].found)
			}
		})
	}
	return a
}

// announce finds and announces what a task reads. Errors and panics are
// ignored: the task reads the same.
func (w *keyWorker) announce(ctx context.Context, t tasks.Task) (n *narrowed) {
	var err error
	defer source.Recovered(t.File, t.Group, &err)
	if !t.File.Remote() || w.options.FirstPages > 0 || w.open(t.File) != nil || w.leaf == nil {
		return nil
	}
	if n, err = w.leaf.narrow(ctx, t.Range, w.where != nil); err != nil {
		return nil
	}
	if w.where != nil {
		spans, err := w.where.Candidates(ctx, t.Range, nil)
		if err != nil {
			return nil
		}
		n.restrict(spans, t.File.GroupRows(t.Group))
	}
	n.announce(t.File.Parquet().File(), t.Group, w.leaf.Number())
	return n
}

// begin returns the ranges of a task that begins.
func (a *tasksAhead) begin(ctx context.Context, number int) (*narrowed, error) {
	if a == nil {
		return nil, nil
	}
	select {
	case <-a.tasks[number].found:
	case <-ctx.Done():
		return nil, stopped.Err(ctx)
	}
	<-a.free
	n := a.tasks[number].keys
	a.tasks[number].keys = nil
	return n, nil
}

// stop ends the search, and drops announced ranges that were not read.
func (a *tasksAhead) stop() {
	a.cancel()
	a.prefetchers.Wait()
	for _, t := range a.tasks {
		t.keys.Release()
	}
}
