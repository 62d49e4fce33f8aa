package countmin

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// zipf returns the weights of the keys in n draws from a Zipf distribution.
func zipf(r *rand.Rand, n int, s float64, keys uint64) map[uint64]uint64 {
	z := rand.NewZipf(r, s, 1, keys-1)
	out := map[uint64]uint64{}
	for range n {
		out[z.Uint64()]++
	}
	return out
}

func tableOf(t testing.TB, p Params, seed uint64, weights map[uint64]uint64) *Table {
	t.Helper()
	out := NewTable(p, seed)
	for x, w := range weights {
		if err := out.Add(x, false, w); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// The bounds of the paper hold for keys, ranges and inner products of Zipf data over 200 seeds, of
// the data and of the hash functions: no estimate is too low, and no larger share than δ of them is
// more than ε times the total too high.
func TestBounds(t *testing.T) {
	const epsilon, delta = 0.02, 0.1
	p, ok := ParamsFor(epsilon, delta)
	if !ok || p.Epsilon() > epsilon || p.Delta() > delta || p != (Params{136, 3}) {
		t.Fatalf("%+v, %t", p, ok)
	}
	seeds := cases.Count(200, 200, 2000)
	var asked, over [3]float64
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := 1.05 + float64(seed%5)/4
		weights, others := zipf(r, 3000, s, 1<<16), zipf(r, 1000, 1.3, 1<<16)
		a, b := tableOf(t, p, seed, weights), tableOf(t, p, seed, others)
		bound := p.Epsilon() * float64(a.Total())
		note := func(of int, least, most uint64, bound float64) {
			if most < least {
				t.Errorf("seed %d: %d of %d: too low", seed, most, least)
			}
			asked[of]++
			if float64(most) > float64(least)+bound {
				over[of]++
			}
		}
		product := uint64(0)
		for x, w := range weights {
			note(0, w, a.Estimate(x, false), bound)
			note(0, 0, a.Estimate(x, true), bound)
			product += w * others[x]
		}
		_, most := a.Product(b)
		note(1, product, most, p.Epsilon()*float64(a.Total())*float64(b.Total()))
		ranges := rangesOf(t, p, seed, weights, nil)
		for range 20 {
			lo, hi := r.Uint64N(1<<16), r.Uint64N(1<<16)
			lo, hi = min(lo, hi), max(lo, hi)
			truth := uint64(0)
			for x, w := range weights {
				if x >= lo && x <= hi {
					truth += w
				}
			}
			most, nodes := ranges.Estimate(Point{Value: lo}, Point{Value: hi})
			if nodes > 2*len(ranges.levels) {
				t.Errorf("%d intervals", nodes)
			}
			note(2, truth, most, float64(nodes)*bound)
		}
	}
	for i, what := range []string{"keys", "inner products", "ranges"} {
		t.Logf("%s: %.0f of %.0f exceed the bound", what, over[i], asked[i])
		if over[i] > delta*asked[i] {
			t.Errorf("%s: %.0f of %.0f exceed the bound, want at most %v of them", what, over[i], asked[i], delta)
		}
	}
}

// rangesOf returns the hierarchy of integers that are not negative, and of the negatives of others.
func rangesOf(t testing.TB, p Params, seed uint64, weights, negatives map[uint64]uint64) *Ranges {
	t.Helper()
	out := NewRanges(p, seed)
	var points []Point
	for x, w := range weights {
		points = append(points, Point{x, false, w})
	}
	for x, w := range negatives {
		points = append(points, Point{-x, true, w})
	}
	for some := range slices.Chunk(points, 100) {
		if err := out.Add(some); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Ranges over all of the integers, at their ends and across zero, in a hierarchy whose few keys
// share no counter: the estimates are the weights.
func TestRangesExactly(t *testing.T) {
	p := Params{1 << 12, 4}
	weights := map[uint64]uint64{0: 1, 1: 2, 5: 4, 1 << 40: 8, math.MaxInt64: 16, 1 << 63: 32, math.MaxUint64: 64}
	negatives := map[uint64]uint64{1: 128, 2: 256, 1 << 50: 512, 1 << 63: 1024}
	r := rangesOf(t, p, 3, weights, negatives)
	type end struct {
		point Point
		of    *big.Int
	}
	var ends []end
	for x := range weights {
		for _, x := range []uint64{x, x - min(x, 1), x + min(1, math.MaxUint64-x)} {
			ends = append(ends, end{Point{Value: x}, new(big.Int).SetUint64(x)})
		}
	}
	for x := range negatives {
		for _, x := range []uint64{x, x - min(x-1, 1), min(x+1, 1<<63)} {
			ends = append(ends, end{Point{Value: -x, Negative: true}, new(big.Int).Neg(new(big.Int).SetUint64(x))})
		}
	}
	for _, lo := range ends {
		for _, hi := range ends {
			want := uint64(0)
			within := func(v *big.Int) bool { return lo.of.Cmp(v) <= 0 && v.Cmp(hi.of) <= 0 }
			for x, w := range weights {
				if within(new(big.Int).SetUint64(x)) {
					want += w
				}
			}
			for x, w := range negatives {
				if within(new(big.Int).Neg(new(big.Int).SetUint64(x))) {
					want += w
				}
			}
			if got, _ := r.Estimate(lo.point, hi.point); got != want {
				t.Errorf("from %v to %v: %d, want %d", lo.of, hi.of, got, want)
			}
		}
	}
	found, ok := r.Heavy(1, 100)
	if !ok || len(found) != len(weights)+len(negatives) || found[0] != (Point{1 << 63, true, 1024}) || found[10] != (Point{math.MaxUint64, false, 64}) {
		t.Errorf("all keys: %v, %t", found, ok)
	}
	if found, ok := r.Heavy(500, 100); !ok || len(found) != 2 || found[1].Weight != 512 {
		t.Errorf("heavy keys: %v, %t", found, ok)
	}
	if _, ok := r.Heavy(1, 10); ok {
		t.Error("11 keys are no more than 10")
	}
}

// Heavy keys of Zipf data are found, and nothing far below them.
func TestHeavy(t *testing.T) {
	p, _ := ParamsFor(0.001, 0.01)
	for seed := range uint64(10) {
		weights := zipf(rand.New(rand.NewPCG(seed, 3)), 20_000, 1.1, 1<<40)
		r := rangesOf(t, p, seed, weights, nil)
		const least = 200 // 1 %
		found, ok := r.Heavy(least, 1000)
		heavy := map[uint64]bool{}
		for _, h := range found {
			heavy[h.Value] = true
			if w := weights[h.Value]; w < least-20 || h.Weight < w || h.Negative {
				t.Errorf("seed %d: key of weight %d is %+v", seed, w, h)
			}
		}
		for x, w := range weights {
			if w >= least && !heavy[x] {
				t.Errorf("seed %d: a key of weight %d is not found", seed, w)
			}
		}
		if !ok || len(found) == 0 {
			t.Errorf("seed %d: %d keys, %t", seed, len(found), ok)
		}
	}
}

// Tables and hierarchies of parts add up to those of the whole, counter by counter.
func TestMerge(t *testing.T) {
	p := Params{100, 3}
	r := rand.New(rand.NewPCG(1, 1))
	weights, negatives := zipf(r, 5000, 1.2, 1<<50), zipf(r, 500, 1.2, 1<<50)
	whole, all := tableOf(t, p, 9, weights), rangesOf(t, p, 9, weights, negatives)
	sum, sums := NewTable(p, 9), NewRanges(p, 9)
	parts := make([]map[uint64]uint64, 7)
	for i := range parts {
		parts[i] = map[uint64]uint64{}
	}
	for x, w := range weights {
		part := r.Uint64N(w + 1) // one key in two parts
		parts[0][x] += part
		parts[1+r.IntN(6)][x] += w - part
	}
	for i, part := range parts {
		if err := sum.Merge(tableOf(t, p, 9, part)); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			negatives = nil
		}
		if err := sums.Merge(rangesOf(t, p, 9, part, negatives)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(sum.counters, whole.counters) || sum.Total() != whole.Total() {
		t.Error("tables differ")
	}
	if a, b := sums.Counters(), all.Counters(); !slices.EqualFunc(a, b, slices.Equal[[]uint64]) {
		t.Error("hierarchies differ")
	}
	if !sums.SetTotal(all.levels[0].total) || sums.SetTotal(all.levels[0].total+1) || !sum.SetTotal(whole.total) || sum.SetTotal(1) {
		t.Error("totals are not those of the counters")
	}
	if n := uint64(0); RangesBytes(p) == n || uint64(8*len(slices.Concat(all.Counters()...))) != RangesBytes(p) || uint64(8*len(whole.counters)) != p.Bytes() {
		t.Error("sizes are wrong")
	}
}

// A total above 2^64-1 is an error, and changes nothing.
func TestOverflow(t *testing.T) {
	p := Params{10, 2}
	one, most := NewTable(p, 1), NewTable(p, 1)
	ones, mosts := NewRanges(p, 1), NewRanges(p, 1)
	for err := range maps.Values(map[int]error{
		0: one.Add(5, false, 1), 1: most.Add(5, false, math.MaxUint64), 2: ones.Add([]Point{{5, false, 1}}), 3: mosts.Add([]Point{{5, false, math.MaxUint64}}),
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	before, befores := slices.Clone(most.counters), slices.Concat(mosts.Counters()...)
	for i, err := range []error{
		most.Add(6, false, 1), most.Merge(one), mosts.Add([]Point{{6, false, 1}}), mosts.Merge(ones),
		NewRanges(p, 1).Add([]Point{{1, false, math.MaxUint64}, {1, true, 1}}),
	} {
		if !errors.Is(err, ErrOverflow) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if !slices.Equal(before, most.counters) || !slices.Equal(befores, slices.Concat(mosts.Counters()...)) {
		t.Error("counters changed")
	}
	if h, l := most.Product(most); h != math.MaxUint64-1 || l != 1 { // (2^64-1)^2
		t.Errorf("product %d, %d", h, l)
	}
}

// Keys that share a counter in one row share one in another no more often than others do, and each
// counter has its share of keys, also if the keys are consecutive numbers.
func TestRowsAreIndependent(t *testing.T) {
	p := Params{1 << 14, 5}
	table := NewTable(p, 0)
	r := rand.New(rand.NewPCG(2, 2))
	var places [][5]uint64
	for i := range uint64(600) {
		x := r.Uint64()
		if i%2 == 0 {
			x = i
		}
		var at [5]uint64
		for row := range table.rows {
			at[row] = table.rows[row].at(x, i%4 == 1, p.Width)
		}
		places = append(places, at)
	}
	var same [6]int // pairs of keys, by rows in which they share a counter
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
	few := NewTable(Params{10, 4}, 0)
	for x := range uint64(10_000) {
		if err := few.Add(x, false, 1); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range few.counters {
		if c < 800 || c > 1200 {
			t.Errorf("counter %d of 40 has %d of 10,000 consecutive keys", i, c)
		}
	}
}

func TestParamsFor(t *testing.T) {
	for _, c := range [][2]float64{{0, 0.1}, {1, 0.1}, {0.1, 0}, {0.1, 1}, {math.NaN(), 0.1}, {0.1, math.NaN()}, {1e-10, 0.1}, {0.1, 1e-30}, {-1, 0.1}} {
		if p, ok := ParamsFor(c[0], c[1]); ok {
			t.Errorf("ε %v, δ %v: %+v", c[0], c[1], p)
		}
	}
	if p, ok := ParamsFor(1e-4, 0.01); !ok || p != (Params{27_183, 5}) {
		t.Errorf("%+v, %t", p, ok)
	}
}

// The counters of a few keys never change, as files hold them.
func TestGolden(t *testing.T) {
	table := NewTable(Params{7, 2}, 0)
	for x, w := range map[uint64]uint64{0: 1, 1: 10, math.MaxUint64: 100, 0x0123456789abcdef: 1000} {
		if err := table.Add(x, false, w); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Add(1, true, 10_000); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(table.counters), "[1 0 0 0 100 11000 10 10000 1 10 1000 0 100 0]"; got != want {
		t.Errorf("counters %s, want %s", got, want)
	}
}

func BenchmarkAdd(b *testing.B) {
	p, _ := ParamsFor(1e-4, 0.01)
	table := NewTable(p, 0)
	for i := range uint64(b.N) {
		_ = table.Add(i*0x9e3779b97f4a7c15, false, 1)
	}
}
