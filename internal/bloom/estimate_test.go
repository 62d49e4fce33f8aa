package bloom

import (
	"math"
	"runtime"
	"testing"
)

// Estimates do not depend on the number of goroutines, and the estimate for a fold
// equals that of the folded filter.
func TestEstimatesInParts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	hashes := make([]uint64, 1<<20)
	for i := range hashes {
		hashes[i] = uint64(i) * spread
	}
	for _, g := range Geometries() {
		f := mustNew(t, Params{Geometry: g, Hash: Hash{ID: XXH3}, Blocks: 720 * 512})
		f.Add(hashes)
		runtime.GOMAXPROCS(1)
		rates, count := map[uint64]float64{}, f.Count()
		for _, k := range []uint64{1, 2, 5, 12} {
			folded, err := f.Fold(k)
			if err != nil {
				t.Fatal(err)
			}
			if rates[k] = folded.FPR(); f.foldedFPR(k) != rates[k] {
				t.Errorf("%s, fold by %d: rate %v, then %v", g, k, f.foldedFPR(k), rates[k])
			}
		}
		for _, threads := range []int{2, 7} {
			runtime.GOMAXPROCS(threads)
			if got := counted(folding{f, 1}); got != count {
				t.Errorf("%s, %d threads: %+v, want %+v", g, threads, got, count)
			}
			for k, want := range rates {
				if got := f.foldedFPR(k); got != want {
					t.Errorf("%s, %d threads, fold by %d: %v, want %v", g, threads, k, got, want)
				}
			}
		}
	}
}

// What the bits say is computed once, and again after a change.
func TestMeasuredOnce(t *testing.T) {
	f, err := New(Params{Geometry: Split256, Hash: Hash{ID: XXH3}, Blocks: 720})
	if err != nil {
		t.Fatal(err)
	}
	other := f.Clone()
	other.Add([]uint64{0x9E3779B97F4A7C15})
	file := other.AppendBlocks(nil, 0, 720)
	for what, change := range map[string]func() error{
		"add":       func() error { f.Add([]uint64{77 << 32}); return nil },
		"union":     func() error { return f.Union(other) },
		"blocks":    func() error { return f.OrBlocks(0, file) },
		"intersect": func() error { return f.Intersect(other) },
	} {
		f.words[0] |= 1
		f.FPR()
		f.Count()
		fpr, count := f.fpr.Load(), f.count.Load()
		if f.FPR(); fpr == nil || f.fpr.Load() != fpr {
			t.Errorf("%s: FPR walks the bits again", what)
		}
		if f.Count(); count == nil || f.count.Load() != count {
			t.Errorf("%s: Count walks the bits again", what)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if f.FPR() != f.foldedFPR(1) || f.Count() != counted(folding{f, 1}) {
			t.Errorf("%s: FPR or Count is of the bits before the change", what)
		}
	}
	f.Add([]uint64{1 << 40, 2 << 50, 3 << 60})
	folded, err := f.Shrink(0.5, math.MaxUint64)
	if err != nil || folded == f || folded.fpr.Load() == nil || folded.FPR() != folded.foldedFPR(1) {
		t.Errorf("a folded filter does not know the rate that it was folded by, error %v", err)
	}
}
