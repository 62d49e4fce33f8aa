package exact

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkWire writes, checks and reads sets, and reports their size relative to the
// entropy.
func BenchmarkWire(b *testing.B) {
	for _, n := range []int{1, 10} {
		for _, k := range []int{2, 4, 16, 64, 256} {
			r := rand.New(rand.NewPCG(5, uint64(k)))
			s := setOf(subset(r, n*million, k))
			benchmarkWire(b, fmt.Sprintf("/n=%dM/used=1in%d", n, k), s, n*million, entropyBits(float64(k)))
		}
	}
	r := rand.New(rand.NewPCG(6, 0))
	values := make([]uint64, million)
	for i := range values {
		values[i] = r.Uint64()
	}
	benchmarkWire(b, "/n=1M/used=1in2e13", setOf(values), million, 0)
}

func benchmarkWire(b *testing.B, name string, s *Set, n int, entropy float64) {
	negative, natural := s.Marshal()
	b.Run("op=encode"+name, func(b *testing.B) {
		for b.Loop() {
			s.Marshal()
		}
		perKey(b, n)
		b.ReportMetric(8*float64(len(negative)+len(natural))/float64(n), "bits/key")
		b.ReportMetric(entropy, "entropy-bits/key")
	})
	run := func(op string, do func() error) {
		b.Run("op="+op+name, func(b *testing.B) {
			for b.Loop() {
				if err := do(); err != nil {
					b.Fatal(err)
				}
			}
			perKey(b, n)
		})
	}
	run("bytes", func() error { s.WireBytes(); return nil })
	run("check", func() error { _, err := Check(negative, natural); return err })
	run("decode", func() error { _, err := Unmarshal(negative, natural); return err })
	run("values", func() error {
		for range s.Values {
		}
		return nil
	})
}
