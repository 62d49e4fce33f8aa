package join

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
)

// Require sets conditions on an answer, checked when all input has been read. If
// one is not met, [Join.Write] publishes nothing, not a single file of a directory,
// and [Join.Run] ends with an error that wraps [ErrRequire]. The zero value requires
// nothing. With a shard, the conditions are about the shard's part of the log.
type Require struct {
	// Rows is the least number of rows of the answer.
	Rows int64
	// IDsMatched is the least share, from 0 to 1, of the IDs that have a log
	// row: of Report.IDsTotal, those in Report.IDsMatched. It is not met if there
	// are no IDs.
	IDsMatched float64
	// MaxKept is the largest share, from 0 to 1, of the log's rows that may be in
	// the answer; 0: any. Left and full joins keep all of them.
	MaxKept float64
}

// ErrRequire is wrapped by the error for an answer that does not meet
// [Options].Require.
var ErrRequire = errors.New("a requirement is not met")

// requireError lists the requirements that are not met.
type requireError struct{ unmet []string }

func (e *requireError) Error() string {
	return ErrRequire.Error() + ": " + strings.Join(e.unmet, "; ")
}

// Is makes errors.Is find ErrRequire.
func (e *requireError) Is(target error) bool { return target == ErrRequire }

// any reports whether anything is required.
func (r Require) any() bool { return r != Require{} }

// valid returns an error if the requirements cannot apply to a join of type t.
func (r Require) valid(t Type) error {
	valid := func(s float64) bool { return s >= 0 && s <= 1 } // false for NaN
	switch {
	case r.Rows < 0:
		return fmt.Errorf("required rows %d: want 0 or more", r.Rows)
	case !valid(r.IDsMatched):
		return fmt.Errorf("required share of the IDs %v: want 0 to 1", r.IDsMatched)
	case !valid(r.MaxKept):
		return fmt.Errorf("largest share of the log to keep %v: want 0 to 1", r.MaxKept)
	case r.MaxKept > 0 && (t == Left || t == Full):
		return fault.Unsupported(fault.At{}, "a bound on the rows that a %s join keeps, since it keeps all", t)
	}
	return nil
}

// check compares the report with the requirements.
func (r Require) check(t Type, rep *Report) error {
	e := &requireError{}
	unmet := func(what, want, got string) {
		e.unmet = append(e.unmet, fmt.Sprintf("%s: want %s, got %s", what, want, got))
	}
	if rep.RowsOut < r.Rows {
		unmet("rows of the answer", fmt.Sprintf("%d or more", r.Rows), fmt.Sprint(rep.RowsOut))
	}
	if r.IDsMatched > 0 && !(ratio(rep.IDsMatched, rep.IDsTotal) >= r.IDsMatched) {
		unmet("IDs that have a row in the log", percentOf(r.IDsMatched)+" or more", partOf(rep.IDsMatched, rep.IDsTotal))
	}
	kept := rep.RowsMatched
	if t == Anti {
		kept = rep.RowsOut
	}
	if r.MaxKept > 0 && ratio(kept, rep.RowsIn) > r.MaxKept {
		unmet("rows of the log that are kept", percentOf(r.MaxKept)+" or less", partOf(kept, rep.RowsIn))
	}
	if e.unmet == nil {
		return nil
	}
	return e
}

// ratio returns part/whole; NaN if whole is 0.
func ratio(part, whole int64) float64 { return float64(part) / float64(whole) }

func percentOf(share float64) string { return fmt.Sprintf("%.6g%%", 100*share) }

func partOf(part, whole int64) string {
	if whole == 0 {
		return "0 of 0"
	}
	return fmt.Sprintf("%d of %d (%.5g%%)", part, whole, 100*ratio(part, whole))
}
