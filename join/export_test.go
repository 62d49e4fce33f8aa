package join

import (
	"context"

	"github.com/bloomjoin/bloomjoin/join/internal/plan"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
)

// QuickPlan is the plan that a join makes for itself.
func QuickPlan(ctx context.Context, j *Join) (*Plan, error) {
	d, _, err := j.task.quickPlan(ctx)
	if err != nil {
		return nil, err
	}
	return publicPlan(d), nil
}

// Details returns all figures of a plan.
func Details(p *Plan) *plan.Plan { return p.details }

// Sampled returns the options of a plan that samples runs of runRows rows of the log
// and, if there are more than idRows IDs, a part of them.
func Sampled(runs, runRows int, idRows int64) PlanOptions {
	return PlanOptions{Runs: runs, runRows: runRows, idRows: idRows}
}

// RateExpected reports whether a measured rate is within its bounds.
func RateExpected(r Report) bool { return r.rateExpected() }

// Sizes in bytes of the rows of records.
var (
	RowBytes  = table.RowBytes
	WidestRow = table.WidestRow
)
