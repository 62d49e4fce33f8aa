package join

import (
	"fmt"
	"math"
)

// Warning is something that a user should not overlook in a join that has
// succeeded: its answer is right, and may still not be what was meant.
type Warning struct {
	Code WarningCode `json:"code"`
	Text string      `json:"text"` // one sentence for people
}

// WarningCode says what a [Warning] is about.
type WarningCode string

// The codes.
const (
	WarnNoIDs              WarningCode = "no-ids"               // the ID set is empty, or all of its keys are NULL
	WarnNoKeys             WarningCode = "no-keys"              // all keys of the log are NULL
	WarnNoneMatched        WarningCode = "none-matched"         // no row of the log has a key of the set
	WarnFalsePositivesOnly WarningCode = "false-positives-only" // about as many rows pass the filter as if none had a key of the set
	WarnNothingDropped     WarningCode = "nothing-dropped"      // each row of the log has a key of the set
	WarnFilterTooFull      WarningCode = "filter-too-full"      // the filter's rate is above what was asked for
	WarnDamaged            WarningCode = "damaged"              // a part of a file that can be done without is damaged, see [partition.File.Doubts]
	WarnFilterRate         WarningCode = "filter-rate"          // the filter's measured rate is outside what its bits predict
)

// Warnings returns what is remarkable about a join, as Report tells it. of is
// the join's type.
func (r Report) Warnings(of Type) []Warning {
	var ws []Warning
	warn := func(code WarningCode, format string, args ...any) {
		ws = append(ws, Warning{code, fmt.Sprintf(format, args...)})
	}
	withKey := r.RowsIn - r.KeysNull
	switch {
	case r.RowsIn == 0: // nothing to be said of a log, or a shard of it, without rows
	case r.IDsTotal == 0:
		warn(WarnNoIDs, "there is no ID, or none whose key is not NULL")
	case withKey == 0:
		warn(WarnNoKeys, "all keys of the log are NULL; check which columns are paired")
	case r.RowsMatched == 0:
		warn(WarnNoneMatched, "no ID has a row in the log; check which columns are paired")
	case r.RowsUnasked == 0 && float64(r.RowsMatched) <= noise(r.FPRPredicted, withKey):
		warn(WarnFalsePositivesOnly, "of the %d rows that pass the filter %d have an ID: about as many would pass if none had; check which columns are paired", r.Candidates, r.RowsMatched)
	case r.RowsMatched == r.RowsIn && (of == Semi || of == Anti) && !r.scanned:
		warn(WarnNothingDropped, "each row of the log has an ID: the filter has dropped none")
	}
	if r.FPRPredicted > 1.05*r.FPRAsked && r.FPRAsked > 0 {
		warn(WarnFilterTooFull, "the filter lets through %.2g of the rows that it should drop, more than the %.2g asked for: it holds more keys than expected", r.FPRPredicted, r.FPRAsked)
	}
	if m := r.FPRMeasured; !m.Inside() {
		warn(WarnFilterRate, "the filter let through %.2g of the rows whose key is in no ID, outside the %.2g to %.2g that its bits predict; the answer is right, but something is wrong with the filter", m.Rate, m.Low, m.High)
	}
	return ws
}

// noise is how far the number of false positives among n rows goes up and down
// by chance: three standard deviations of independent rows. (Rows of one key are
// not, so that it may go further.)
func noise(p float64, n int64) float64 { return 3 * math.Sqrt(p*(1-p)*float64(n)) }
