package main

import (
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// cellTable returns all figures of a cell.
func (r *run) cellTable(res result) report.Table {
	t := report.Table{Head: []string{res.String(), "median s", "min s", "CPU s", "peak MiB", "output MB", "bloomjoin / it"}}
	for _, c := range r.contenders {
		if len(res.runs[c.name]) == 0 {
			continue
		}
		size := "–"
		if c.kind != bound {
			size = fmt.Sprintf("%.1f", float64(res.runs.Size(c.name))/1e6)
		}
		t.Row(c.text, report.Seconds(res.runs.Wall(c.name)), report.Seconds(res.runs.Least(c.name)), report.Seconds(res.runs.CPU(c.name)),
			report.MiB(res.runs.Peak(c.name)), size, report.Number(res.runs.Ratio("ours", c.name)))
	}
	return t
}

// matrixTable returns a table with a column per cell and a row per contender.
func (r *run) matrixTable(name, what string, results []result, of func(result, string) string) report.Table {
	t := report.Table{Name: name, Head: []string{what}}
	for _, res := range results {
		t.Head = append(t.Head, res.codec+" "+res.rate)
	}
	for _, c := range r.contenders {
		cells := []string{c.text}
		for _, res := range results {
			text := "–"
			if len(res.runs[c.name]) > 0 {
				text = of(res, c.name)
			}
			cells = append(cells, text)
		}
		t.Row(cells...)
	}
	return t
}

// matrix returns the tables of the base's cells, if there are several cells.
func (r *run) matrix(results []result) []report.Table {
	if len(results) < 2 {
		return nil
	}
	wall := r.matrixTable("wall", "seconds, median (least)", results, func(res result, name string) string {
		return report.Seconds(res.runs.Wall(name)) + " (" + report.Seconds(res.runs.Least(name)) + ")"
	})
	wall.Note("%d rounds.", r.rounds)
	ratio := r.matrixTable("ratio", "time of bloomjoin / time of", results, func(res result, name string) string {
		return report.Number(res.runs.Ratio("ours", name))
	})
	ratio.Head = append(ratio.Head, "geometric mean")
	for i, c := range r.contenders {
		ratio.Rows[i] = append(ratio.Rows[i], report.Number(meanOver(results, c.name)))
	}
	return []report.Table{
		wall, ratio,
		r.matrixTable("cpu", "CPU seconds", results, func(res result, name string) string { return report.Seconds(res.runs.CPU(name)) }),
		r.matrixTable("memory", "peak MiB", results, func(res result, name string) string { return report.MiB(res.runs.Peak(name)) }),
		r.matrixTable("output", "MB written", results, func(res result, name string) string {
			if res.runs.Size(name) == 0 {
				return "–"
			}
			return fmt.Sprintf("%.1f", float64(res.runs.Size(name))/1e6)
		}),
	}
}

// meanOver returns the geometric mean of the ratio of bloomjoin's time to a
// contender's.
func meanOver(results []result, name string) float64 {
	var all []float64
	for _, res := range results {
		all = append(all, res.runs.Ratio("ours", name))
	}
	return geometricMean(all)
}

// goals returns a table with a row per cell: targets and results.
func (r *run) goals(name string, results []result) report.Table {
	t := report.Table{Name: name, Head: []string{"log", "rows kept", "bloomjoin s", "/ DuckDB", "fastest peer", "/ fastest", "target", "met",
		"/ floor", "target", "met", "peak MiB", "≤ 256"}}
	var toFastest []float64
	for _, res := range results {
		want, fastest := limitsOf(res.cell), res.fastest(r.contenders)
		quotient := res.runs.Ratio("ours", fastest)
		toFastest = append(toFastest, quotient)
		row := []string{res.String(), fmt.Sprint(res.rows), report.Seconds(res.runs.Wall("ours")), report.Number(res.runs.Ratio("ours", "duckdb")),
			r.text(fastest), report.Number(quotient), "≤ " + report.Number(want.fastest), report.Met(quotient, want.fastest)}
		if floor := floorOf(res.cell); floor == "" {
			row = append(row, "–", "–", "–")
		} else {
			over := res.runs.Ratio("ours", floor)
			row = append(row, report.Number(over), "≤ "+report.Number(want.floor), report.Met(over, want.floor))
		}
		t.Row(append(row, report.MiB(res.runs.Peak("ours")), report.Met(float64(res.runs.Peak("ours")), float64(want.peak)))...)
	}
	if len(results) > 1 && results[0].shape.name == base {
		duckdb, fastest := meanOver(results, "duckdb"), geometricMean(toFastest)
		t.Note("Geometric means: %s of DuckDB's time (target ≤ %s: %s), %s of the fastest peer's (target ≤ %s: %s).",
			report.Number(duckdb), report.Number(meanDuckDB), report.Met(duckdb, meanDuckDB), report.Number(fastest), report.Number(meanFastest), report.Met(fastest, meanFastest))
	}
	return t
}

// text returns the name of a contender in tables.
func (r *run) text(name string) string {
	i := slices.IndexFunc(r.contenders, func(c contender) bool { return c.name == name })
	if i < 0 {
		return "–"
	}
	return r.contenders[i].text
}
