// Package pagecopy copies selected rows of Parquet files from page to page; it never makes rows
// or arrays of them.
//
//	pieces ──► jobs ── key task ──► selected rows ── leaf task, for each leaf ──► output leaves ──► row groups, in order
//
// A job is a row group of the input, or a part of a very large one. Its key task
// reads the key columns and finds the rows that pass. Then each leaf is a task: it
// reads the pages that hold such rows, picks their entries and adds them to a leaf
// of the output's row group. Several jobs fill one row group where few rows pass.
// Workers take tasks in input order, so the row group that is due next is always
// being worked on.
//
// In a scan with [tables.Pairs] the key task also finds the partners of each row. Rows with
// several are repeated, and further leaf tasks write the partners' columns.
//
// An input row group that loses no row becomes a row group of the output: its chunks
// are copied as they are stored, and only those of partners are made of pages. See
// [inputGroup].
//
// How jobs are cut and row groups filled depends on the footers and on the rows that
// pass, never on timing.
//
// In come a [keyscan.Scanner], perhaps [tables.Pairs] with a table, and a [Source] for each piece; out
// come [Group]s of encoded chunks, in order, for a [parquet.Writer]. A damaged page that a
// row needs is an error, never a row less.
//
// Package output and joins use it.
package pagecopy

import (
	"context"
	"errors"
	"iter"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Limits of what the engine holds at once.
const (
	GroupRows       = 1 << 20  // maximum rows of an output row group, unless one job has more
	GroupBytes      = 48 << 20 // maximum bytes of an output row group, uncompressed, as estimated from the footers; see also Source.Most
	maxReorderBytes = 4 << 20  // maximum expected bytes of a job that may wait for the job before it
	tableBytes      = 96 << 20 // maximum estimated bytes of partners of a job, before it is divided

	// encodedBytes is the number of bytes of encoded pages above which workers begin
	// no further row group until the oldest one is written.
	encodedBytes = 48 << 20
)

// engine runs the tasks.
type engine struct {
	cancel  context.CancelFunc
	scanner *keyscan.Scanner
	pairs   *tables.Pairs // nil: no row is repeated
	threads int
	perRow  int64 // bytes of a row of the table, in a scan with Pairs
	most    int64 // maximum bytes in flight; 0: no limit
	pool    *parquet.Pool

	mu      sync.Mutex
	changed *sync.Cond
	next    func() (*rangeJob, bool) // the next job of the input
	more    bool
	remote  bool                       // some file is over a network
	scouts  *keyscan.Scouts[*rangeJob] // nil: no file is over a network
	coming  []*rangeJob                // in order: passed to the scouts, not begun
	mapped  map[*source.File]*mapped   // of files with open jobs
	ending  int                        // files that are being unmapped
	open    []*rangeJob                // in order: begun and not finished
	filling *Group                     // the row group that the next job may go to
	left    *int64                     // rows that may follow; nil: any number
	goesOn  bool                       // other scans continue it
	ready   []*Group                   // in order: begun and not taken by the consumer
	workers []*worker
	active  int // workers that have a task
	err     error
	stop    bool
}

// Unfinished is a row group that one scan leaves for the next one to finish.
type Unfinished struct {
	Group     *Group
	Continued bool   // the scan leaves one, too, because another scan follows
	Left      *int64 // rows that may follow; nil: any number
}

// Copy yields the row groups of the output in order of the sources. It first finishes the
// row group in left, and leaves its last one there if left.Continued is set.
func Copy(ctx context.Context, s *keyscan.Scanner, pairs *tables.Pairs, sources []*Source, left *Unfinished) iter.Seq2[*Group, error] {
	return func(yield func(*Group, error) bool) {
		ctx, release, err := source.OpenPieces(ctx, PiecesOf(sources))
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = release() }() // the files of jobs that have ended were checked then
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		e := &engine{
			cancel: cancel, scanner: s, pairs: pairs, goesOn: left.Continued, left: left.Left, threads: tasks.Workers(PiecesOf(sources), s.Options.Threads), most: tasks.InFlight(PiecesOf(sources)) / 4 * 3, // the rest is for memory that is not counted
			more: true, mapped: map[*source.File]*mapped{},
		}
		if pairs != nil {
			e.perRow = pairs.Of.PerRow()
		}
		if e.filling = left.Group; e.filling != nil {
			e.ready, left.Group = []*Group{e.filling}, nil
			e.pool = e.filling.Layout.Pool()
		} else if len(sources) > 0 && sources[0].Layout != nil {
			e.pool = sources[0].Layout.Pool()
		}
		e.changed = sync.NewCond(&e.mu)
		next, stop := iter.Pull(e.allJobs(sources))
		defer stop()
		e.next = next
		var workers sync.WaitGroup
		for _, src := range sources {
			e.remote = e.remote || src.Piece.File.Remote()
		}
		if e.remote {
			e.scouts = newScouts(ctx, s)
			defer e.release()
		}
		for range e.threads {
			workers.Go(func() { e.work(ctx) })
		}
		unhook := context.AfterFunc(ctx, e.wake)
		defer func() {
			workers.Wait()
			for _, m := range e.mapped { // only after an error, which is reported instead
				_ = m.end()
			}
		}()
		defer unhook()
		defer e.halt()
		for {
			g, err := e.take(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if g == nil {
				left.Group = e.filling
				return
			}
			if !yield(g, nil) {
				return
			}
		}
	}
}

func PiecesOf(sources []*Source) []source.Piece {
	return each.Slice(sources, func(s *Source) source.Piece { return s.Piece })
}

func (e *engine) allJobs(sources []*Source) iter.Seq[*rangeJob] {
	return func(yield func(*rangeJob) bool) {
		for _, src := range sources {
			for g := src.Piece.Lo; g < src.Piece.Hi; g++ {
				ranges := slices.Collect(tasks.RangesIn(src.file(), g))
				in := &inputGroup{total: len(ranges), mayCopyWhole: src.ownGroup(g) && e.left == nil, hasCondition: src.Piece.File.Partial()}
				for _, r := range ranges {
					in.oversized = in.oversized || e.perRow*(r.Hi-r.Lo) > tableBytes
				}
				for _, r := range ranges {
					if e.scanner.Enough() {
						return
					}
					s := newRangeJob(src, in, r)
					in.jobs = append(in.jobs, s)
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

func (e *engine) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changed.Broadcast()
}

func (e *engine) halt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop = true
	e.cancel() // ends the running tasks
	e.changed.Broadcast()
}

// take waits for the next row group. It returns nil after the last one.
func (e *engine) take(ctx context.Context) (*Group, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changed.Broadcast() // what the consumer has written takes no memory any more
	for {
		switch {
		case e.err != nil:
			return nil, e.err
		case ctx.Err() != nil:
			return nil, stopped.Err(ctx)
		case len(e.ready) > 0 && e.ready[0].complete():
			g := e.ready[0]
			e.ready = e.ready[1:]
			e.decide()
			e.changed.Broadcast()
			return g, nil
		case e.done():
			return nil, nil
		}
		e.changed.Wait()
	}
}

// work is the main loop of a worker.
func (e *engine) work(ctx context.Context) {
	w := &worker{engine: e, buf: new(parquet.Buffers)}
	defer func() { w.buf.Close() }()
	debug.SetPanicOnFault(true) // in mapped pages; see recovered
	e.mu.Lock()
	defer e.mu.Unlock()
	e.workers = append(e.workers, w)
	for !e.stop && e.err == nil && ctx.Err() == nil {
		run := e.pick(w)
		if run == nil {
			if e.done() {
				return
			}
			if e.most > 0 && e.held() > e.most/2 {
				w.releaseBuffers()
			}
			e.changed.Wait()
			continue
		}
		e.active++
		w.held = max(w.held, e.taskNeed())
		e.mu.Unlock()
		settle, err := run(ctx)
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

// mapped is a file whose pages are mapped by the first of its jobs that begins, without the
// engine's lock.
type mapped struct {
	once  sync.Once
	unmap func() error // nil: no job was begun
}

func (m *mapped) end() error {
	if m.unmap == nil {
		return nil
	}
	return m.unmap()
}

// done reports whether nothing is left to do. A row group may be left for the next
// scan to continue.
func (e *engine) done() bool {
	return !e.more && len(e.open) == 0 && e.ending == 0 && (len(e.ready) == 0 || e.goesOn && e.filling == e.ready[0])
}

// A pageTask runs without the lock; the function that it returns records the
// result, with the lock.
type pageTask = func(context.Context) (settle func(), err error)

// pick chooses the next task, oldest first; nil if there is none now.
func (e *engine) pick(w *worker) pageTask {
	for _, g := range e.ready {
		if !g.closed {
			break
		}
		if n := len(g.added) - 1; n >= 0 {
			l := g.added[n]
			g.added = g.added[:n]
			return func(context.Context) (func(), error) { return w.finish(g, l) }
		}
	}
	if !e.admits(w) {
		return nil
	}
	if s := e.unneeded(); s != nil {
		return func(context.Context) (func(), error) { return func() { e.close(s) }, nil }
	}
	park := int64(maxReorderBytes)
	if e.most > 0 {
		park = min(park, e.most/16)
	}
	for _, s := range e.open {
		if s.group == nil || s.begun == len(s.taken) {
			continue
		}
		if !s.group.begun && s.group != e.ready[0] && e.pool != nil && e.pool.Used() > encodedBytes {
			break // first finish the row groups that have begun
		}
		var leaves []int
		for s.first < len(s.taken) && s.taken[s.source.order[s.first]] {
			s.first++
		}
		for _, i := range s.source.order[s.first:] {
			l := s.group.Leaves[i]
			if s.taken[i] || l.turn.Load() != s.number && (s.bytes > park || l.whole == perhapsWhole) {
				continue
			}
			s.taken[i], s.group.begun = true, true
			s.begun++
			if leaves = append(leaves, i); !s.small() {
				break
			}
		}
		if leaves != nil {
			return func(ctx context.Context) (func(), error) { return w.copyLeaves(ctx, s, leaves) }
		}
	}
	if !e.more || !e.room() {
		return nil
	}
	s, ok := e.nextJob()
	if !ok {
		e.more = false
		e.decide()
		e.changed.Broadcast()
		return e.pick(w)
	}
	if s.mapped = e.mapped[s.source.Piece.File]; s.mapped == nil {
		s.mapped = new(mapped)
		e.mapped[s.source.Piece.File] = s.mapped
	}
	e.open = append(e.open, s)
	return func(ctx context.Context) (func(), error) { return w.selectRows(ctx, s) }
}

// room reports whether another job may be begun.
func (e *engine) room() bool {
	waiting := 0
	for _, g := range e.ready {
		if g.complete() {
			waiting++
		}
	}
	if len(e.open) > 0 && e.most > 0 && e.held()+e.anotherNeed() > e.most-e.most/4 && !e.undecided() {
		return false
	}
	open := 0
	for _, s := range e.open {
		if s.within != e.open[0].within || !s.waits() { // jobs of others only wait for their turn
			open++
		}
	}
	most := e.threads + 1
	if e.remote {
		most += openAhead
	}
	return open < most && waiting < 1
}

// undecided reports whether the oldest job waits for the others of its input row
// group, which must therefore be begun.
func (e *engine) undecided() bool { return len(e.open) > 0 && e.open[0].waits() }

// admits reports whether a worker may take another task: if the bytes of a task
// fit, or no other worker has one, so that at least one worker makes progress.
func (e *engine) admits(w *worker) bool {
	if e.most == 0 || e.active == 0 {
		return true
	}
	return e.held()-w.held+max(w.held, e.taskNeed()) <= e.most
}

// taskNeed estimates the bytes that a task needs: those of the largest so far.
func (e *engine) taskNeed() int64 {
	need := int64(minTask)
	for _, w := range e.workers {
		need = max(need, w.held)
	}
	return need
}

// minTask is the minimum number of bytes that a task is expected to need: a page
// or two, and a dictionary.
const minTask = 3 << 20

// held estimates the bytes in flight.
func (e *engine) held() (n int64) {
	for _, w := range e.workers {
		n += w.held
	}
	for _, s := range e.open {
		if s.rows != nil {
			n += s.rows.Bytes()
		}
	}
	for _, g := range e.ready {
		n += g.held.Load()
	}
	if e.pool != nil {
		n += e.pool.Held()
	}
	return n
}

// anotherNeed estimates the bytes that another job adds: the pages that are begun
// in another row group, and its row numbers.
func (e *engine) anotherNeed() (n int64) {
	for _, g := range e.ready {
		n = max(n, g.held.Load())
	}
	rows := int64(0)
	for _, s := range e.open {
		rows = max(rows, s.Hi-s.Lo)
	}
	return n + minTask + 3*4*rows
}

// decide assigns the open jobs whose rows are known to row groups, in order.
func (e *engine) decide() {
	for _, s := range e.open {
		if s.group != nil || s.rows != nil && s.begun == len(s.taken) {
			continue
		}
		if e.enough() {
			break
		}
		if s.rows == nil {
			return
		}
		how := s.within.decide(e.pairs)
		if how == undecided {
			return
		}
		g := e.groupFor(s, how)
		if g == nil {
			return
		}
		if e.left != nil {
			s.rows = s.rows.First(*e.left)
			*e.left -= s.rows.Count
		}
		s.group, s.number = g, g.jobs
		g.jobs++
		g.Rows += s.rows.Count
		g.From = append(g.From, PartRows{s.source.Part, s.rows.Count, s.rows.Kept})
		g.bytes += s.bytes
		if in := s.within; how != someRows && len(in.jobs) == in.total && s == in.jobs[in.total-1] {
			g.close()
		}
		if g == e.filling && g.bytes > s.source.Most { // so no other job fits, and its leaves can be finished now
			e.endFilling()
		}
	}
	if (e.enough() || !e.more) && !e.goesOn {
		e.endFilling()
	}
}

// groupFor returns the row group for the rows of s, nil if too many row groups are
// begun.
func (e *engine) groupFor(s *rangeJob, how howCopied) *Group {
	s.bytes = s.source.expected(s.Range.Group, s.rows.Count) + e.perRow*s.rows.Pairs()
	if how != someRows && s.within.group != nil {
		return s.within.group
	}
	if g := e.filling; g != nil && (how != someRows || g.Layout != s.source.Layout || g.Rows+s.rows.Count > GroupRows || g.bytes+s.bytes > s.source.Most) {
		e.endFilling()
	}
	if e.filling != nil {
		return e.filling
	}
	if len(e.ready) > e.threads+1 {
		return nil // rows that multiply would otherwise begin any number of them
	}
	g := newOutGroup(s, how)
	e.ready = append(e.ready, g)
	if how == someRows {
		e.filling = g
	} else {
		s.within.group = g
	}
	return g
}

// endFilling closes the row group that is being filled.
func (e *engine) endFilling() {
	if e.filling != nil {
		e.filling.close()
		e.filling = nil
	}
}

// close removes a job all of whose tasks are done. After the last job of a file it ends the
// mapping, for which it releases the lock.
func (e *engine) close(s *rangeJob) {
	e.open = slices.DeleteFunc(e.open, func(o *rangeJob) bool { return o == s })
	s.release()
	f := s.source.Piece.File
	ofFile := func(o *rangeJob) bool { return o.source.Piece.File == f }
	if !slices.ContainsFunc(e.open, ofFile) {
		last, passed := e.mapped[f], !slices.ContainsFunc(e.coming, ofFile)
		delete(e.mapped, f)
		e.ending++
		e.mu.Unlock()
		if passed {
			f.Passed()
		}
		err := errors.Join(last.end(), f.Rest())
		e.mu.Lock()
		e.ending--
		if err != nil && e.err == nil {
			e.err = err
		}
	}
	if s.group != nil {
		s.group.ended++
	}
}
