package leaves

import "unsafe"

// growth makes room in a column before rows are appended.
type growth struct {
	s      *Store
	former *column // of the segment before; nil for the first
}

// dense appends rows to a dense column. If there is no room for them, none is
// appended.
func (g *growth) dense(k *kind, c *column, p *portion) (err error) {
	if err = g.flatDef(k, c, p.from, len(c.values)/k.width, p.n); err != nil {
		return err
	}
	if c.values, err = room(g, c.values, p.n*k.width, g.length(valuesOf), segmentRows*k.width); err != nil {
		return err
	}
	c.values = p.appendSlots(c.values, k)
	if c.def != nil {
		c.def = p.appendLevels(c.def, p.from.def, k)
	}
	return nil
}

// ragged is dense for the other columns.
func (g *growth) ragged(k *kind, c *column, p *portion) (err error) {
	from := p.from
	if c.starts, err = rooms(g, c.starts, p.n); err != nil {
		return err
	}
	if k.maxRep > 0 {
		err = g.repeated(c, from, p)
	} else {
		err = g.flatDef(k, c, from, len(c.starts)-1, p.n)
	}
	if err != nil {
		return err
	}
	size := p.sum(from.starts)
	if int64(len(c.values))+size > maxPositions {
		return errTooLarge
	}
	if c.values, err = room(g, c.values, int(size), g.length(valuesOf), maxPositions); err != nil {
		return err
	}
	c.values = p.appendParts(c.values, from.values, from.starts)
	c.starts = p.appendStarts(c.starts, from.starts)
	switch {
	case k.maxRep > 0:
		c.rep, c.def = p.appendParts(c.rep, from.rep, from.entries), p.appendParts(c.def, from.def, from.entries)
		c.entries = p.appendStarts(c.entries, from.entries)
	case c.def != nil:
		c.def = p.appendLevels(c.def, from.def, k)
	}
	return nil
}

// repeated makes room for entries of a repeated leaf.
func (g *growth) repeated(c, from *column, p *portion) (err error) {
	entries := p.sum(from.entries)
	if int64(len(c.rep))+entries > maxPositions {
		return errTooMany
	}
	former := g.length(entriesOf)
	if c.rep, err = room(g, c.rep, int(entries), former, maxPositions); err != nil {
		return err
	}
	if c.def, err = room(g, c.def, int(entries), former, maxPositions); err != nil {
		return err
	}
	c.entries, err = rooms(g, c.entries, p.n)
	return err
}

// flatDef makes room for n levels of a leaf that is not repeated, if the column has
// levels or needs them from now on. It has the given number of rows.
func (g *growth) flatDef(k *kind, c, from *column, rows, n int) (err error) {
	if c.def == nil && from.def == nil {
		return nil
	}
	had := c.def != nil
	more := n
	if !had {
		more += rows
	}
	former := 0
	if g.former != nil {
		former = segmentRows
	}
	if c.def, err = room(g, c.def, more, former, segmentRows); err == nil && !had {
		c.def = appendLevel(c.def, k.maxDef, rows)
	}
	return err
}

func valuesOf(c *column) int  { return len(c.values) }
func entriesOf(c *column) int { return len(c.rep) }

// length returns the length of a part of the former segment, 0 if there is none.
func (g *growth) length(of func(c *column) int) int {
	if g.former == nil {
		return 0
	}
	return of(g.former)
}

// rooms makes room for n more starts of rows. A column without rows gets its first
// one.
func rooms(g *growth, starts []uint32, n int) ([]uint32, error) {
	if len(starts) == 0 {
		n++
	}
	former := 0
	if g.former != nil {
		former = segmentRows + 1
	}
	grown, err := room(g, starts, n, former, segmentRows+1)
	if err == nil && len(grown) == 0 {
		grown = append(grown, 0)
	}
	return grown, err
}

// room returns b with room for more elements. former is the length that the same
// part of the former segment has, 0 for the first segment, and most the largest
// capacity of any use. The memory is charged before it is allocated.
func room[T uint8 | uint32](g *growth, b []T, more, former, most int) ([]T, error) {
	need := len(b) + more
	if need <= cap(b) {
		return b, nil
	}
	c := min(capacity(cap(b), need, former), most)
	var one T
	if err := g.s.charge(int64(c-cap(b)) * int64(unsafe.Sizeof(one))); err != nil {
		return b, err
	}
	return append(make([]T, 0, c), b...), nil
}

// maxDoubled is the largest capacity that is doubled. Larger ones grow by a quarter, to
// waste little memory.
const maxDoubled = 1 << 20

// capacity returns the next capacity of a part of a segment: the first segment
// grows by a factor; others get a quarter of what the former one has, then all of it.
func capacity(have, need, former int) int {
	former += former / 64
	switch quarter := former / 4; {
	case need <= quarter:
		return quarter
	case need <= former:
		return former
	case former > 0, have > maxDoubled:
		return max(need, have+have/4)
	}
	return max(need, 2*have)
}

// truncate leaves the first rows of the column.
func (c *column) truncate(k *kind, rows int) {
	if k.dense {
		c.values = c.values[:min(rows*k.width, len(c.values))]
		c.def = c.def[:min(rows, len(c.def))]
		return
	}
	if rows+1 >= len(c.starts) {
		return // nothing was added
	}
	c.values, c.starts = c.values[:c.starts[rows]], c.starts[:rows+1]
	if k.maxRep == 0 {
		c.def = c.def[:min(rows, len(c.def))]
		return
	}
	c.rep, c.def, c.entries = c.rep[:c.entries[rows]], c.def[:c.entries[rows]], c.entries[:rows+1]
}
