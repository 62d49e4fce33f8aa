package main

import (
	"math"
	"testing"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
	"github.com/bloomjoin/bloomjoin/bloom"
)

func TestMeasured(t *testing.T) {
	for threads, fill := range map[int]filler{1: fillShared, 2: fillPrivate, 5: fillShared} {
		r, err := measured(fill, 100_000, threads, 0.01, 50_000)
		if err != nil {
			t.Fatal(err)
		}
		p := r.FPRPredicted
		if r.NS <= 0 || r.Probed != 50_000 || r.Bytes < 100_000 || math.Abs(float64(r.Hits)-50_000*p) > 5*math.Sqrt(50_000*p) {
			t.Errorf("%d threads: %+v", threads, r)
		}
	}
}

// The filter does not depend on the number of goroutines or the way.
func TestFill(t *testing.T) {
	keys := keyset.Set(100_003)
	p := bloom.Params{Geometry: bloom.Split256, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: 5000}
	var want []byte
	for _, threads := range []int{1, 2, 3, 8} {
		for name, fill := range map[string]filler{"shared": fillShared, "private": fillPrivate} {
			f, err := fill(p, keys, threads)
			if err != nil {
				t.Fatal(err)
			}
			got := f.AppendBlocks(nil, 0, p.Blocks)
			if want == nil {
				want = got
			}
			if string(got) != string(want) {
				t.Errorf("%s: %d goroutines make another filter", name, threads)
			}
		}
	}
	for _, args := range [][]string{{"x"}, {"-keys", "0"}, {"-threads", "0"}} {
		if err := run(args); err == nil {
			t.Errorf("%q: want an error", args)
		}
	}
}
