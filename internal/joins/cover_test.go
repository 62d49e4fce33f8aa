package joins_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// TestCoverage: over many ID sets, the true value is within an estimate's bounds as
// often as promised, however the log is ordered.
func TestCoverage(t *testing.T) {
	if cases.Race {
		t.Skip("a statistic of many runs, which the race detector makes ten times as slow")
	}
	const rows, tries = 100_000, 40
	r := rand.New(rand.NewPCG(3, 9))
	keys := make([]int64, rows)
	for i := range keys {
		keys[i] = r.Int64N(15_000)
	}
	sorted := slices.Sorted(slices.Values(keys))
	for _, d := range []keySets{{name: "uniform", log: keys}, {name: "sorted", log: sorted}, {name: "sorted row groups", log: inGroups(keys, 10_000)}} {
		log := open(t, partition.OpenOptions{}, d.write(t, d.log, 2, 10_000, dataset.Parquet))
		missed, below := 0, 0
		for range tries {
			d.ids = nil
			for k := range int64(15_000) {
				if r.Float64() < 0.05 {
					d.ids = append(d.ids, k)
				}
			}
			ids := open(t, partition.OpenOptions{}, d.write(t, d.ids, 1, 10_000, dataset.Parquet))
			j, err := join.New(ids, log, join.Options{On: "k"})
			if err != nil {
				t.Fatal(err)
			}
			p, err := room(j).Plan(context.Background(), joins.Sampled(100, 200, 0))
			if err != nil {
				t.Fatal(err)
			}
			truth, _, _ := d.truth()
			if !inside(p.Selectivity, truth) {
				missed++
			}
			if truth < p.Selectivity.Low {
				below++
			}
		}
		t.Logf("%s: %d of %d missed, %d below", d.name, missed, tries, below)
		if missed > 2 {
			t.Errorf("%s: %d of %d bounds missed the truth", d.name, missed, tries)
		}
	}
}
