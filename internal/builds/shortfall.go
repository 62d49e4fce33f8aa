package builds

import (
	"errors"
	"fmt"
	"math"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// ErrRate means that a sealed filter has more false positives than requested,
// because it has more keys than fit its size.
var ErrRate = cause.New(cause.TooFull, "more false positives than asked for")

// ErrFull means that a sealed filter has more distinct keys than its capacity.
var ErrFull = cause.New(cause.TooFull, "more keys than the capacity")

// rateSlack is how many times the requested rate the bits may have: folding
// uses 2 % ([bloom.FoldSlack]), and the rest is noise in the bits of small
// filters.
const rateSlack = 1.05

// Check returns nil if a sealed filter is as requested. Otherwise the error
// wraps [ErrRate], [ErrFull] or both; no key is missing from such a filter. A
// partial filter always passes. rep has the figures of the keys, see [Count]. A
// filter that is nil, closed or without a payload is an error of another kind.
func Check(f *filters.Filter, rep Report) error {
	facts := f.Facts()
	release, err := f.KeepOpen()
	if err != nil {
		return err
	}
	defer release()
	if f.Bloom() == nil && f.Exact() == nil {
		return fmt.Errorf("%w: the filter has no payload", filters.ErrInvalid)
	}
	if !f.Sealed() {
		return nil
	}
	var errs []error
	if p := f.FPR(); p > rateSlack*facts.FPRAsked {
		hint := fault.Text("build it again with a larger {Expect} or {MaxSize}")
		switch {
		case facts.Capacity.Keys > 0:
			hint = "build it again with a larger {Expect+Room}"
		case len(facts.Parents) > 0:
			hint = "build one filter from all ID sets, or build each with the same {Expect+Room}, enough for all"
		}
		errs = append(errs, faults.Errorf("%w: want a rate of %.2g, got %.2g: it holds more keys than fit its size (%s)",
			ErrRate, facts.FPRAsked, p, hint))
	}
	if n := facts.Capacity.Keys; n > 0 && distinctLowerBound(f, rep) > float64(n) {
		errs = append(errs, faults.Errorf("%w: want at most %d distinct keys, got %d (build one filter from all ID sets, with a larger {Expect+Room})", ErrFull, n, rep.Distinct))
	}
	if len(errs) == 2 {
		return fmt.Errorf("%w; %w", errs[0], errs[1])
	}
	return errors.Join(errs...)
}

// distinctLowerBound returns a number that the distinct keys certainly exceed: the estimate
// less three standard errors.
func distinctLowerBound(f *filters.Filter, rep Report) float64 {
	if f.Bloom() == nil || !rep.Estimated {
		return float64(rep.Distinct)
	}
	if c := f.Bloom().Count(); !math.IsInf(c.Keys, 1) {
		return c.Keys - 3*c.StdErr
	}
	if r := registersOf(f); r != nil { // a block is full
		return r.Estimate() * (1 - 3*0.0081)
	}
	return 0
}
