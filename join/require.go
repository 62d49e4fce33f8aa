package join

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/publish"
)

// Require sets conditions on an answer, checked when all input has been read. If
// one is not met, [Join.Write] publishes nothing, not a single file of a directory,
// and [Join.Run] ends with an error that wraps [ErrRequire]. The zero value requires
// nothing. IDsMatched is about Report.IDsTotal, and is not met if there are no IDs; left
// and full joins take no MaxKept, since they keep all rows of the log.
//
// Of an answer in a directory, the conditions are about all inputs that the run names,
// also those that were joined before, and all of its shards. They are then checked when
// the last shard is done, and without _SUCCESS the answer is not published. Elsewhere a
// shard's conditions are about its part of the log.
type Require = dataset.Require

// ErrRequire is wrapped by the error for an answer that does not meet
// [Options].Require.
var ErrRequire = output.ErrRequire

// checkRequire returns an error if the requirements cannot apply to a join of type t.
func checkRequire(r Require, t Type) error {
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
func met(r Require, t Type, rep *Report) error {
	kept := rep.RowsMatched
	if t == Anti {
		kept = rep.RowsOut
	}
	counts := publish.Counts{RowsIn: rep.RowsIn, RowsKept: kept, RowsOut: rep.RowsOut}
	return publish.Require(r).Check(counts, [2]int64{rep.IDsMatched, rep.IDsMatched}, rep.IDsTotal)
}
