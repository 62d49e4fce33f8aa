package main

import (
	"math"
	"testing"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

func walls(seconds ...float64) (runs []race.Usage) {
	for _, s := range seconds {
		runs = append(runs, race.Usage{Wall: s})
	}
	return runs
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-12*math.Abs(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Neither a floor nor bloomjoin is a peer.
func TestFastest(t *testing.T) {
	r := result{runs: race.Runs{"ours": walls(1, 2, 6), "floor": walls(0.5), "duckdb": walls(3, 3, 1), "polars4": walls(4, 1, 2)}}
	if got := r.fastest(contenders()); got != "polars4" {
		t.Errorf("got %q, want polars4", got)
	}
	if got := (result{runs: race.Runs{"ours": walls(1)}}).fastest(contenders()); got != "" {
		t.Errorf("no peer: got %q, want none", got)
	}
}

func TestGeometricMean(t *testing.T) {
	near(t, "of 1, 2, 4", geometricMean([]float64{1, 2, 4}), 2)
	near(t, "of 0.5", geometricMean([]float64{0.5}), 0.5)
	for _, none := range [][]float64{{}, {1, math.NaN()}} {
		if v := geometricMean(none); !math.IsNaN(v) {
			t.Errorf("of %v: got %v, want none", none, v)
		}
	}
}

func TestLimits(t *testing.T) {
	for name, want := range map[string]struct {
		fastest float64
		floor   string
	}{
		"base/snappy/1%":       {1, "floor"},
		"base/zstd/0.01%":      {1.1, "floor"},
		"base/zstd/1%":         {1.1, "floor"},
		"base/zstd/10%":        {1, "floor2"},
		"clustered/zstd/1%":    {0.5, ""},
		"clustered/snappy/50%": {0.5, ""},
	} {
		cells, err := chosenCells(name)
		if err != nil || len(cells) != 1 {
			t.Fatalf("%s: %v, %v", name, cells, err)
		}
		if got := limitsOf(cells[0]).fastest; got != want.fastest {
			t.Errorf("%s: limit %v, want %v", name, got, want.fastest)
		}
		if got := floorOf(cells[0]); got != want.floor {
			t.Errorf("%s: floor %q, want %q", name, got, want.floor)
		}
	}
}
