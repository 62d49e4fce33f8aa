package leaves

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

const (
	segmentShift = 16
	segmentRows  = 1 << segmentShift // rows of all segments but the last
)

// Store holds rows, numbered from 0. Append must not be concurrent with anything
// else; the other methods are safe for concurrent use.
type Store struct {
	of     []parquet.Leaf
	kinds  []kind
	leaves [][]column // by segment
	rows   int
	take   func(int64) error
	bytes  int64
	makers sync.Pool // of *pageMaker
}

// New returns an empty store of rows with the given leaves. take, if not nil, is
// called before memory is allocated; its error is Append's.
func New(of []parquet.Leaf, take func(bytes int64) error) *Store {
	return &Store{of: of, kinds: kindsOf(of), leaves: make([][]column, len(of)), take: take}
}

// Len returns the number of rows.
func (s *Store) Len() int { return s.rows }

// Bytes returns the bytes that were passed to take.
func (s *Store) Bytes() int64 { return s.bytes }

// Append appends the given rows of the block, all if rows is nil. After an error the
// store has the rows that it had before.
func (s *Store) Append(b *Block, rows []uint32) error {
	if !slices.Equal(s.kinds, b.kinds) {
		return errors.New("rows to be held in memory have other columns")
	}
	n := len(rows)
	if rows == nil {
		n = b.rows
	}
	if uint64(s.rows)+uint64(n) > None {
		return fmt.Errorf("%w: more than 2^32 rows in a table", fault.ErrMemory)
	}
	for i := range s.leaves {
		if err := s.appendLeaf(i, &b.cols[i], rows, n); err != nil {
			for j := range i + 1 {
				s.truncate(j)
			}
			return err
		}
	}
	s.rows += n
	return nil
}

// appendLeaf appends n rows of a block to a leaf: those given, or the first n.
func (s *Store) appendLeaf(leaf int, from *column, rows []uint32, n int) error {
	l, k := &s.leaves[leaf], &s.kinds[leaf]
	for row, done := s.rows, 0; done < n; {
		seg := row >> segmentShift
		if seg == len(*l) {
			if err := s.addSegment(l); err != nil {
				return err
			}
		}
		some := min(n-done, segmentRows-row&(segmentRows-1))
		p := portion{from: from, first: uint32(done), n: some}
		if rows != nil {
			p.rows = rows[done : done+some]
		}
		g := growth{s: s}
		if seg > 0 {
			g.former = &(*l)[seg-1]
		}
		if err := g.append(k, &(*l)[seg], &p); err != nil {
			return fmt.Errorf("column %s: %w", s.of[leaf].Dotted, err)
		}
		row, done = row+some, done+some
	}
	return nil
}

func (s *Store) addSegment(cols *[]column) error {
	if len(*cols) == cap(*cols) {
		wider := max(2*cap(*cols), 4)
		if err := s.charge(int64(wider-cap(*cols)) * int64(unsafe.Sizeof(column{}))); err != nil {
			return err
		}
		*cols = append(make([]column, 0, wider), *cols...)
	}
	*cols = append(*cols, column{})
	return nil
}

func (s *Store) charge(bytes int64) error {
	if s.take != nil {
		if err := s.take(bytes); err != nil {
			return err
		}
	}
	s.bytes += bytes
	return nil
}

// truncate removes the rows of a leaf that the store does not count.
func (s *Store) truncate(leaf int) {
	cols := s.leaves[leaf]
	for seg := s.rows >> segmentShift; seg < len(cols); seg++ {
		cols[seg].truncate(&s.kinds[leaf], max(s.rows-seg<<segmentShift, 0))
	}
}

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

// portion is rows of a block that go to one segment.
type portion struct {
	from  *column  // the block's
	rows  []uint32 // nil: n rows from the first
	first uint32
	n     int
}

// sum returns how many positions, as of values or entries, the rows take, given
// where each row starts.
func (p *portion) sum(starts []uint32) (n int64) {
	if p.rows == nil {
		return int64(starts[p.first+uint32(p.n)] - starts[p.first])
	}
	for _, r := range p.rows {
		n += int64(starts[r+1] - starts[r])
	}
	return n
}

// appendStarts appends where the rows end, given where each starts in the block.
func (p *portion) appendStarts(dst, starts []uint32) []uint32 {
	at := dst[len(dst)-1]
	if p.rows == nil {
		shift := at - starts[p.first]
		for _, start := range starts[p.first+1:][:p.n] {
			dst = append(dst, start+shift)
		}
		return dst
	}
	for _, r := range p.rows {
		at += starts[r+1] - starts[r]
		dst = append(dst, at)
	}
	return dst
}

// appendParts appends the bytes or levels of the rows, given where each starts.
func (p *portion) appendParts(dst, src []byte, starts []uint32) []byte {
	if p.rows == nil {
		return append(dst, src[starts[p.first]:starts[p.first+uint32(p.n)]]...)
	}
	for _, r := range p.rows {
		dst = appendShort(dst, src, starts[r], starts[r+1])
	}
	return dst
}

// appendLevels appends a level for each of the rows.
func (p *portion) appendLevels(dst, def []uint8, k *kind) []uint8 {
	switch {
	case def == nil:
		return appendLevel(dst, k.maxDef, p.n)
	case p.rows == nil:
		return append(dst, def[p.first:int(p.first)+p.n]...)
	}
	for _, r := range p.rows {
		dst = append(dst, def[r])
	}
	return dst
}

// appendSlots appends the slots of the rows.
func (p *portion) appendSlots(dst []byte, k *kind) []byte {
	if p.rows == nil {
		return append(dst, p.from.values[int(p.first)*k.width:][:p.n*k.width]...)
	}
	return appendSlots(dst, p.from.values, k.width, p.rows)
}

// growth makes room in a column before rows are appended.
type growth struct {
	s      *Store
	former *column // of the segment before; nil for the first
}

// append appends rows to a column. If there is no room for them, none is appended.
func (g *growth) append(k *kind, c *column, p *portion) (err error) {
	from := p.from
	if k.dense {
		rows := len(c.values) / k.width
		if err := g.flatDef(k, c, from, rows, p.n); err != nil {
			return err
		}
		if c.values, err = room(g, c.values, p.n*k.width, g.length(func(c *column) int { return len(c.values) }), segmentRows*k.width); err != nil {
			return err
		}
		c.values = p.appendSlots(c.values, k)
		if c.def != nil {
			c.def = p.appendLevels(c.def, from.def, k)
		}
		return nil
	}
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
	if int64(len(c.values))+size > math.MaxUint32 {
		return errTooLarge
	}
	if c.values, err = room(g, c.values, int(size), g.length(func(c *column) int { return len(c.values) }), math.MaxUint32); err != nil {
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
	if int64(len(c.rep))+entries > math.MaxUint32 {
		return fmt.Errorf("%w: more than 2^32 entries of one column", fault.ErrMemory)
	}
	former := g.length(func(c *column) int { return len(c.rep) })
	if c.rep, err = room(g, c.rep, int(entries), former, math.MaxUint32); err != nil {
		return err
	}
	if c.def, err = room(g, c.def, int(entries), former, math.MaxUint32); err != nil {
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

// capacity returns the next capacity of a part of a segment: the first segment
// doubles; others get a quarter of what the former one has, then all of it.
func capacity(have, need, former int) int {
	former += former / 64
	switch quarter := former / 4; {
	case need <= quarter:
		return quarter
	case need <= former:
		return former
	case former > 0:
		return max(need, have+have/4)
	}
	return max(need, 2*have)
}
