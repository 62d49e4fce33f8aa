package main

import (
	"math"
	"math/big"
	"testing"
)

// exactTails is tails in rational numbers.
func exactTails(k, n int64, p *big.Rat) (low, high float64) {
	q := new(big.Rat).Sub(big.NewRat(1, 1), p)
	sumLow, sumHigh := new(big.Rat), new(big.Rat)
	for i := range n + 1 {
		term := new(big.Rat).SetInt(new(big.Int).Binomial(n, i))
		for range i {
			term.Mul(term, p)
		}
		for range n - i {
			term.Mul(term, q)
		}
		if i <= k {
			sumLow.Add(sumLow, term)
		}
		if i >= k {
			sumHigh.Add(sumHigh, term)
		}
	}
	low, _ = sumLow.Float64()
	high, _ = sumHigh.Float64()
	return low, high
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: got %.12g, want %.12g", what, got, want)
	}
}

func TestTailsAgainstRationals(t *testing.T) {
	for _, n := range []int64{1, 2, 17, 60} {
		for _, p := range []*big.Rat{big.NewRat(1, 1000), big.NewRat(1, 10), big.NewRat(1, 2), big.NewRat(9, 10)} {
			for k := range n + 1 {
				f, _ := p.Float64()
				low, high := tails(uint64(k), uint64(n), f)
				wantLow, wantHigh := exactTails(k, n, p)
				// The larger tail is a complement: its error is absolute.
				if math.Abs(low-wantLow) > 1e-12+1e-10*math.Min(wantLow, 1-wantLow+1e-12) ||
					math.Abs(high-wantHigh) > 1e-12+1e-10*wantHigh {
					t.Errorf("k=%d n=%d p=%v: got %g, %g, want %g, %g", k, n, p, low, high, wantLow, wantHigh)
				}
			}
		}
	}
}

// The binomial distribution of 10^9 trials with mean 100 equals the Poisson
// distribution to 10^-7. Its tails P(X >= 130) = 0.0022828… and P(X <= 70) =
// 0.000971… are summed here in another way.
func TestTailsOfRareEvents(t *testing.T) {
	poisson := func(lo, hi int) (sum float64) {
		for i := lo; i <= hi; i++ {
			lg, _ := math.Lgamma(float64(i) + 1)
			sum += math.Exp(float64(i)*math.Log(100) - 100 - lg)
		}
		return sum
	}
	_, high := tails(130, 1e9, 1e-7)
	near(t, "P(X >= 130)", high, poisson(130, 400), 1e-5)
	low, _ := tails(70, 1e9, 1e-7)
	near(t, "P(X <= 70)", low, poisson(0, 70), 1e-5)
}

// For large samples the normal approximation holds.
func TestTailsOfManyTrials(t *testing.T) {
	const n, p = 1e8, 0.1
	sd := math.Sqrt(n * p * (1 - p))
	for _, z := range []float64{-4, -2, -0.5, 0.5, 2, 4} {
		k := uint64(n*p + z*sd)
		low, high := tails(k, n, p)
		near(t, "lower tail", low, 0.5*math.Erfc(-(float64(k)+0.5-n*p)/sd/math.Sqrt2), 2e-2)
		near(t, "upper tail", high, 0.5*math.Erfc((float64(k)-0.5-n*p)/sd/math.Sqrt2), 2e-2)
	}
}

// By the Poisson distribution, the two-sided 99.9 % bound for mean 100 is 69 to 134.
func TestPlausible(t *testing.T) {
	for _, c := range []struct {
		k, n uint64
		p    float64
		want bool
	}{
		{100, 1e9, 1e-7, true},
		{69, 1e9, 1e-7, true},
		{68, 1e9, 1e-7, false},
		{134, 1e9, 1e-7, true},
		{135, 1e9, 1e-7, false},
		{0, 1000, 0, true},
		{1, 1000, 0, false},
		{0, 100, 0.07, true},  // 0.93^100 = 7.05e-4
		{0, 100, 0.08, false}, // 0.92^100 = 2.4e-4
	} {
		if got := Plausible(c.k, c.n, c.p); got != c.want {
			low, high := tails(c.k, c.n, c.p)
			t.Errorf("Plausible(%d, %d, %g) = %t (tails %g, %g), want %t", c.k, c.n, c.p, got, low, high, c.want)
		}
	}
}

func TestLogChoose(t *testing.T) {
	near(t, "52 over 5", math.Exp(logChoose(52, 5)), 2598960, 1e-10)
}
