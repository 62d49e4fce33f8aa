package publish

import (
	"fmt"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/cause"
)

// Require are conditions on an output; the zero value has none.
type Require struct {
	Rows       int64   `json:"rows,omitempty"`        // least number of rows of the output
	IDsMatched float64 `json:"ids_matched,omitempty"` // least share of the IDs that have a row
	MaxKept    float64 `json:"max_kept,omitempty"`    // largest share of the log's rows that is kept; 0: any
}

// ErrRequire is wrapped by the error for an output that does not meet its conditions.
var ErrRequire = cause.New(cause.Gate, "a requirement is not met")

// requireError lists the requirements that are not met.
type requireError struct{ unmet []string }

func (e *requireError) Error() string {
	return ErrRequire.Error() + ": " + strings.Join(e.unmet, "; ")
}

// Is makes errors.Is find ErrRequire.
func (e *requireError) Is(target error) bool { return target == ErrRequire }

// Cause returns the code of its cause.
func (*requireError) Cause() cause.Code { return cause.Gate }

// Check compares the conditions with what was counted. matched are bounds on the number
// of IDs, of total, that have a row.
func (r Require) Check(c Counts, matched [2]int64, total int64) error {
	e := &requireError{}
	unmet := func(what, want string, got any) {
		e.unmet = append(e.unmet, fmt.Sprintf("%s: want %s, got %v", what, want, got))
	}
	if c.RowsOut < r.Rows {
		unmet("rows of the answer", fmt.Sprintf("%d or more", r.Rows), c.RowsOut)
	}
	if r.IDsMatched > 0 && !(ratio(matched[0], total) >= r.IDsMatched) {
		got := partOf(matched[0], total)
		if high := min(matched[1], total); high > matched[0] {
			got = fmt.Sprintf("between %d and %d of %d: workers count separately, and may have found the same IDs", matched[0], high, total)
		}
		unmet("IDs that have a row in the log", percentOf(r.IDsMatched)+" or more", got)
	}
	if r.MaxKept > 0 && ratio(c.RowsKept, c.RowsIn) > r.MaxKept {
		unmet("rows of the log that are kept", percentOf(r.MaxKept)+" or less", partOf(c.RowsKept, c.RowsIn))
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
