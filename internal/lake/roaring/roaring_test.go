package roaring_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/internal/lake/roaring"
)

// draw returns ascending values: alone, in ranges, and in ranges that nearly fill a container.
func draw(r *rand.Rand) (values []int64) {
	at := r.Int64N(1 << r.IntN(40))
	for range r.IntN(60) {
		at += 1 + r.Int64N(1<<r.IntN(36))
		n := []int64{1, 1, 1, 1 + r.Int64N(100)}[r.IntN(4)]
		if r.IntN(40) == 0 { // large containers take most of the time
			n = 1 + r.Int64N(70_000)
		}
		step := 1 + r.Int64N(2)*r.Int64N(3)
		for range n {
			values = append(values, at)
			at += step
		}
	}
	return values
}

// TestWithout compares bitmaps with lists of values. Their bytes come from another encoder.
func TestWithout(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		values := draw(r)
		m, err := roaring.Parse(laketest.Roaring(values))
		if err != nil {
			t.Fatal(err)
		}
		if m.Count() != int64(len(values)) || len(values) > 0 && m.End() != values[len(values)-1]+1 {
			t.Fatalf("%d values up to %d, want %d", m.Count(), m.End(), len(values))
		}
		for range 5 {
			lo := r.Int64N(1 << 20)
			if len(values) > 0 {
				lo = max(0, values[r.IntN(len(values))]-r.Int64N(100))
			}
			hi := lo + r.Int64N(1<<r.IntN(19))
			var want []uint32
			for v, i := lo, 0; v < hi; v++ {
				if i == 0 {
					i, _ = slices.BinarySearch(values, lo)
				}
				for i < len(values) && values[i] < v {
					i++
				}
				if i == len(values) || values[i] != v {
					want = append(want, uint32(v-lo))
				}
			}
			if got := m.Without(lo, hi).List(nil); !slices.Equal(got, want) || m.CountIn(lo, hi) != hi-lo-int64(len(want)) {
				t.Fatalf("%d to %d: %d rows left, want %d", lo, hi, len(got), len(want))
			}
		}
	}
}

// Damaged bitmaps are errors or other bitmaps whose values are in order.
func FuzzParse(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(laketest.Roaring(draw(r)))
	}
	negative := laketest.Roaring([]int64{5})
	binary.LittleEndian.PutUint32(negative[8:], 1<<31) // an upper half with which a row would be negative
	f.Add(negative)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := roaring.Parse(b)
		if err != nil {
			return
		}
		if m.Count() > 0 && m.CountIn(0, m.End()) != m.Count() {
			t.Errorf("%d values up to %d, want %d", m.CountIn(0, m.End()), m.End(), m.Count())
		}
	})
}
