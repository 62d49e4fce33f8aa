package adapt

import (
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// Pages adapts the pages of one column chunk. It is not safe for concurrent
// use, but several of one LeafSource may be used concurrently.
type Pages struct {
	s    *LeafSource
	at   fault.At
	page parquet.Page

	rep, def []uint8
	plain    []byte

	from, to *parquet.Dictionary
	misfits  []bool // entries of from that to cannot represent; nil if none
}

// Pages returns an adapter for pages of a row group of the file, counted from 0.
func (s *LeafSource) Pages(rowGroup int) *Pages {
	return &Pages{s: s, at: fault.At{File: s.file.Name, RowGroup: rowGroup + 1, Column: s.column}}
}

// Nulls returns a page of rows for a source with Missing set: each row has the
// single entry of a missing column. The page is valid until the next call of a
// method.
func (a *Pages) Nulls(rows int) *parquet.Page {
	a.page = parquet.Page{Values: rows, Rows: rows, Encoding: format.Plain}
	a.def = constantLevels(a.def, rows, a.s.levels[0])
	a.page.Def = a.def
	if a.s.repeats {
		a.rep = constantLevels(a.rep, rows, 0)
		a.page.Rep = a.rep
	}
	return &a.page
}

// constantLevels returns n levels v, using buf's memory if it is large enough.
func constantLevels(buf []uint8, n int, v uint8) []uint8 {
	buf = enc.Reuse(buf, n)
	for i := range buf {
		buf[i] = v
	}
	return buf
}

// Adapt converts p, a page of s.Leaf, to the target and returns it with the
// dictionary that its indices refer to, if any. dict is the chunk's dictionary; it
// is converted once. The result shares p's memory where possible. It is valid as
// long as p is, and until the next call of a method. It may have no entries if p
// begins in the middle of a row. A value of p that the target cannot represent is
// an error that wraps fault.ErrMismatch; unused dictionary entries do not matter.
func (a *Pages) Adapt(p *parquet.Page, dict *parquet.Dictionary) (*parquet.Page, *parquet.Dictionary, error) {
	s := a.s
	if s.identity {
		return p, dict, nil
	}
	a.page = p.Derived()
	if s.noValue && slices.Contains(p.Def, uint8(s.full)) {
		at := a.at
		at.Page = p.Number
		return nil, nil, faults.Corrupt(at, "a value in a column that is annotated as always NULL")
	}
	if s.LevelsOnly {
		a.page.NonNull, a.page.Plain, a.page.Indices, a.page.Coded = 0, nil, nil, false
		a.page.Encoding = format.Plain
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
	a.page.Plain, a.page.Encoding = plain, format.Plain
	return &a.page, nil, nil
}

// misfit returns the error for values that could not be converted.
func (a *Pages) misfit(p *parquet.Page, err error) error {
	at := a.at
	at.Page = p.Number
	if err != nil {
		return faults.Unsupported(at, "page too large: its values take more than %s as %s", show.Size(enc.MaxPageSize), &a.s.values.to).
			WithHint("write the file again with smaller pages, as of 1 MiB")
	}
	w := a.s.values
	if w.foreign {
		return faults.Corrupt(at, "a value outside the range of its type, %s", &w.from)
	}
	return faults.Of(cause.Schemas, faults.Mismatch(at, "a value does not fit the output's schema",
		"one within the range of "+w.to.String(), fmt.Sprintf("one of %s outside it", &w.from))).
		WithHint("write to a directory, where each file keeps its own types")
}

// mapLevels sets the levels of a.page.
func (a *Pages) mapLevels(p *parquet.Page) {
	s := a.s
	rep := p.Rep
	n := p.Values
	a.page.Rep, a.page.Def = nil, nil
	if s.repeats {
		a.page.Rep = rep
	}
	if rep == nil && s.repeats { // the repeated node is missing from the file
		a.rep = constantLevels(a.rep, n, 0)
		a.page.Rep = a.rep
	}
	top := len(s.levels) - 1
	switch {
	case s.LevelsOnly && rep != nil:
		n = a.collapse(p)
	case !s.LevelsOnly && int(s.levels[top]) == top: // levels ascend, so the table is the identity
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

// collapse drops the entries that repeat within one entry of the target and returns
// the number of entries left.
func (a *Pages) collapse(p *parquet.Page) int {
	s := a.s
	a.rep, a.def = enc.Reuse(a.rep, p.Values), enc.Reuse(a.def, p.Values)
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

// dictionary converts the dictionary, once, and checks that all entries that the
// page uses could be converted.
func (a *Pages) dictionary(p *parquet.Page, dict *parquet.Dictionary) (*parquet.Dictionary, error) {
	if a.from != dict {
		misfits := make([]bool, dict.Len)
		plain, at, err := a.s.values.all(nil, dict.Plain, misfits)
		if err != nil {
			return nil, a.misfit(p, err)
		}
		if at < 0 {
			misfits = nil
		}
		a.from, a.to, a.misfits = dict, parquet.NewDictionary(a.s.values.to.physical, dict.Len, plain), misfits
	}
	if a.misfits != nil && slices.ContainsFunc(p.Indices, func(i uint32) bool { return a.misfits[i] }) {
		return nil, a.misfit(p, nil)
	}
	return a.to, nil
}
