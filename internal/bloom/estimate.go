package bloom

import (
	"iter"
	"math"
	"math/bits"
	"runtime"
	"sync"
)

// hitIn returns the probability that a key outside the set finds all eight bits set
// in a block that holds i keys. Each leaves a given bit clear with the same probability.
func (g Geometry) hitIn(i float64) float64 {
	p := 1 - math.Pow(1-1/float64(g.laneBits()), i)
	p *= p // lanes = 8: cube of squares
	p *= p
	return p * p
}

// FPR returns the expected false-positive rate of a filter with the given number of
// blocks and distinct keys: a block's rate, averaged over the binomial distribution
// of keys over blocks. (The textbook formula assumes that every block holds the
// mean number of keys. It gives 0.7 % for a Split256 filter whose rate is 1 %,
// because full blocks let through more than empty ones save.) It is NaN for a
// geometry that this package does not support.
func (g Geometry) FPR(blocks, keys uint64) float64 {
	switch {
	case !g.valid():
		return math.NaN()
	case keys == 0:
		return 0
	case blocks <= 1:
		return g.hitIn(float64(keys))
	}
	// The explicit conversions of products keep compilers from fusing
	// multiplications and additions: every machine must compute the same number of
	// blocks.
	n, q := float64(keys), 1/float64(blocks)
	mean := n * q
	if mean > 8192 {
		return 1 // no block has a clear bit: (63/64)^6000 is 10^-41
	}
	spread := float64(12*math.Sqrt(mean)) + 24
	lo, hi := math.Max(0, math.Floor(mean-spread)), math.Min(n, math.Ceil(mean+spread))
	// Start at the mode, where the probability is largest, and go in both
	// directions by the ratio of neighbours. Normalise at the end.
	ratio := func(i float64) float64 { return (n - i) / (i + 1) * q / (1 - q) } // P(i+1)/P(i)
	mode := math.Min(hi, math.Floor((n+1)*q))
	sum, hit := 1.0, g.hitIn(mode)
	for i, w := mode, 1.0; i < hi && w > 1e-18; i++ {
		w = float64(w * ratio(i)) // a plain assignment would not prevent fusing
		sum, hit = sum+w, hit+float64(w*g.hitIn(i+1))
	}
	for i, w := mode, 1.0; i > lo && w > 1e-30; i-- {
		w /= ratio(i - 1)
		sum, hit = sum+w, hit+float64(w*g.hitIn(i-1))
	}
	return hit / sum
}

// FPR returns the false-positive rate that follows from the filter's bits: the
// product of the fill of the eight lanes, averaged over all blocks. It depends on
// nothing else. The first call after a change reads all bits.
func (f *Filter) FPR() float64 {
	if f.blank() {
		return 1
	}
	if p := f.fpr.Load(); p != nil {
		return *p
	}
	p := f.foldedFPR(1)
	f.fpr.Store(&p)
	return p
}

// foldedFPR returns the FPR of the filter after Fold(k), without folding it. It
// sums integers so that every machine takes the same decision.
func (f *Filter) foldedFPR(k uint64) float64 {
	var mu sync.Mutex
	var high, low uint64 // Σ over blocks of Π over lanes of set bits, each term ≤ 2^48
	eachBlock([]folding{{f, k}}, func(blocks iter.Seq[[]uint64]) {
		var hi, lo, carry uint64
		for b := range blocks {
			p := uint64(1)
			for _, w := range b {
				if len(b) == len(block512{}) {
					p *= uint64(bits.OnesCount64(w))
				} else {
					p *= uint64(bits.OnesCount32(uint32(w)) * bits.OnesCount32(uint32(w>>32)))
				}
			}
			lo, carry = bits.Add64(lo, p, 0)
			hi += carry
		}
		mu.Lock()
		defer mu.Unlock()
		low, carry = bits.Add64(low, lo, 0)
		high += hi + carry
	})
	sum := math.Ldexp(float64(high), 64) + float64(low)
	return sum / math.Pow(float64(f.params.Geometry.laneBits()), lanes) / float64(f.params.Blocks/k)
}

// aloneBytes is the number of bytes that one goroutine scans in about a
// millisecond.
const aloneBytes = 2 << 20

// folding is a view of a filter as its Fold(k).
type folding struct {
	of *Filter
	k  uint64
}

// eachBlock calls fn with the blocks of the union of foldings that have equally many. For
// large filters it calls fn concurrently, each call with a part of the blocks, and waits for
// all calls. A block is valid until the next one.
func eachBlock(union []folding, fn func(blocks iter.Seq[[]uint64])) {
	f := union[0].of
	n := f.params.Blocks / union[0].k
	parts := min(f.params.Bytes()/aloneBytes+1, uint64(runtime.GOMAXPROCS(0)))
	var workers sync.WaitGroup
	for i := range parts - 1 {
		workers.Go(func() { fn(blocksOf(union, n*i/parts, n*(i+1)/parts)) })
	}
	fn(blocksOf(union, n*(parts-1)/parts, n))
	workers.Wait()
}

// blocksOf yields blocks lo to hi (exclusive) of a union.
func blocksOf(union []folding, lo, hi uint64) iter.Seq[[]uint64] {
	first := union[0]
	w := first.of.params.Geometry.words()
	return func(yield func([]uint64) bool) {
		if len(union) == 1 && first.k == 1 {
			for words := first.of.words[lo*w : hi*w]; len(words) > 0; words = words[w:] {
				if !yield(words[:w]) {
					return
				}
			}
			return
		}
		var sum block512
		for i := lo; i < hi; i++ {
			clear(sum[:w])
			for _, g := range union {
				for words := g.of.words[i*g.k*w : (i+1)*g.k*w]; len(words) > 0; words = words[w:] {
					orWords(sum[:w], words[:w])
				}
			}
			if !yield(sum[:w]) {
				return
			}
		}
	}
}
