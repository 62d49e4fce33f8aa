package builds

import (
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// keepRoom gives a union the capacity of its filters, and the options for it.
// The Bloom filters decide, since an exact set can become bits of any size; if
// all are exact, the ones with a capacity. A difference keeps the capacity of
// the first set.
func keepRoom(op SetOp, out *filters.Filter, parts []part) error {
	deciding, exacts := byKind(parts)
	switch {
	case op == Intersect:
		return nil
	case op == Difference:
		deciding = parts[:1]
	case len(deciding) == 0:
		deciding = slices.DeleteFunc(exacts, func(p part) bool { return p.facts().Capacity == filters.Capacity{} })
	}
	first := roomy(deciding)
	if first == nil && op == Union {
		first = roomy(parts) // to refuse a union that would lose it
	}
	if first == nil {
		return nil
	}
	var errs []error
	for i := range deciding {
		p := &deciding[i]
		if p.facts().Capacity != first.facts().Capacity || p.facts().Params.Geometry != first.facts().Params.Geometry {
			errs = append(errs, faults.Of(cause.Unlike, faults.Mismatch(fault.At{File: p.name}, "room", roomOf(&first.about)+" as in "+first.name, roomOf(&p.about))).
				WithHint("build all with the same {Expect+Room}, {FPR} or {MaxSize}, and {Geometry}"))
		}
	}
	f := first.facts()
	facts := out.Facts()
	facts.Capacity, facts.Params.Geometry, facts.Want, facts.FPRAsked = f.Capacity, f.Params.Geometry, f.Want, 0
	for i := range deciding {
		facts.FPRAsked = max(facts.FPRAsked, deciding[i].facts().FPRAsked)
		if deciding[i].facts().Want != f.Want {
			facts.Want = filters.KindAuto
		}
	}
	return several(errs)
}

// roomy returns the first filter with a capacity, or nil.
func roomy(parts []part) *part {
	for i := range parts {
		if parts[i].facts().Capacity != (filters.Capacity{}) {
			return &parts[i]
		}
	}
	return nil
}

func roomOf(f *filters.Filter) string {
	facts := f.Facts()
	if facts.Capacity == (filters.Capacity{}) {
		return "none"
	}
	return fmt.Sprintf("that for %d keys in %d blocks of %s", facts.Capacity.Keys, facts.Capacity.Blocks, facts.Params.Geometry)
}
