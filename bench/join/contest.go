package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/answer"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// joined is the report of bloomjoin join --json, see docs/schemas.md.
type joined struct {
	RowsIn       int64   `json:"rows_in"`
	RowsOut      int64   `json:"rows_out"`
	Candidates   int64   `json:"candidates"`
	IDsTotal     int64   `json:"ids_total"`
	IDsMatched   int64   `json:"ids_matched"`
	FPRPredicted float64 `json:"fpr_predicted"`
	Strategy     string  `json:"strategy"`
	SpilledBytes int64   `json:"spilled_bytes"`
	Warnings     []struct {
		Text string `json:"text"`
	} `json:"warnings"`
}

// contest is a measurement of several contenders, with its results.
type contest struct {
	*bench
	name       string
	contenders []contender
	runs       race.Runs
	said       map[string]joined     // reports of bloomjoin, by the contender's name
	failed     map[string]string     // the reason, by the contender's name
	wrong      []error               // failures that are errors
	answers    map[job]answer.Answer // DuckDB's
	ordered    map[job]string        // order-dependent digests of bloomjoin, equal for all strategies
}

// race measures the contenders in rounds. Each round runs all of them in turn, starting
// with a different one. Every answer is compared with DuckDB's, which runs first. A
// contender that fails is not run again.
func (b *bench) race(ctx context.Context, name string, rounds int, contenders []contender) (*contest, error) {
	r := &contest{
		bench: b, name: name, contenders: contenders,
		runs: race.Runs{}, said: map[string]joined{}, failed: map[string]string{}, answers: map[job]answer.Answer{}, ordered: map[job]string{},
	}
	for _, c := range contenders {
		if err := r.answer(ctx, c.job); err != nil {
			return r, err
		}
	}
	for _, who := range race.Rounds(b.RoundsOf(rounds, 1), contenders) {
		if r.failed[who.name] != "" {
			continue
		}
		err := r.once(ctx, who)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err != nil {
			r.fails(who, err)
		}
	}
	return r, nil
}

// answer returns DuckDB's answer, computed untimed at the first call.
func (r *contest) answer(ctx context.Context, j job) error {
	if _, ok := r.answers[j]; ok {
		return nil
	}
	if err := race.Warm(j.log, j.ids); err != nil {
		return err
	}
	race.Say("%s: the answer", r.name)
	return race.Within(r.Out, func(dir string) error {
		out := outIn(dir)
		_, err := race.Execute(ctx, reference(j).step(r.bench, j, out, dir))
		if err == nil {
			r.answers[j], err = answer.Of(ctx, r.program.python, out)
		}
		return err
	})
}

// once runs a contender.
func (r *contest) once(ctx context.Context, who contender) error {
	race.Say("%s: %s", r.name, who.name)
	return race.Within(r.Out, func(dir string) error {
		out := outIn(dir)
		s, printed := who.step(r.bench, who.job, out, dir), bytes.Buffer{}
		s.Out = &printed
		u, err := race.Execute(ctx, s)
		if err != nil {
			return err
		}
		got, err := answer.Of(ctx, r.program.python, out)
		if err != nil {
			return err
		}
		if err := got.Same(r.answers[who.job]); err != nil {
			return err
		}
		if who.kind == ours {
			if err := r.heard(who, printed.Bytes(), got); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		u.Size = got.Bytes
		r.runs[who.name] = append(r.runs[who.name], u)
		return nil
	})
}

// heard compares bloomjoin's report with its output.
func (r *contest) heard(who contender, printed []byte, got answer.Answer) error {
	var says joined
	if err := json.Unmarshal(printed, &says); err != nil {
		return fmt.Errorf("%w: %s", err, race.Tail(string(printed), 3))
	}
	before, ok := r.ordered[who.job]
	switch {
	case says.RowsOut != got.Rows:
		return fmt.Errorf("it says that it wrote %d rows; there are %d", says.RowsOut, got.Rows)
	case len(says.Warnings) > 0: // no warning is expected
		return fmt.Errorf("it warns: %s", says.Warnings[0].Text)
	case ok && before != got.Ordered && !who.anyOrder:
		return errors.New("its rows are right, and in another order than those of a join before")
	}
	r.said[who.name] = says
	if !who.anyOrder {
		r.ordered[who.job] = got.Ordered
	}
	return nil
}

// fails removes a contender from the race. It is not an error if the contender may
// refuse and has exited by itself.
func (r *contest) fails(who contender, err error) {
	race.Say("%s: %s fails", r.name, who.name)
	r.failed[who.name] = strings.TrimPrefix(race.Tail(err.Error(), 1), "bloomjoin: ")
	delete(r.runs, who.name)
	delete(r.said, who.name)
	if exit := (*exec.ExitError)(nil); !who.mayRefuse || !errors.As(err, &exit) || !exit.Exited() {
		r.wrong = append(r.wrong, fmt.Errorf("%s: %w", who.name, err))
	}
}

// spilled returns the bytes that bloomjoin spilled to disk.
func (r *contest) spilled(name string) string {
	if s, ok := r.said[name]; ok {
		return fmt.Sprintf("%.0f", float64(s.SpilledBytes)/1e6)
	}
	return "–"
}

// table returns all figures of the contenders. unit returns the name of the contender
// whose time is the unit for another's.
func (r *contest) table(unitText string, unit func(name string) string) report.Table {
	t := report.Table{Name: r.name, Head: []string{r.name, "median s", "least s", "CPU s", "peak MiB", "on disk MB", "rows out", "its time / " + unitText}}
	for _, c := range r.contenders {
		if len(r.runs[c.name]) == 0 {
			t.Row(c.text, "failed", "–", "–", "–", "–", "–", "–")
			continue
		}
		t.Row(c.text, report.Seconds(r.runs.Wall(c.name)), report.Seconds(r.runs.Least(c.name)), report.Seconds(r.runs.CPU(c.name)),
			report.MiB(r.runs.Peak(c.name)), r.spilled(c.name), fmt.Sprint(r.answers[c.job].Rows), report.Number(r.runs.Ratio(c.name, unit(c.name))))
	}
	for _, c := range r.contenders {
		if why := r.failed[c.name]; why != "" {
			t.Note("%s: %s", c.text, why)
		}
	}
	t.Note("%d rounds, %d threads.", r.roundsRun(), threads)
	return t
}

// toOurs returns a table with times relative to bloomjoin's.
func (r *contest) toOurs() report.Table {
	return r.table("bloomjoin's", func(string) string { return "ours" })
}

// roundsRun returns the number of rounds of contenders that did not fail.
func (r *contest) roundsRun() (n int) {
	for _, runs := range r.runs {
		n = max(n, len(runs))
	}
	return n
}

// peakRatio returns the ratio of the peak memory of two contenders.
func (r *contest) peakRatio(name, unit string) float64 {
	peak := func(name string) float64 { return float64(r.runs.Peak(name)) }
	return r.runs.Figure(name, peak) / r.runs.Figure(unit, peak)
}
