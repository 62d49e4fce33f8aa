package main

import (
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
)

// Every contender finds all its keys, returns their positions, and has the
// false-positive rate expected for its size.
func TestContenders(t *testing.T) {
	const n, count = 20000, 50000
	keys, probes := keyset.Set(n), keyset.Probes(count, n)
	for _, c := range contenders() {
		if c.name == memoryName {
			continue // not a filter
		}
		f, err := c.make(n, 12)
		if err != nil {
			t.Fatal(err)
		}
		f.add(keys)
		sel := make([]uint32, count+1)
		sel = sel[:f.probe(probes, sel)]
		if !slices.IsSorted(sel) || len(slices.Compact(slices.Clone(sel))) != len(sel) {
			t.Errorf("%s: positions do not ascend", c.name)
		}
		found := map[uint32]bool{}
		for _, at := range sel {
			found[at] = true
		}
		wrong, outside := 0, 0
		for j := range uint64(count) {
			_, in := keyset.Probe(j, n)
			switch {
			case in && !found[uint32(j)]:
				t.Fatalf("%s: probe %d is in the set and not found", c.name, j)
			case !in && found[uint32(j)]:
				wrong++
			}
			if !in {
				outside++
			}
		}
		if fpr := float64(wrong) / float64(outside); fpr > 0.01 {
			t.Errorf("%s: %.2f %% false positives, want less than 1 %%", c.name, fpr*100)
		}
		if bits := float64(f.bytes()*8) / n; bits < 11.5 || bits > 24 {
			t.Errorf("%s: %.1f bits per key, want 12, or up to 24 where the size is a power of two", c.name, bits)
		}
	}
}
