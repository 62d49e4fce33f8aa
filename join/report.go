package join

import (
	"encoding/json"

	"github.com/bloomjoin/bloomjoin/join/internal/plan"
)

// Report holds the figures of a finished join.
type Report struct {
	RowsIn, RowsOut int64
	// RowsWhere counts the log rows that were found to satisfy their files' condition,
	// see [partition.ScanStats]: all of RowsIn without one. Left, full and anti joins
	// find all of them. Where rows are made into records, RowsIn has no others.
	RowsWhere int64
	KeysNull  int64 // log rows with a NULL in the key

	// Of joins that copy pages:
	RowGroupsSkipped, Pages, PagesSkipped int64

	Candidates   int64 // log rows that passed the filter, or for which it was not probed
	RowsMatched  int64 // candidates whose key is in an ID
	IDsTotal     int64 // ID rows without a NULL in the key
	IDsMatched   int64 // of them, those with a log row
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

	rowsUnasked int64 // log rows for which the filter was not probed
	diskBytes   int64 // largest size of what Shuffle kept in TempDir
	filtered    bool  // the log is the output of a scan or join
	condition   bool  // the log has a condition, which not all of RowsIn were asked for
}

// Plan is what to expect of a join, and how it will be carried out.
type Plan struct {
	Strategy Strategy
	Why      string // the reason for the strategy, in one sentence
	// Selectivity estimates the share of the log's rows whose key is in an ID,
	// and Pairs the pairs of log row and ID with equal keys. They are nil if keys
	// were not sampled.
	Selectivity, Pairs *Estimate

	details *plan.Plan
}

// Estimate is a figure with bounds. Unless they are equal, they hold with a
// confidence of 99 %.
type Estimate struct{ Value, Low, High float64 }

// MarshalJSON returns all figures of the plan as docs/plan.md describes them:
// the costs of each strategy, what is known of both sides, the sample, the filter,
// what a distributed join would shuffle, and advice if filtering or this program
// gains little.
func (p *Plan) MarshalJSON() ([]byte, error) { return json.Marshal(p.details) }

// publicPlan returns a plan as users see it.
func publicPlan(d *plan.Plan) *Plan {
	p := &Plan{Strategy: Strategy(d.Strategy), Why: d.Why, details: d}
	if e := d.Selectivity; e != nil {
		p.Selectivity = &Estimate{e.Value, e.Low, e.High}
	}
	if e := d.JoinRows; e != nil {
		p.Pairs = &Estimate{e.Value, e.Low, e.High}
	}
	return p
}
