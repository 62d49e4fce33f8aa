package bloom

import (
	"math"
	"math/bits"
	"slices"
	"testing"
)

// Bits per key that the split-block filter needs, from the Poisson mixture over its
// blocks, computed independently of this package.
func TestBitsPerKey(t *testing.T) {
	const n = 10_000_000
	for _, c := range []struct {
		g       Geometry
		p, bits float64
	}{
		{Split256, 0.1, 5.99}, {Split256, 0.01, 10.53}, {Split256, 0.001, 16.9}, {Split256, 0.0001, 26.3},
		{Split512, 0.1, 5.88}, {Split512, 0.01, 10.10}, {Split512, 0.001, 15.7}, {Split512, 0.0001, 23.6},
	} {
		got := float64(c.g.BlocksFor(n, c.p)*c.g.BlockBytes()) * 8 / n
		if math.Abs(got/c.bits-1) > 0.01 {
			t.Errorf("%s, %g: %.2f bits per key, want %.2f within 1 %%", c.g, c.p, got, c.bits)
		}
	}
}

// The FPR computed from the bits of many filters has the formula's value as its
// mean.
func TestFPRFormula(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		for _, c := range []struct{ blocks, keys int }{{50, 1000}, {200, 5000}, {100, 800}, {1, 20}, {7, 400}} {
			const filters = 300
			var sum, sum2 float64
			for seed := range uint64(filters) {
				p := g.newFilter(t, uint64(c.blocks), randoms(seed, c.keys)...).FPR()
				sum, sum2 = sum+p, sum2+p*p
			}
			mean := sum / filters
			sigma := math.Sqrt((sum2/filters - mean*mean) / filters) // of the mean
			want := g.FPR(uint64(c.blocks), uint64(c.keys))
			if math.Abs(mean-want) > 4*sigma {
				t.Errorf("%d keys in %d blocks: mean %.6g ± %.2g, formula %.6g", c.keys, c.blocks, mean, sigma, want)
			}
		}
	})
}

// The measured rate of a filter is the one that its bits predict, within four
// standard deviations of a binomial count.
func TestFPRMeasured(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		const probes = 400_000
		for seed, c := range []struct {
			keys int
			p    float64
		}{{20_000, 0.1}, {20_000, 0.01}, {20_000, 0.001}, {3000, 0.0001}} {
			f := g.newFilter(t, g.BlocksFor(uint64(c.keys), c.p), randoms(uint64(seed), c.keys)...)
			p := f.FPR()
			hits := float64(len(f.Probe(randoms(uint64(seed)+1000, probes), nil)))
			if bound := 4 * math.Sqrt(probes*p*(1-p)); math.Abs(hits-probes*p) > bound {
				t.Errorf("%g: %g of %d let through, predicted %.1f ± %.1f", c.p, hits, probes, probes*p, bound)
			}
			if math.Abs(p/c.p-1) > 0.35 {
				t.Errorf("asked %g, bits say %g", c.p, p)
			}
		}
	})
}

func TestFPRLimits(t *testing.T) {
	for _, c := range []struct{ blocks, keys uint64 }{{1, 0}, {1 << 32, 0}} {
		if p := Split256.FPR(c.blocks, c.keys); p != 0 {
			t.Errorf("Split256.FPR(%d, %d) = %g", c.blocks, c.keys, p)
		}
	}
	if p, want := Split256.FPR(1, 1), math.Pow(1.0/32, 8); math.Abs(p/want-1) > 1e-9 {
		t.Errorf("one key, one block: %g, want %g", p, want)
	}
	if p := Split256.FPR(1, 1<<62); p != 1 {
		t.Errorf("a full block: %g", p)
	}
	// More keys let more through and more blocks less, from one to billions.
	for _, blocks := range []uint64{1, 2, 45, 720, 1 << 20, 1 << 32} {
		last := 0.0
		for keys := uint64(1); keys < 1<<62; keys *= 3 {
			p := Split256.FPR(blocks, keys)
			if !(p >= last*(1-1e-9) && p <= 1) {
				t.Errorf("Split256.FPR(%d, %d) = %g after %g", blocks, keys, p, last)
			}
			if q := Split256.FPR(blocks*2, keys); q > p*(1+1e-9) {
				t.Errorf("Split256.FPR(%d, %d) = %g above that of half the blocks, %g", blocks*2, keys, q, p)
			}
			last = p
		}
	}
}

func TestBlocksFor(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		for _, n := range []uint64{1, 10, 2000, 1e6, 1e9} {
			for _, p := range []float64{0.5, 0.01, 1e-4, 1e-6} {
				b := g.BlocksFor(n, p)
				if g.FPR(b, n) > p || b > 1 && g.FPR(b-1, n) <= p {
					t.Errorf("g.BlocksFor(%d, %g) = %d: FPR %g, of one less %g", n, p, b, g.FPR(b, n), g.FPR(b-1, n))
				}
			}
		}
	})
}

// More keys than any filter can hold do not make the computation endless.
func TestFPRHopeless(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		if p := g.FPR(3, 1<<62); p != 1 {
			t.Errorf("FPR %g", p)
		}
		if b := g.BlocksFor(1<<62, 1e-6); b != MaxBlocks {
			t.Errorf("%d blocks", b)
		}
		f := g.newFilter(t, 720, randoms(1, 200_000)...) // blocks are full, so the estimate is infinite
		if g, err := f.Shrink(0.01, math.MaxUint64); err != nil || g != f {
			t.Errorf("a full filter shrinks: %v", err)
		}
	})
}

// smoothCount reports whether n is a multiple of 240·2^k that is at most n/256 but more than
// n/512 or, if none is, of 720.
func smoothCount(n uint64) bool {
	twos := uint64(1) << bits.TrailingZeros64(n)
	return n < 256*240 && n%720 == 0 || n >= 256*240 && n%15 == 0 && 15*twos*512 > n
}

func TestBlocks(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		last := uint64(0)
		for n := uint64(0); n < 1<<36; n += 1 + n/7 {
			need, got := g.BlocksFor(n, 0.01), g.Blocks(n, 0.01)
			if got > MaxBlocks || got < last || !smoothCount(got) {
				t.Errorf("Blocks(%d) = %d after %d", n, got, last)
			}
			if got < need && got < MaxBlocks/step(got)*step(got) {
				t.Errorf("Blocks(%d) = %d, needs %d", n, got, need)
			}
			if over := float64(got) - float64(need); over >= 720 && over > float64(need)/256 {
				t.Errorf("Blocks(%d) = %d for %d needed", n, got, need)
			}
			last = got
		}
	})
}

func TestBlocksWithin(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		last := uint64(0)
		for size := uint64(0); size < 1<<42; size += 1 + size/7 {
			got := g.BlocksWithin(size)
			fit := min(size/g.BlockBytes(), MaxBlocks)
			switch {
			case got > fit || got < last:
				t.Errorf("BlocksWithin(%d) = %d after %d", size, got, last)
			case fit < smooth && got != fit:
				t.Errorf("BlocksWithin(%d) = %d, want %d", size, got, fit)
			case fit >= smooth && (!smoothCount(got) || float64(fit-got) >= max(720, float64(fit)/256)):
				t.Errorf("BlocksWithin(%d) = %d of %d", size, got, fit)
			}
			last = got
		}
	})
}

func TestDefaultFPR(t *testing.T) {
	for _, c := range []struct {
		n        uint64
		min, max float64
	}{
		{0, 1e-6, 1e-6}, {1, 1e-6, 1e-6}, {2000, 7e-6, 8e-6}, {1e8, 0.00999999, 0.01}, {1e9, 0.01, 0.01}, {1 << 63, 0.01, 0.01},
	} {
		if p := DefaultFPR(c.n); p < c.min || p > c.max {
			t.Errorf("DefaultFPR(%d) = %g, want %g to %g", c.n, p, c.min, c.max)
		}
	}
	if size := Split256.BlocksFor(2000, DefaultFPR(2000)) * Split256.BlockBytes(); size > 11_000 {
		t.Errorf("2,000 keys take %d bytes", size)
	}
	last := 0.0
	for n := uint64(1); n < 1<<40; n *= 2 {
		if p := DefaultFPR(n); p < last {
			t.Errorf("DefaultFPR(%d) falls to %g", n, p)
		} else {
			last = p
		}
	}
}

func TestDivisors(t *testing.T) {
	for _, n := range []uint64{1, 2, 7, 45, 720, 1440, 720 * 31, 4096, 65537, 240 * 257} {
		var want []uint64
		for d := n; d > 0; d-- {
			if n%d == 0 {
				want = append(want, d)
			}
		}
		if got := divisors(n); !slices.Equal(got, want) {
			t.Errorf("divisors(%d) = %v, want %v", n, got, want)
		}
	}
}

// Hashes are evenly distributed over blocks, and the block in a folded filter is
// the folded block number.
func TestIndex(t *testing.T) {
	for _, n := range []uint64{1, 3, 720, 1 << 31, MaxBlocks} {
		for _, h := range append(randoms(n, 1000), 0, ^uint64(0), 1<<32-1, 1<<32) {
			b := index(h, n)
			if b >= n {
				t.Fatalf("index(%x, %d) = %d", h, n, b)
			}
			for _, f := range []uint64{2, 3, 8} {
				if n%f == 0 && index(h, n/f) != b/f {
					t.Fatalf("block %d of %d does not fold by %d", b, n, f)
				}
			}
		}
	}
}
