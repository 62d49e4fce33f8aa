package joins

import (
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
)

// Report holds the figures of a finished join.
type Report struct {
	RowsIn, RowsOut int64
	// RowsWhere counts the log rows that were found to satisfy their files' condition, see
	// [keyscan.Stats]; without a condition it is RowsIn. Left, full and anti joins find all of
	// them. Where rows become records, RowsIn counts no others.
	RowsWhere int64
	KeysNull  int64 // log rows with a NULL in the key

	// Of joins that copy pages:
	RowGroupsSkipped, Pages, PagesSkipped int64

	Candidates   int64 // log rows that passed the filter, or were not probed
	RowsMatched  int64 // candidates whose key is in an ID
	IDsTotal     int64 // ID rows without a NULL in the key
	IDsMatched   int64 // of them, those with a log row
	KeysMatched  int64 // their distinct keys
	FPRAsked     float64
	FPRPredicted float64
	// FPRMeasured is the observed false-positive rate: the share of the FPRRows probed rows
	// without an ID that passed the filter. Its bounds are what the filter's bits predict; outside
	// them, something is wrong with the filter.
	FPRMeasured  Estimate
	FPRRows      int64
	Strategy     Strategy
	SpilledBytes int64 // written to TempDir
	Plan         *Plan // that chose the strategy; nil if none was made
	Warnings     []Warning

	rowsUnasked int64 // log rows that were not probed
	filtered    bool  // the log is the output of a scan or join
	condition   bool  // the log has a condition, which not all of RowsIn were asked for
}

// Plan has all figures of a plan, Estimate a figure with bounds, and Side the figures of a side.
type (
	Plan     = plan.Plan
	Estimate = plan.Estimate
	Side     = plan.Side
)
