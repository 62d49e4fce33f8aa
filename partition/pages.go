package partition

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// The page engine copies the rows of Parquet files that pass from page to page,
// without making rows or arrays of them:
//
//	pieces ──► segments ── key task ──► selected rows ── leaf task, for each leaf ──► lanes ──► row groups, in order
//
// A segment is a row group of the input, or a slice of a giant one. Its key
// task reads the key columns and finds the rows that pass. Then each leaf is a
// task: it reads the pages that hold such rows, picks their entries and adds
// them to the leaf's lane of a row group of the output. Several segments fill
// one row group where few rows pass. Workers take tasks in the order of the
// input, so that the row group that is due next is always being worked on.
//
// How segments are cut and row groups filled depends on the footers and on the
// numbers of rows that pass, never on timing.

// Bounds of what the engine holds at once.
const (
	groupRows  = 1 << 20  // rows of a row group of the output, at most, unless a segment has more
	groupBytes = 48 << 20 // bytes of a row group of the output, uncompressed, as the footers lead to expect
	parkBytes  = 4 << 20  // expected of a segment that may wait for the segment before it
)

// segment is a stretch on its way.
type segment struct {
	rowRange
	source *pageSource
	rows   []uint32 // that pass, once known
	known  bool
	group  *outGroup             // that its rows go to, once decided
	bytes  int64                 // of its rows, uncompressed, as expected
	number int64                 // among the group's segments
	taken  []bool                // leaf tasks begun, by position in source.leaves
	shapes map[int]parquet.Shape // of the file's leaves that were copied, by number
	begun  int
	done   int
}

// pageEngine runs the tasks.
type pageEngine struct {
	ctx     context.Context
	cancel  context.CancelFunc
	scanner *Scanner
	threads int
	most    int64 // bytes that may be in flight; 0: no bound
	pool    *parquet.Pool

	mu      sync.Mutex
	changed *sync.Cond
	next    func() (*segment, bool) // the next segment of the input
	more    bool
	unmap   map[*File]func() error // of files with open segments
	open    []*segment             // in order: begun, and not all of their tasks done
	filling *outGroup              // the row group that the next segment may go to
	ready   []*outGroup            // in order: begun, and not taken by the consumer
	workers []*pageWorker
	active  int // workers that have a task
	err     error
	stop    bool
}

// copyPages yields the row groups of the output in order. sources are in
// ascending order of part.
func (s *Scanner) copyPages(ctx context.Context, sources []*pageSource) iter.Seq2[*outGroup, error] {
	return func(yield func(*outGroup, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		e := &pageEngine{
			ctx: ctx, cancel: cancel, scanner: s, threads: processors(s.opts.Threads), most: InFlight(piecesOfSources(sources)) / 4 * 3, // the rest is what nobody counts
			more: true, unmap: map[*File]func() error{},
		}
		if len(sources) > 0 && sources[0].layout != nil {
			e.pool = sources[0].layout.Pool()
		}
		e.changed = sync.NewCond(&e.mu)
		next, stop := iter.Pull(allSegments(sources))
		defer stop()
		e.next = next
		var workers sync.WaitGroup
		for range e.threads {
			workers.Go(e.work)
		}
		unhook := context.AfterFunc(ctx, e.wake)
		defer func() {
			workers.Wait()
			for _, unmap := range e.unmap { // after an error, which says more
				_ = unmap()
			}
		}()
		defer unhook()
		defer e.halt()
		for {
			g, err := e.take()
			if err != nil {
				yield(nil, err)
				return
			}
			if g == nil || !yield(g, nil) {
				return
			}
		}
	}
}

func piecesOfSources(sources []*pageSource) []Piece {
	pieces := make([]Piece, len(sources))
	for i, s := range sources {
		pieces[i] = s.piece
	}
	return pieces
}

func allSegments(sources []*pageSource) iter.Seq[*segment] {
	return func(yield func(*segment) bool) {
		for _, src := range sources {
			for st := range src.segments() {
				if !yield(&segment{rowRange: st, source: src, taken: make([]bool, len(src.leaves)), shapes: map[int]parquet.Shape{}}) {
					return
				}
			}
		}
	}
}

func (e *pageEngine) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changed.Broadcast()
}

func (e *pageEngine) halt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop = true
	e.cancel() // whatever tasks are still at it, nobody wants it
	e.changed.Broadcast()
}

// take waits for the next row group. It returns nil behind the last one.
func (e *pageEngine) take() (*outGroup, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		switch {
		case e.err != nil:
			return nil, e.err
		case e.ctx.Err() != nil:
			return nil, stopped.Err(e.ctx)
		case len(e.ready) > 0 && e.ready[0].complete():
			g := e.ready[0]
			e.ready = e.ready[1:]
			e.changed.Broadcast()
			return g, nil
		case len(e.ready) == 0 && !e.more && len(e.open) == 0:
			return nil, nil
		}
		e.changed.Wait()
	}
}

// work is a worker.
func (e *pageEngine) work() {
	w := &pageWorker{engine: e, buf: new(parquet.Buffers)}
	defer func() { w.buf.Close() }()
	debug.SetPanicOnFault(true) // in mapped pages; see recovered
	e.mu.Lock()
	defer e.mu.Unlock()
	e.workers = append(e.workers, w)
	for !e.stop && e.err == nil && e.ctx.Err() == nil {
		run := e.pick(w)
		if run == nil {
			if !e.more && len(e.open) == 0 && len(e.ready) == 0 {
				return
			}
			if e.most > 0 {
				w.shed()
			}
			e.changed.Wait()
			continue
		}
		e.active++
		w.held = max(w.held, e.taskNeed())
		e.mu.Unlock()
		settle, err := run()
		e.mu.Lock()
		e.active--
		w.held = w.holds()
		if err == nil {
			settle()
		} else if e.err == nil {
			e.err = err
			e.cancel()
		}
		e.changed.Broadcast()
	}
}

// A pageTask is run without the lock; what it returns settles it, with the lock.
type pageTask = func() (settle func(), err error)

// pick chooses what to do next; nil: nothing now. The oldest work goes first.
func (e *pageEngine) pick(w *pageWorker) pageTask {
	for _, g := range e.ready {
		if !g.closed {
			break
		}
		for _, l := range g.lanes {
			if !l.finishing && l.turn.Load() == g.segments {
				l.finishing = true
				return func() (func(), error) { return w.finish(g, l) }
			}
		}
	}
	if !e.admits(w) {
		return nil
	}
	park := int64(parkBytes)
	if e.most > 0 {
		park = min(park, e.most/16)
	}
	for _, s := range e.open {
		if s.group == nil || s.begun == len(s.taken) {
			continue
		}
		for _, i := range s.source.order {
			l := s.group.lanes[i]
			if s.taken[i] || l.turn.Load() != s.number && s.bytes > park {
				continue
			}
			s.taken[i] = true
			s.begun++
			return func() (func(), error) { return w.copyLeaf(s, i) }
		}
	}
	if !e.more || !e.room() {
		return nil
	}
	s, ok := e.next()
	if !ok {
		e.more = false
		e.decide()
		e.changed.Broadcast()
		return e.pick(w)
	}
	if f := s.source.piece.File; e.unmap[f] == nil {
		e.unmap[f] = f.mapPages()
	}
	e.open = append(e.open, s)
	return func() (func(), error) { return w.selectRows(s) }
}

// room reports whether another segment may be begun.
func (e *pageEngine) room() bool {
	waiting := 0
	for _, g := range e.ready {
		if g.complete() {
			waiting++
		}
	}
	if len(e.open) > 0 && e.most > 0 && e.held()+e.segmentNeed() > e.most-e.most/4 {
		return false
	}
	return len(e.open) < e.threads+1 && waiting < 1
}

// admits reports whether a worker may take another task: if what is in flight
// has room for what a task takes, or no other worker has one, so that there is
// always one at work.
func (e *pageEngine) admits(w *pageWorker) bool {
	if e.most == 0 || e.active == 0 {
		return true
	}
	return e.held()-w.held+max(w.held, e.taskNeed()) <= e.most
}

// taskNeed returns about what a task takes: as much as the largest so far.
func (e *pageEngine) taskNeed() int64 {
	need := int64(leastTask)
	for _, w := range e.workers {
		need = max(need, w.held)
	}
	return need
}

// leastTask is how many bytes a task is expected to take at the least: a page or
// two, and its dictionary.
const leastTask = 3 << 20

// held returns about how many bytes are in flight.
func (e *pageEngine) held() (n int64) {
	for _, w := range e.workers {
		n += w.held
	}
	for _, s := range e.open {
		n += 4 * int64(cap(s.rows))
	}
	for _, g := range e.ready {
		for _, l := range g.lanes {
			n += l.held.Load()
		}
	}
	if e.pool != nil {
		n += e.pool.Held()
	}
	return n
}

// segmentNeed returns about what another segment adds to it: the pages that are
// begun of another row group, and the numbers of its rows.
func (e *pageEngine) segmentNeed() (n int64) {
	for _, g := range e.ready {
		var lanes int64
		for _, l := range g.lanes {
			lanes += l.held.Load()
		}
		n = max(n, lanes)
	}
	rows := int64(0)
	for _, s := range e.open {
		rows = max(rows, s.hi-s.lo)
	}
	return n + leastTask + 3*4*rows
}

// decide puts the open segments whose rows are known, in order, into row
// groups.
func (e *pageEngine) decide() {
	for _, s := range e.open {
		if s.group != nil || s.known && s.begun == len(s.taken) {
			continue
		}
		if !s.known {
			return
		}
		n, bytes := int64(len(s.rows)), s.source.expected(s.rowRange.group, int64(len(s.rows)))
		if g := e.filling; g != nil && (g.layout != s.source.layout || g.rows+n > groupRows || g.bytes+bytes > groupBytes) {
			g.closed = true
			e.filling = nil
		}
		if e.filling == nil {
			e.filling = newOutGroup(s)
			e.ready = append(e.ready, e.filling)
		}
		s.group, s.number, s.bytes = e.filling, e.filling.segments, bytes
		s.group.segments++
		s.group.rows += n
		s.group.bytes += bytes
	}
	if !e.more && e.filling != nil {
		e.filling.closed = true
		e.filling = nil
	}
}

// close removes a segment all of whose tasks are done.
func (e *pageEngine) close(s *segment) {
	e.open = slices.DeleteFunc(e.open, func(o *segment) bool { return o == s })
	if s.group != nil {
		s.group.ended++
	}
	f := s.source.piece.File
	if slices.ContainsFunc(e.open, func(o *segment) bool { return o.source.piece.File == f }) {
		return
	}
	err := errors.Join(e.unmap[f](), f.rest())
	delete(e.unmap, f)
	if err != nil && e.err == nil {
		e.err = err
	}
}

// pageWorker is what a worker keeps between tasks.
type pageWorker struct {
	engine *pageEngine
	buf    *parquet.Buffers
	keys   *keyScan
	file   *File // that keys is about
	checks []check
	held   int64 // bytes: after the last task, or expected of this one; guarded by the engine's lock
}

// holds returns how many bytes the worker keeps for its next task.
func (w *pageWorker) holds() int64 {
	n := w.buf.Size()
	if w.keys != nil {
		n += w.keys.size()
	}
	return n
}

// shed lets go of what the worker keeps, while there is nothing for it to do.
func (w *pageWorker) shed() {
	w.buf.Close()
	*w.buf = parquet.Buffers{} // keys holds the pointer
	if w.keys != nil {
		w.keys.shed()
	}
	w.held = 0
}

// selectRows is the key task of a segment.
func (w *pageWorker) selectRows(s *segment) (settle func(), err error) {
	e, f := w.engine, s.source.piece.File
	defer recovered(f, s.rowRange.group, &err)
	if w.file != f {
		if w.checks == nil {
			w.checks = e.scanner.checks()
		}
		if w.keys, err = newKeyScan(e.scanner, f, w.buf, w.checks); err != nil {
			return nil, err
		}
		w.file = f
	}
	rows, err := w.keys.scan(e.ctx, s.rowRange, nil)
	if err != nil {
		return nil, f.unless(err)
	}
	return func() {
		s.rows, s.known = rows, true
		if len(rows) == 0 {
			s.begun = len(s.taken)
		}
		e.decide()
		if s.begun == len(s.taken) { // nothing is to be copied
			e.close(s)
			e.decide()
		}
	}, nil
}

// copyLeaf is the task of one leaf of a segment.
func (w *pageWorker) copyLeaf(s *segment, i int) (settle func(), err error) {
	e, f := w.engine, s.source.piece.File
	defer recovered(f, s.rowRange.group, &err)
	defer w.buf.Rest()
	pages := s.source.pages(w.buf, s.rowRange.group, i, s.rows)
	if err := s.group.lanes[i].add(e.ctx, s.number, pages); err != nil {
		if add := (*addError)(nil); errors.As(err, &add) {
			err = fmt.Errorf("%s: %w", fault.At{File: f.Name, RowGroup: s.rowRange.group + 1}, add.error)
		}
		return nil, f.unless(err)
	}
	seen, skipped := pages.count()
	e.scanner.Stats.Pages.Add(int64(seen))
	e.scanner.Stats.PagesSkipped.Add(int64(skipped))
	return func() {
		if pages.chunk != nil {
			s.shapes[s.source.leaves[i]] = pages.chunk.Shape()
		}
		if s.done++; s.done == len(s.taken) {
			if err := s.source.file().CheckShapes(s.rowRange.group, s.shapes); err != nil && e.err == nil {
				e.err = f.unless(err)
				e.cancel()
			}
			s.rows = nil
			e.close(s)
		}
	}, nil
}

// finish ends a lane to which all segments have added.
func (w *pageWorker) finish(g *outGroup, l *lane) (settle func(), err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v\n%s", r, debug.Stack())
		}
	}()
	chunk, err := l.w.Finish()
	if err != nil {
		return nil, err
	}
	return func() {
		l.chunk, l.w = chunk, nil
		l.held.Store(0)
		g.finished++
	}, nil
}

// recovered turns a panic, which only damaged input or a fault in a library can
// cause, into an error with its place.
func recovered(f *File, group int, err *error) {
	if r := recover(); panics.IsMemoryFault(r) {
		*err = fmt.Errorf("%s: %w", fault.At{File: f.Name, RowGroup: group + 1}, panics.ErrUnmapped)
	} else if r != nil {
		*err = fmt.Errorf("%s: internal error: %v\n%s", fault.At{File: f.Name, RowGroup: group + 1}, r, debug.Stack())
	}
}
