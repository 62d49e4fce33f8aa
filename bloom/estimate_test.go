package bloom

import (
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
			if got := f.Count(); got != count {
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
