package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// Targets of conditions.
const (
	mostOfDay    = 1.05 // bytes read / those of the day
	mostOfDuckDB = 0.8  // time / DuckDB's
)

// between returns a condition on the time, in SQL and for Polars.
func between(from, to string) (where, polars string) {
	return fmt.Sprintf("event_time >= TIMESTAMP '%s' AND event_time < TIMESTAMP '%s'", from, to),
		fmt.Sprintf("pl.col('event_time').is_between(datetime.fromisoformat('%s'), datetime.fromisoformat('%s'), closed='left')", from, to)
}

// condition is a row of the cell where-range.
type condition struct {
	text          string
	where, polars string
	goal          float64 // time / DuckDB's; 0: none
}

func allConditions() []condition {
	month, quarter := condition{text: "a month of the year", goal: mostOfDuckDB}, condition{text: "a quarter of the year", goal: mostOfDuckDB}
	month.where, month.polars = between("2024-05-01", "2024-06-01")
	quarter.where, quarter.polars = between("2024-04-01", "2024-07-01")
	return []condition{
		month, quarter,
		{text: "`country = 'DE'`", where: "country = 'DE'", polars: "pl.col('country') == 'DE'"},
		{text: "`url LIKE 'https://shop.example.com/s%'`", where: "url LIKE 'https://shop.example.com/s%'", polars: "pl.col('url').str.starts_with('https://shop.example.com/s')"},
		{text: "`duration_ms < 208`, half of the rows", where: "duration_ms < 208", polars: "pl.col('duration_ms') < 208"},
		{text: "none", polars: "pl.lit(True)"},
	}
}

// conditions measures joins with conditions beside DuckDB and Polars.
func conditions(ctx context.Context, b *bench, c cell, d dataset) (*cells.Result, error) {
	t := report.Table{Name: c.Name, Head: []string{"condition", "bloomjoin s", "DuckDB s", "Polars s", "/ DuckDB", "wanted", "met", "peak MiB", "DuckDB's", "rows out"}}
	res, n := &cells.Result{}, 0
	for _, cond := range allConditions() {
		j := jobOf(d, "semi")
		j.where, j.polars = cond.where, cond.polars
		r, err := b.race(ctx, c.Name+", "+strings.Trim(cond.text, "`"), j, nil, 5, append([]contender{bloomjoin(), b.duckdb()}, b.polars("semi")[1:]...))
		if err != nil {
			return nil, err
		}
		for _, w := range r.wrong {
			res.Wrong = append(res.Wrong, fmt.Errorf("%s: %w", cond.text, w))
		}
		r.conditionRow(&t, cond)
		n = max(n, len(r.runs["ours"]))
	}
	size, _, err := sizeOf(d.log)
	if err != nil {
		return nil, err
	}
	t.Note("A semi-join with 1 %% of the users. The log is a local file of %.0f MB, sorted by time, a row group for each of 365 days, with a page index. %s, %d threads; of Polars twice as many.", float64(size)/1e6, rounds(n), threads)
	res.Tables = []report.Table{t}
	return res, nil
}

// conditionRow adds the row of a condition.
func (r *contest) conditionRow(t *report.Table, cond condition) {
	seconds := func(name string) string { return report.Number(r.runs.Figure(name, r.runs.Wall)) }
	peak := func(name string) string {
		if len(r.runs[name]) == 0 {
			return "–"
		}
		return report.MiB(r.runs.Peak(name))
	}
	ratio, wanted, met := r.runs.Ratio("ours", "duckdb"), "–", "–"
	if cond.goal > 0 {
		wanted, met = "≤ "+report.Number(cond.goal), report.Met(ratio, cond.goal)
	}
	t.Row(cond.text, seconds("ours"), seconds("duckdb"), seconds("polars-isin"), report.Number(ratio), wanted, met, peak("ours"), peak("duckdb"), fmt.Sprint(r.answer.Rows))
}

// theDay is the day that where-day chooses, counted from 0.
const theDay = 161 // 2024-06-10

// dayBytes is what group.py prints.
type dayBytes struct {
	Chunks int64 `json:"chunks"` // the column chunks of the day's row group
	Footer int64 `json:"footer"`
}

// day measures the bytes that are read for one day of the year.
func day(ctx context.Context, b *bench, c cell, d dataset) (*cells.Result, error) {
	var out bytes.Buffer
	if _, err := race.Execute(ctx, race.Step{Argv: []string{b.program.python, "-c", race.Script(scripts, "group"), d.log, fmt.Sprint(theDay)}, Out: &out}); err != nil {
		return nil, err
	}
	var of dayBytes
	if err := json.Unmarshal(out.Bytes(), &of); err != nil {
		return nil, err
	}
	t, goals := report.Table{Name: c.Name, Head: []string{c.Name, "MB", "less the footer / the day's"}}, report.Targets()
	t.Row("*the day's column chunks*", megabytes(of.Chunks), "1.00")
	t.Row("*the footer*", megabytes(of.Footer), "–")
	res := &cells.Result{}
	read := func(text string, n float64) {
		ratio := (n - float64(of.Footer)) / float64(of.Chunks)
		t.Row(text, report.Number(n/1e6), report.Number(ratio))
		goals.AtMost(text+": bytes less the footer / the day's", ratio, mostOfDay)
	}
	few := d
	few.ids = strings.TrimSuffix(d.ids, "ids.parquet") + "few.parquet"
	for _, way := range []struct {
		text string
		dataset
		typ string
	}{{"all rows of the day but a few users'", few, "anti"}, {"1 % of the users on that day", d, "semi"}} {
		j := job{dataset: way.dataset, typ: way.typ}
		j.where, j.polars = between("2024-06-10", "2024-06-11")
		if way.typ == "anti" { // the IDs, which are read as well, have hardly any bytes
			r, err := b.race(ctx, c.Name, j, nil, 1, []contender{bloomjoin()})
			if err != nil {
				return nil, err
			}
			res.Wrong = append(res.Wrong, r.wrong...)
			read(way.text+", local file, as bloomjoin reports", r.runs.Figure("ours", func(name string) float64 { return float64(r.said[name].BytesRead) }))
		}
		if b.server == nil {
			continue
		}
		r, err := b.receive(ctx, c.Name, j, []contender{bloomjoin()})
		if err != nil {
			return nil, err
		}
		res.Wrong = append(res.Wrong, r.wrong...)
		read(way.text+", object store, as received", r.received("ours"))
	}
	size, _, err := sizeOf(d.log)
	if err != nil {
		return nil, err
	}
	t.Note("The log has %.0f MB, sorted by time, a row group for each of 365 days. The footer describes all of them, and is read once.", float64(size)/1e6)
	if b.server == nil {
		t.Note("Nothing was received from an object store: %s.", noGateway)
	}
	res.Tables = []report.Table{t, goals}
	return res, nil
}
