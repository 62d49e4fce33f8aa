package filterbuild

import (
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/exact"
	"github.com/bloomjoin/bloomjoin/key"
)

// The key range of a filter follows from its keys, as all of it does: of a
// partial filter from those it holds, of a sealed one from the union, of which
// a part that does not tell its range makes the whole unknown. A sealed exact
// filter has none, since its members say it. Of filters in a set operation all
// ranges must be known for a union, for an intersection one is enough; where two
// do not meet, no key is in both, and nothing is said.

func classesOf(names []string) []key.Class {
	classes := make([]key.Class, len(names))
	for i, name := range names {
		classes[i] = key.Class(name)
	}
	return classes
}

// newBounds returns the bounds of no keys, nil if none are to be kept.
func (s Spec) newBounds() *key.Bounds {
	if s.NoRange {
		return nil
	}
	return key.NewBounds(classesOf(s.Classes))
}

// boundsIn returns the bounds of a filter's keys as its file tells them.
func boundsIn(f *codec.Filter) *key.Bounds {
	b := key.NewBounds(classesOf(f.KeyClasses()))
	if f.Keys == 0 {
		return b
	}
	for i, k := range f.Key {
		b.Widen(i, k.Min, k.Max, k.Min != nil)
	}
	return b
}

// stretch includes the bounds of further keys; nil: they are not known, and
// then those of all are not.
func (p *partial) stretch(b *key.Bounds) {
	if b == nil || p.bounds == nil {
		p.bounds = nil
		return
	}
	p.bounds.Merge(b)
}

// tell puts the bounds that are known into the filter's key columns.
func tell(f *codec.Filter, b *key.Bounds) {
	if b == nil {
		return
	}
	for i := range f.Key {
		if lo, hi, ok := b.Column(i); ok {
			f.Key[i].Min, f.Key[i].Max = lo, hi
		}
	}
}

// rangeOf returns the bounds of an exact set.
func rangeOf(set *exact.Set) *key.Bounds {
	b := key.NewBounds([]key.Class{key.Integer})
	if lo, below, ok := set.Least(); ok {
		hi, negative, _ := set.Greatest()
		b.Widen(0, key.IntegerPart(lo, below), key.IntegerPart(hi, negative), true)
	}
	return b
}
