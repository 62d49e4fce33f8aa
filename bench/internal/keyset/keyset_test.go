package keyset

import (
	"slices"
	"testing"
)

func TestProbeKeys(t *testing.T) {
	const n, count = 1000, 10000
	set := map[uint64]bool{}
	for _, k := range Set(n) {
		set[k] = true
	}
	if len(set) != n {
		t.Fatalf("%d distinct keys, want %d", len(set), n)
	}
	var in uint64
	for j, k := range Probes(count, n) {
		_, want := Probe(uint64(j), n)
		if set[k] != want {
			t.Fatalf("probe %d: in the set %t, want %t", j, set[k], want)
		}
		if want {
			in++
		}
	}
	if in != Members(count, n) || in < 4800 || in > 5200 {
		t.Errorf("%d of %d probes hit, members says %d", in, count, Members(count, n))
	}
}

func TestSubset(t *testing.T) {
	shuffled, sorted := Subset(1, 1000, 4000)
	if len(shuffled) != 1000 || slices.IsSorted(shuffled) {
		t.Errorf("%d values, sorted %t", len(shuffled), slices.IsSorted(shuffled))
	}
	slices.Sort(shuffled)
	if !slices.Equal(shuffled, sorted) || len(slices.Compact(sorted)) != 1000 || sorted[999] >= 4000 {
		t.Error("not the same set twice")
	}
}
