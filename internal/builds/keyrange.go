package builds

import (
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// The key range of a filter depends on its keys: in a partial filter on those it
// holds, in a sealed one on the union. If a part has no range, the whole has
// none. A sealed exact filter has no range in its file, since it follows from the
// members. A union needs the ranges of all filters, an intersection the range of one;
// if two ranges do not overlap, no key is in both, and no range is recorded.

// newBounds returns the bounds of no keys; nil if none are to be recorded.
func (s Spec) newBounds() *keys.Bounds {
	if s.NoRange {
		return nil
	}
	return keys.NewBounds(keys.ClassesOf(s.Classes))
}

// boundsIn returns the bounds of a filter's keys that its header has.
func boundsIn(f *filters.Filter) *keys.Bounds {
	b := keys.NewBounds(keys.ClassesOf(f.KeyClasses()))
	if f.Facts().Keys == 0 {
		return b
	}
	for i, k := range f.Facts().Key {
		b.Widen(i, k.Min, k.Max, k.Min != nil)
	}
	return b
}

// widen includes the bounds of further keys. nil means unknown, which makes
// those of all keys unknown.
func (p *partial) widen(b *keys.Bounds) {
	if b == nil || p.bounds == nil {
		p.bounds = nil
		return
	}
	p.bounds.Merge(b)
}

// setBounds records the known bounds in the filter's key columns.
func setBounds(f *filters.Filter, b *keys.Bounds) {
	columns := f.Facts().Key
	if b == nil {
		return
	}
	for i := range columns {
		if lo, hi, ok := b.Column(i); ok {
			columns[i].Min, columns[i].Max = lo, hi
		}
	}
}

// rangeOf returns the bounds of an exact set.
func rangeOf(set *exact.Set) *keys.Bounds {
	b := keys.NewBounds([]keys.Class{keys.Integer})
	if lo, below, ok := set.Least(); ok {
		hi, negative, _ := set.Greatest()
		b.Widen(0, keys.IntegerPart(lo, below), keys.IntegerPart(hi, negative), true)
	}
	return b
}

// isText reports whether values of a class are text or binary.
func isText(class string) bool {
	_, fixed := keys.FixedWidth(keys.Class(class))
	return fixed || class == string(keys.Bytes)
}
