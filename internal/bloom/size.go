package bloom

import (
	"math"
	"slices"
	"strconv"
)

// Block counts are multiples of smooth, large ones of fine·2^k. Both have many divisors, so
// that a filter can be folded in small steps. One divisor of a large count is a power of
// two that gives [Shared] ranges that fit into a level-2 cache.
const (
	smooth = 720
	fine   = 240
)

// DefaultFPR returns the false-positive rate of a filter over an estimated number
// of keys when the caller asks for none:
//
//	p(n) = 1 % · (n / 10^8)^(2/3), between 10^-6 and 1 %, to three digits
//
// A small set can be filtered almost without error at little cost (2,000 keys:
// 7·10^-6, 11 KB), and since a log is usually much longer than the set, false
// positives would otherwise outnumber the real rows. Bits per key cost most for
// large n, where 1 % already removes 99 of 100 unwanted rows.
func DefaultFPR(keys uint64) float64 {
	p := 0.01 * math.Pow(float64(keys)/1e8, 2.0/3)
	p = math.Min(0.01, math.Max(1e-6, p))
	// Processors differ in the last bit of a power, but not in the first three
	// digits.
	p, _ = strconv.ParseFloat(strconv.FormatFloat(p, 'g', 3, 64), 64)
	return p
}

// lowFPR is the highest rate at which Split512 is chosen: it saves 7 % of the bits
// there, and more below.
const lowFPR = 1e-3

// GeometryFor returns the geometry for a filter of rate p: Split512, the smaller
// one, at low rates; otherwise Split256, which is Parquet's and faster on
// processors without AVX-512.
func GeometryFor(p float64) Geometry {
	if p <= lowFPR {
		return Split512
	}
	return Split256
}

// BlocksFor returns the smallest number of blocks whose FPR for the given number of
// keys is at most p, where 0 < p < 1, or MaxBlocks if none is.
func (g Geometry) BlocksFor(keys uint64, p float64) uint64 {
	if !g.valid() || math.IsNaN(p) {
		return MaxBlocks
	}
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

// Blocks returns N0, the block count of a filter for up to the given number of keys
// at rate p that will be folded once the real number is known. It is BlocksFor
// rounded up to a multiple of 240·2^k, with the largest k for which that costs at most
// 1/256, or of 720 if none does. It depends on its arguments alone, so all shards of
// a build compute the same count.
func (g Geometry) Blocks(keys uint64, p float64) uint64 {
	need := g.BlocksFor(keys, p)
	step := step(need)
	return min((need+step-1)/step*step, MaxBlocks/step*step)
}

// BlocksWithin returns the largest count of the form that Blocks returns whose bits
// fit in size bytes. Below 720 blocks it returns size in whole blocks.
func (g Geometry) BlocksWithin(size uint64) uint64 {
	n := min(size/g.BlockBytes(), MaxBlocks)
	if n < smooth {
		return n
	}
	step := step(n)
	return n / step * step
}

// step returns the largest 240·2^k that is at most n/256, or 720.
func step(n uint64) uint64 {
	if n < 256*fine {
		return smooth
	}
	s := uint64(fine)
	for s*512 <= n {
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
		for k, pk := len(ds), p; n%p == 0; n, pk = n/p, pk*p {
			for _, d := range ds[:k] {
				ds = append(ds, d*pk)
			}
		}
	}
	slices.Sort(ds)
	slices.Reverse(ds)
	return ds
}
