package filters

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// maxWorkers limits the goroutines that work on chunks, and thereby the memory.
// More would not help: work that must be done in order, writing and the checksum
// over all, is more than a tenth of the total.
const maxWorkers = 8

// workers returns the number of goroutines that work on chunks.
func workers() int { return min(runtime.GOMAXPROCS(0), maxWorkers) }

// worked is the result of work on a chunk.
type worked[S any] struct {
	state *S
	err   error
}

// inOrder calls work for each of the numbers below n on several goroutines, and
// then use on the caller's goroutine, in order, with the same S. S values are
// reused. There are two more of them than goroutines, so that goroutines need not
// wait for use immediately. inOrder returns the first error in order, or the
// context's; all goroutines have ended when it returns.
func inOrder[S any](ctx context.Context, n int, work, use func(s *S, i int) error) error {
	if n == 1 { // a small filter needs no goroutines
		var s S
		if err := stopped.Err(ctx); err != nil {
			return err
		}
		if err := work(&s, 0); err != nil {
			return err
		}
		return use(&s, 0)
	}
	workers := min(n, workers())
	states := make([]S, min(n, workers+2))
	free := make(chan *S, len(states))
	// Numbers in progress are closer together than the number of states, because
	// each of them holds a state.
	done := make([]chan worked[S], len(states))
	for i := range states {
		free <- &states[i]
		done[i] = make(chan worked[S], 1)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	quit := make(chan struct{})
	defer close(quit)
	var next atomic.Int64
	run := func() {
		for {
			var s *S
			select {
			case s = <-free:
			case <-quit:
				return
			}
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			done[i%len(done)] <- worked[S]{s, work(s, i)}
		}
	}
	for range workers {
		wg.Go(run)
	}
	for i := range n {
		if err := stopped.Err(ctx); err != nil {
			return err
		}
		w := <-done[i%len(done)]
		if w.err != nil {
			return w.err
		}
		if err := use(w.state, i); err != nil {
			return err
		}
		free <- w.state
	}
	return nil
}
