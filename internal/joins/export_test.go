package joins

import (
	"context"
)

// QuickPlan is the plan that a join makes for itself.
func QuickPlan(ctx context.Context, j *Join) (*Plan, error) {
	p, _, err := j.task.quickPlan(ctx)
	return p, err
}

// Sampled returns the options of a plan that samples runs of RunRows rows of the log
// and, if there are more than IDRows IDs, a part of them.
func Sampled(runs, runRows int, idRows int64) PlanOptions {
	return PlanOptions{Runs: runs, RunRows: runRows, IDRows: idRows}
}

// RateExpected reports whether a measured rate is within its bounds.
func RateExpected(m Estimate) bool { return (&Report{FPRMeasured: m}).rateExpected() }
