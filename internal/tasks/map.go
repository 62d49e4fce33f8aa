package tasks

import (
	"context"
	"errors"
	"iter"
	"runtime/debug"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// Work makes the results of one task and passes them to emit, which takes ownership of
// each. An error of emit means that the consumer has stopped; the work returns it.
type Work[T Released] func(ctx context.Context, t Task, emit func(T) error) error

// Released is a result that its last receiver releases.
type Released interface{ Release() }

// Result is a result of a task.
type Result[T Released] struct {
	Piece int // the task's
	Value T
}

// Map runs the tasks on several workers and yields their results in the order of the tasks. An
// error ends the sequence after all results before it. When the sequence ends, for whatever
// reason, its goroutines have ended.
func Map[T Released](ctx context.Context, todo []Task, way Flight, newWork func() (Work[T], error)) iter.Seq2[Result[T], error] {
	return func(yield func(Result[T], error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		m := mapper[T]{flight: way}
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
					yield(Result[T]{}, r.err)
					return
				}
				if !yield(Result[T]{t.Piece, r.value}, nil) {
					return
				}
			}
			if err := stopped.Err(ctx); err != nil {
				yield(Result[T]{}, err)
				return
			}
			<-m.begun
		}
		if err := judge(todo); err != nil {
			yield(Result[T]{}, err)
		}
	}
}

// result is what a task has made or, with an error, the end of it.
type result[T Released] struct {
	value T
	err   error
}

// running is a task with its results.
type running[T Released] struct {
	Task
	out chan result[T] // closed when the task is done
}

type mapper[T Released] struct {
	flight  Flight
	workers sync.WaitGroup
	begun   chan struct{} // has one element for each task that was handed out and not consumed
	turns   consumerGate
}

// consumerGate lets tasks wait for the consumer.
type consumerGate struct {
	mu      sync.Mutex
	at      int
	waiting map[int]chan struct{} // by task: closed when the consumer reaches it
}

// begin records that the consumer has reached a task.
func (t *consumerGate) begin(task int) {
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
func (t *consumerGate) wait(ctx context.Context, task int) error {
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
func (m *mapper[T]) start(ctx context.Context, todo []Task, newWork func() (Work[T], error)) []running[T] {
	tasks := make([]running[T], len(todo))
	for i, t := range todo {
		t.last = i+1 == len(todo) || todo[i+1].File != t.File
		tasks[i] = running[T]{t, make(chan result[T], m.flight.queue)}
	}
	next := make(chan running[T])
	m.begun = make(chan struct{}, min(m.flight.begun, max(len(tasks), 1)))
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
	for range min(m.flight.Workers, len(tasks)) {
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
func (m *mapper[T]) run(ctx context.Context, t running[T], work Work[T]) (err error) {
	defer source.Recovered(t.File, t.Group, &err)
	defer func() {
		if t.last {
			t.File.Passed()
		}
		err = errors.Join(t.File.Unless(err), t.File.Rest())
	}()
	ctx = parquet.WithTurn(ctx, func(ctx context.Context) error { return m.turns.wait(ctx, t.Number) })
	return work(ctx, t.Task, func(v T) error { return m.send(ctx, t, result[T]{value: v}) })
}

// judge returns an error if most of the lines that tasks have read of a text file are
// bad.
func judge(tasks []Task) error {
	for len(tasks) > 0 {
		f := tasks[0].File
		var groups []int
		for len(tasks) > 0 && tasks[0].File == f {
			for g := tasks[0].Group; g < tasks[0].After(); g++ {
				groups = append(groups, g)
			}
			tasks = tasks[1:]
		}
		if t, ok := source.Stored(f.Table()).(*text.Table); ok && len(groups) > 0 && f.NumGroups() > 1 {
			if err := t.Judge(groups); err != nil {
				return err
			}
		}
	}
	return nil
}
