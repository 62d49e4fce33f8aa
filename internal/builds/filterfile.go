package builds

import "github.com/bloomjoin/bloomjoin/internal/filters"

// Count returns what is known of the keys of a filter that was not built here. Of a
// filter that is nil, closed or without a payload, it is the zero Report.
func Count(f *filters.Filter) Report {
	release, err := f.KeepOpen()
	if err != nil {
		return Report{}
	}
	defer release()
	added := f.Facts().Keys
	switch bits, set := f.Bloom(), f.Exact(); {
	case set != nil:
		return Report{Figures: Figures{Keys: added, Distinct: set.Len()}}
	case bits != nil:
		return Report{Figures: Figures{Keys: added, Distinct: distinct(bits, registersOf(f), added), Estimated: true}}
	}
	return Report{}
}
