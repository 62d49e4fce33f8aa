package main

import (
	"context"
	"fmt"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// payload names the columns of generated IDs other than the key.
const payload = "score,name"

// cell is a measurement.
type cell struct {
	cells.Cell
	data    func(context.Context, *bench) (dataset, error)
	measure func(context.Context, *bench, cell, dataset) (*cells.Result, error)
}

// allCells returns all cells, in the order of the document.
func allCells() []cell {
	named := func(name, text string) cells.Cell {
		return cells.Cell{Name: name, Text: text, Document: "../docs/join.md"}
	}
	big := named("shuffle-200m", "200 million rows with 200 million IDs in 1 GiB")
	big.Big = true
	return []cell{
		{Cell: named("semi-100m", "semi-join with 100 million IDs, of which 1 % of the log's rows have one"),
			data: many, measure: beside("semi", 0.35, 1.0/8)},
		{Cell: named("inner-100m", "inner join with them, two columns of theirs in the answer"),
			data: many, measure: beside("inner", 0.6, 1.0/4)},
		{Cell: named("inner-1pct", "inner join with the IDs of 1 % of the users"),
			data: few, measure: beside("inner", 0.7, 0)},
		{Cell: named("strategies-semi-100m", "each strategy forced, on semi-100m"),
			data: many, measure: strategies("semi", "")},
		{Cell: named("strategies-inner-100m", "each strategy forced, on inner-100m"),
			data: many, measure: strategies("inner", "")},
		{Cell: named("strategies-inner-1pct", "each strategy forced, on inner-1pct"),
			data: few, measure: strategies("inner", "")},
		{Cell: named("strategies-dense-10m", "each strategy forced, on a semi-join with 10 million IDs close together"),
			data: made("dense", denseRows, "log"), measure: strategies("semi", "exact")},
		{Cell: named("skew", "a key that has 30 % of the rows, and Zipf's law"),
			data: made("skew", skewRows, "uniform"), measure: skew},
		{Cell: named("budgets", "10 million rows with 5 million IDs, in less and less memory"),
			data: made("skew", skewRows, "uniform"), measure: budgets},
		{Cell: big,
			data: made("pair", pairRows, "log"), measure: shuffle},
		{Cell: named("small", "2,000 IDs and a log of 10 MB"),
			data: small, measure: little},
		{Cell: named("types", "joins of every type, both codecs"),
			data: types, measure: everyType},
		{Cell: named("plan", "what the planner estimates, beside what is"),
			data: planned, measure: plans},
	}
}

// jobOf returns a job on a data set whose IDs have a payload.
func jobOf(d dataset, typ string) job {
	j := job{dataset: d, typ: typ}
	if typ != "semi" && typ != "anti" {
		j.payload = payload
	}
	return j
}

// beside measures a job with all peers. The targets are ratios to DuckDB's time, and
// to its memory if peak is not 0.
func beside(typ string, wall, peak float64) func(context.Context, *bench, cell, dataset) (*cells.Result, error) {
	return func(ctx context.Context, b *bench, c cell, d dataset) (*cells.Result, error) {
		j := jobOf(d, typ)
		r, err := b.race(ctx, c.Name, 3, append([]contender{bloomjoin("ours", "**bloomjoin**", j), duckdb(j)}, polars(j)...))
		if err != nil {
			return nil, err
		}
		t, goals := r.toOurs(), report.Targets()
		t.Note("%s", r.summary("ours"))
		goals.AtMost("time / DuckDB's", r.runs.Ratio("ours", "duckdb"), wall)
		if peak > 0 {
			goals.AtMost("peak memory / DuckDB's", r.peakRatio("ours", "duckdb"), peak)
		}
		return &cells.Result{Tables: []report.Table{t, goals}, Wrong: r.wrong}, nil
	}
}

// summary returns a sentence about bloomjoin's report.
func (r *contest) summary(name string) string {
	s := r.said[name]
	return fmt.Sprintf("The log has %s rows, of which %d were candidates and %d are in the answer; %d of %s IDs have a row. Strategy: %s.",
		report.Count(uint64(s.RowsIn)), s.Candidates, s.RowsOut, s.IDsMatched, report.Count(uint64(s.IDsTotal)), s.Strategy)
}

// mostSmall is the target for a small join, in seconds.
const mostSmall = 0.15

// little measures a process with little to do.
func little(ctx context.Context, b *bench, c cell, d dataset) (*cells.Result, error) {
	semi, inner := jobOf(d, "semi"), jobOf(d, "inner")
	r, err := b.race(ctx, c.Name, 20, []contender{
		bloomjoin("ours", "**bloomjoin**, semi", semi), bloomjoin("inner", "**bloomjoin**, inner", inner),
		python("duckdb", "DuckDB "+race.Version(race.DuckDB)+", semi", "duckdb_join", threads, semi),
	})
	if err != nil {
		return nil, err
	}
	t, goals := r.toOurs(), report.Targets()
	t.Note("%s", r.summary("ours"))
	for _, c := range r.contenders[:2] {
		goals.AtMost("seconds, "+c.text, r.runs.Figure(c.name, r.runs.Wall), mostSmall)
	}
	return &cells.Result{Tables: []report.Table{t, goals}, Wrong: r.wrong}, nil
}
