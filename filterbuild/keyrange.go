package filterbuild

import (
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/exact"
	"github.com/bloomjoin/bloomjoin/key"
)

// Like everything else in a filter, the key range depends on the keys alone. A
// partial filter has the range of its own keys, a sealed one that of the union, or
// none if a part of the union has none. A sealed exact filter needs none, because
// its members give it. A union of filters has a range if all of them have one; for
// an intersection one is enough. If two ranges do not meet, no key is in both
// filters, and the result has no range.

// newBounds returns bounds of no keys yet, or nil if none are wanted.
func (s Spec) newBounds() *key.Bounds {
	if s.NoRange {
		return nil
	}
	return key.NewBounds(key.ClassesOf(s.Classes))
}

// boundsIn returns the bounds of a filter's keys that its file records.
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

// widen extends the bounds by those of further keys. nil means unknown, and makes
// the bounds of all keys unknown.
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
