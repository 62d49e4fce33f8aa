package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// cellTable is all that was measured in a cell.
func (r *run) cellTable(res result) report.Table {
	t := report.Table{Head: []string{res.String(), "median s", "min s", "CPU s", "peak MiB", "output MB", "bloomjoin / it"}}
	for _, c := range r.contenders {
		if len(res.runs[c.name]) == 0 {
			continue
		}
		size := "–"
		if c.kind != bound {
			size = fmt.Sprintf("%.1f", float64(res.size(c.name))/1e6)
		}
		t.Row(c.text, seconds(res.wall(c.name)), seconds(res.minimum(c.name)), seconds(res.cpu(c.name)),
			mib(res.peak(c.name)), size, number(res.ratio("ours", c.name)))
	}
	return t
}

// matrixTable has a column for each cell and a row for each contender.
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

// matrix returns the tables of the base's cells, if there are several.
func (r *run) matrix(results []result) []report.Table {
	if len(results) < 2 {
		return nil
	}
	wall := r.matrixTable("wall", "seconds, median (least)", results, func(res result, name string) string {
		return seconds(res.wall(name)) + " (" + seconds(res.minimum(name)) + ")"
	})
	wall.Note("%d rounds.", r.rounds)
	ratio := r.matrixTable("ratio", "time of bloomjoin / time of", results, func(res result, name string) string {
		return number(res.ratio("ours", name))
	})
	ratio.Head = append(ratio.Head, "geometric mean")
	for i, c := range r.contenders {
		ratio.Rows[i] = append(ratio.Rows[i], number(meanOver(results, c.name)))
	}
	return []report.Table{
		wall, ratio,
		r.matrixTable("cpu", "CPU seconds", results, func(res result, name string) string { return seconds(res.cpu(name)) }),
		r.matrixTable("memory", "peak MiB", results, func(res result, name string) string { return mib(res.peak(name)) }),
		r.matrixTable("output", "MB written", results, func(res result, name string) string {
			if res.size(name) == 0 {
				return "–"
			}
			return fmt.Sprintf("%.1f", float64(res.size(name))/1e6)
		}),
	}
}

// meanOver is the geometric mean of our time in units of a contender's.
func meanOver(results []result, name string) float64 {
	var all []float64
	for _, res := range results {
		all = append(all, res.ratio("ours", name))
	}
	return geometricMean(all)
}

// goals has a row for each cell: what we want, and what came out.
func (r *run) goals(name string, results []result) report.Table {
	t := report.Table{Name: name, Head: []string{"log", "rows kept", "bloomjoin s", "/ DuckDB", "fastest peer", "/ fastest", "target", "met",
		"/ floor", "target", "met", "peak MiB", "≤ 256"}}
	var toFastest []float64
	for _, res := range results {
		want, fastest := limitsOf(res.cell), res.fastest(r.contenders)
		quotient := res.ratio("ours", fastest)
		toFastest = append(toFastest, quotient)
		row := []string{res.String(), fmt.Sprint(res.rows), seconds(res.wall("ours")), number(res.ratio("ours", "duckdb")),
			r.text(fastest), number(quotient), "≤ " + number(want.fastest), met(quotient, want.fastest)}
		if floor := floorOf(res.cell); floor == "" {
			row = append(row, "–", "–", "–")
		} else {
			over := res.ratio("ours", floor)
			row = append(row, number(over), "≤ "+number(want.floor), met(over, want.floor))
		}
		t.Row(append(row, mib(res.peak("ours")), met(float64(res.peak("ours")), float64(want.peak)))...)
	}
	if len(results) > 1 && results[0].shape.name == base {
		duckdb, fastest := meanOver(results, "duckdb"), geometricMean(toFastest)
		t.Note("Geometric means: %s of DuckDB's time (target ≤ %s: %s), %s of the fastest peer's (target ≤ %s: %s).",
			number(duckdb), number(meanDuckDB), met(duckdb, meanDuckDB), number(fastest), number(meanFastest), met(fastest, meanFastest))
	}
	return t
}

// text returns how a contender is called in tables.
func (r *run) text(name string) string {
	i := slices.IndexFunc(r.contenders, func(c contender) bool { return c.name == name })
	if i < 0 {
		return "–"
	}
	return r.contenders[i].text
}

// Figures as text.

func seconds(s float64) string { return fmt.Sprintf("%.2f", s) }
func mib(bytes int64) string   { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }

func number(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.2f", v)
}

// met says whether a figure keeps within its limit.
func met(v, limit float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v <= limit:
		return "yes"
	}
	return "**no**"
}
