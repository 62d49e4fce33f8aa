package filterbuild

import "github.com/bloomjoin/bloomjoin/codec"

// Count returns what is known of the keys of a filter that was not built here.
func Count(f *codec.Filter) Report {
	if s := f.Exact(); s != nil {
		return Report{Keys: f.Keys, Distinct: s.Len()}
	}
	return Report{Keys: f.Keys, Distinct: distinct(f.Bloom(), registersOf(f), f.Keys), Estimated: true}
}
