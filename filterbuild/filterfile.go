package filterbuild

import "github.com/bloomjoin/bloomjoin/codec"

// Count returns what is known of the keys of a filter that was not built here. Of a
// filter that is nil, closed or without a payload, it is the zero Report.
func Count(f *codec.Filter) Report {
	release, err := f.KeepOpen()
	if err != nil {
		return Report{}
	}
	defer release()
	if f.Bloom() == nil && f.Exact() == nil {
		return Report{}
	}
	if s := f.Exact(); s != nil {
		return Report{Keys: f.Keys, Distinct: s.Len()}
	}
	return Report{Keys: f.Keys, Distinct: distinct(f.Bloom(), registersOf(f), f.Keys), Estimated: true}
}
