package parquet

import (
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/parquet-go/parquet-go/format"
)

// LeafAdapter adapts the pages of one column chunk. It is not safe for
// concurrent use; several of one LeafSource are.
type LeafAdapter struct {
	s    *LeafSource
	at   fault.At
	page Page

	rep, def []uint8
	plain    []byte

	from, to *Dictionary
	misfits  []bool // of from's entries: those that to has no place for; nil when none
}

// Pages returns an adapter for pages of a row group of the file, counted from
// 0.
func (s *LeafSource) Pages(rowGroup int) *LeafAdapter {
	return &LeafAdapter{s: s, at: fault.At{File: s.file.Name, RowGroup: rowGroup + 1, Column: s.column}}
}

// Nulls returns a page of rows of which each is the one entry that the target
// has for a missing column. It is for sources that say Missing. The page is
// valid until the next call of a method.
func (a *LeafAdapter) Nulls(rows int) *Page {
	a.page = Page{Values: rows, Rows: rows, Encoding: format.Plain}
	a.def = constantLevels(a.def, rows, a.s.levels[0])
	a.page.Def = a.def
	if a.s.repeats {
		a.rep = constantLevels(a.rep, rows, 0)
		a.page.Rep = a.rep
	}
	return &a.page
}

// constantLevels returns n levels v, in buf's memory when that is enough.
func constantLevels(buf []uint8, n int, v uint8) []uint8 {
	buf = grow(buf, n)
	for i := range buf {
		buf[i] = v
	}
	return buf
}

// Adapt returns the target's page for one of s.Leaf, and the dictionary that
// its indices are of, nil when it has none. dict is the chunk's dictionary;
// it is converted once. The page uses p's memory where it can, and is valid as
// long as p is and until the next call of a method. It may be without entries
// where p begins in the middle of a row. A value that the target cannot hold
// is a mismatch; only those of p's entries count, not what else is in the
// dictionary.
func (a *LeafAdapter) Adapt(p *Page, dict *Dictionary) (*Page, *Dictionary, error) {
	s := a.s
	if s.identity {
		return p, dict, nil
	}
	a.page = *p
	a.page.Stored = nil
	if s.noValue && slices.Contains(p.Def, uint8(s.full)) {
		at := a.at
		at.Page = p.Number
		return nil, nil, fault.Corrupt(at, "a value in a column that is annotated as always NULL")
	}
	if s.LevelsOnly {
		a.page.NonNull, a.page.Plain, a.page.Indices, a.page.Coded = 0, nil, nil, false
		a.page.Encoding, a.page.offsets = format.Plain, nil
		dict = nil
	}
	a.mapLevels(p)
	if s.values == nil || p.NonNull == 0 {
		return &a.page, dict, nil
	}
	if p.Coded {
		dict, err := a.dictionary(p, dict)
		return &a.page, dict, err
	}
	plain, at, err := s.values.all(a.plain[:0], p.Plain, nil)
	if err != nil || at >= 0 {
		return nil, nil, a.misfit(p, err)
	}
	a.plain = plain
	a.page.Plain, a.page.Encoding, a.page.offsets = plain, format.Plain, nil
	return &a.page, nil, nil
}

// misfit is the error for values that could not be converted.
func (a *LeafAdapter) misfit(p *Page, err error) error {
	at := a.at
	at.Page = p.Number
	if err != nil {
		return fault.Unsupported(at, "page too large: its values take more than %s as %s", fault.Size(MaxPageSize), &a.s.values.to).
			WithHint("write the file again with smaller pages, as of 1 MiB")
	}
	w := a.s.values
	if w.foreign {
		return fault.Corrupt(at, "a value outside the range of its type, %s", &w.from)
	}
	return fault.Mismatch(at, "a value does not fit the output's schema",
		"one within the range of "+w.to.String(), fmt.Sprintf("one of %s outside it", &w.from)).
		WithHint("write to a directory, where each file keeps its own types")
}

// mapLevels sets the levels of a.page.
func (a *LeafAdapter) mapLevels(p *Page) {
	s := a.s
	rep := p.Rep
	n := p.Values
	a.page.Rep, a.page.Def = nil, nil
	if s.repeats {
		a.page.Rep = rep
	}
	if rep == nil && s.repeats { // what repeats is missing
		a.rep = constantLevels(a.rep, n, 0)
		a.page.Rep = a.rep
	}
	top := len(s.levels) - 1
	switch {
	case s.LevelsOnly && rep != nil:
		n = a.collapse(p)
	case !s.LevelsOnly && int(s.levels[top]) == top: // they rise, so all are the same
		a.page.Def = p.Def
	case s.defined:
		a.def = constantLevels(a.def, n, s.levels[0])
		for i, d := range p.Def {
			a.def[i] = s.levels[d]
		}
		a.page.Def = a.def
	}
	a.page.Values = n
}

// collapse leaves out the entries that repeat within what the target has one
// entry for, and returns how many are left.
func (a *LeafAdapter) collapse(p *Page) int {
	s := a.s
	a.rep, a.def = grow(a.rep, p.Values), grow(a.def, p.Values)
	n := 0
	for i, r := range p.Rep {
		if r > s.maxRep {
			continue
		}
		a.rep[n], a.def[n] = r, s.levels[p.Def[i]]
		n++
	}
	a.page.Def = a.def[:n]
	if s.repeats {
		a.page.Rep = a.rep[:n]
	}
	return n
}

// dictionary converts the dictionary, once, and checks that the entries that
// the page uses came through.
func (a *LeafAdapter) dictionary(p *Page, dict *Dictionary) (*Dictionary, error) {
	if a.from != dict {
		misfits := make([]bool, dict.Len)
		plain, at, err := a.s.values.all(nil, dict.Plain, misfits)
		if err != nil {
			return nil, a.misfit(p, err)
		}
		if at < 0 {
			misfits = nil
		}
		to := &Dictionary{Len: dict.Len, Plain: plain}
		if a.s.values.to.physical == format.ByteArray {
			to.offsets = byteArrayOffsets(nil, plain, dict.Len)
		}
		a.from, a.to, a.misfits = dict, to, misfits
	}
	if a.misfits != nil && slices.ContainsFunc(p.Indices, func(i uint32) bool { return a.misfits[i] }) {
		return nil, a.misfit(p, nil)
	}
	return a.to, nil
}
