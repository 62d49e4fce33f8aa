// Package micro has microbenchmarks of filters beside those of other Go modules:
//
//	go test -run '^$' -bench . -count 6 ./micro | tee new.txt
//	go tool benchstat -col /filter new.txt
//	go tool benchstat old.txt new.txt
//
// Keys are made before the clock starts, as integers; hashing is part of the time, as for
// users of the filters. Half of the probes hit, in an order that no branch predictor learns.
package micro

import (
	"fmt"
	"testing"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
)

// bitsPerKey is the size of all filters, as far as they let their users choose it.
const bitsPerKey = 10

// keyCounts are sizes of sets: with filters that fit a processor's cache, and that do not.
// Short runs have one that only shows that everything runs.
func keyCounts() []uint64 {
	if testing.Short() {
		return []uint64{3000}
	}
	return []uint64{100_000, 30_000_000}
}

// probeCount is the number of keys that are probed in a timed run.
func probeCount() uint64 {
	if testing.Short() {
		return 1 << 10
	}
	return 1 << 22
}

func BenchmarkAdd(b *testing.B) {
	for _, n := range keyCounts() {
		keys := keyset.Set(n)
		for _, c := range contenders() {
			b.Run(fmt.Sprintf("keys=%d/filter=%s", n, c.name), func(b *testing.B) {
				var f filter
				for b.Loop() {
					f = c.make(b, n)
					keyset.Batches(keys, f.add)
				}
				perKey(b, n)
				probeAll(b, f, keys, n, true)
			})
		}
	}
}

func BenchmarkProbe(b *testing.B) {
	for _, n := range keyCounts() {
		keys, probes, members := keyset.Set(n), keyset.Probes(probeCount(), n), keyset.Members(probeCount(), n)
		for _, c := range contenders() {
			b.Run(fmt.Sprintf("keys=%d/filter=%s", n, c.name), func(b *testing.B) {
				f := c.make(b, n)
				keyset.Batches(keys, f.add)
				probeAll(b, f, probes, members, false)
				for b.Loop() {
					probeAll(b, f, probes, members, false)
				}
				perKey(b, uint64(len(probes)))
			})
		}
	}
}

// probeAll probes keys. It fails if a member is not found or, of all keys, too many are.
func probeAll(b *testing.B, f filter, probes []uint64, members uint64, all bool) {
	sel := make([]uint32, keyset.Batch+1)
	var found uint64
	keyset.Batches(probes, func(part []uint64) { found += uint64(f.probe(part, sel)) })
	if others := uint64(len(probes)) - members; found < members || !all && found > members+others/10 {
		b.Fatalf("%d of %d keys found, of which %d are members", found, len(probes), members)
	}
}

// perKey reports the time for each key.
func perKey(b *testing.B, keys uint64) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(keys), "ns/key")
}

// bit returns 1 for true. It compiles without a branch, so a loop that counts random
// answers has no mispredictions of its own.
func bit(b bool) int {
	n := 0
	if b {
		n = 1
	}
	return n
}
