package table

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// BenchmarkCosts measures the constants of the cost model that are per key, in
// nanoseconds on one thread, for as many keys as fit in the second-level cache and for
// more.
func BenchmarkCosts(b *testing.B) {
	for _, n := range []int{50_000, 16_000_000} {
		for _, form := range []string{"integers", "strings"} {
			b.Run(fmt.Sprintf("%s/%d", form, n), func(b *testing.B) {
				for b.Loop() {
					costsOf(b, n, form == "integers")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

const costBatch = 1 << 14

// generated calls fn with batches of about n random keys, which depend on the seed
// alone.
func generated(n int, ints bool, seed uint64, fn func(k *keys.Batch)) {
	rng := rand.New(rand.NewPCG(seed, 5))
	var k keys.Batch
	plain := make([]byte, 8*costBatch)
	for done := 0; done < n; done += costBatch {
		if ints {
			for i := range costBatch {
				binary.LittleEndian.PutUint64(plain[8*i:], rng.Uint64()>>20)
			}
			k.SetInts(plain, costBatch, 8, true)
		} else {
			plain = plain[:0]
			for range costBatch {
				plain = binary.LittleEndian.AppendUint32(plain, 16)
				plain = fmt.Appendf(plain, "%016x", rng.Uint64()>>20)
			}
			k.SetBytes(plain, costBatch, 0)
		}
		fn(&k)
	}
}

func costsOf(b *testing.B, n int, ints bool) {
	times := max(1, 2_000_000/n)
	timed := func(name string, seed uint64, fn func(k *keys.Batch)) {
		b.Helper()
		spent := 0.0
		for range times {
			generated(n, ints, seed, func(k *keys.Batch) {
				begin := spentCPU()
				fn(k)
				spent += spentCPU() - begin
			})
		}
		b.ReportMetric(spent/float64(times*((n+costBatch-1)/costBatch*costBatch)), name+"-ns/key")
	}
	g := bloom.Split256
	f, err := bloom.New(bloom.Params{Geometry: g, Hash: Hash, Blocks: g.BlocksFor(uint64(n), 0.01)})
	if err != nil {
		b.Fatal(err)
	}
	var hashes []uint64
	var hits []uint32
	timed("add", 1, func(k *keys.Batch) {
		hashes = k.Hash(Hash, hashes)
		f.Add(hashes)
	})
	timed("ask", 2, func(k *keys.Batch) {
		hashes = k.Hash(Hash, hashes)
		hits = f.Probe(hashes, hits[:0])
	})
	side := New(Kind{Integers: ints, Threads: 1}, budget.New(0))
	side.Reserve(int64(n))
	once := times
	times = 1
	timed("put", 1, func(k *keys.Batch) {
		if err := side.AddKeys(k); err != nil {
			b.Fatal(err)
		}
	})
	times = once
	if err := side.Seal(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(side.Bytes())/float64(n), "B/key")
	var members, entries []uint32
	all := make([]uint32, costBatch)
	for i := range all {
		all[i] = uint32(i)
	}
	timed("find", 1, func(k *keys.Batch) { members, entries = side.Find(k, all, members, entries) })
	if len(members) != costBatch {
		b.Fatalf("%d of %d keys were found", len(members), costBatch)
	}
	side.Release()
}
