package keyscan

import (
	"context"
	"slices"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Limits for files over a network.
const (
	JobsAhead = 64 // jobs whose keys are announced before they are read
	NumScouts = 32 // goroutines that find ranges to announce
)

// Scouts find and announce what coming jobs will read over a network, in the order in which
// these were added, while workers have earlier ones. Statistics and page indexes are read
// for that, many at once.
type Scouts[J any] struct {
	jobs   chan scouted[J]
	cancel context.CancelFunc
	done   sync.WaitGroup
}

type scouted[J any] struct {
	job   J
	ahead *Ahead
}

// NewScouts starts scouts, which end with Stop. Each calls newScout once. The function that it
// returns finds what a job reads, and ignores errors and panics: the job reads the same.
func NewScouts[J any](ctx context.Context, newScout func(*parquet.Buffers) func(context.Context, J, *Ahead)) *Scouts[J] {
	s := &Scouts[J]{jobs: make(chan scouted[J], 2*JobsAhead)}
	ctx, s.cancel = context.WithCancel(ctx)
	for range NumScouts {
		s.done.Go(func() {
			buf := new(parquet.Buffers)
			defer buf.Close()
			find := newScout(buf)
			for j := range s.jobs {
				if ctx.Err() == nil {
					find(ctx, j.job, j.ahead)
				}
				close(j.ahead.found)
			}
		})
	}
	return s
}

// Add adds a job. No more than JobsAhead may be waiting.
func (s *Scouts[J]) Add(job J) *Ahead {
	a := &Ahead{found: make(chan struct{})}
	s.jobs <- scouted[J]{job, a}
	return a
}

// Stop ends the search.
func (s *Scouts[J]) Stop() {
	s.cancel()
	close(s.jobs)
	s.done.Wait()
}

// Ahead holds the ranges that the keys of a job, and the condition on its rows, need. A nil
// Ahead has none.
type Ahead struct {
	found   chan struct{}          // closed when the rest is set
	matches []*narrowed            // by match; nil: the task finds it itself
	where   map[int]*parquet.Ahead // by leaf that the file's condition needs
	again   []*parquet.Ahead       // of columns that are copied, too: they stay until it is known which of them are
}

// wait waits until the ranges are known.
func (a *Ahead) wait(ctx context.Context) error {
	if a == nil {
		return nil
	}
	select {
	case <-a.found:
		return nil
	case <-ctx.Done():
		return stopped.Err(ctx)
	}
}

// ReleaseAgain drops the ranges of columns that are copied, once it is known which rows are.
func (a *Ahead) ReleaseAgain() {
	if a != nil {
		for _, again := range a.again {
			again.Release()
		}
	}
}

// Release drops announced ranges that were not read.
func (a *Ahead) Release() {
	a.ReleaseAgain()
	if a == nil {
		return
	}
	for _, n := range a.matches {
		n.release()
	}
	for _, w := range a.where {
		w.Release()
	}
}

// narrowed is the rows of a range whose keys are examined.
type narrowed struct {
	all   bool     // of the row group
	none  bool     // the row group cannot have a member
	spans rows.Set // unless all
	nulls int64    // rows elsewhere that are known to have no key
	ahead *parquet.Ahead
}

// announce announces the pages of a leaf.
func (n *narrowed) announce(f *parquet.File, group, leaf int) {
	if n.all {
		n.ahead = f.Ahead(group, leaf, nil)
	} else {
		n.ahead = f.AheadOf(group, leaf, n.spans)
	}
}

// release drops announced ranges that were not read. n may be nil.
func (n *narrowed) release() {
	if n != nil {
		n.ahead.Release()
	}
}

// Announce finds and announces what the scan of a range reads, and the pages of copied leaves
// once more. Errors are those of the scan, too.
func (k *Finder) Announce(ctx context.Context, r tasks.Range, copied []int, a *Ahead) {
	f := k.File.Parquet().File()
	again := func(leaf int, of *parquet.Ahead) {
		if slices.Contains(copied, leaf) {
			a.again = append(a.again, f.Again(of))
		}
	}
	a.matches = make([]*narrowed, len(k.Matches))
	var spans rows.Set // of rows that may satisfy the condition
	if k.where != nil {
		within, err := k.within(ctx, r)
		if err != nil {
			return
		}
		a.where, spans, err = k.where.Announce(ctx, r, within)
		for leaf, of := range a.where {
			again(leaf, of)
		}
		if err != nil || len(spans) == 0 {
			return
		}
	}
	for i, m := range k.Matches {
		l, ok := m.(*LeafScan)
		if !ok {
			continue
		}
		n, err := l.narrow(ctx, r, k.where != nil)
		if err != nil {
			return
		}
		if k.where != nil {
			n.restrict(spans, k.File.GroupRows(r.Group))
		}
		n.announce(f, r.Group, l.Number())
		again(l.Number(), n.ahead)
		a.matches[i] = n
	}
}

// restrict restricts the rows to the given ones.
func (n *narrowed) restrict(spans rows.Set, total int64) {
	if !n.all {
		spans = n.spans.And(spans)
	}
	n.spans, n.all = spans, spans.All(total)
}

// Expect gives the next scan the ranges that were found for it; nil: none.
func (k *Finder) Expect(ctx context.Context, a *Ahead) error {
	if err := a.wait(ctx); err != nil {
		return err
	}
	if a == nil || a.matches == nil {
		a = &Ahead{matches: make([]*narrowed, len(k.Matches))}
	}
	if k.where != nil {
		k.where.Expected = a.where
	}
	for i, m := range k.Matches {
		if l, ok := m.(*LeafScan); ok {
			l.expected = a.matches[i]
		}
	}
	return nil
}

// tasksAhead is what is announced for the tasks of Read. A nil tasksAhead finds nothing.
type tasksAhead struct {
	scouts *Scouts[tasks.Task]
	tasks  []tasks.Task
	found  []*Ahead // by the number of the task; nil: not added, or begun
}

// lookAhead begins to find what the tasks read. The caller calls stop.
func (r *keyReading) lookAhead(ctx context.Context, list []tasks.Task) *tasksAhead {
	a := &tasksAhead{tasks: list, found: make([]*Ahead, len(list))}
	a.scouts = NewScouts(ctx, func(buf *parquet.Buffers) func(context.Context, tasks.Task, *Ahead) {
		return newKeyWorker(r, buf, nil).announce
	})
	for i := range min(len(list), JobsAhead) {
		a.add(i)
	}
	return a
}

func (a *tasksAhead) add(i int) { a.found[i] = a.scouts.Add(a.tasks[i]) }

// announce finds and announces what a task reads.
func (w *keyWorker) announce(ctx context.Context, t tasks.Task, a *Ahead) {
	var err error
	defer source.Recovered(t.File, t.Group, &err)
	if !t.File.Remote() || w.options.FirstPages > 0 || w.open(t.File) != nil || w.leaf == nil {
		return
	}
	n, err := w.leaf.narrow(ctx, t.Range, w.where != nil)
	if err != nil {
		return
	}
	if w.where != nil {
		spans, err := w.where.Candidates(ctx, t.Range, nil)
		if err != nil {
			return
		}
		n.restrict(spans, t.File.GroupRows(t.Group))
	}
	n.announce(t.File.Parquet().File(), t.Group, w.leaf.Number())
	a.matches = []*narrowed{n}
}

// begin returns the ranges of a task that begins.
func (a *tasksAhead) begin(ctx context.Context, number int) (*narrowed, error) {
	if a == nil {
		return nil, nil
	}
	if next := number + JobsAhead; next < len(a.tasks) {
		a.add(next)
	}
	found := a.found[number]
	if err := found.wait(ctx); err != nil || found.matches == nil {
		return nil, err
	}
	a.found[number] = nil
	return found.matches[0], nil
}

// stop ends the search, and drops announced ranges that were not read.
func (a *tasksAhead) stop() {
	a.scouts.Stop()
	for _, found := range a.found {
		found.Release()
	}
}
