// Package keyset generates the keys for measurements.
package keyset

import (
	"math/rand/v2"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// Batch is the number of keys that are passed to a filter at a time.
const Batch = 1 << 16

// Mix is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, 2014), a bijection: Mix(0), Mix(1), … are
// distinct and look random.
func Mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Set returns the n keys of a set: Mix(0) to Mix(n-1).
func Set(n uint64) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = Mix(uint64(i))
	}
	return keys
}

// Probe returns the j-th key to probe in a filter of Set(n), and whether it is a
// member. Half of the keys are, at random, so branch predictors cannot learn the
// order.
func Probe(j, n uint64) (key uint64, in bool) {
	r := Mix(j ^ 0x5bd1e995<<32)
	if r&1 == 1 {
		return Mix((r >> 1) % n), true
	}
	return Mix(n + j), false
}

// Probes returns count keys to probe.
func Probes(count, n uint64) []uint64 {
	keys := make([]uint64, count)
	for j := range keys {
		keys[j], _ = Probe(uint64(j), n)
	}
	return keys
}

// Members returns the number of members among Probes(count, n).
func Members(count, n uint64) (in uint64) {
	for j := range count {
		if _, ok := Probe(j, n); ok {
			in++
		}
	}
	return in
}

// Sequence calls yield with the integers from lo to hi (exclusive), in batches.
// Consecutive integers are the common case for keys, and the hardest for a hash.
func Sequence(lo, hi uint64, yield func([]uint64)) {
	var keys [Batch]uint64
	for lo < hi {
		n := min(hi-lo, Batch)
		for i := range keys[:n] {
			keys[i] = lo + uint64(i)
		}
		yield(keys[:n])
		lo += n
	}
}

// Batches calls yield with slices of keys, of length Batch or less.
func Batches(keys []uint64, yield func([]uint64)) {
	for len(keys) > Batch {
		yield(keys[:Batch])
		keys = keys[Batch:]
	}
	yield(keys)
}

// Subset draws n distinct integers below universe uniformly. It returns them in
// random order and in ascending order.
func Subset(seed, n, universe uint64) (shuffled, sorted []uint64) {
	r := rand.New(rand.NewPCG(seed, universe))
	seen := make([]uint64, universe/64+1)
	for uint64(len(shuffled)) < n {
		v := r.Uint64N(universe)
		if bit := uint64(1) << (v % 64); seen[v/64]&bit == 0 {
			seen[v/64] |= bit
			shuffled = append(shuffled, v)
		}
	}
	for v := range universe {
		if seen[v/64]>>(v%64)&1 == 1 {
			sorted = append(sorted, v)
		}
	}
	return shuffled, sorted
}

// Into returns a function that adds keys to a filter: hashed and put in a few at a
// time, so that the hashes stay in the first-level cache.
func Into(f *bloom.Filter) func(keys []uint64) {
	hash := f.Params().Hash
	hashes := make([]uint64, 1024)
	return func(keys []uint64) {
		for some := range slices.Chunk(keys, len(hashes)) {
			hash.Sum64(hashes[:len(some)], some)
			f.Add(hashes[:len(some)])
		}
	}
}
