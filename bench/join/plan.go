package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// sample is a log and an ID set to plan a join for.
type sample struct {
	text string
	dataset
	pattern string // glob of the log's files, if it is a directory
}

// samples returns logs and ID sets of many kinds, with different distributions of rows
// over keys and files, including logs where all or no rows match.
func samples(ctx context.Context, b *bench) (all []sample, err error) {
	for _, s := range []struct {
		text string
		data func(context.Context, *bench) (dataset, error)
	}{
		{"even, the IDs of 1 % of the users", few},
		{"even, 100 million IDs", many},
		{"even, half of the users", made("skew", skewRows, "uniform")},
		{"one key has 30 %", made("skew", skewRows, "heavy")},
		{"Zipf's law, exponent 1.2", made("skew", skewRows, "zipf")},
		{"IDs close together", made("dense", denseRows, "log")},
	} {
		d, err := s.data(ctx, b)
		if err != nil {
			return nil, err
		}
		all = append(all, sample{text: s.text, dataset: d})
	}
	even, dense := all[2].dataset, all[5].dataset
	all = append(all,
		sample{text: "equal: the log is the ID set", dataset: dataset{log: even.log, ids: even.log}},
		sample{text: "disjoint", dataset: dataset{log: even.log, ids: dense.ids}})
	for _, s := range []struct{ shape, text string }{
		{"clustered", "clustered, one range of users"}, {"sorted", "sorted by key"}, {"string", "strings"},
		{"dictionary", "100 k users, dictionary"}, {"small", "2,000 files"},
	} {
		dir, err := b.scanned(ctx, s.shape, "-scale", b.Scaled(shapeRows))
		if err != nil {
			return nil, err
		}
		one := sample{text: s.text, dataset: dataset{log: filepath.Join(dir, "log."+codec+".parquet"), ids: filepath.Join(dir, "ids-1.parquet")}}
		if s.shape == "small" {
			one.log = filepath.Join(dir, "log."+codec)
			one.pattern = "/*.parquet"
		}
		all = append(all, one)
	}
	return all, nil
}

// planned generates the data of all samples.
func planned(ctx context.Context, b *bench) (dataset, error) {
	_, err := samples(ctx, b)
	return dataset{}, err
}

// estimate is a figure with its bounds, from a plan.
type estimate struct{ Value, Low, High float64 }

// rounding is the tolerance for rounding errors in exact figures.
const rounding = 1e-9

// holds reports whether the actual figure is within the bounds.
func (e estimate) holds(real float64) bool {
	return e.Low*(1-rounding) <= real && real <= e.High*(1+rounding)
}

// plan is the report of bloomjoin plan --json, see docs/schemas.md.
type plan struct {
	Strategy    string   `json:"strategy"`
	Selectivity estimate `json:"selectivity"`
	JoinRows    estimate `json:"join_rows"`
	Seconds     float64  `json:"seconds"`
}

// real has DuckDB's figures.
type real struct {
	Rows    float64 `json:"rows"`
	Matched float64 `json:"matched"` // log rows that have an ID
	Pairs   float64 `json:"pairs"`
}

// plans compares estimates with DuckDB's figures. One in twenty may be out of bounds, so
// that is reported but is not an error.
func plans(ctx context.Context, b *bench, c cell, _ dataset) (*cells.Result, error) {
	all, err := samples(ctx, b)
	if err != nil {
		return nil, err
	}
	t := report.Table{Name: c.Name, Head: []string{"log and IDs", "rows that match, %", "estimated (bounds)", "rows of the inner join", "estimated (bounds)", "error", "inside", "strategy", "seconds"}}
	var inside int
	for _, s := range all {
		race.Say("%s: %s", c.Name, s.text)
		var p plan
		if err := answered(ctx, &p, b.Ours, "plan", "--quiet", "--json", "--threads", fmt.Sprint(threads), "--ids", s.ids, "--on", key, "--type", "inner", s.log); err != nil {
			return nil, err
		}
		var is real
		if err := answered(ctx, &is, b.program.python, "-c", race.Script(scripts, "count"), s.log+s.pattern, s.ids, key, fmt.Sprint(threads)); err != nil {
			return nil, err
		}
		share := is.Matched / is.Rows
		ok := p.Selectivity.holds(share) && p.JoinRows.holds(is.Pairs)
		if ok {
			inside++
		}
		t.Row(s.text, percent(share), bounds(p.Selectivity, percent), whole(is.Pairs), bounds(p.JoinRows, whole),
			errorOf(p.JoinRows.Value, is.Pairs), report.Yes(ok), "`"+p.Strategy+"`", report.Seconds(p.Seconds))
	}
	t.Note("%d of %d inside the bounds.", inside, len(all))
	return &cells.Result{Tables: []report.Table{t}}, nil
}

// answered runs a program and decodes the JSON object that it prints.
func answered(ctx context.Context, answer any, argv ...string) error {
	var out bytes.Buffer
	s := race.Step{Argv: argv, Out: &out}
	if _, err := race.Execute(ctx, s); err != nil {
		return err
	}
	if err := json.Unmarshal(out.Bytes(), answer); err != nil {
		return fmt.Errorf("%s: %w: %s", s, err, race.Tail(out.String(), 3))
	}
	return nil
}

func percent(share float64) string { return fmt.Sprintf("%.4g", 100*share) }
func whole(v float64) string       { return fmt.Sprintf("%.0f", v) }

// bounds renders an estimate.
func bounds(e estimate, text func(float64) string) string {
	return fmt.Sprintf("%s (%s to %s)", text(e.Value), text(e.Low), text(e.High))
}

// errorOf returns the error of an estimate in per cent of the actual figure.
func errorOf(got, want float64) string {
	switch {
	case math.Abs(got-want) <= rounding*want:
		return "0"
	case want == 0:
		return "–"
	}
	return fmt.Sprintf("%+.2g %%", 100*(got-want)/want)
}
