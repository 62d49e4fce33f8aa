package exact_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/exact"
)

// integer is a number from -2^63 to 2^64-1 with its own order.
type integer struct {
	negative bool
	v        uint64
}

func compare(a, b integer) int {
	switch {
	case a == b:
		return 0
	case a.negative != b.negative && a.negative, a.negative == b.negative && a.v < b.v:
		return -1
	}
	return 1
}

// ends are the values at which ranges are likely to go wrong.
var ends = []uint64{
	0, 1, 63, 64, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1<<32 - 1, 1 << 32, 1<<32 + 1<<16, 1<<63 - 1, 1 << 63, 1<<63 + 1,
	math.MaxUint64 - 1<<32, math.MaxUint64 - 1<<16, math.MaxUint64 - 1<<16 + 1, math.MaxUint64 - 1, math.MaxUint64,
}

// Any, Within, Least and Greatest agree with a walk over all members.
func TestRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		s := exact.New()
		var all []integer
		add := func(v uint64, signed bool) {
			s.Add([]uint64{v}, signed)
			all = append(all, integer{signed && int64(v) < 0, v})
		}
		for range rng.IntN(4) * round {
			v := ends[rng.IntN(len(ends))] + rng.Uint64N(1<<(rng.IntN(18)))
			add(v, rng.IntN(2) == 0)
		}
		slices.SortFunc(all, compare)
		all = slices.Compact(all)
		checkEnds(t, s, all)
		for range 400 {
			lo := ends[rng.IntN(len(ends))] + rng.Uint64N(1<<(rng.IntN(18)))
			hi := ends[rng.IntN(len(ends))] + rng.Uint64N(1<<(rng.IntN(18)))
			signed := rng.IntN(2) == 0
			var want []uint64
			for _, m := range all {
				inside := m.v >= lo && m.v <= hi && !m.negative
				if signed {
					inside = m.negative == (int64(m.v) < 0) && int64(m.v) >= int64(lo) && int64(m.v) <= int64(hi)
				}
				if inside {
					want = append(want, m.v)
				}
			}
			if got := s.Any(lo, hi, signed); got != (len(want) > 0) {
				t.Fatalf("any of %d members from %x to %x, signed %v: %v", len(want), lo, hi, signed, got)
			}
			got, ok := s.Within(lo, hi, signed, len(want))
			if !ok || !slices.Equal(got, want) {
				t.Fatalf("members from %x to %x, signed %v: %x, %v, want %x", lo, hi, signed, got, ok, want)
			}
			if _, ok := s.Within(lo, hi, signed, len(want)-1); ok && len(want) > 0 {
				t.Fatalf("%d members from %x to %x are no more than %d", len(want), lo, hi, len(want)-1)
			}
		}
	}
}

func checkEnds(t *testing.T, s *exact.Set, all []integer) {
	t.Helper()
	v, negative, ok := s.Least()
	w, below, has := s.Greatest()
	if ok != (len(all) > 0) || has != ok {
		t.Fatalf("%d members: least %v, greatest %v", len(all), ok, has)
	}
	if ok && (integer{negative, v} != all[0] || integer{below, w} != all[len(all)-1]) {
		t.Fatalf("from %x %v to %x %v, want %v to %v", v, negative, w, below, all[0], all[len(all)-1])
	}
}

// Queries after a change see it.
func TestRangeAfterChange(t *testing.T) {
	s := exact.New()
	if s.Any(0, math.MaxUint64, false) {
		t.Error("a member of the empty set")
	}
	s.Add([]uint64{7}, false)
	if !s.Any(7, 7, true) || s.Any(8, math.MaxUint64, false) {
		t.Error("7 was added")
	}
	other := exact.New()
	other.Add([]uint64{1 << 40}, false)
	s.Union(other)
	if !s.Any(8, math.MaxUint64, false) {
		t.Error("2^40 was added")
	}
	s.Difference(other)
	if s.Any(8, math.MaxUint64, false) {
		t.Error("2^40 was taken away")
	}
}

// Distant members are found without visiting those before them.
func BenchmarkAny(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	values := make([]uint64, 1<<20)
	for i := range values {
		values[i] = rng.Uint64()
	}
	s := exact.New()
	s.Add(values, false)
	s.Any(0, 0, false)
	b.ResetTimer()
	for i := range b.N {
		v := values[i%len(values)]
		s.Any(v-1<<30, v+1<<30, false)
	}
}
