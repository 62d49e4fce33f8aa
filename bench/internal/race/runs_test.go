package race

import (
	"math"
	"testing"
)

func walls(seconds ...float64) (runs []Usage) {
	for _, s := range seconds {
		runs = append(runs, Usage{Wall: s, CPU: 2 * s, Peak: int64(s * 100)})
	}
	return runs
}

func someRuns() Runs {
	return Runs{
		"ours":    walls(1, 2, 6),
		"duckdb":  walls(2, 2, 3), // quotients 0.5, 1, 2
		"polars4": walls(4, 1, 2), // quotients 0.25, 2, 3
		"floor":   walls(0.5, 0.5, 0.5),
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-12*math.Abs(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A ratio is the median of the quotients, not the quotient of the medians, which is
// 1 for DuckDB and Polars.
func TestRatio(t *testing.T) {
	r := someRuns()
	near(t, "median", r.Wall("polars4"), 2)
	near(t, "least", r.Least("polars4"), 1)
	near(t, "CPU", r.CPU("duckdb"), 4)
	near(t, "peak", float64(r.Peak("polars4")), 400)
	near(t, "ours / DuckDB", r.Ratio("ours", "duckdb"), 1)
	near(t, "ours / Polars", r.Ratio("ours", "polars4"), 2)
	near(t, "DuckDB / ours", r.Ratio("duckdb", "ours"), 1)
	for _, pair := range [][2]string{{"ours", "chdb"}, {"chdb", "ours"}, {"ours", ""}} {
		if v := r.Ratio(pair[0], pair[1]); !math.IsNaN(v) {
			t.Errorf("%s / %s: got %v, want none", pair[0], pair[1], v)
		}
	}
	r["duckdb"] = r["duckdb"][:2]
	if v := r.Ratio("ours", "duckdb"); !math.IsNaN(v) {
		t.Errorf("rounds that do not pair: got %v, want none", v)
	}
}

func TestFigure(t *testing.T) {
	r := someRuns()
	near(t, "CPU", r.Figure("duckdb", r.CPU), 4)
	if v := r.Figure("chdb", r.CPU); !math.IsNaN(v) {
		t.Errorf("of who did not run: got %v, want none", v)
	}
}

func TestRunsFastest(t *testing.T) {
	for want, names := range map[string][]string{"duckdb": {"duckdb", "floor2"}, "floor": {"ours", "duckdb", "floor"}, "": {"chdb"}} {
		if got := someRuns().Fastest(names); got != want {
			t.Errorf("of %q: got %q, want %q", names, got, want)
		}
	}
}

func TestUsagePlus(t *testing.T) {
	got := Usage{1, 2, 30, 4}.Plus(Usage{10, 20, 7, 40})
	if want := (Usage{11, 22, 30, 44}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
