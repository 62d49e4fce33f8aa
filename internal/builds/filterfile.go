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
	if f.Bloom() == nil && f.Exact() == nil {
		return Report{}
	}
	if s := f.Exact(); s != nil {
		return Report{Figures: Figures{Keys: f.Facts().Keys, Distinct: s.Len()}}
	}
	return Report{Figures: Figures{Keys: f.Facts().Keys, Distinct: distinct(f.Bloom(), registersOf(f), f.Facts().Keys), Estimated: true}}
}
