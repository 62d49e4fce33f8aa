package builds

import (
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// Noun names a kind of file that is built of keys, by shards, in errors.
type Noun struct {
	One, Many string
	By        fault.Text // options that combine finished ones
	Typed     fault.Text // what sets the type of their keys
}

var ofFilters = Noun{"filter", "filters", "{Union} or {Intersect}", "{Types}"}

// Agree checks that files are parts of one build as those of [MergeFiles] are, of which it knows
// no more than keys, shards and build, and returns the shards that they hold together. open says
// that some may be missing.
func Agree(n Noun, names []string, about []*filters.Filter, open bool) (held []uint32, err error) {
	parts := make([]part, len(names))
	for i, name := range names {
		parts[i] = part{name: name, about: *about[i]}
	}
	return agree(n, parts, open)
}

// SameKeys returns an error if one of the files is a partial one, or if their keys are of
// different classes or were made by different rules. Those of the first are wanted.
func SameKeys(n Noun, names []string, about []*filters.Filter) error {
	var errs []error
	for i, name := range names {
		errs = append(errs, sameKeys(n, about[0], about[i], names[0], name))
	}
	return several(errs)
}
