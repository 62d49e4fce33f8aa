package main

import (
	"math"
	"testing"
)

func walls(seconds ...float64) (runs []usage) {
	for _, s := range seconds {
		runs = append(runs, usage{wall: s, cpu: 2 * s, peak: int64(s * 100)})
	}
	return runs
}

func someResult() result {
	return result{runs: map[string][]usage{
		"ours":    walls(1, 2, 6),
		"duckdb":  walls(2, 2, 3), // quotients 0.5, 1, 2
		"polars4": walls(4, 1, 2), // quotients 0.25, 2, 3
		"floor":   walls(0.5, 0.5, 0.5),
	}}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-12*math.Abs(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A ratio is the median of the rounds' quotients, not the quotient of medians
// (which is 1 for DuckDB and for Polars).
func TestRatio(t *testing.T) {
	r := someResult()
	near(t, "median", r.wall("polars4"), 2)
	near(t, "least", r.minimum("polars4"), 1)
	near(t, "CPU", r.cpu("duckdb"), 4)
	near(t, "peak", float64(r.peak("polars4")), 400)
	near(t, "ours / DuckDB", r.ratio("ours", "duckdb"), 1)
	near(t, "ours / Polars", r.ratio("ours", "polars4"), 2)
	near(t, "DuckDB / ours", r.ratio("duckdb", "ours"), 1)
	for _, pair := range [][2]string{{"ours", "chdb"}, {"chdb", "ours"}, {"ours", ""}} {
		if v := r.ratio(pair[0], pair[1]); !math.IsNaN(v) {
			t.Errorf("%s / %s: got %v, want none", pair[0], pair[1], v)
		}
	}
	r.runs["duckdb"] = r.runs["duckdb"][:2]
	if v := r.ratio("ours", "duckdb"); !math.IsNaN(v) {
		t.Errorf("rounds that do not pair: got %v, want none", v)
	}
}

// Neither a floor nor ourselves is a peer.
func TestFastest(t *testing.T) {
	r := someResult()
	r.runs["duckdb"] = walls(3, 3, 1)
	if got := r.fastest(contenders()); got != "polars4" {
		t.Errorf("got %q, want polars4", got)
	}
	if got := (result{runs: map[string][]usage{"ours": walls(1)}}).fastest(contenders()); got != "" {
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

func TestUsagePlus(t *testing.T) {
	got := usage{1, 2, 30, 4}.plus(usage{10, 20, 7, 40})
	if want := (usage{11, 22, 30, 44}); got != want {
		t.Errorf("got %v, want %v", got, want)
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
