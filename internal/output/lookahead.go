package output

import (
	"context"
	"slices"
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
	jobsAhead = 64 // jobs or tasks whose keys are announced before they are read
	scouts    = 32 // goroutines that find ranges to announce
)

// openAhead is the number of further jobs that may be open over a network, which fetches for
// some while workers have others.
const openAhead = 6

// release ends the lookahead, and drops announced ranges that were not read.
func (e *pageEngine) release() {
	e.scouts.stop()
	for _, s := range slices.Concat(e.open, e.coming) {
		s.release()
	}
}

// nextJob returns the next job of the input, and passes those that follow to the
// scouts.
func (e *pageEngine) nextJob() (*rangeJob, bool) {
	if !e.remote {
		return e.next()
	}
	for e.more && len(e.coming) < jobsAhead {
		s, ok := e.next()
		if !ok {
			break
		}
		if s.source.piece.File.Remote() {
			e.scouts.add(s)
		}
		e.coming = append(e.coming, s)
	}
	if len(e.coming) == 0 {
		return nil, false
	}
	s := e.coming[0]
	e.coming = e.coming[1:]
	return s, true
}

// keeps returns the number of bytes that a chunk of a file over a network may have to
// stay in memory from its check until it is written.
func (e *pageEngine) keeps() int64 {
	const most = 32 << 20
	if e.most == 0 {
		return most
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(min(most, e.most/2-e.held()), 0)
}

// keysAhead holds the ranges that the key task of a job reads.
type keysAhead struct {
	found   chan struct{}          // closed when the rest is set
	matches []*narrowed            // by match; nil: the task finds it itself
	where   map[int]*parquet.Ahead // by leaf that the file's condition needs
	again   []*parquet.Ahead       // of columns that are copied, too
}

// narrowed is the rows of a range whose keys are examined.
type narrowed struct {
	all   bool       // of the row group
	none  bool       // the row group cannot have a member
	spans [][2]int64 // ascending ranges of rows, unless all
	nulls int64      // rows elsewhere that are known to have no key
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

// lookahead finds the ranges that jobs read.
type lookahead struct {
	scanner *Scanner
	jobs    chan *rangeJob
	done    sync.WaitGroup
}

// newLookahead starts the scouts, which end with ctx or after stop.
func newLookahead(ctx context.Context, s *Scanner) *lookahead {
	l := &lookahead{scanner: s, jobs: make(chan *rangeJob, 2*jobsAhead)}
	for range scouts {
		l.done.Go(func() { l.scout(ctx) })
	}
	return l
}

// add passes a job to the scouts. No more than jobsAhead may be waiting.
func (l *lookahead) add(s *rangeJob) {
	s.keys = &keysAhead{found: make(chan struct{})}
	l.jobs <- s
}

func (l *lookahead) stop() {
	close(l.jobs)
	l.done.Wait()
}

func (l *lookahead) scout(ctx context.Context) {
	buf := new(parquet.Buffers)
	defer buf.Close()
	var k *keyScan
	for s := range l.jobs {
		if ctx.Err() == nil {
			if k == nil || k.file != s.source.piece.File {
				k, _ = newKeyScan(l.scanner, s.source.piece.File, buf, make([]check, len(l.scanner.match))) // the task returns the error again
			}
			if k != nil {
				s.announceKeys(ctx, k)
			}
		}
		close(s.keys.found)
	}
}

// announceKeys announces what the key task reads. A panic is ignored: the task reads the
// same, and returns it as an error.
func (s *rangeJob) announceKeys(ctx context.Context, k *keyScan) {
	var err error
	defer source.Recovered(k.file, s.Range.Group, &err)
	s.keys.where, s.keys.matches = k.announce(ctx, s.Range)
	s.announceAgain(k)
}

// announceAgain announces the pages of columns that are copied, too, once more, so that
// they stay until it is known which of them are copied.
func (s *rangeJob) announceAgain(k *keyScan) {
	again := func(leaf int, a *parquet.Ahead) {
		if slices.Contains(s.source.leaves, leaf) {
			s.keys.again = append(s.keys.again, s.source.file().Again(a))
		}
	}
	for leaf, a := range s.keys.where {
		again(leaf, a)
	}
	for i, n := range s.keys.matches {
		if l, ok := k.matches[i].(*leafScan); ok && n != nil {
			again(l.number(), n.ahead)
		}
	}
}

// releaseAgain drops ranges that were announced a second time.
func (s *rangeJob) releaseAgain() {
	if s.keys != nil {
		for _, a := range s.keys.again {
			a.Release()
		}
	}
}

// announce finds and announces what the scan of a range reads. Errors are those of the
// scan, too.
func (k *keyScan) announce(ctx context.Context, r tasks.Range) (where map[int]*parquet.Ahead, list []*narrowed) {
	list = make([]*narrowed, len(k.matches))
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
	for i, m := range k.matches {
		l, ok := m.(*leafScan)
		if !ok {
			continue
		}
		n, err := l.narrow(ctx, r, k.where != nil)
		if err != nil {
			return where, list
		}
		if k.where != nil {
			n.restrict(spans, k.file.GroupRows(r.Group))
		}
		n.announce(k.file.Parquet().File(), r.Group, l.number())
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

// expect gives the next scan the ranges that were found for it; nil: none.
func (k *keyScan) expect(ctx context.Context, a *keysAhead) error {
	found := make([]*narrowed, len(k.matches))
	if k.where != nil {
		k.where.Expected = nil
	}
	if a != nil {
		select {
		case <-a.found:
			copy(found, a.matches)
			if k.where != nil {
				k.where.Expected = a.where
			}
		case <-ctx.Done():
			return stopped.Err(ctx)
		}
	}
	for i, m := range k.matches {
		if l, ok := m.(*leafScan); ok {
			l.expected = found[i]
		}
	}
	return nil
}

// release drops ranges that were announced for a job and not read.
func (s *rangeJob) release() {
	s.releaseAgain()
	if s.keys != nil {
		for _, n := range s.keys.matches {
			n.release()
		}
		for _, a := range s.keys.where {
			a.Release()
		}
	}
	for _, a := range s.leavesAhead {
		a.Release()
	}
}

// announceLeaves announces the pages that the leaf tasks of a job will read.
func (s *rangeJob) announceLeaves(rows *selection) {
	f := s.source.piece.File
	if !f.Remote() || rows.len() == 0 {
		return
	}
	s.leavesAhead = make([]*parquet.Ahead, len(s.source.leaves))
	list := rows.list(f.GroupRows(s.Range.Group))
	for _, i := range s.source.order {
		if s.source.leaves[i] >= 0 && !s.source.ofTable(i) && !(s.source.adapt != nil && s.source.adapt[i] != nil && s.source.adapt[i].Missing) {
			s.leavesAhead[i] = s.source.file().Ahead(s.Range.Group, s.source.leaves[i], list)
		}
	}
}

// leafAhead returns the ranges that were announced for leaf i, once.
func (s *rangeJob) leafAhead(i int) (a *parquet.Ahead) {
	if s.leavesAhead != nil {
		a, s.leavesAhead[i] = s.leavesAhead[i], nil
	}
	return a
}

// tasksAhead finds and announces the ranges of the tasks of ReadKeys, in order, while
// workers read the keys of earlier ones. A nil tasksAhead finds nothing.
type tasksAhead struct {
	tasks  []taskAhead
	free   chan struct{} // an element for each task that is ahead of the workers
	cancel context.CancelFunc
	scouts sync.WaitGroup
}

// taskAhead holds the ranges that a task reads.
type taskAhead struct {
	found chan struct{} // closed when the rest is set
	keys  *narrowed     // nil: the task finds it itself
}

// lookAhead begins to find what the tasks read. The caller calls stop.
func (r *keyReading) lookAhead(ctx context.Context, tasks []tasks.Task) *tasksAhead {
	ctx, cancel := context.WithCancel(ctx)
	a := &tasksAhead{tasks: make([]taskAhead, len(tasks)), free: make(chan struct{}, jobsAhead), cancel: cancel}
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
	for range scouts {
		a.scouts.Go(func() {
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
	n.announce(t.File.Parquet().File(), t.Group, w.leaf.number())
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
	a.scouts.Wait()
	for _, t := range a.tasks {
		t.keys.release()
	}
}
