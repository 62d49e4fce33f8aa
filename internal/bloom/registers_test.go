package bloom

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// sketch returns the sketch of n random hashes.
func sketch(seed uint64, n int) *Registers {
	var r Registers
	rng := rand.New(rand.NewPCG(seed, 0))
	buf := make([]uint64, 4096)
	for n > 0 {
		k := min(n, len(buf))
		for i := range buf[:k] {
			buf[i] = rng.Uint64()
		}
		r.Add(buf[:k])
		n -= k
	}
	return &r
}

func merged(a, b *Registers) *Registers {
	c := *a
	c.Merge(b)
	return &c
}

// Registers follow their definition, bit by bit.
func TestRegistersAreTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	hashes := []uint64{0, 1, 1 << 49, 1<<50 - 1, 1 << 50, math.MaxUint64}
	for range 30_000 {
		hashes = append(hashes, rng.Uint64()>>rng.IntN(64))
	}
	var got, want Registers
	got.Add(hashes)
	for _, h := range hashes {
		rank := 51 - bits.Len64(h&(1<<50-1))
		want[h>>50] = max(want[h>>50], uint8(rank))
	}
	if got != want {
		t.Error("the registers differ")
	}
	var one Registers
	one.Add([]uint64{5 << 50})
	if one[5] != maxRank {
		t.Errorf("a hash without lower bits has rank %d, want %d", one[5], maxRank)
	}
	if n := testing.AllocsPerRun(5, func() { got.Add(hashes) }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}

func TestRegistersMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	hashes := randoms(3, 50_000)
	var whole Registers
	whole.Add(hashes)
	for range 20 {
		parts := make([]Registers, 1+rng.IntN(5))
		for _, h := range hashes { // duplicates across parts
			for range 1 + rng.IntN(2) {
				parts[rng.IntN(len(parts))].Add([]uint64{h})
			}
		}
		var all Registers
		for i := range parts {
			all.Merge(&parts[i])
		}
		if all != whole {
			t.Fatal("the division matters")
		}
	}
}

// The relative error of the estimate is within four standard errors for each
// of 20 sketches, and its root mean square within 1.5 of one. The standard
// error is 1.04/√m for large numbers and, below, at most √(n²/2m + n/m).
func TestEstimate(t *testing.T) {
	const m = 1 << registerBits
	for _, n := range []int{0, 1, 2, 10, 100, 1000, 10_000, 40_000, 100_000, 1_000_000, 10_000_000} {
		runs := 20
		if n > 1_000_000 {
			runs = 2
		}
		sigma := 1.04 / math.Sqrt(m) * float64(n)
		var sum float64
		for seed := range runs {
			err := sketch(uint64(seed*97+n), n).Estimate() - float64(n)
			sum += err * err
			if math.Abs(err) > 4*sigma {
				t.Errorf("%d keys, seed %d: off by %.1f, %.1f standard errors", n, seed, err, err/sigma)
			}
		}
		if rms := math.Sqrt(sum / float64(runs)); rms > 1.5*sigma {
			t.Errorf("%d keys: root mean square error %.2f, standard error %.2f", n, rms, sigma)
		}
	}
}

// Small numbers are estimated exactly, unless two keys share a register.
func TestEstimateOfFew(t *testing.T) {
	var r Registers
	if e := r.Estimate(); e != 0 {
		t.Errorf("the empty sketch holds %v", e)
	}
	for i := range uint64(50) {
		r.Add([]uint64{i << 50})
		if e := r.Estimate(); math.Abs(e-float64(i+1)) > 0.2 {
			t.Errorf("%d registers of rank 51: %v", i+1, e)
		}
	}
}

// The errors of the six numbers of a comparison match their standard errors: over
// all runs of a pair of sets, the mean of (error/standard error)² is between a
// fifth and 2.2 (99.99 % of a χ² of 20 degrees over 20; the lower limit is
// conservative for parts that are nearly empty), no error exceeds five standard
// errors, and sums are consistent.
func TestCompare(t *testing.T) {
	for _, c := range []struct{ a, b, both int }{
		{0, 0, 0}, {0, 1000, 0}, {5, 7, 3}, {300, 200, 100},
		{5_000, 5_000, 0}, {5_000, 5_000, 5_000}, {50_000, 50_000, 25_000},
		{60_000, 60_000, 57_000}, {60_000, 60_000, 3_000}, {60_000, 60_000, 0}, {60_000, 60_000, 60_000},
		{200_000, 2_000, 2_000}, {200_000, 2_000, 1_000}, {200_000, 2_000, 0},
	} {
		t.Run(fmt.Sprintf("%d,%d,%d", c.a, c.b, c.both), func(t *testing.T) {
			t.Parallel()
			compareRuns(t, c.a, c.b, c.both, 20)
		})
	}
}

func compareRuns(t *testing.T, a, b, both, runs int) {
	var squares [6]float64
	names := []string{"A", "B", "union", "both", "only A", "only B"}
	truth := []int{a, b, a + b - both, both, a - both, b - both}
	for run := range uint64(runs) {
		common := sketch(3*run+1_000, both)
		x := merged(common, sketch(3*run+2_001, a-both))
		y := merged(common, sketch(3*run+3_002, b-both))
		got := x.Compare(y)
		for i, e := range []Cardinality{got.A, got.B, got.Union, got.Both, got.OnlyA, got.OnlyB} {
			err := e.Keys - float64(truth[i])
			if math.IsNaN(e.Keys) || math.IsNaN(e.StdErr) || e.Keys < 0 || math.Abs(err) > 5*e.StdErr+1e-3 {
				t.Errorf("run %d: %s %.2f ± %.2f, want %d", run, names[i], e.Keys, e.StdErr, truth[i])
			}
			squares[i] += err * err / max(e.StdErr*e.StdErr, 1e-6)
		}
		if d := got.OnlyA.Keys + got.OnlyB.Keys + got.Both.Keys - got.Union.Keys; math.Abs(d) > 1e-6*(1+got.Union.Keys) {
			t.Errorf("run %d: the parts do not add up to the union: %v", run, d)
		}
		back := y.Compare(x)
		if math.Abs(back.Both.Keys-got.Both.Keys) > 1e-3*(1+got.Both.StdErr) || math.Abs(back.OnlyA.Keys-got.OnlyB.Keys) > 1e-3*(1+got.OnlyB.StdErr) {
			t.Errorf("run %d: the order matters: %+v, %+v", run, got, back)
		}
	}
	for i, s := range squares {
		t.Logf("%-7s %9d: mean square %.2f standard errors", names[i], truth[i], s/float64(runs))
		if s/float64(runs) > 2.2 {
			t.Errorf("%s: the mean square error is %.2f standard errors", names[i], s/float64(runs))
		}
	}
}

// The gradient equals the numerical derivative of the likelihood.
func TestLikelihoodGradient(t *testing.T) {
	h := pairs(merged(sketch(1, 30_000), sketch(2, 9000)), merged(sketch(1, 30_000), sketch(3, 50_000)))
	for _, rate := range []vector{{9000, 50_000, 30_000}, {1e5, 1e2, 3}, {1, 2e6, 1e4}} {
		g := h.gradient(rate)
		for i := range rate {
			lo, hi, d := rate, rate, rate[i]*1e-5
			lo[i] -= d
			hi[i] += d
			want := (h.likelihood(hi) - h.likelihood(lo)) / (2 * d)
			if math.Abs(g[i]-want) > 1e-4*(math.Abs(want)+1e-3) {
				t.Errorf("%v: derivative %d is %v, want %v", rate, i, g[i], want)
			}
		}
	}
	var all float64
	table := terms(vector{9000, 50_000, 30_000})
	for j := range maxRank + 1 {
		for k := range maxRank + 1 {
			p, _ := table.pair(j, k)
			all += p
		}
	}
	if math.Abs(all-1) > 1e-12 {
		t.Errorf("the chances of all pairs add up to %v", all)
	}
}

func TestInverse(t *testing.T) {
	m := matrix{{4, 1, 2e-6}, {1, 3, 1e-6}, {2e-6, 1e-6, 5e-12}}
	inv := inverse(m)
	for i := range m {
		for j := range m {
			var sum, want float64
			for k := range m {
				sum += m[i][k] * inv[k][j]
			}
			if i == j {
				want = 1
			}
			if math.Abs(sum-want) > 1e-4 {
				t.Errorf("(%d,%d): %v", i, j, sum)
			}
		}
	}
}

func BenchmarkRegisters(b *testing.B) {
	for _, n := range []int{1 << 16, 1 << 20, 1 << 24} {
		hashes := randoms(1, n)
		b.Run(fmt.Sprintf("add/n=%d", n), func(b *testing.B) {
			for range b.N {
				var r Registers
				for lo := 0; lo < n; lo += 4096 {
					r.Add(hashes[lo : lo+4096])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
		})
	}
	x, y := sketch(1, 100_000), sketch(2, 100_000)
	b.Run("compare", func(b *testing.B) {
		for range b.N {
			x.Compare(y)
		}
	})
}
