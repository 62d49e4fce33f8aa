package exact

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

const million = 1_000_000

// used are the shares of IDs that are in a set: one in 4, 16 or 64.
var used = []int{4, 16, 64}

// subset returns a uniformly random subset of n of the integers below n·k, in
// ascending order.
func subset(r *rand.Rand, n, k int) []uint64 {
	words := make([]uint64, (n*k+63)/64)
	for left := n; left > 0; {
		v := r.Uint64N(uint64(n * k))
		if words[v/64]>>(v%64)&1 == 0 {
			words[v/64] |= 1 << (v % 64)
			left--
		}
	}
	values := make([]uint64, 0, n)
	for i, w := range words {
		for ; w != 0; w &= w - 1 {
			values = append(values, uint64(i*64+bits.TrailingZeros64(w)))
		}
	}
	return values
}

func setOf(values []uint64) *Set {
	s := New()
	s.Add(values, false)
	return s
}

// entropyBits returns the minimum average number of bits per member for a random
// subset of one in k: k·H(1/k).
func entropyBits(k float64) float64 {
	return math.Log2(k) + (k-1)*math.Log2(k/(k-1))
}

// TestWireBits checks known bounds of the size of sets without structure.
func TestWireBits(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for _, k := range []int{2, 4, 16, 64} {
		bits, least := 8*float64(setOf(subset(r, million, k)).WireBytes())/million, entropyBits(float64(k))
		if bits > 1.04*least || bits < 0.999*least {
			t.Errorf("one in %d: %.3f bits per member, entropy %.3f", k, bits, least)
		}
	}
}

func perKey(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/(float64(b.N)*float64(n)), "ns/key")
}

// probes returns members and other values, half each, in random order.
func probes(r *rand.Rand, members []uint64, other func() uint64) []uint64 {
	q := make([]uint64, 1<<20)
	for i := range q {
		if q[i] = other(); r.IntN(2) == 0 {
			q[i] = members[r.IntN(len(members))]
		}
	}
	return q
}

func benchmarkProbe(b *testing.B, name, form string, s *Set, q []uint64) {
	ix := &index{settled: true}
	switch form {
	case "flat":
		e := extentOf(s)
		n, _ := e.words()
		ix.flat = newFlat(s, e, n)
	case "table":
		ix.table = newTable(s, s.entries(math.MaxUint64))
	}
	sel := make([]uint32, 0, len(q))
	b.Run("form="+form+name, func(b *testing.B) {
		s.index.Store(ix)
		for b.Loop() {
			for at := 0; at < len(q); at += 4096 {
				sel = s.Probe(q[at:at+4096], false, sel[:0])
			}
		}
		perKey(b, len(q))
		b.ReportMetric(float64(ix.bytes())/float64(s.Len()), "B/member")
	})
}

func BenchmarkProbe(b *testing.B) {
	for _, n := range []int{1, 10} {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		for _, k := range used {
			values := subset(r, n*million, k)
			s, q := setOf(values), probes(r, values, func() uint64 { return r.Uint64N(uint64(n * million * k)) })
			for _, form := range []string{"flat", "table", "compressed"} {
				benchmarkProbe(b, fmt.Sprintf("/n=%dM/used=1in%d", n, k), form, s, q)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 0))
	values := make([]uint64, million)
	for i := range values {
		values[i] = r.Uint64()
	}
	s, q := setOf(values), probes(r, values, r.Uint64)
	for _, form := range []string{"table", "compressed"} {
		benchmarkProbe(b, "/n=1M/used=1in2e13", form, s, q)
	}
}

func BenchmarkIndex(b *testing.B) {
	for _, k := range used {
		s := setOf(subset(rand.New(rand.NewPCG(2, uint64(k))), 10*million, k))
		b.Run(fmt.Sprintf("n=10M/used=1in%d", k), func(b *testing.B) {
			for b.Loop() {
				s.Index(math.MaxUint64)
			}
			perKey(b, 10*million)
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	const batch = 1 << 16
	for _, k := range used {
		r := rand.New(rand.NewPCG(3, uint64(k)))
		values := subset(r, 10*million, k)
		for _, order := range []string{"sorted", "random"} {
			if order == "random" {
				r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
			}
			b.Run(fmt.Sprintf("order=%s/batch=64Ki/n=10M/used=1in%d", order, k), func(b *testing.B) {
				for b.Loop() {
					s := New()
					for at := 0; at < len(values); at += batch {
						s.Add(values[at:min(at+batch, len(values))], false)
					}
				}
				perKey(b, len(values))
			})
		}
	}
}
