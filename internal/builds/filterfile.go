package builds

import (
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// Count returns what is known about the keys of a filter that was not built here, or the
// zero Report if the filter is nil, closed or without a payload.
func Count(f *filters.Filter) Report {
	release, err := f.KeepOpen()
	if err != nil {
		return Report{}
	}
	defer release()
	added := f.Facts().Keys
	switch bits, set := f.Bloom(), f.Exact(); {
	case bits != nil && f.Kind() == filters.KindCounting && !f.Facts().Counting.Multiset:
		return Report{Figures: Figures{Keys: added, Distinct: added}}
	case set != nil:
		return Report{Figures: Figures{Keys: added, Distinct: set.Len()}}
	case bits != nil:
		return Report{Figures: Figures{Keys: added, Distinct: distinct(bits, registersOf(f), added), Estimated: true}}
	}
	return Report{}
}

// distinct returns the approximate number of distinct keys, given the number
// with duplicates. It uses the bits or, if they are too full, the registers, if
// there are any.
func distinct(f *bloom.Filter, r *bloom.Registers, added uint64) uint64 {
	c := f.Count()
	if r != nil && !(c.StdErr < 0.01*c.Keys) {
		c.Keys = r.Estimate()
	}
	if c.Keys >= float64(added) {
		return added
	}
	return uint64(c.Keys + 0.5)
}
