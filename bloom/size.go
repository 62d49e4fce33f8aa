package bloom

import (
	"math"
	"slices"
	"strconv"
)

// smooth is the factor that every block count shares, times a power of two:
// it has many divisors, so that a filter can be folded in small steps.
const smooth = 720

// DefaultFPR returns the false-positive rate for a filter over an estimated
// number of keys when nobody asks for one:
//
//	p(n) = 1 % · (n / 10^8)^(2/3), between 10^-6 and 1 %, to three digits
//
// A small set is cheap to filter almost without error (2,000 keys: 7·10^-6,
// 11 KB), and a log is usually much longer than the set, so that its false
// positives would outnumber the real rows. Bits per key cost most where n is
// large, where 1 % already removes all but a hundredth of the rows.
func DefaultFPR(keys uint64) float64 {
	p := 0.01 * math.Pow(float64(keys)/1e8, 2.0/3)
	p = math.Min(0.01, math.Max(1e-6, p))
	// Processors differ in the last bit of a power; the digits do not.
	p, _ = strconv.ParseFloat(strconv.FormatFloat(p, 'g', 3, 64), 64)
	return p
}

// lowFPR is the rate up to which Split512 is chosen: from there on it saves
// 7 % of the bits or more.
const lowFPR = 1e-3

// GeometryFor returns the geometry for a filter of the given rate: Split512,
// which is smaller, where few false positives are wanted, else Split256, which
// is Parquet's, and the faster one on processors without AVX-512.
func GeometryFor(p float64) Geometry {
	if p <= lowFPR {
		return Split512
	}
	return Split256
}

// BlocksFor returns the smallest number of blocks whose FPR for the given
// number of keys is at most p, where 0 < p < 1, or MaxBlocks if none is.
func (g Geometry) BlocksFor(keys uint64, p float64) uint64 {
	lo, hi := uint64(0), uint64(1) // FPR(lo) > p
	for hi < MaxBlocks && g.FPR(hi, keys) > p {
		lo, hi = hi, hi*2
	}
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if g.FPR(mid, keys) > p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// Blocks returns N0, the block count of a filter that is to hold up to keys
// keys at rate p and to be folded once their real number is known: BlocksFor
// rounded up to a multiple of 720·2^k, with k so large that rounding costs at
// most a thirty-second (or 720 blocks). It depends on its arguments alone, so
// that every shard of a build comes to the same.
func (g Geometry) Blocks(keys uint64, p float64) uint64 {
	need := g.BlocksFor(keys, p)
	step := step(need)
	return min((need+step-1)/step*step, MaxBlocks/step*step)
}

// BlocksWithin returns the largest N0 of the form that Blocks returns whose
// bits fit in size bytes, or size in whole blocks where that is below 720.
func (g Geometry) BlocksWithin(size uint64) uint64 {
	n := min(size/g.BlockBytes(), MaxBlocks)
	if n < smooth {
		return n
	}
	step := step(n)
	return n / step * step
}

// step returns the largest 720·2^k of which n is at least thirty-two-fold,
// or 720.
func step(n uint64) uint64 {
	s := uint64(smooth)
	for s*64 <= n {
		s *= 2
	}
	return s
}

// divisors returns the divisors of n in descending order.
func divisors(n uint64) []uint64 {
	ds := []uint64{1}
	for p := uint64(2); n > 1; p++ {
		if p*p > n {
			p = n
		}
		for k, pk := len(ds), uint64(p); n%p == 0; n, pk = n/p, pk*p {
			for _, d := range ds[:k] {
				ds = append(ds, d*pk)
			}
		}
	}
	slices.Sort(ds)
	slices.Reverse(ds)
	return ds
}
