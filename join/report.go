package join

import (
	"encoding/json"
	"fmt"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/joins"
)

// Report holds the figures of a finished join.
type Report struct {
	RowsIn, RowsOut int64
	// RowsWhere counts the log rows that were found to satisfy their files' condition,
	// see [partition.ScanStats]: all of RowsIn without one. Left, full and anti joins
	// find all of them. If rows are made into records, RowsIn counts only these.
	RowsWhere int64
	KeysNull  int64 // log rows with a NULL in the key

	// In joins that copy pages:
	RowGroupsSkipped, Pages, PagesSkipped int64

	Candidates   int64 // log rows that passed the filter, or for which it was not probed
	RowsMatched  int64 // candidates whose key is in an ID
	IDsTotal     int64 // ID rows without a NULL in the key
	IDsMatched   int64 // of them, those with a log row
	KeysMatched  int64 // their distinct keys
	FPRAsked     float64
	FPRPredicted float64
	// FPRMeasured is the observed false-positive rate: of the FPRRows rows whose
	// key is in no ID and for which the filter was probed, the share that passed.
	// Its bounds are those expected from the filter's bits; if it is outside them,
	// something is wrong with the filter.
	FPRMeasured  Estimate
	FPRRows      int64
	Strategy     Strategy
	SpilledBytes int64 // written to TempDir
	Plan         *Plan // that chose the strategy; nil if none was made
	Warnings     []Warning
}

// String returns the report in one line, as the command prints it.
func (r Report) String() string {
	matched := fmt.Sprintf("%d of %d IDs matched", r.IDsMatched, r.IDsTotal)
	if r.KeysMatched != r.IDsMatched {
		matched = fmt.Sprintf("%d distinct IDs matched (%d of %d rows)", r.KeysMatched, r.IDsMatched, r.IDsTotal)
	}
	return fmt.Sprintf("%d rows from %d; %d log rows have an ID; %s; strategy %s", r.RowsOut, r.RowsIn, r.RowsMatched, matched, r.Strategy)
}

// out returns the report as programs have it. TestReport tries each field.
func out(r joins.Report) Report {
	return Report{
		RowsIn: r.RowsIn, RowsOut: r.RowsOut, RowsWhere: r.RowsWhere, KeysNull: r.KeysNull,
		RowGroupsSkipped: r.RowGroupsSkipped, Pages: r.Pages, PagesSkipped: r.PagesSkipped,
		Candidates: r.Candidates, RowsMatched: r.RowsMatched, IDsTotal: r.IDsTotal, IDsMatched: r.IDsMatched, KeysMatched: r.KeysMatched,
		FPRAsked: r.FPRAsked, FPRPredicted: r.FPRPredicted, FPRMeasured: Estimate(r.FPRMeasured), FPRRows: r.FPRRows,
		Strategy: Strategy(r.Strategy), SpilledBytes: r.SpilledBytes, Plan: outPlan(r.Plan),
		Warnings: each.Slice(r.Warnings, func(w joins.Warning) Warning { return Warning(w) }),
	}
}

// Warning is something that a user should know about a join that succeeded: the
// answer is right, but it may not be the one that was meant.
type Warning struct {
	// Code says what about:
	//
	//	no-ids                the ID set is empty, or all of its keys are NULL
	//	no-keys               all keys of the log are NULL
	//	none-matched          no row of the log has a key of the set
	//	false-positives-only  no more rows match than would be false positives if none had an ID
	//	nothing-dropped       every row of the log has a key of the set
	//	filter-too-full       the filter's rate is above what was asked for
	//	filter-rate           the filter's measured rate is outside what its bits predict
	Code string `json:"code"`
	Text string `json:"text"` // one sentence
}

// PlanOptions describe the machines that a plan is for. The zero value is usable.
type PlanOptions struct {
	// Network and Scan are bytes per second: that each worker receives, and that
	// it joins. 0: 1.25e9 (10 Gbit/s) and 1e9.
	Network, Scan float64
	// Workers each receive the filter; 0: one.
	Workers int
}

// Plan is what to expect of a join, and how it will be carried out.
type Plan struct {
	Strategy Strategy
	Why      string // the reason for the strategy, in one sentence
	// Selectivity estimates the share of the log's rows whose key is in an ID,
	// and Pairs the pairs of log row and ID with equal keys. They are nil if keys
	// were not sampled.
	Selectivity, Pairs *Estimate

	in *joins.Plan
}

// Estimate is a figure with bounds. Unless they are equal, they hold with a
// confidence of 99 %.
type Estimate struct{ Value, Low, High float64 }

// MarshalJSON returns all figures of the plan, as in
// https://github.com/bloomjoin/bloomjoin/blob/main/docs/plan.md:
// the costs of each strategy, what is known of both sides, the sample, the filter,
// what a distributed join would shuffle, and advice if filtering or this program
// gains little.
func (p Plan) MarshalJSON() ([]byte, error) { return json.Marshal(p.in) }

// outPlan returns a plan as programs have it.
func outPlan(p *joins.Plan) *Plan {
	if p == nil {
		return nil
	}
	return &Plan{Strategy: Strategy(p.Strategy), Why: p.Why, Selectivity: (*Estimate)(p.Selectivity), Pairs: (*Estimate)(p.JoinRows), in: p}
}
