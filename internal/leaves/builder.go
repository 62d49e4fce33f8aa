package leaves

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// Builder makes blocks from pages. It is not safe for concurrent use.
type Builder struct {
	of      []meta.Leaf
	kinds   []kind
	cols    []column
	former  []int // bytes of values, by leaf, of the block before
	scratch []byte
}

// NewBuilder returns a builder of blocks with the given leaves.
func NewBuilder(of []meta.Leaf) *Builder {
	return &Builder{of: of, kinds: kindsOf(of), cols: make([]column, len(of)), former: make([]int, len(of))}
}

// maxPositions is the largest position in a column.
const maxPositions = math.MaxUint32 & math.MaxInt

var (
	errTooLarge = fmt.Errorf("%w: rows to be held together have more than %s of values in one column (leave that column out)", fault.ErrMemory, show.Size(maxPositions))
	errTooMany  = fmt.Errorf("%w: rows to be held together have more than %d values in one column (leave that column out)", fault.ErrMemory, maxPositions)
)

// Add adds the entries of a page of a leaf. dict is its dictionary. It keeps no
// memory of either. A page may begin and end within a row. An error is final: the
// builder must not be used again.
func (b *Builder) Add(leaf int, p *parquet.Page, dict *parquet.Dictionary) error {
	if p.Values == 0 {
		return nil
	}
	k, c := &b.kinds[leaf], &b.cols[leaf]
	err := k.check(p, dict)
	if err == nil && p.Rep != nil && p.Rep[0] != 0 && len(c.entries) == 0 {
		err = errors.New("the first row is not complete")
	}
	if c.values == nil && p.NonNull > 0 {
		c.values = make([]byte, 0, b.former[leaf])
	}
	if err == nil {
		err = b.add(k, c, p, dict)
	}
	if err != nil {
		return fmt.Errorf("column %s: to be held in memory: %w", b.of[leaf].Dotted, err)
	}
	return nil
}

// check does the cheap checks that p is consistent and a page of the leaf.
func (k *kind) check(p *parquet.Page, dict *parquet.Dictionary) error {
	there := p.Values
	if k.maxDef > 0 && len(p.Def) == p.Values {
		there = bytes.Count(p.Def, []byte{k.maxDef})
	}
	size, want := len(p.Plain), p.NonNull*k.width
	switch {
	case p.Coded:
		size, want = len(p.Indices), p.NonNull
	case k.typ == format.Boolean:
		want = (p.NonNull + 7) / 8
	case k.width == 0:
		want = max(size, 4*p.NonNull)
	}
	switch {
	case (k.maxDef > 0) != (p.Def != nil) || (k.maxRep > 0) != (p.Rep != nil),
		p.Def != nil && len(p.Def) != p.Values, p.Rep != nil && len(p.Rep) != p.Values:
		return fmt.Errorf("a page of %d entries with %d definition and %d repetition levels", p.Values, len(p.Def), len(p.Rep))
	case there != p.NonNull || size != want:
		return fmt.Errorf("a page of %d values with %d, in %d bytes or indices", there, p.NonNull, size)
	case p.Coded && p.NonNull > 0 && (dict == nil || k.typ == format.Boolean):
		return errors.New("a page of indices without a dictionary")
	}
	return nil
}

func (b *Builder) add(k *kind, c *column, p *parquet.Page, dict *parquet.Dictionary) error {
	if k.dense {
		b.addDense(k, c, p, dict)
		return nil
	}
	from := len(c.values)
	values, ok := k.appendValues(c.values, p, dict, maxPositions)
	if !ok {
		return errTooLarge
	}
	c.values = values
	if k.maxRep > 0 {
		return k.addRepeated(c, p, from)
	}
	return k.addFlat(c, p, from)
}

// appendValues appends the values of the page to dst, which must not become longer
// than most.
func (k *kind) appendValues(dst []byte, p *parquet.Page, dict *parquet.Dictionary, most int64) ([]byte, bool) {
	switch {
	case p.NonNull == 0:
		return dst, true
	case k.typ == format.Boolean:
		return appendBools(dst, p.Plain, p.NonNull), int64(len(dst)+p.NonNull) <= most
	case p.Coded:
		if k.width > 0 && int64(len(dst))+int64(len(p.Indices))*int64(k.width) > most {
			return dst, false
		}
		out, n := dict.AppendValues(dst, p.Indices, k.width, int(min(most, math.MaxInt-1))+1)
		return out, n == len(p.Indices) && int64(len(out)) <= most
	case int64(len(dst))+int64(len(p.Plain)) > most:
		return dst, false
	}
	return append(dst, p.Plain...), true
}

// appendBools appends a byte for each of n booleans that are eight to a byte.
func appendBools(dst, packed []byte, n int) []byte {
	for i := range n {
		dst = append(dst, packed[i/8]>>(i%8)&1)
	}
	return dst
}

// addDense adds the slots of the page's rows.
func (b *Builder) addDense(k *kind, c *column, p *parquet.Page, dict *parquet.Dictionary) {
	rows := len(c.values) / k.width
	if p.NonNull == p.Values {
		c.values, _ = k.appendValues(c.values, p, dict, math.MaxInt64)
		if c.def != nil {
			c.def = appendLevel(c.def, k.maxDef, p.Values)
		}
		return
	}
	c.addDef(k, p, rows)
	from, size := len(c.values), p.Values*k.width
	c.values = slices.Grow(c.values, size)[:from+size]
	src := p.Plain
	if p.Coded || k.typ == format.Boolean {
		b.scratch, _ = k.appendValues(b.scratch[:0], p, dict, math.MaxInt64)
		src = b.scratch
	}
	spread(c.values[from:], src, k.width, p.Def, k.maxDef)
}

// addDef adds the levels of a page with NULLs to a flat column that has the given
// number of rows.
func (c *column) addDef(k *kind, p *parquet.Page, rows int) {
	if c.def == nil {
		c.def = appendLevel(make([]uint8, 0, rows+p.Values), k.maxDef, rows)
	}
	c.def = append(c.def, p.Def...)
}

// appendLevel appends a level n times.
func appendLevel(dst []uint8, level uint8, n int) []uint8 {
	dst = slices.Grow(dst, n)
	more := dst[len(dst) : len(dst)+n]
	for i := range more {
		more[i] = level
	}
	return dst[:len(dst)+n]
}

// addFlat adds where the page's values start, which are c.values from byte from on,
// and its levels.
func (k *kind) addFlat(c *column, p *parquet.Page, from int) error {
	rows := len(c.starts)
	switch {
	case p.NonNull < p.Values:
		c.addDef(k, p, rows)
	case c.def != nil:
		c.def = append(c.def, p.Def...)
	}
	w := walk{values: c.values, pos: from, width: k.width}
	c.starts = slices.Grow(c.starts, p.Values)
	for i := range p.Values {
		c.starts = append(c.starts, uint32(w.pos))
		if p.Def == nil || p.Def[i] == k.maxDef {
			w.step()
		}
	}
	return w.end()
}

// addRepeated is addFlat for a repeated leaf.
func (k *kind) addRepeated(c *column, p *parquet.Page, from int) error {
	first := len(c.rep)
	if int64(first)+int64(p.Values) > maxPositions {
		return errTooMany
	}
	w := walk{values: c.values, pos: from, width: k.width}
	for i, rep := range p.Rep {
		if rep == 0 {
			c.starts, c.entries = append(c.starts, uint32(w.pos)), append(c.entries, uint32(first+i))
		}
		if p.Def[i] == k.maxDef {
			w.step()
		}
	}
	c.rep, c.def = append(c.rep, p.Rep...), append(c.def, p.Def...)
	return w.end()
}

// walk steps over values.
type walk struct {
	values []byte
	pos    int // after the values, once there is a wrong length
	width  int // of each value; 0: byte arrays
}

// step moves past one value.
func (w *walk) step() {
	if w.width > 0 {
		w.pos += w.width
		return
	}
	if b := w.values[min(w.pos, len(w.values)):]; len(b) >= 4 {
		if n := binary.LittleEndian.Uint32(b); uint64(n) <= uint64(len(b)-4) {
			w.pos += 4 + int(n)
			return
		}
	}
	w.pos = len(w.values) + 1
}

// end checks that the last value ends where the values end.
func (w *walk) end() error {
	if w.pos != len(w.values) {
		return errors.New("values that do not take the bytes of their page")
	}
	return nil
}

// Block returns what was added, which must be the same number of rows for each leaf,
// and starts anew.
func (b *Builder) Block(rows int) (*Block, error) {
	out := &Block{rows: rows, kinds: b.kinds, cols: b.cols}
	b.cols = make([]column, len(out.cols))
	for i := range out.cols {
		k, c := &b.kinds[i], &out.cols[i]
		have := len(c.starts)
		if k.dense {
			have = len(c.values) / k.width
		}
		if have != rows {
			return nil, fmt.Errorf("column %s: to be held in memory: %d rows, not %d", b.of[i].Dotted, have, rows)
		}
		b.former[i] = len(c.values)
		if !k.dense {
			c.starts = append(c.starts, uint32(len(c.values)))
		}
		if k.maxRep > 0 {
			c.entries = append(c.entries, uint32(len(c.rep)))
		}
	}
	return out, nil
}
