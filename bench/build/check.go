package main

import (
	"context"
	"fmt"
	"math"

	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// sigmas is the allowed deviation of a measured rate from the predicted one, in
// standard deviations of the binomial distribution. One run in 15,000 exceeds it by
// chance.
const sigmas = 4

// rate has a filter's false positives among distinct keys outside its set.
type rate struct {
	hits, probed uint64
	predicted    float64 // from the filter's bits
}

func (r rate) measured() float64 { return float64(r.hits) / float64(r.probed) }

// bound returns the allowed deviation of the measured rate from the predicted one.
func (r rate) bound() float64 {
	return sigmas * math.Sqrt(r.predicted*(1-r.predicted)/float64(r.probed))
}

// within reports whether the deviation is allowed. An exact filter predicts 0 and has
// a bound of 0.
func (r rate) within() bool { return math.Abs(r.measured()-r.predicted) <= r.bound() }

func (r rate) err() error {
	if r.probed > 0 && r.within() {
		return nil
	}
	return fmt.Errorf("%d false positives among %d keys, want %.6g ± %.2g of them", r.hits, r.probed, r.predicted, r.bound())
}

// row adds the rate to a table of targets.
func (r rate) row(t *report.Table, what string) {
	t.Row(what, fmt.Sprintf("%.4f %% of %d", 100*r.measured(), r.probed),
		fmt.Sprintf("%.4f ± %.4f %% (predicted, %d σ)", 100*r.predicted, 100*r.bound(), sigmas), report.Yes(r.err() == nil))
}

// probe scans the logs of a set with its filter. No member may be missing, and the
// number of false positives must match the prediction. as is the form of the logs, ""
// or "-text".
func (b *bench) probe(ctx context.Context, filter string, p paths, as string) (r rate, err error) {
	in, err := b.scan(ctx, filter, p.members(as))
	if err != nil {
		return r, err
	}
	if in.RowsIn == 0 || in.RowsOut != in.RowsIn {
		return r, fmt.Errorf("the filter finds %d of %d members", in.RowsOut, in.RowsIn)
	}
	out, err := b.scan(ctx, filter, p.outside(as))
	if err != nil {
		return r, err
	}
	if want := b.Scaled(outside); out.RowsIn != want {
		return r, fmt.Errorf("%s has %d rows, want %d", p.outside(as), out.RowsIn, want)
	}
	return rate{out.RowsOut, out.RowsIn, out.FPRPredicted}, nil
}
