package joins

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
)

// distribution draws how many rows each of some keys has.
type distribution struct {
	name string
	keys func(r *rand.Rand) []int64
}

var distributions = []distribution{
	{"uniform, few", func(*rand.Rand) []int64 { return repeat(1, 300) }},
	{"uniform, many", func(*rand.Rand) []int64 { return repeat(3, 3_000) }},
	{"zipf", func(r *rand.Rand) []int64 {
		z, c := rand.NewZipf(r, 1.2, 1, 4999), make([]int64, 5000)
		for range 20_000 {
			c[z.Uint64()]++
		}
		return c
	}},
	{"one heavy key", func(*rand.Rand) []int64 { return append(repeat(1, 2000), 50_000) }},
	{"one key", func(*rand.Rand) []int64 { return []int64{10_000} }},
	{"two keys", func(*rand.Rand) []int64 { return []int64{10_000, 1} }},
}

func repeat(c int64, n int) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = c
	}
	return s
}

// sketch adds rows of random keys to a spread, and returns Σc and Σc².
func sketch(r *rand.Rand, counts []int64) (s *secondMoment, hashes []uint64, rows, squares float64) {
	s = newSpread()
	for _, c := range counts {
		h := r.Uint64()
		hashes = append(hashes, h)
		for range c {
			s.add(h, 1)
		}
		rows += float64(c)
		squares += float64(c) * float64(c)
	}
	return s, hashes, rows, squares
}

// TestSpread compares the estimate of Σc² with the sum itself. Its relative standard
// deviation is at most √(2/m) = 0.55 % for m = 2^16 counters. Each trial may be off by
// five of them, and the mean by five standard deviations of a mean.
func TestSpread(t *testing.T) {
	const trials = 20
	sigma := math.Sqrt(2.0 / (1 << spreadBits))
	for i, d := range distributions {
		r := rand.New(rand.NewPCG(uint64(i), 4))
		var mean float64
		for range trials {
			s, _, rows, squares := sketch(r, d.keys(r))
			if float64(s.rows) != rows {
				t.Fatalf("%s: %d rows, want %.0f", d.name, s.rows, rows)
			}
			off := s.squares()/squares - 1
			if math.Abs(off) > 5*sigma {
				t.Errorf("%s: Σc² is off by %.2f %%, allowed are %.2f %%", d.name, 100*off, 500*sigma)
			}
			mean += off / trials
		}
		if math.Abs(mean) > 5*sigma/math.Sqrt(trials) {
			t.Errorf("%s: Σc² is off by %.3f %% on the average of %d trials", d.name, 100*mean, trials)
		}
	}
}

// TestSpreadNeighbours: real keys, such as consecutive integers and their hashes,
// spread as well as random ones.
func TestSpreadNeighbours(t *testing.T) {
	s := newSpread()
	values := make([]uint64, 100_000)
	for i := range values {
		values[i] = uint64(i)
	}
	hashes := make([]uint64, len(values))
	table.Hash.Sum64(hashes, values)
	for _, h := range hashes {
		for range 4 {
			s.add(h, 1)
		}
	}
	if off := s.squares()/(16*100_000) - 1; math.Abs(off) > 0.03 {
		t.Errorf("Σc² is off by %.2f %%", 100*off)
	}
}

// TestSpreadMerge: sketches of parts add up to the sketch of the whole.
func TestSpreadMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 4))
	parts := []*secondMoment{newSpread(), newSpread(), newSpread()}
	whole := newSpread()
	for range 30_000 {
		h := r.Uint64N(500) * 0x9e3779b97f4a7c15
		whole.add(h, 1)
		parts[r.IntN(3)].add(h, 1)
	}
	for _, p := range parts[1:] {
		parts[0].merge(p)
	}
	if parts[0].rows != whole.rows || parts[0].squares() != whole.squares() || parts[0].heaviest() != whole.heaviest() {
		t.Errorf("merged %d rows, Σc² %v; whole %d, %v", parts[0].rows, parts[0].squares(), whole.rows, whole.squares())
	}
	if s := newSpread(); s.squares() != 0 || s.heaviest() != 0 {
		t.Error("an empty sketch is not empty")
	}
}

// TestBoundHolds: a filter whose true rate is the predicted one is within its bounds,
// but for at most one trial in a thousand. At most 9 of 3,000 trials in each setting
// may be outside; more have a chance of 0.1 % if the bounds are exact. The seeds are
// fixed.
func TestBoundHolds(t *testing.T) {
	const trials, allowed = 3000, 9
	for i, d := range distributions {
		r := rand.New(rand.NewPCG(uint64(i), 6))
		counts := d.keys(r)
		s, _, _, _ := sketch(r, counts)
		for _, p := range []float64{0.0001, 0.003, 0.01, 0.1, 0.5} {
			outside := 0
			m := measure(p, 0, s) // the bound does not depend on the outcome
			for range trials {
				var passed int64
				// The distance from one key that passes to the next is geometric.
				for k := step(r, p); k < len(counts); k += 1 + step(r, p) {
					passed += counts[k]
				}
				if m.Rate = float64(passed) / float64(s.rows); !m.inside() {
					outside++
				}
			}
			if outside > allowed {
				t.Errorf("%s, p = %v: %d of %d trials are outside, at most %d may be", d.name, p, outside, trials, allowed)
			}
		}
	}
}

// step draws how many keys are rejected before one passes with probability p.
func step(r *rand.Rand, p float64) int {
	return int(math.Min(math.Log(1-r.Float64())/math.Log1p(-p), 1<<40))
}

// TestBoundOfFilters: the same with real filters, whose bits predict the rate, and the
// hashes with which they are probed. Of 2,000 filters at most 6 may be outside.
func TestBoundOfFilters(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 6))
	outside, trials := 0, 0
	filters := cases.Count(100, 500, 500)
	for range filters {
		f, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: table.Hash, Blocks: 16})
		if err != nil {
			t.Fatal(err)
		}
		in := make([]uint64, 100+r.IntN(400))
		for i := range in {
			in[i] = r.Uint64()
		}
		f.Add(in)
		for _, d := range []distribution{
			distributions[0],
			{"uniform", func(*rand.Rand) []int64 { return repeat(2, 3000) }},
			{"heavy", func(*rand.Rand) []int64 { return append(repeat(1, 1000), 3000) }},
			{"two keys", func(*rand.Rand) []int64 { return []int64{500, 1} }},
		} {
			counts := d.keys(r)
			s, hashes, _, _ := sketch(r, counts)
			var passed int64
			for _, i := range f.Probe(hashes, nil) {
				passed += counts[i]
			}
			trials++
			if !measure(f.FPR(), passed, s).inside() {
				outside++
			}
		}
	}
	if trials != 4*filters || outside > cases.Count(2, 6, 6) {
		t.Errorf("%d of %d trials are outside, at most %d may be", outside, trials, cases.Count(2, 6, 6))
	}
}

// TestBoundBites: over many keys, three times the predicted rate is outside the bounds
// in 99 of 100 trials, and so is a third of it if there are enough keys.
func TestBoundBites(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 6))
	for _, c := range []struct {
		keys    int
		p, real float64
	}{
		{20_000, 0.01, 0.03}, {20_000, 0.05, 0.15}, {50_000, 0.003, 0.009}, {20_000, 0.01, 0.0033}, {5000, 0.1, 0.3}, {20_000, 0.01, 1}, {20_000, 0.3, 0},
	} {
		counts := repeat(1, c.keys)
		s, _, _, _ := sketch(r, counts)
		inside := 0
		for range 100 {
			var passed int64
			for _, n := range counts {
				if r.Float64() < c.real {
					passed += n
				}
			}
			if measure(c.p, passed, s).inside() {
				inside++
			}
		}
		if inside > 1 {
			m := measure(c.p, 0, s)
			t.Errorf("%d keys: a rate of %v where %v is predicted is inside in %d of 100 trials (%v to %v)", c.keys, c.real, c.p, inside, m.Low, m.High)
		}
	}
}

// TestMeasureEdges: nothing to measure, exact filters, rates of 0 and 1.
func TestMeasureEdges(t *testing.T) {
	none := newSpread()
	if m := measure(0.01, 0, none); !m.inside() || m.Rate != 0 || m.Rows != 0 || m.Low != 0 || m.High != 1 {
		t.Errorf("no rows: %+v", m)
	}
	r := rand.New(rand.NewPCG(9, 6))
	s, _, rows, _ := sketch(r, repeat(1, 1000))
	if m := measure(0, 0, s); !m.inside() || m.Low != 0 || m.High != 0 {
		t.Errorf("an exact filter: %+v", m)
	}
	if m := measure(0, 1, s); m.inside() {
		t.Errorf("a false positive of an exact filter: %+v", m)
	}
	if m := measure(1, int64(rows), s); !m.inside() || m.Rate != 1 || m.High != 1 {
		t.Errorf("a full filter: %+v", m)
	}
	for _, p := range []float64{1e-12, 0.5, 1 - 1e-12} {
		if m := measure(p, 0, s); math.IsNaN(m.Low) || m.Low < 0 || m.High > 1 || m.Low > p || m.High < p {
			t.Errorf("p = %v: %+v", p, m)
		}
	}
}
