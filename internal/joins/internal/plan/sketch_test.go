package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// weights returns the weights of n keys, by hash: small ones, and large ones for heavy
// keys.
func weights(r *rand.Rand, n, heavy int) map[uint64]float64 {
	out := make(map[uint64]float64, n)
	for range n {
		out[r.Uint64()] = float64(1 + r.IntN(5))
	}
	for h := range out {
		if heavy == 0 {
			break
		}
		out[h], heavy = float64(1000+r.IntN(10_000)), heavy-1
	}
	return out
}

func sketchOf(weights map[uint64]float64) (s countMin, total float64) {
	for h, w := range weights {
		s.add(h, w)
		total += w
	}
	return s, total
}

// TestCountMin compares inner products with exact ones. The bound may fail for one pair
// of sketches in e^5 = 148, so at most one of 30 may exceed it.
func TestCountMin(t *testing.T) {
	over, exactly := 0, 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := []int{10, 1000, 100_000}[seed%3]
		a := weights(r, n, int(seed%4))
		b := weights(r, n/2, int(seed%5))
		for h := range a {
			if r.IntN(10) == 0 {
				b[h] = float64(r.IntN(4))
			}
		}
		want := 0.0
		for h, w := range a {
			want += w * b[h]
		}
		log, logTotal := sketchOf(a)
		ids, idTotal := sketchOf(b)
		got := log.innerProduct(&ids)
		if got.Rows < want {
			t.Errorf("seed %d: inner product %.0f, at least %.0f expected", seed, got.Rows, want)
		}
		if e := math.E / sketchWidth * logTotal * idTotal; math.Abs(got.Error-e) > 1e-9*e {
			t.Errorf("seed %d: error %g, want %g", seed, got.Error, e)
		}
		if got.Rows > want+got.Error {
			over++
		}
		if got.Rows == want {
			exactly++
		}
		if back := ids.innerProduct(&log); back.Rows != got.Rows {
			t.Errorf("seed %d: %+v one way, %+v the other", seed, got, back)
		}
	}
	if over > 1 {
		t.Errorf("%d of 30 inner products exceed the bound", over)
	}
	if exactly < 5 {
		t.Errorf("%d of 30 inner products are exact, although a third of the sets has 10 keys", exactly)
	}
	var none countMin
	some, _ := sketchOf(weights(rand.New(rand.NewPCG(1, 1)), 100, 0))
	if p := some.innerProduct(&none); p.Rows != 0 || p.Error != 0 {
		t.Errorf("inner product with an empty sketch %+v", p)
	}
}

// TestCountMinRows: keys that share a counter in one row rarely share one in another.
func TestCountMinRows(t *testing.T) {
	where := func(h uint64) (at [sketchDepth]int) {
		var s countMin
		s.add(h, 1)
		for row := range s.counters {
			at[row] = slices.Index(s.counters[row][:], 1)
		}
		return at
	}
	r := rand.New(rand.NewPCG(2, 2))
	var places [][sketchDepth]int
	for range 600 {
		places = append(places, where(r.Uint64()))
	}
	var same [sketchDepth + 1]int // pairs of keys, by rows in which they share a counter
	for i, a := range places {
		for _, b := range places[:i] {
			n := 0
			for row := range a {
				if a[row] == b[row] {
					n++
				}
			}
			same[n]++
		}
	}
	// 179,700 pairs share a counter in a row with probability 1/16,384 each: 55
	// are expected to share one, 0.007 to share two.
	if same[1] < 25 || same[1] > 90 || same[2] > 1 || same[3]+same[4]+same[5] > 0 {
		t.Errorf("pairs of keys by shared counters: %v", same)
	}
}

// TestDistinct compares estimates with exact counts, for overlapping sets in two
// sketches.
func TestDistinct(t *testing.T) {
	for _, n := range []int{0, 1, 1000, fewKeys - 1, fewKeys, fewKeys + 1, 20_000, 100_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			const seeds = 40
			outside := 0
			for seed := range uint64(seeds) {
				r := rand.New(rand.NewPCG(uint64(n), seed))
				keys := make([]uint64, n)
				for i := range keys {
					keys[i] = r.Uint64()
				}
				whole, a, b := NewDistinct(), NewDistinct(), NewDistinct()
				whole.Add(keys)
				a.Add(keys[:n*2/3])
				a.Add(keys[:n/3])
				b.Add(keys[n/2:])
				a.Merge(b)
				e := a.Estimate()
				if w := whole.Estimate(); w != e {
					t.Errorf("seed %d: merged %+v, whole %+v", seed, e, w)
				}
				if n <= fewKeys && e != Exactly(float64(n)) {
					t.Errorf("seed %d: %+v, exactly %d expected", seed, e, n)
				}
				if e.Low > float64(n) || e.High < float64(n) {
					outside++
				}
				if e.Value < e.Low || e.Value > e.High || e.High-e.Low > 0.04*float64(n) {
					t.Errorf("seed %d: bounds of %+v are wrong or more than 4 %% apart", seed, e)
				}
			}
			// Two standard errors: 5 % of 40, which is 2, are expected outside;
			// 8 or more have a chance below 0.1 %.
			if outside > 7 {
				t.Errorf("%d of %d estimates of %d keys are outside their bounds", outside, seeds, n)
			}
		})
	}
}
