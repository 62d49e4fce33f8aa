package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// The inner product of a plan's sketches is at least the number of pairs, and within its bound.
func TestInnerProduct(t *testing.T) {
	over, exactly := 0, 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		x := &Index{of: map[uint64]uint32{}}
		var ids []float64
		want, logTotal, idTotal := 0.0, 0.0, 0.0
		for e := range []uint32{10, 1000, 100_000}[seed%3] {
			x.of[r.Uint64()] = e
			x.count, ids = append(x.count, float64(1+r.IntN(5))), append(ids, math.Max(0, r.Float64()*4-2))
			if e < uint32(seed%4) {
				x.count[e] = 10_000
			}
			logTotal, idTotal = logTotal+x.count[e], idTotal+math.Ceil(ids[e])
			want += x.count[e] * math.Ceil(ids[e])
		}
		got, err := x.innerProduct(ids)
		if err != nil {
			t.Fatal(err)
		}
		if got.Rows < want {
			t.Errorf("seed %d: inner product %.0f, at least %.0f expected", seed, got.Rows, want)
		}
		if e := math.E / 16384 * logTotal * idTotal; math.Abs(got.Error-e) > 1e-9*e {
			t.Errorf("seed %d: error %g, want %g", seed, got.Error, e)
		}
		if got.Rows > want+got.Error {
			over++
		}
		if got.Rows == want {
			exactly++
		}
	}
	// The bound may fail for one pair of sketches in e^5 = 148.
	if over > 1 {
		t.Errorf("%d of 30 inner products exceed the bound", over)
	}
	if exactly < 5 {
		t.Errorf("%d of 30 inner products are exact, although a third of the sets has 10 keys", exactly)
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
