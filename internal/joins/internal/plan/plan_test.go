package plan

import (
	"math"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

func TestChoose(t *testing.T) {
	const million = 1e6
	log := Sizes{LogRows: 20 * million, LogKeys: 2 * million, LogBytes: 20 * million * 100, LogColumns: 10, KeyBytes: 8, Integer: true, Selectivity: 0.01}
	with := func(f func(*Sizes)) Sizes {
		s := log
		s.IDKeys, s.Kept, s.JoinRows = s.IDRows, 20000, 200000
		f(&s)
		if s.IDKeys == 0 {
			s.IDKeys = s.IDRows
		}
		return s
	}
	const gib = 1 << 30
	for _, c := range []struct {
		name string
		s    Sizes
		l    Limits
		want Strategy
	}{
		{"few IDs", with(func(s *Sizes) { s.IDRows = 20000 }), Limits{Type: "semi"}, Lookup},
		{"few dense IDs", with(func(s *Sizes) { s.IDRows, s.Exact = 20000, true }), Limits{Type: "semi"}, Exact},
		{"few dense IDs with rows", with(func(s *Sizes) { s.IDRows, s.Exact, s.IDBytes = 20000, true, 1e6 }), Limits{Type: "inner", IDColumns: true}, Lookup},
		{"100 million IDs", with(func(s *Sizes) { s.IDRows = 100 * million }), Limits{Type: "semi", Memory: 10 * gib}, Reverse},
		{"100 million IDs, little memory", with(func(s *Sizes) { s.IDRows = 100 * million }), Limits{Type: "semi", Memory: gib / 2}, Reverse},
		{"100 million IDs once", with(func(s *Sizes) { s.IDRows = 100 * million }), Limits{Type: "semi", Memory: gib, Once: "the IDs"}, Lookup},
		{"100 million IDs with rows", with(func(s *Sizes) { s.IDRows, s.IDBytes = 100*million, 2.4e9 }), Limits{Type: "inner", IDColumns: true, Memory: 10 * gib}, Reverse},
		{"100 million IDs, a filter", with(func(s *Sizes) { s.IDRows = 100 * million }), Limits{Type: "semi", Memory: gib, Filter: true}, Broadcast},
		{"huge, few match", with(func(s *Sizes) {
			s.LogRows, s.LogKeys, s.LogBytes, s.IDRows = 2000*million, 500*million, 2e11, 500*million
		}), Limits{Type: "inner", IDColumns: true, Memory: gib}, Broadcast},
		{"huge, many match", with(func(s *Sizes) {
			s.LogRows, s.LogKeys, s.LogBytes, s.IDRows, s.IDBytes = 200*million, 200*million, 32e8, 200*million, 16e8
			s.Kept, s.JoinRows, s.Selectivity = 20*million, 20*million, 0.1
		}), Limits{Type: "inner", IDColumns: true, Memory: gib / 2}, Shuffle},
	} {
		c.l.Threads = 2
		all := Costs(c.s, c.l)
		if got := Choose(all); got.Strategy != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.Strategy, c.want)
		}
		for _, x := range all {
			t.Logf("%s: %+v", c.name, x)
		}
	}
}

// TestFiltering: a filter that drops nothing is paused, one that drops much is used,
// and near the break-even nothing changes.
func TestFiltering(t *testing.T) {
	const group = 1 << 18
	f := NewFiltering(&Model{}, 0)
	f.probe, f.lookup = 4, 20 // even where a fifth is dropped
	asked := func(groups int, passed float64) (n int) {
		for range groups {
			if f.Ask() {
				n++
				f.Seen(group, int64(passed*group))
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
	few := &Filtering{probe: 4, lookup: 4}
	few.Seen(1000, 1000)
	if !few.Ask() {
		t.Error("a thousand rows decide nothing")
	}
}

// TestFilterBytes: the sizes that a plan assumes for filters are correct.
func TestFilterBytes(t *testing.T) {
	for _, n := range []uint64{10_000, 1_000_000, 50_000_000} {
		for p := 0.5; p > 1e-6; p /= 1.7 {
			g := bloom.GeometryFor(p)
			want := float64(g.BlocksFor(n, p) * g.BlockBytes())
			got := filterBytes(float64(n), p)
			if math.Abs(got-want) > 0.05*want {
				t.Errorf("%d keys at %.3g: %.0f bytes, want %.0f", n, p, got, want)
			}
			if r := rateOf(want, float64(n), 0); math.Abs(r-p) > 0.3*p { // at the switch of the geometry the rate jumps
				t.Errorf("%d keys in %.0f bytes: rate %.3g, want %.3g", n, want, r, p)
			}
		}
	}
	if got := rateOf(1000, 1e9, 0.01); got != 1 {
		t.Errorf("a filter of no bits for a key has rate %v", got)
	}
}

// BenchmarkChoose measures one comparison of the strategies.
func BenchmarkChoose(b *testing.B) {
	s := Sizes{LogRows: 150000, LogKeys: 40000, LogBytes: 2e7, LogColumns: 10, IDRows: 2000, IDKeys: 2000, KeyBytes: 8, Integer: true, Selectivity: 0.01, Kept: 100}
	for b.Loop() {
		Choose(Costs(s, Limits{Threads: 2, Memory: 1e10}))
	}
}
