package exact

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkForms writes, checks and reads sets in both forms, and reports their
// size relative to the entropy.
func BenchmarkForms(b *testing.B) {
	for _, n := range []int{1, 10} {
		for _, k := range []int{2, 4, 16, 64, 256} {
			r := rand.New(rand.NewPCG(5, uint64(k)))
			s := setOf(subset(r, n*million, k))
			benchmarkForms(b, fmt.Sprintf("/n=%dM/used=1in%d", n, k), s, n*million, entropyBits(float64(k)))
		}
	}
	r := rand.New(rand.NewPCG(6, 0))
	values := make([]uint64, million)
	for i := range values {
		values[i] = r.Uint64()
	}
	benchmarkForms(b, "/n=1M/used=1in2e13", setOf(values), million, 0)
}

func benchmarkForms(b *testing.B, name string, s *Set, n int, entropy float64) {
	old := [2][]byte{}
	form, negative, natural, err := s.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	if old[0], old[1], err = s.marshalRoaring(); err != nil {
		b.Fatal(err)
	}
	b.Run("op=encode"+name, func(b *testing.B) {
		for b.Loop() {
			if _, _, _, err := s.Marshal(); err != nil {
				b.Fatal(err)
			}
		}
		perKey(b, n)
		b.ReportMetric(8*float64(len(negative)+len(natural))/float64(n), form.String()+"-bits/key")
		b.ReportMetric(8*float64(len(old[0])+len(old[1]))/float64(n), "plain-roaring-bits/key")
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
	run("check", func() error { _, err := Check(form, negative, natural); return err })
	run("decode", func() error { _, err := Unmarshal(form, negative, natural); return err })
	run("roaring-encode", func() error { _, _, err := s.marshalRoaring(); return err })
	run("roaring-decode", func() error { _, err := unmarshalRoaring(old[0], old[1]); return err })
}
