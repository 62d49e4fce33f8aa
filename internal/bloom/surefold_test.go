package bloom

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// A filter made smaller by SureFold in advance equals the one that Shrink makes,
// whether the number of keys was known exactly or with the largest allowed error.
func TestSureFold(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	smaller, rounds := 0, cases.Count(2, 3, 6)
	for _, g := range Geometries() {
		for _, fpr := range []float64{0.1, 0.01, 1e-4} {
			for range rounds {
				capacity := uint64(1_000 * (1 + rng.IntN(500)))
				n := 1 + rng.IntN(int(capacity))>>rng.IntN(9)
				p := Params{Geometry: g, Hash: Hash{ID: XXH3}, Blocks: g.Blocks(capacity, fpr)}
				hashes := make([]uint64, n)
				for i := range hashes {
					hashes[i] = rng.Uint64()
				}
				full := mustNew(t, p)
				full.Add(hashes)
				want, err := full.Shrink(fpr, math.MaxUint64)
				if err != nil {
					t.Fatal(err)
				}
				for _, off := range []float64{0.96, 0.999, 1, 1.001, 1.04} {
					q := p
					k := p.SureFold(Cardinality{Keys: off * float64(n), StdErr: math.Abs(1-off) / 4.5 * float64(n)}, fpr)
					if k > 1 {
						smaller++
					}
					q.Blocks /= k
					f := mustNew(t, q)
					f.Add(hashes)
					got, err := f.Shrink(fpr, math.MaxUint64)
					if err != nil {
						t.Fatal(err)
					}
					if got.params != want.params || string(got.AppendBlocks(nil, 0, got.params.Blocks)) != string(want.AppendBlocks(nil, 0, want.params.Blocks)) {
						t.Errorf("%s, rate %g, %d keys of %d, taken for %g: %d blocks by way of %d, want %d", g, fpr, n, capacity, off*float64(n), got.params.Blocks, q.Blocks, want.params.Blocks)
					}
				}
			}
		}
	}
	if smaller < 10*rounds {
		t.Errorf("%d filters were made smaller beforehand", smaller)
	}
	// For some capacities, divisors without a common one are equally likely.
	var p Params
	far := 0
	for capacity := uint64(1e9); capacity < 2e9; capacity += 5e7 {
		p = Params{Geometry: Split256, Hash: Hash{ID: XXH3}, Blocks: Split256.Blocks(capacity, 0.01)}
		if p.SureFold(Cardinality{Keys: float64(capacity) / 200, StdErr: 5e3}, 0.01) >= 50 {
			far++
		}
	}
	if far < 10 {
		t.Errorf("one key in 200 of the capacity: only %d of 20 filters are made much smaller beforehand", far)
	}
	if k := p.FoldWithin(p.Bytes() - 1); k != 2 {
		t.Errorf("one byte too few: a fold by %d", k)
	}
	if a, b := p.FoldWithin(p.Bytes()), p.FoldWithin(31); a != 1 || b != 0 {
		t.Errorf("all bytes: a fold by %d; none: %d", a, b)
	}
}
