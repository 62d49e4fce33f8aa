package bloom

import (
	"fmt"
	"slices"
	"testing"
)

// go test ./internal/bloom -bench . -benchtime 1x reports ns/key for one pass over the keys,
// including the hash, in one goroutine, at 12 bits per key. Half of the probes hit.
// The bench module compares with other implementations.
func BenchmarkFilter(b *testing.B) {
	for _, n := range []int{1e5, 1e6, 1e7, 1e8} {
		keys := make([]uint64, n)
		for i := range keys {
			keys[i] = uint64(i) * 0x9e3779b97f4a7c15 // any order but that of the blocks
		}
		for _, g := range Geometries() {
			f, err := New(Params{g, Hash{ID: XXH3}, uint64(n) * 12 / 8 / g.BlockBytes()})
			if err != nil {
				b.Fatal(err)
			}
			name := fmt.Sprintf("bpk=12/n=%.0e/%s", float64(n), g)
			report := func(b *testing.B) {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
			}
			b.Run("add/"+name, func(b *testing.B) {
				hashes := make([]uint64, span)
				for range b.N {
					for some := range slices.Chunk(keys, span) {
						f.params.Hash.Sum64(hashes, some)
						f.Add(hashes[:len(some)])
					}
				}
				report(b)
			})
			b.Run("probe/"+name, func(b *testing.B) {
				sel := make([]uint32, 0, 1<<16)
				for range b.N {
					for rest := keys; len(rest) > 0; rest = rest[min(len(rest), 1<<16):] {
						sel = f.ProbeInts(rest[:min(len(rest), 1<<16)], sel[:0])
					}
				}
				report(b)
			})
		}
	}
}

func BenchmarkSum64(b *testing.B) {
	v := randoms(1, 1024)
	dst := make([]uint64, 1024)
	for b.Loop() {
		Hash{ID: XXH3}.Sum64(dst, v)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/key")
}
