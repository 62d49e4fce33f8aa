package micro

import (
	"fmt"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
)

// exactSet and roaringSet are exact sets of integers; the latter is the most common Go
// module for bitmaps.
type exactSet struct{ *exact.Set }

func (s exactSet) add(keys []uint64) { s.Set.Add(keys, false) }
func (s exactSet) probe(keys []uint64, sel []uint32) int {
	return len(s.Probe(keys, false, sel[:0]))
}

type roaringSet struct{ *roaring64.Bitmap }

func (s roaringSet) add(keys []uint64) { s.AddMany(keys) }
func (s roaringSet) probe(keys []uint64, sel []uint32) int {
	found := 0
	for i, k := range keys {
		sel[found] = uint32(i)
		found += bit(s.Contains(k))
	}
	return found
}

// BenchmarkSet measures exact sets of one integer in 4 and in 64, and a Bloom filter of
// the same integers.
func BenchmarkSet(b *testing.B) {
	n := uint64(1_000_000)
	if testing.Short() {
		n = 2000
	}
	for _, ratio := range []uint64{4, 64} {
		shuffled, _ := keyset.Subset(1, n, n*ratio)
		probes := append(slices.Clone(shuffled), shuffled...)
		for i := range shuffled { // half of them, others at random
			probes[2*i] = keyset.Mix(uint64(i)) % (n * ratio)
		}
		for _, c := range []contender{
			{"exact", func(*testing.B, uint64) filter { return exactSet{exact.New()} }},
			{"roaring64", func(*testing.B, uint64) filter { return roaringSet{roaring64.New()} }},
			{"bloom", func(b *testing.B, n uint64) filter { return newOurs(b, bloom.Split256, n) }},
		} {
			name := fmt.Sprintf("ratio=%d/filter=%s", ratio, c.name)
			var f filter
			b.Run("op=add/"+name, func(b *testing.B) {
				for b.Loop() {
					f = c.make(b, n)
					keyset.Batches(shuffled, f.add)
				}
				perKey(b, n)
				probeAll(b, f, shuffled, n, true)
			})
			b.Run("op=probe/"+name, func(b *testing.B) {
				if f == nil {
					f = c.make(b, n)
					keyset.Batches(shuffled, f.add)
				}
				probeAll(b, f, probes, n, true) // builds what a set builds at its first probe
				for b.Loop() {
					probeAll(b, f, probes, n, true)
				}
				perKey(b, uint64(len(probes)))
			})
		}
	}
}
