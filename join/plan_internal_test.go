package join

import (
	"math"
	"testing"

	"github.com/bloomjoin/bloomjoin/bloom"
)

func TestChoose(t *testing.T) {
	const million = 1e6
	log := sizes{logRows: 20 * million, logKeys: 2 * million, logBytes: 20 * million * 100, logKeyBytes: 20 * million * 8, logColumns: 10, keyBytes: 8, integer: true, selectivity: 0.01}
	with := func(f func(*sizes)) sizes {
		s := log
		s.idKeys, s.kept, s.joinRows = s.idRows, 20000, 200000
		f(&s)
		if s.idKeys == 0 {
			s.idKeys = s.idRows
		}
		return s
	}
	const gib = 1 << 30
	for _, c := range []struct {
		name string
		s    sizes
		l    limits
		want Strategy
	}{
		{"few IDs", with(func(s *sizes) { s.idRows = 20000 }), limits{typ: Semi}, Lookup},
		{"few dense IDs", with(func(s *sizes) { s.idRows, s.exact = 20000, true }), limits{typ: Semi}, Exact},
		{"few dense IDs with rows", with(func(s *sizes) { s.idRows, s.exact, s.idBytes = 20000, true, 1e6 }), limits{typ: Inner}, Lookup},
		{"100 million IDs", with(func(s *sizes) { s.idRows = 100 * million }), limits{typ: Semi, memory: 10 * gib}, Reverse},
		{"100 million IDs, little memory", with(func(s *sizes) { s.idRows = 100 * million }), limits{typ: Semi, memory: gib / 2}, Reverse},
		{"100 million IDs once", with(func(s *sizes) { s.idRows = 100 * million }), limits{typ: Semi, memory: gib, once: "the IDs"}, Lookup},
		{"100 million IDs with rows", with(func(s *sizes) { s.idRows, s.idBytes = 100*million, 2.4e9 }), limits{typ: Inner, memory: 10 * gib}, Reverse},
		{"100 million IDs, a filter", with(func(s *sizes) { s.idRows = 100 * million }), limits{typ: Semi, memory: gib, filter: true}, Broadcast},
		{"huge, few match", with(func(s *sizes) {
			s.logRows, s.logKeys, s.logBytes, s.logKeyBytes, s.idRows = 2000*million, 500*million, 2e11, 16e9, 500*million
		}), limits{typ: Inner, memory: gib}, Broadcast},
		{"huge, many match", with(func(s *sizes) {
			s.logRows, s.logKeys, s.logBytes, s.logKeyBytes, s.idRows, s.idBytes = 200*million, 200*million, 32e8, 16e8, 200*million, 16e8
			s.kept, s.joinRows, s.selectivity = 20*million, 20*million, 0.1
		}), limits{typ: Inner, memory: gib / 2}, Shuffle},
	} {
		c.l.threads = 2
		all := costs(c.s, c.l)
		if got := choose(all); got.Strategy != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.Strategy, c.want)
		}
		for _, x := range all {
			t.Logf("%s: %+v", c.name, x)
		}
	}
}

// TestFiltering: a filter that drops nothing rests, one that drops much goes on,
// and near the break-even nothing changes.
func TestFiltering(t *testing.T) {
	const group = 1 << 18
	f := newFiltering(&model{}, 0)
	f.probe, f.behind = 4, 20 // even where a fifth is dropped
	asked := func(groups int, passed float64) (n int) {
		for range groups {
			if f.ask() {
				n++
				f.seen(group, int64(passed*group))
			}
		}
		return n
	}
	if n := asked(10, 0.01); n != 10 {
		t.Errorf("asked for %d of 10 groups, of which almost all is dropped", n)
	}
	if n := asked(160, 1); n < 10 || n > 25 {
		t.Errorf("asked for %d of 160 groups, of which nothing is dropped", n)
	}
	if n := asked(160, 0.79); n > 10 {
		t.Errorf("asked for %d of 160 groups at the break-even, while resting", n)
	}
	if n := asked(320, 0.1); n < 200 {
		t.Errorf("asked for %d of 320 groups, of which most is dropped again", n)
	}
	if n := asked(32, 0.82); n != 32 {
		t.Errorf("asked for %d of 32 groups at the break-even, while asking", n)
	}
	few := &filtering{probe: 4, behind: 4}
	few.seen(1000, 1000)
	if !few.ask() {
		t.Error("a thousand rows decide nothing")
	}
}

// TestFilterBytes: the sizes that a plan takes for filters are theirs.
func TestFilterBytes(t *testing.T) {
	for _, n := range []uint64{10_000, 1_000_000, 50_000_000} {
		for p := 0.5; p > 1e-6; p /= 1.7 {
			g := bloom.GeometryFor(p)
			want := float64(g.BlocksFor(n, p) * g.BlockBytes())
			got := filterBytes(float64(n), p)
			if math.Abs(got-want) > 0.05*want {
				t.Errorf("%d keys at %.3g: %.0f bytes, want %.0f", n, p, got, want)
			}
			if r := rateOf(want, float64(n), 0); math.Abs(r-p) > 0.3*p { // between two geometries it jumps
				t.Errorf("%d keys in %.0f bytes: rate %.3g, want %.3g", n, want, r, p)
			}
		}
	}
	if got := rateOf(1000, 1e9, 0.01); got != 1 {
		t.Errorf("a filter of no bits for a key has rate %v", got)
	}
}

// BenchmarkChoose is what each look at the strategies costs.
func BenchmarkChoose(b *testing.B) {
	s := sizes{logRows: 150000, logKeys: 40000, logBytes: 2e7, logColumns: 10, idRows: 2000, idKeys: 2000, keyBytes: 8, integer: true, selectivity: 0.01, kept: 100}
	for b.Loop() {
		choose(costs(s, limits{threads: 2, memory: 1e10}))
	}
}
