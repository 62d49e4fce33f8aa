package main

import (
	"context"
	"fmt"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// payload names the columns of generated IDs other than the key.
const payload = "score,name"

// cell is a measurement.
type cell struct {
	name, text string
	big        bool // measured only on request
	data       func(context.Context, *bench) (dataset, error)
	measure    func(context.Context, *bench, cell, dataset) (*result, error)
}

// cells returns all cells, in the order of the document.
func cells() []cell {
	return []cell{
		{name: "semi-100m", text: "semi-join with 100 million IDs, of which 1 % of the log's rows have one",
			data: many, measure: beside("semi", 0.35, 1.0/8)},
		{name: "inner-100m", text: "inner join with them, two columns of theirs in the answer",
			data: many, measure: beside("inner", 0.6, 1.0/4)},
		{name: "inner-1pct", text: "inner join with the IDs of 1 % of the users",
			data: few, measure: beside("inner", 0.7, 0)},
		{name: "strategies-semi-100m", text: "each strategy forced, on semi-100m",
			data: many, measure: strategies("semi", "")},
		{name: "strategies-inner-100m", text: "each strategy forced, on inner-100m",
			data: many, measure: strategies("inner", "")},
		{name: "strategies-inner-1pct", text: "each strategy forced, on inner-1pct",
			data: few, measure: strategies("inner", "")},
		{name: "strategies-dense-10m", text: "each strategy forced, on a semi-join with 10 million IDs close together",
			data: made("dense", denseRows, "log"), measure: strategies("semi", "exact")},
		{name: "skew", text: "a key that has 30 % of the rows, and Zipf's law",
			data: made("skew", skewRows, "uniform"), measure: skew},
		{name: "budgets", text: "10 million rows with 5 million IDs, in less and less memory",
			data: made("skew", skewRows, "uniform"), measure: budgets},
		{name: "shuffle-200m", text: "200 million rows with 200 million IDs in 1 GiB", big: true,
			data: made("pair", pairRows, "log"), measure: shuffle},
		{name: "small", text: "2,000 IDs and a log of 10 MB",
			data: small, measure: little},
		{name: "types", text: "joins of every type, both codecs",
			data: types, measure: everyType},
		{name: "plan", text: "what the planner estimates, beside what is",
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
func beside(typ string, wall, peak float64) func(context.Context, *bench, cell, dataset) (*result, error) {
	return func(ctx context.Context, b *bench, c cell, d dataset) (*result, error) {
		j := jobOf(d, typ)
		r, err := b.race(ctx, c.name, 3, append([]contender{bloomjoin("ours", "**bloomjoin**", j), duckdb(j)}, polars(j)...))
		if err != nil {
			return nil, err
		}
		t, goals := r.toOurs(), targets()
		t.Note("%s", r.summary("ours"))
		atMost(&goals, "time / DuckDB's", r.runs.Ratio("ours", "duckdb"), wall)
		if peak > 0 {
			atMost(&goals, "peak memory / DuckDB's", r.peakRatio("ours", "duckdb"), peak)
		}
		return &result{tables: []report.Table{t, goals}, wrong: r.wrong}, nil
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
func little(ctx context.Context, b *bench, c cell, d dataset) (*result, error) {
	semi, inner := jobOf(d, "semi"), jobOf(d, "inner")
	r, err := b.race(ctx, c.name, 20, []contender{
		bloomjoin("ours", "**bloomjoin**, semi", semi), bloomjoin("inner", "**bloomjoin**, inner", inner),
		python("duckdb", version(race.DuckDB)+", semi", "duckdb_join", threads, semi),
	})
	if err != nil {
		return nil, err
	}
	t, goals := r.toOurs(), targets()
	t.Note("%s", r.summary("ours"))
	for _, c := range r.contenders[:2] {
		atMost(&goals, "seconds, "+c.text, r.figure(c.name, r.runs.Wall), mostSmall)
	}
	return &result{tables: []report.Table{t, goals}, wrong: r.wrong}, nil
}
