package joins

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/publish"
)

// checkRequire returns an error if the requirements cannot apply to a join of type t.
func checkRequire(r dataset.Require, t Type) error {
	valid := func(s float64) bool { return s >= 0 && s <= 1 } // false for NaN
	switch {
	case r.Rows < 0:
		return fmt.Errorf("required rows %d: want 0 or more", r.Rows)
	case !valid(r.IDsMatched):
		return fmt.Errorf("required share of the IDs %v: want 0 to 1", r.IDsMatched)
	case !valid(r.MaxKept):
		return fmt.Errorf("largest share of the log to keep %v: want 0 to 1", r.MaxKept)
	case r.MaxKept > 0 && (t == Left || t == Full):
		return faults.Unsupported(fault.At{}, "a bound on the rows that a %s join keeps, since it keeps all", t)
	}
	return nil
}

// met compares the report with the requirements.
func met(r dataset.Require, t Type, rep *Report) error {
	kept := rep.RowsMatched
	if t == Anti {
		kept = rep.RowsOut
	}
	counts := publish.Counts{RowsIn: rep.RowsIn, RowsKept: kept, RowsOut: rep.RowsOut}
	return publish.Require(r).Check(counts, [2]int64{rep.IDsMatched, rep.IDsMatched}, rep.IDsTotal)
}
