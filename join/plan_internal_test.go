package join

import (
	"testing"
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
