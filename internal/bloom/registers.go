package bloom

import (
	"math"
	"math/bits"
)

const (
	registerBits = 14
	// maxRank is the largest value of a register: 1 + 50 leading zeros, for a hash
	// whose lower 50 bits are all clear.
	maxRank = 64 - registerBits + 1
)

// Registers is a HyperLogLog sketch of a key set, over the same hashes as the
// filter, in 2^14 registers of one byte. Register h>>50 holds the largest rank
// among its hashes, where the rank of a hash is 1 + the number of leading zeros of
// its lower 50 bits. A register without a hash is 0. The zero value is the sketch
// of the empty set.
//
// A sketch depends on the set alone, not on order, duplicates, or how the keys were
// divided. In 16 KiB, whatever the size of the filter, it estimates the number of
// distinct keys ([Registers.Estimate]) and the overlap of two sets
// ([Registers.Compare]).
//
// Source: Flajolet, Fusy, Gandouet and Meunier, "HyperLogLog: the analysis of a
// near-optimal cardinality estimation algorithm", AofA 2007.
type Registers [1 << registerBits]uint8

// Add adds the keys with the given hashes to the sketch.
func (r *Registers) Add(hashes []uint64) {
	for _, h := range hashes {
		// The bit below the 50 is set, so the count of leading zeros stops there.
		rank := uint(65 - bits.Len64(h<<registerBits|1<<(registerBits-1)))
		p := &r[h>>(64-registerBits)]
		v := uint(*p)
		if v < rank { // compiled to a conditional move: mispredicted branches would cost more than the rest
			v = rank
		}
		*p = uint8(v)
	}
}

// Merge makes r the sketch of the union of both sets.
func (r *Registers) Merge(s *Registers) {
	for i, v := range s {
		r[i] = max(r[i], v)
	}
}

// Estimate returns an estimate of the number of distinct keys. Its standard error
// is 0.81 % (1.04/√2^14) for large numbers and less below 50,000; its bias is a
// small fraction of that.
//
// It is the improved raw estimator of Ertl, "New cardinality estimation algorithms
// for HyperLogLog sketches", arXiv:1702.01284, section 2.4 (algorithm 6): one
// formula for all sizes, without tables.
func (r *Registers) Estimate() float64 {
	var counts [maxRank + 1]int
	for _, v := range r {
		counts[min(v, maxRank)]++
	}
	const m = float64(len(r))
	z := m * tau(1-float64(counts[maxRank])/m)
	for k := maxRank - 1; k >= 1; k-- {
		z = (z + float64(counts[k])) / 2
	}
	z += m * sigma(float64(counts[0])/m)
	return m * m / (2 * math.Ln2 * z) // 0 if z is +Inf
}

// sigma corrects for registers that no key has hit: x + Σ x^(2^k)·2^(k-1).
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	z, y := x, 1.0
	for {
		x *= x
		last := z
		z += x * y
		y *= 2
		if z == last {
			return z
		}
	}
}

// tau corrects for registers at the largest rank:
// (1 - x - Σ (1-x^(2^-k))²·2^-k) / 3.
func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	z, y := 1-x, 1.0
	for {
		x = math.Sqrt(x)
		last := z
		y /= 2
		z -= (1 - x) * (1 - x) * y
		if z == last {
			return z / 3
		}
	}
}
