package codec

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// maxWorkers bounds the goroutines that work on chunks, and with them the
// memory beside the filter. More would not help: what must be done in order,
// writing and the checksum over all, is a good tenth of the work.
const maxWorkers = 8

// workers returns how many goroutines work on chunks.
func workers() int { return min(runtime.GOMAXPROCS(0), maxWorkers) }

// worked is what work made of a chunk.
type worked[S any] struct {
	state *S
	err   error
}

// inOrder calls work for each of the numbers below n, on several goroutines,
// and after it use, in order, on the caller's, both with the same S, which is
// used again later. There are two more S than goroutines, so that these need
// not wait for use at once. The first error in order ends it, or the end of
// the context; no goroutine outlives the call.
func inOrder[S any](ctx context.Context, n int, work, use func(s *S, i int) error) error {
	if n == 1 { // a small filter: no need of anybody else
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
	// Numbers that are worked on at a time lie closer together than there are
	// states, because each of them holds one.
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
