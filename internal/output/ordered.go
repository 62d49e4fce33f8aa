package output

import (
	"context"
	"errors"
	"iter"
	"runtime/debug"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// taskWork makes the results of one task and passes them to emit, which takes ownership of
// each. An error of emit means that the consumer has stopped; the work returns it.
type taskWork[T released] func(ctx context.Context, t task, emit func(T) error) error

// released is what is to be released when it is no longer used: the last receiver of a
// result does it.
type released interface{ Release() }

// made is a result of a task.
type made[T released] struct {
	piece int // the task's
	value T
}

// Map reads the pieces with several workers, passes each record batch through the
// worker's own Work, and yields what Work emits in input order: by piece, row
// group and batch. The rows depend on the input alone. The size of the batches
// also depends on [source.Opening].InFlight and the number of workers.
//
// threads is the number of workers; 0 means GOMAXPROCS. columns returns the
// top-level columns to read of a file, in order; nil, or a nil result, means all.
//
// Each worker holds a few batches. An error ends the sequence after everything
// before it was yielded. When the consumer stops or ctx ends, all goroutines have
// ended before Map returns.
func Map(ctx context.Context, pieces []source.Piece, threads int, columns func(*source.File) ([]int, error), newWork func() (Work, error)) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		if newWork == nil {
			yield(Rows{}, errors.New("newWork is nil: Map needs work to pass the records through"))
			return
		}
		ctx, release, err := source.MapPieces(ctx, pieces)
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
		for r, err := range mapTasks(ctx, groupsOf(pieces), way, func() (taskWork[arrow.Record], error) {
			work, err := newWork()
			return func(ctx context.Context, t task, emit func(arrow.Record) error) error {
				return readGroup(ctx, pieces[t.piece], t.group, columns, way, work, func(int64) {}, emit)
			}, err
		}) {
			if !yield(Rows{Piece: r.piece, Record: r.value}, err) || err != nil {
				return
			}
		}
		ended = false
	}
}

// readGroup passes the records of a row group through work. over receives the number of
// stored rows that each step reads over.
func readGroup(ctx context.Context, p source.Piece, group int, columns func(*source.File) ([]int, error), way flight, work Work, over func(rows int64), emit func(arrow.Record) error) error {
	var wanted []int
	var err error
	if columns != nil {
		if wanted, err = columns(p.File); err != nil {
			return err
		}
	}
	for rec, err := range readFrom(ctx, p.File, way.table(p.File), group, wanted, over) {
		if err != nil {
			return err
		}
		if err := work(p, rec, emit); err != nil {
			return source.InGroup(err, p.File, group)
		}
	}
	return nil
}

// mapTasks does the tasks with several workers, each with its own work, and yields what they
// make in the order of the tasks. An error ends the sequence after everything before it was
// yielded. When the consumer stops or ctx ends, all goroutines have ended before it returns.
func mapTasks[T released](ctx context.Context, todo []task, way flight, newWork func() (taskWork[T], error)) iter.Seq2[made[T], error] {
	return func(yield func(made[T], error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		m := mapper[T]{way: way}
		tasks := m.start(ctx, todo, newWork)
		defer func() {
			cancel()
			for _, t := range tasks {
				for r := range t.out { // until the worker closes it
					if r.err == nil {
						r.value.Release()
					}
				}
			}
			m.workers.Wait()
		}()
		for i, t := range tasks {
			m.turns.begin(i)
			for r := range t.out {
				if r.err != nil {
					yield(made[T]{}, r.err)
					return
				}
				if !yield(made[T]{t.piece, r.value}, nil) {
					return
				}
			}
			if err := stopped.Err(ctx); err != nil {
				yield(made[T]{}, err)
				return
			}
			<-m.begun
		}
		if err := judge(todo); err != nil {
			yield(made[T]{}, err)
		}
	}
}

// result is what a task has made or, with an error, the end of it.
type result[T released] struct {
	value T
	err   error
}

// running is a task with its results.
type running[T released] struct {
	task
	out chan result[T] // closed when the task is done
}

type mapper[T released] struct {
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
func (m *mapper[T]) start(ctx context.Context, todo []task, newWork func() (taskWork[T], error)) []running[T] {
	tasks := make([]running[T], len(todo))
	for i, t := range todo {
		t.last = i+1 == len(todo) || todo[i+1].file != t.file
		tasks[i] = running[T]{t, make(chan result[T], m.way.queue)}
	}
	next := make(chan running[T])
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
					_ = m.send(ctx, t, result[T]{err: err}) // unless the consumer has stopped
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
func (m *mapper[T]) begin(ctx context.Context, t running[T], next chan<- running[T]) bool {
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
func (m *mapper[T]) send(ctx context.Context, t running[T], r result[T]) error {
	select {
	case t.out <- r:
		return nil
	case <-ctx.Done():
		if r.err == nil {
			r.value.Release()
		}
		return stopped.Err(ctx)
	}
}

// run does one task. A panic becomes an error; see recovered.
func (m *mapper[T]) run(ctx context.Context, t running[T], work taskWork[T]) (err error) {
	defer source.Recovered(t.file, t.group, &err)
	defer func() {
		if t.last {
			t.file.Passed()
		}
		err = errors.Join(t.file.Unless(err), t.file.Rest())
	}()
	ctx = parquet.WithTurn(ctx, func(ctx context.Context) error { return m.turns.wait(ctx, t.number) })
	return work(ctx, t.task, func(v T) error { return m.send(ctx, t, result[T]{value: v}) })
}
