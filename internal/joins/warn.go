package joins

import (
	"fmt"
	"math"
)

// Warning is something that a user should know about a join that succeeded: the
// answer is right, but it may not be the one that was meant.
type Warning struct {
	Code string `json:"code"` // one of the constants
	Text string `json:"text"` // one sentence
}

// The codes of warnings.
const (
	WarnNoIDs              = "no-ids"               // the ID set is empty, or all of its keys are NULL
	WarnNoKeys             = "no-keys"              // all keys of the log are NULL
	WarnNoneMatched        = "none-matched"         // no row of the log has a key of the set
	WarnFalsePositivesOnly = "false-positives-only" // no more rows match than would be false positives if none had an ID
	WarnNothingDropped     = "nothing-dropped"      // every row of the log has a key of the set
	WarnFilterTooFull      = "filter-too-full"      // the filter's rate is above what was asked for
	WarnDamaged            = "damaged"              // a dispensable part of a file is damaged, see [source.File.Doubts]
	WarnFilterRate         = "filter-rate"          // the filter's measured rate is outside what its bits predict
)

// warnings returns the warnings about a join of the given type.
func (r *Report) warnings(of Type) []Warning {
	var ws []Warning
	warn := func(code string, format string, args ...any) {
		ws = append(ws, Warning{code, fmt.Sprintf(format, args...)})
	}
	withKey := r.RowsIn - r.KeysNull
	switch {
	case r.RowsIn == 0: // a log, or a shard of it, without rows
	case r.IDsTotal == 0:
		warn(WarnNoIDs, "there is no ID, or none whose key is not NULL")
	case withKey == 0:
		warn(WarnNoKeys, "all keys of the log are NULL; check which columns are paired")
	case r.RowsMatched == 0 && r.condition:
		warn(WarnNoneMatched, "no ID has a row in the log that satisfies the condition; check the condition, and which columns are paired")
	case r.RowsMatched == 0:
		warn(WarnNoneMatched, "no ID has a row in the log; check which columns are paired")
	case r.rowsUnasked == 0 && !r.condition && float64(r.RowsMatched) <= noise(r.FPRPredicted, withKey):
		warn(WarnFalsePositivesOnly, "of the %d rows that pass the filter %d have an ID: about as many would pass if none had; check which columns are paired", r.Candidates, r.RowsMatched)
	case r.RowsMatched == r.RowsIn && (of == Semi || of == Anti) && !r.filtered:
		warn(WarnNothingDropped, "each row of the log has an ID: the filter has dropped none")
	}
	if r.FPRPredicted > 1.05*r.FPRAsked && r.FPRAsked > 0 {
		warn(WarnFilterTooFull, "the filter lets through %.2g of the rows that it should drop, more than the %.2g asked for: it holds more keys than expected", r.FPRPredicted, r.FPRAsked)
	}
	if m := r.FPRMeasured; !r.rateExpected() {
		warn(WarnFilterRate, "the filter let through %.2g of the rows whose key is in no ID, outside the %.2g to %.2g that its bits predict; the answer is right, but something is wrong with the filter", m.Value, m.Low, m.High)
	}
	return ws
}

// rateExpected reports whether the measured false-positive rate is within its bounds.
func (r *Report) rateExpected() bool {
	m := r.FPRMeasured
	return measuredFPR{Rate: m.Value, Low: m.Low, High: m.High}.inside()
}

// noise returns three standard deviations of the number of false positives among n
// independent rows. Rows of one key are not independent, so it may vary more.
func noise(p float64, n int64) float64 { return 3 * math.Sqrt(p*(1-p)*float64(n)) }
