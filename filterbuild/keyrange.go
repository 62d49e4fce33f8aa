package filterbuild

import (
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/exact"
	"github.com/bloomjoin/bloomjoin/key"
)

// The key range of a filter depends on its keys: in a partial filter on those it
// holds, in a sealed one on the union. If a part has no range, the whole has
// none. A sealed exact filter has no range in its file, since it follows from the
// members. A union needs the ranges of all filters, an intersection that of one;
// if two ranges do not overlap, no key is in both, and none is recorded.

// newBounds returns the bounds of no keys; nil if none are to be recorded.
func (s Spec) newBounds() *key.Bounds {
	if s.NoRange {
		return nil
	}
	return key.NewBounds(key.ClassesOf(s.Classes))
}

// boundsIn returns the bounds of a filter's keys that its header has.
func boundsIn(f *codec.Filter) *key.Bounds {
	b := key.NewBounds(key.ClassesOf(f.KeyClasses()))
	if f.Keys == 0 {
		return b
	}
	for i, k := range f.Key {
		b.Widen(i, k.Min, k.Max, k.Min != nil)
	}
	return b
}

// widen includes the bounds of further keys. nil means unknown, which makes
// those of all keys unknown.
func (p *partial) widen(b *key.Bounds) {
	if b == nil || p.bounds == nil {
		p.bounds = nil
		return
	}
	p.bounds.Merge(b)
}

// setBounds records the known bounds in the filter's key columns.
func setBounds(f *codec.Filter, b *key.Bounds) {
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
