package joins

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
)

// Reverse selects the IDs to hold by a filter of the log, so some are false positives
// of it. A filter of the IDs held with the same hash would let too many of the log's
// keys through: keys that collide with those IDs in the first filter collide in the
// second as well. The test shows this for one seed, and that the two seeds in use are
// independent.
func TestFiltersAreIndependent(t *testing.T) {
	const n, p = 200_000, 0.1
	r := rand.New(rand.NewPCG(71, 72))
	random := func(n int) []uint64 {
		out := make([]uint64, n)
		for i := range out {
			out[i] = r.Uint64()
		}
		return out
	}
	filter := func(keys []uint64, seed uint64) *bloom.Filter {
		f, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: bloom.Hash{ID: bloom.XXH3, Seed: seed}, Blocks: bloom.Split256.BlocksFor(n, p)})
		if err != nil {
			t.Fatal(err)
		}
		hashes := make([]uint64, len(keys))
		f.Params().Hash.Sum64(hashes, keys)
		f.Add(hashes)
		return f
	}
	log := random(n)
	off := func(seed uint64) float64 { // standard deviations from what the bits predict
		ofLog := filter(log, seed)
		ids := random(10 * n)
		var kept []uint64
		for _, at := range ofLog.ProbeInts(ids, nil) {
			kept = append(kept, ids[at])
		}
		ofIDs := filter(kept, table.Hash.Seed)
		want := ofIDs.FPR()
		got := float64(len(ofIDs.ProbeInts(log, nil))) / n
		return (got - want) / math.Sqrt(want*(1-want)/n)
	}
	if d := off(table.Hash.Seed); d < 10 {
		t.Errorf("with one seed: %.1f standard deviations off, want many, or this test shows nothing", d)
	}
	if d := off(logSeed); math.Abs(d) > 4 {
		t.Errorf("with two seeds: %.1f standard deviations off", d)
	}
}
