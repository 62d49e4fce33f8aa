package builds

import (
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// exceptions are the exceptions of the filters that a set operation combines, without
// hashes that a key of the result may have. A nil *exceptions is empty.
type exceptions struct{ hashes *exact.Set }

// exceptionsOf returns the exceptions of filters; nil if there are none. In an
// intersection all remain exceptions. In a union, drop removes what may be a key of
// another filter.
func exceptionsOf(parts []part) (*exceptions, error) {
	if !slices.ContainsFunc(parts, func(p part) bool { return p.facts().Exceptions != nil }) {
		return nil, nil
	}
	hashes, err := hashesOf(parts)
	return &exceptions{hashes}, err
}

// drop removes the hashes that a key of the filter may have, given its bits.
func (e *exceptions) drop(bits *bloom.Filter, of *filters.Filter) {
	if e == nil {
		return
	}
	own := of.Facts().Exceptions
	e.keep(func(h uint64) bool { return own != nil && own.Hashes.Has(h) || !bits.Contains(h) })
}

// dropMembers removes the hashes of a set's members.
func (e *exceptions) dropMembers(set *exact.Set, hash bloom.Hash) {
	if e == nil {
		return
	}
	members := exact.New()
	for values := range set.Values {
		members.Add(slices.DeleteFunc(hash.AppendInts(nil, values), func(h uint64) bool { return !e.hashes.Has(h) }), false)
	}
	e.hashes.Difference(members)
}

func (e *exceptions) keep(keep func(uint64) bool) {
	gone := exact.New()
	for values := range e.hashes.Values {
		gone.Add(slices.DeleteFunc(values, keep), false)
	}
	e.hashes.Difference(gone)
}

// into gives a filter the exceptions that pass its bits; others need none. The result
// names no known keys, as some of its operands' may pass by mistake.
func (e *exceptions) into(f *filters.Filter) {
	if e == nil {
		return
	}
	e.keep(f.Bloom().Contains)
	if e.hashes.Len() > 0 {
		f.Facts().Exceptions = &filters.Exceptions{Hashes: e.hashes}
	}
}
