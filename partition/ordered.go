package partition

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// Rows is a record batch with where it comes from. Whoever receives it
// releases the record.
type Rows struct {
	Piece  int // number of the piece among those that were read
	Record arrow.Record
}

// ReadOptions says what to read and with how many workers.
type ReadOptions struct {
	// Threads is the number of workers; 0: GOMAXPROCS.
	Threads int
	// Columns returns the top-level columns to read of a file, in order. Nil,
	// or a nil result: all.
	Columns func(*File) ([]int, error)
}

// Work is called with each record that was read, by one goroutine at a time.
// It hands on any number of records with emit, which takes over a reference of
// each; an error of emit means that nobody wants more, and is to be returned.
// rec is released afterwards.
type Work func(piece Piece, rec arrow.Record, emit func(arrow.Record) error) error

// inFlight is the number of finished batches of a group that may wait for the
// consumer, and the number of groups per worker that may be begun before it.
const inFlight = 2

// Map reads the pieces with several workers, passes each record batch through
// a worker's own Work, and yields what it emits in input order: pieces in
// order, their groups in order, the batches of a group in order. What is yielded
// depends on the input alone, not on the number of workers.
//
// Memory is bounded by a few batches for each worker. An error ends the
// sequence after everything before it was yielded. When the consumer stops, or
// ctx ends, all goroutines have ended before Map returns.
func Map(ctx context.Context, pieces []Piece, opts ReadOptions, newWork func() (Work, error)) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		m := mapper{ctx: ctx, pieces: pieces, opts: opts}
		tasks := m.start(newWork)
		defer func() {
			cancel()
			for _, t := range tasks {
				for r := range t.out { // until its worker closes it
					r.release()
				}
			}
			m.workers.Wait()
		}()
		for _, t := range tasks {
			for r := range t.out {
				if r.err != nil {
					yield(Rows{}, r.err)
					return
				}
				if !yield(Rows{t.piece, r.rec}, nil) {
					return
				}
			}
			if err := ctx.Err(); err != nil {
				yield(Rows{}, context.Cause(ctx))
				return
			}
			<-m.begun
		}
	}
}

// result is a batch or the error that ended a task.
type result struct {
	rec arrow.Record
	err error
}

func (r result) release() {
	if r.rec != nil {
		r.rec.Release()
	}
}

// task is one row group.
type task struct {
	piece, group int
	out          chan result // closed when the group is done
}

type mapper struct {
	ctx     context.Context
	pieces  []Piece
	opts    ReadOptions
	workers sync.WaitGroup
	begun   chan struct{} // an element for each task that is handed out and not consumed
}

// start lays out the tasks and starts the workers. Tasks are handed out in
// order, so that the one the consumer waits for is always being worked on.
func (m *mapper) start(newWork func() (Work, error)) []task {
	var tasks []task
	for i, p := range m.pieces {
		for g := p.Lo; g < p.Hi; g++ {
			tasks = append(tasks, task{i, g, make(chan result, inFlight)})
		}
	}
	threads := m.opts.Threads
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	next := make(chan task)
	m.begun = make(chan struct{}, inFlight*min(threads, max(len(tasks), 1)))
	m.workers.Add(1)
	go func() {
		defer m.workers.Done()
		defer close(next)
		for i, t := range tasks {
			if !m.begin(t, next) {
				for _, t := range tasks[i:] {
					close(t.out)
				}
				return
			}
		}
	}()
	for range min(threads, len(tasks)) {
		m.workers.Add(1)
		go func() {
			defer m.workers.Done()
			work, err := newWork()
			for t := range next {
				if err == nil {
					err = m.run(t, work)
				}
				if err != nil {
					_ = m.send(t, result{err: err}) // unless nobody listens any more
				}
				close(t.out)
			}
		}()
	}
	return tasks
}

// begin hands a task to a worker once the consumer is near enough, which
// bounds what is finished and waits, however small the groups are. It returns
// false if the consumer is gone.
func (m *mapper) begin(t task, next chan<- task) bool {
	select {
	case m.begun <- struct{}{}:
	case <-m.ctx.Done():
		return false
	}
	select {
	case next <- t:
		return true
	case <-m.ctx.Done():
		return false
	}
}

// send hands a result to the consumer, if there still is one.
func (m *mapper) send(t task, r result) error {
	select {
	case t.out <- r:
		return nil
	case <-m.ctx.Done():
		r.release()
		return context.Cause(m.ctx)
	}
}

// run reads one row group. A panic below it, which only damaged input or a
// fault in a library can cause, becomes an error with its place.
func (m *mapper) run(t task, work Work) (err error) {
	p := m.pieces[t.piece]
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: internal error: %v\n%s", fault.At{File: p.File.Name, RowGroup: t.group + 1}, r, debug.Stack())
		}
	}()
	var columns []int
	if m.opts.Columns != nil {
		if columns, err = m.opts.Columns(p.File); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, p.File.rest()) }()
	emit := func(rec arrow.Record) error { return m.send(t, result{rec: rec}) }
	for rec, err := range p.File.Read(m.ctx, t.group, columns) {
		if err != nil {
			return err
		}
		if err := work(p, rec, emit); err != nil {
			return err
		}
	}
	return nil
}
