package output

import (
	"context"
	"errors"
	"iter"
	"runtime/debug"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// taskWork makes the rows of one task and passes them to emit, as Work does.
type taskWork func(ctx context.Context, t task, emit func(Rows) error) error

// records returns a function that emits records.
func records(emit func(Rows) error) func(arrow.Record) error {
	return func(rec arrow.Record) error { return emit(Rows{Record: rec}) }
}

// Map reads the pieces with several workers, passes each record batch through the
// worker's own Work, and yields what Work emits in input order: by piece, row
// group and batch. The rows depend on the input alone. The size of the batches
// also depends on [Opening].InFlight and the number of workers.
//
// threads is the number of workers; 0 means GOMAXPROCS. columns returns the
// top-level columns to read of a file, in order; nil, or a nil result, means all.
//
// Each worker holds a few batches. An error ends the sequence after everything
// before it was yielded. When the consumer stops or ctx ends, all goroutines have
// ended before Map returns.
func Map(ctx context.Context, pieces []Piece, threads int, columns func(*File) ([]int, error), newWork func() (Work, error)) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		if newWork == nil {
			yield(Rows{}, errors.New("newWork is nil: Map needs work to pass the records through"))
			return
		}
		ctx, release, err := mapPieces(ctx, pieces)
		if err != nil {
			yield(Rows{}, err)
			return
		}
		ended := true // the consumer has stopped, got an error or panicked
		defer func() {
			if err := release(); err != nil && !ended {
				yield(Rows{}, err)
			}
		}()
		way := flightOf(InFlight(pieces)/forRecords, workersFor(pieces, threads), func() int64 { return need(pieces, columns) })
		for r, err := range mapTasks(ctx, groupsOf(pieces), way, func() (taskWork, error) {
			work, err := newWork()
			return func(ctx context.Context, t task, emit func(Rows) error) error {
				return readGroup(ctx, pieces[t.piece], t.group, columns, way, work, func(int64) {}, records(emit))
			}, err
		}) {
			if !yield(r, err) || err != nil {
				return
			}
		}
		ended = false
	}
}

// readGroup passes the records of a row group through work. over receives the number of
// stored rows that each step reads over.
func readGroup(ctx context.Context, p Piece, group int, columns func(*File) ([]int, error), way flight, work Work, over func(rows int64), emit func(arrow.Record) error) error {
	var wanted []int
	var err error
	if columns != nil {
		if wanted, err = columns(p.File); err != nil {
			return err
		}
	}
	for rec, err := range p.File.read(ctx, way.table(p.File), group, wanted, over) {
		if err != nil {
			return err
		}
		if err := work(p, rec, emit); err != nil {
			return inGroup(err, p.File, group)
		}
	}
	return nil
}

// mapTasks is Map for any tasks.
func mapTasks(ctx context.Context, todo []task, way flight, newWork func() (taskWork, error)) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		m := mapper{way: way}
		tasks := m.start(ctx, todo, newWork)
		defer func() {
			cancel()
			for _, t := range tasks {
				for r := range t.out { // until the worker closes it
					r.rows.release()
				}
			}
			m.workers.Wait()
		}()
		for i, t := range tasks {
			m.turns.begin(i)
			for r := range t.out {
				if r.err != nil {
					yield(Rows{}, r.err)
					return
				}
				r.rows.Piece = t.piece
				if !yield(r.rows, nil) {
					return
				}
			}
			if err := stopped.Err(ctx); err != nil {
				yield(Rows{}, err)
				return
			}
			<-m.begun
		}
		if err := judge(todo); err != nil {
			yield(Rows{}, err)
		}
	}
}

// result is a batch or the error that ended a task.
type result struct {
	rows Rows
	err  error
}

// running is a task with its results.
type running struct {
	task
	out chan result // closed when the task is done
}

type mapper struct {
	way     flight
	workers sync.WaitGroup
	begun   chan struct{} // has one element for each task that was handed out and not consumed
	turns   turns
}

// turns lets tasks wait for the consumer.
type turns struct {
	mu      sync.Mutex
	at      int
	waiting map[int]chan struct{} // by task: closed when the consumer reaches it
}

// begin records that the consumer has reached a task.
func (t *turns) begin(task int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = task
	if c := t.waiting[task]; c != nil {
		close(c)
		delete(t.waiting, task)
	}
}

// wait waits until the consumer has reached a task. Only one goroutine may wait for
// a task.
func (t *turns) wait(ctx context.Context, task int) error {
	t.mu.Lock()
	if t.at >= task {
		t.mu.Unlock()
		return nil
	}
	if t.waiting == nil {
		t.waiting = map[int]chan struct{}{}
	}
	c := make(chan struct{})
	t.waiting[task] = c
	t.mu.Unlock()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return stopped.Err(ctx)
	}
}

// start starts the workers. Tasks are handed out in order, so the task that the
// consumer waits for is always in progress.
func (m *mapper) start(ctx context.Context, todo []task, newWork func() (taskWork, error)) []running {
	tasks := make([]running, len(todo))
	for i, t := range todo {
		t.last = i+1 == len(todo) || todo[i+1].file != t.file
		tasks[i] = running{t, make(chan result, m.way.queue)}
	}
	next := make(chan running)
	m.begun = make(chan struct{}, min(m.way.begun, max(len(tasks), 1)))
	m.workers.Add(1)
	go func() {
		defer m.workers.Done()
		defer close(next)
		for i, t := range tasks {
			if !m.begin(ctx, t, next) {
				for _, t := range tasks[i:] {
					close(t.out)
				}
				return
			}
		}
	}()
	for range min(m.way.workers, len(tasks)) {
		m.workers.Add(1)
		go func() {
			defer m.workers.Done()
			debug.SetPanicOnFault(true) // in mapped pages; see recovered
			work, err := newWork()
			for t := range next {
				if err == nil {
					err = m.run(ctx, t, work)
				}
				if err != nil {
					_ = m.send(ctx, t, result{err: err}) // unless the consumer has stopped
				}
				close(t.out)
			}
		}()
	}
	return tasks
}

// begin hands a task to a worker once the consumer is close to it, which limits the
// results that wait, however small the tasks are. It returns false if the consumer
// has stopped.
func (m *mapper) begin(ctx context.Context, t running, next chan<- running) bool {
	select {
	case m.begun <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	select {
	case next <- t:
		return true
	case <-ctx.Done():
		return false
	}
}

// send passes a result to the consumer, unless the consumer has stopped.
func (m *mapper) send(ctx context.Context, t running, r result) error {
	select {
	case t.out <- r:
		return nil
	case <-ctx.Done():
		r.rows.release()
		return stopped.Err(ctx)
	}
}

// run does one task. A panic becomes an error; see recovered.
func (m *mapper) run(ctx context.Context, t running, work taskWork) (err error) {
	defer recovered(t.file, t.group, &err)
	defer func() {
		if t.last {
			t.file.passed()
		}
		err = errors.Join(t.file.unless(err), t.file.rest())
	}()
	ctx = parquet.WithTurn(ctx, func(ctx context.Context) error { return m.turns.wait(ctx, t.number) })
	return work(ctx, t.task, func(r Rows) error { return m.send(ctx, t, result{rows: r}) })
}
