package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// forced are the strategies that can be forced.
var forced = []string{"exact", "lookup", "broadcast", "reverse", "shuffle"}

// aboveBest is the allowed ratio of the planner's choice to the best strategy.
const aboveBest = 1.2

// strategies measures all strategies. must names a strategy that may not refuse. Only
// exact may refuse otherwise: it needs IDs that fit an exact filter, and an answer
// without columns of the IDs.
func strategies(typ, must string) func(context.Context, *bench, cell, dataset) (*cells.Result, error) {
	return func(ctx context.Context, b *bench, c cell, d dataset) (*cells.Result, error) {
		j := jobOf(d, typ)
		contenders := []contender{bloomjoin("ours", "**the planner's choice**", j)}
		for _, name := range forced {
			s := strategy(name, j)
			s.mayRefuse = name == "exact" && name != must
			contenders = append(contenders, s)
		}
		r, err := b.race(ctx, c.Name, 3, contenders)
		if err != nil {
			return nil, err
		}
		best := r.runs.Fastest(forced)
		if best == "" {
			return nil, errors.Join(r.wrong...)
		}
		t, goals := r.table("that of `"+best+"`", func(string) string { return best }), report.Targets()
		t.Note("%s", r.summary("ours"))
		goals.AtMost(fmt.Sprintf("time of the planner's choice, `%s` / that of the best, `%s`", r.said["ours"].Strategy, best), r.runs.Ratio("ours", best), aboveBest)
		return &cells.Result{Tables: []report.Table{t, goals}, Wrong: append(r.wrong, r.disobeyed()...)}, nil
	}
}

// disobeyed returns the contenders whose strategy differs from the one that their name
// starts with.
func (r *contest) disobeyed() (wrong []error) {
	for _, c := range r.contenders {
		told, _, _ := strings.Cut(c.name, " ")
		if took := r.said[c.name].Strategy; slices.Contains(forced, told) && took != "" && took != told {
			wrong = append(wrong, fmt.Errorf("%s: told to take %s, it took %s", c.name, told, took))
		}
	}
	return wrong
}

// skewed is the allowed ratio of a log with heavy keys to a uniform one.
const skewed = 2.0

// skew measures the same strategies on logs with different distributions of keys.
func skew(ctx context.Context, b *bench, c cell, d dataset) (*cells.Result, error) {
	logs := []struct{ name, text string }{
		{"uniform", "even"}, {"heavy", "one key has 30 %"}, {"zipf", "Zipf's law, exponent 1.2"},
	}
	ways := []struct {
		name  string
		flags []string
	}{
		{"lookup", nil}, {"reverse", nil}, {"shuffle", []string{"--memory", skewMemory}},
	}
	var contenders []contender
	for _, way := range ways {
		for _, log := range logs {
			j := jobOf(dataset{log: filepath.Join(filepath.Dir(d.log), log.name+".parquet"), ids: d.ids}, "inner")
			s := strategy(way.name, j, way.flags...)
			s.name, s.text = way.name+" "+log.name, "`"+way.name+"`, "+log.text
			contenders = append(contenders, s)
		}
	}
	r, err := b.race(ctx, c.Name, 3, contenders)
	if err != nil {
		return nil, err
	}
	even := func(name string) string {
		way, _, _ := strings.Cut(name, " ")
		return way + " uniform"
	}
	t, goals := r.table("on the even log", even), report.Targets()
	t.Note("`shuffle` has `--memory %s`.", skewMemory)
	for _, c := range contenders {
		if even(c.name) != c.name {
			goals.AtMost(c.text+": time / on the even log", r.runs.Ratio(c.name, even(c.name)), skewed)
		}
	}
	return &cells.Result{Tables: []report.Table{t, goals}, Wrong: append(r.wrong, r.disobeyed()...)}, nil
}

// skewMemory is too little for the IDs of these joins.
const skewMemory = "128MiB"

// budgets measures a join with decreasing budgets. The peak, including mapped pages of
// the inputs, must be within each.
func budgets(ctx context.Context, b *bench, c cell, d dataset) (*cells.Result, error) {
	j := jobOf(d, "inner")
	given := map[string]int{}
	var contenders []contender
	for _, mib := range []int{2048, 512, 256, 128, 64} {
		name := fmt.Sprintf("%dMiB", mib)
		given[name] = mib
		one := bloomjoin(name, "`--memory "+name+"`", j, "--memory", name)
		one.anyOrder = mib < 128 // the IDs of a row group are processed in parts
		contenders = append(contenders, one)
	}
	r, err := b.race(ctx, c.Name, 3, contenders)
	if err != nil {
		return nil, err
	}
	first := contenders[0]
	t, goals := r.table("in that of "+first.name, func(string) string { return first.name }), report.Targets()
	for _, c := range contenders {
		t.Note("%s: strategy %s.", c.text, r.said[c.name].Strategy)
		r.peakWithin(&goals, c, given[c.name])
	}
	return &cells.Result{Tables: []report.Table{t, goals}, Wrong: r.wrong}, nil
}

// peakWithin adds the target that the peak of a process is within its budget, in MiB.
func (r *contest) peakWithin(t *report.Table, c contender, mib int) {
	got := r.runs.Figure(c.name, func(name string) float64 { return float64(r.runs.Peak(name)) / (1 << 20) })
	text := "–"
	if !math.IsNaN(got) {
		text = fmt.Sprintf("%.0f", got)
	}
	t.Row("peak MiB, "+c.text, text, fmt.Sprintf("≤ %d", mib), report.Met(got, float64(mib)))
}

// shuffleMemory is too little for either side of the big join.
const shuffleMemory = "1GiB"

// shuffle measures a join of two sides that both exceed the memory, and DuckDB with
// the same limit.
func shuffle(ctx context.Context, b *bench, c cell, d dataset) (*cells.Result, error) {
	j := job{dataset: d, typ: "inner", payload: "score"}
	limited := python("duckdb", "DuckDB "+race.Version(race.DuckDB)+", `memory_limit` "+shuffleMemory, "duckdb_join", threads, j, shuffleMemory)
	limited.mayRefuse = true
	forced := strategy("shuffle", j, "--memory", shuffleMemory)
	forced.text += ", `--memory " + shuffleMemory + "`"
	r, err := b.race(ctx, c.Name, 1, []contender{
		bloomjoin("ours", "**bloomjoin**, `--memory "+shuffleMemory+"`", j, "--memory", shuffleMemory),
		forced, limited,
	})
	if err != nil {
		return nil, err
	}
	if got, want := r.answers[j].Rows, int64(b.Scaled(pairRows)/10); got != want {
		r.wrong = append(r.wrong, fmt.Errorf("DuckDB finds %d rows where %d must be", got, want))
	}
	t, goals := r.toOurs(), report.Targets()
	t.Note("%s", r.summary("ours"))
	t.Note("The answers of all have %d rows, and the sum of DuckDB's hash over them is %s.", r.answers[j].Rows, r.answers[j].Hash)
	for _, c := range r.contenders[:2] {
		r.peakWithin(&goals, c, 1024)
	}
	return &cells.Result{Tables: []report.Table{t, goals}, Wrong: append(r.wrong, r.disobeyed()...)}, nil
}
