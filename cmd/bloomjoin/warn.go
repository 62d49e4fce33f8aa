package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// warnInputsGone is the code of a warning about outputs that have no input any more.
const warnInputsGone = "inputs-gone"

// mostHinted bounds the IDs that are read again to find out why none has a row.
const mostHinted = 1 << 20

// hintNoneMatched adds to the warning that no ID has a row what would make some match, if the keys
// are text: the --normalize that does so for a sample of the log, the first row group that this run
// has read; else a list of what makes texts differ.
func (r *logRun) hintNoneMatched(ctx context.Context, opts joins.Options, rep *joinReport, j *joins.Join) {
	i := slices.IndexFunc(rep.Warnings, func(w joins.Warning) bool { return w.Code == joins.WarnNoneMatched })
	if _, classes, rule := j.LogKey(); i < 0 || rule != 0 || !slices.Contains(classes, string(keys.Bytes)) {
		return
	}
	if rule := r.ruleThatMatches(ctx, opts, rep.IDsTotal); rule != "" {
		rep.Warnings[i].Text += "; with --normalize " + rule + " some have"
	} else {
		rep.Warnings[i].Text += "; as text, A and a differ, and so do 7 and 007: --normalize trim,lower or trim,uuid makes texts alike, a cast compares numbers, as --on KEY::decimal(20,0)"
	}
}

// ruleThatMatches returns a --normalize with which some of the IDs have a row in the first row
// group, or "".
func (r *logRun) ruleThatMatches(ctx context.Context, opts joins.Options, ids int64) string {
	pieces := r.pieces()
	if ids > mostHinted || opts.Normalize != "" || len(pieces) == 0 || slices.ContainsFunc(slices.Concat(r.ids, r.files), (*source.File).Once) {
		return ""
	}
	first := pieces[0]
	first.Hi = min(first.Hi, first.Lo+1)
	sample := joins.Options{On: opts.On, IgnoreCase: opts.IgnoreCase, Pieces: []source.Piece{first}, Memory: opts.Memory, Threads: opts.Threads, TempDir: opts.TempDir}
	for _, rule := range []string{"trim", "lower", "trim,lower", "uuid", "trim,uuid"} {
		sample.Normalize = rule
		j, err := joins.New(r.ids, r.files, sample)
		if err != nil { // the keys are not strings
			return ""
		}
		if n, err := j.Count(ctx); err == nil && n > 0 {
			return rule
		}
	}
	return ""
}

// damaged returns warnings about damage in files that did not affect the result.
func damaged(files []*source.File) (ws []joins.Warning) {
	for _, f := range files {
		for _, d := range f.Doubts() {
			ws = append(ws, joins.Warning{Code: joins.WarnDamaged, Text: d})
		}
	}
	return ws
}

// scanWarnings returns warnings about the number of rows that pass one filter. For
// several filters the expected number is unknown.
//
// A scan has no exact check. Its rows count as false positives only if there are no
// more than the filter predicts for a log without any ID: three standard deviations
// of independent rows above the mean. Rows of one key pass together, so a heavy key
// that passes exceeds this, whether it is a member or not, and causes no warning.
// Nor do few rows if the log has a condition, because not all rows were asked for.
func scanWarnings(match []dataset.Match, r scanReport, condition bool) []joins.Warning {
	ws := []joins.Warning{}
	if len(match) != 1 || match[0].NoMatch || r.RowsIn == 0 {
		return ws
	}
	warn := func(code, format string, args ...any) {
		ws = append(ws, joins.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	p, n := r.FPRPredicted, float64(r.RowsIn-r.KeysNull)
	switch {
	case n == 0:
		warn(joins.WarnNoKeys, "all keys of the log are NULL; check --key")
	case r.RowsOut == 0 && condition:
		warn(joins.WarnNoneMatched, "no row that satisfies --where passes the filter: no ID has such a row in the log; check --where and --key")
	case r.RowsOut == 0:
		warn(joins.WarnNoneMatched, "no row passes the filter: no ID has a row in the log; check --key")
	case !condition && float64(r.RowsOut) <= p*n+3*math.Sqrt(p*(1-p)*n):
		warn(joins.WarnFalsePositivesOnly, "%s rows pass the filter, about as many false positives as a log without any ID would give (%.2g of its rows); check --key", words.Count(r.RowsOut), p)
	case r.RowsOut == r.RowsIn:
		warn(joins.WarnNothingDropped, "the filter lets all rows through: the output is a copy of the log")
	}
	return ws
}

// idsMatched says how many IDs have a row: if some repeat, distinct ones and their rows.
func (r *joinReport) idsMatched() string {
	if r.KeysMatched == r.IDsMatched {
		return fmt.Sprintf("%s of %s matched", words.Count(r.IDsMatched), words.Things(r.IDsTotal, "ID"))
	}
	return fmt.Sprintf("%s matched (%s of %s)", words.Things(r.KeysMatched, "distinct ID"), words.Count(r.IDsMatched), words.Things(r.IDsTotal, "row"))
}
