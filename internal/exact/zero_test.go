package exact

import "testing"

// The zero Set is an empty set that can be used like one from New.
func TestZeroSet(t *testing.T) {
	var s Set
	s.Add([]uint64{1, 1 << 63}, true)
	if s.Len() != 2 || len(s.Probe([]uint64{1, 2, 1 << 63}, true, nil)) != 2 || !s.Any(0, 5, true) {
		t.Errorf("%d members", s.Len())
	}
	other := New()
	other.Add([]uint64{1, 7}, false)
	s.Intersect(other)
	if s.Len() != 1 || s.Clone().Len() != 1 {
		t.Errorf("%d members", s.Len())
	}
}

// A nil Set reads as an empty one.
func TestNilSet(t *testing.T) {
	var none *Set
	want, got := New(), none
	a, b := got.Marshal()
	wantA, wantB := want.Marshal()
	if len(a) != len(wantA) || len(b) != len(wantB) || got.WireBytes() != want.WireBytes() {
		t.Errorf("marshalled as %d and %d bytes", len(a), len(b))
	}
	for range got.Values {
		t.Error("a member")
	}
	_, _, least := got.Least()
	_, _, greatest := got.Greatest()
	members, all := got.Within(0, 9, true, 5)
	if got.Len() != 0 || got.Cost() != want.Cost() || got.Bytes() != want.Bytes() || got.Any(0, 1<<62, true) || least || greatest || len(members) != 0 || !all ||
		len(got.Probe([]uint64{0, 1}, true, nil)) != 0 || got.Clone().Len() != 0 || got.Indexable(1<<20) != want.Indexable(1<<20) {
		t.Error("not empty")
	}
	s := New()
	s.Add([]uint64{1, 2}, false)
	s.Union(nil)
	s.Difference(nil)
	if s.Len() != 2 {
		t.Errorf("%d members", s.Len())
	}
	s.Intersect(nil)
	if s.Len() != 0 {
		t.Errorf("%d members", s.Len())
	}
}
