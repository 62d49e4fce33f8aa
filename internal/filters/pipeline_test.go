package filters

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
)

// Each number is worked on once and used once, in order and with the state from its
// work, whichever goroutine is late.
func TestInOrder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 3, 8, 50} {
		runtime.GOMAXPROCS(procs)
		for _, n := range []int{0, 1, 2, 3, 5, 300} {
			r := rand.New(rand.NewPCG(uint64(procs), uint64(n)))
			late := make([]int, n)
			for i := range late {
				late[i] = r.IntN(4) * r.IntN(10)
			}
			var busy atomic.Int64
			used := 0
			err := inOrder(t.Context(), n, func(s *int, i int) error {
				if b := busy.Add(1); b > maxWorkers {
					t.Errorf("%d at a time", b)
				}
				defer busy.Add(-1)
				*s = i
				for range late[i] {
					runtime.Gosched()
				}
				return nil
			}, func(s *int, i int) error {
				if i != used || *s != i {
					t.Errorf("used %d with the state of %d, want %d", i, *s, used)
				}
				used++
				for range late[n-1-i] {
					runtime.Gosched()
				}
				return nil
			})
			if err != nil || used != n {
				t.Errorf("%d of %d used, error %v", used, n, err)
			}
		}
	}
}

// Of several errors, the one with the lowest number is returned, and nothing after
// it is used.
func TestInOrderErrors(t *testing.T) {
	for range 100 {
		used := 0
		err := inOrder(t.Context(), 50, func(_ *int, i int) error {
			if i == 17 {
				runtime.Gosched() // be late
			}
			if i >= 17 {
				return fmt.Errorf("work %d", i)
			}
			return nil
		}, func(*int, int) error {
			used++
			return nil
		})
		if err == nil || err.Error() != "work 17" || used != 17 {
			t.Fatalf("error %v after %d, want that of 17", err, used)
		}
	}
	err := inOrder(t.Context(), 50, func(*int, int) error { return nil }, func(_ *int, i int) error {
		if i == 3 {
			return errDisk
		}
		return nil
	})
	if !errors.Is(err, errDisk) {
		t.Errorf("error %v of the user", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	used := 0
	err = inOrder(ctx, 50, func(*int, int) error { return nil }, func(_ *int, i int) error {
		if used++; i == 3 {
			cancel(errDisk)
		}
		return nil
	})
	if !errors.Is(err, errDisk) || used != 4 {
		t.Errorf("called off: error %v, %d used", err, used)
	}
}
