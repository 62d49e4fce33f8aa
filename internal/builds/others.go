package builds

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// Noun names a kind of file that is built of keys, by shards, in errors.
type Noun struct {
	One, Many string
	By        fault.Text // options that combine finished ones
	Typed     fault.Text // what sets the type of their keys
}

var ofFilters = Noun{"filter", "filters", "{Union} or {Intersect}", "{Types}"}

// Agree checks, by keys, shards and build alone, that files are parts of one build, as
// [MergeFiles] does for filters, and returns the shards that they hold together. If open is
// true, some may be missing.
func Agree(n Noun, names []string, about []*filters.Filter, open bool) (held []uint32, err error) {
	parts := make([]part, len(names))
	for i, name := range names {
		parts[i] = part{name: name, about: *about[i]}
	}
	return agree(n, parts, open)
}

// SameKeys returns an error if one of the files is partial, or has keys of another class
// or rule than the first.
func SameKeys(n Noun, names []string, about []*filters.Filter) error {
	var errs []error
	for i, name := range names {
		errs = append(errs, sameKeys(n, about[0], about[i], names[0], name))
	}
	return several(errs)
}

// sameKeys refuses a partial filter, and filters over different kinds of key; b may have NULLs only.
func sameKeys(n Noun, a, b *filters.Filter, first, name string) error {
	x, y := a.Facts(), b.Facts()
	at := fault.At{File: name}
	switch {
	case !b.Sealed():
		return faults.Of(cause.Partial, faults.Mismatch(at, n.One, "a finished "+n.One, "a partial one")).WithHint("merge the partial %s of its build first", n.Many)
	case x.NormalForm != y.NormalForm:
		return faults.Of(cause.Unlike, faults.Mismatch(at, "normal form", x.NormalForm+" as in "+first, y.NormalForm)).
			WithHint("build the %s with the same version of bloomjoin", n.Many)
	case x.Rule != y.Rule:
		return faults.Of(cause.Normalized, faults.About(faults.Mismatch(at, "", cmp.Or(x.Rule, "none")+" as in "+first, cmp.Or(y.Rule, "none")), "{Normalize} of the %s", n.One)).
			WithHint("build one of them again, with the other's {Normalize}")
	case !slices.Equal(a.KeyClasses(), b.KeyClasses()) && b.MayHaveKeys():
		return faults.Of(cause.KeyTypes, faults.Mismatch(at, "key class", strings.Join(a.KeyClasses(), ",")+" as in "+first, strings.Join(b.KeyClasses(), ","))).
			WithHint("combine %s over keys of one type; build one of them again with %s", n.Many, n.Typed)
	case x.Params.Hash != y.Params.Hash:
		return faults.Of(cause.Unlike, faults.Mismatch(at, "filter hash", x.Params.Hash.String()+" as in "+first, y.Params.Hash)).
			WithHint("build one of them again")
	}
	return nil
}
