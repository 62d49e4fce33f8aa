package filterbuild

import "github.com/bloomjoin/bloomjoin/codec"

// Count returns a Report with what is known about the keys of a filter that was
// read from a file.
func Count(f *codec.Filter) Report {
	if s := f.Exact(); s != nil {
		return Report{Keys: f.Keys, Distinct: s.Len()}
	}
	return Report{Keys: f.Keys, Distinct: distinct(f.Bloom(), registersOf(f), f.Keys), Estimated: true}
}
