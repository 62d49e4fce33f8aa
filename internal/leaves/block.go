package leaves

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/parquet-go/parquet-go/format"
)

// None stands for no row where row numbers are expected.
const None = math.MaxUint32

// widestSlot is the width of the widest values that have a slot for each row. Wider
// ones take no memory where they are NULL.
const widestSlot = 16

// kind says how the entries of a leaf are held.
type kind struct {
	typ            format.Type
	width          int  // bytes of a value; 1 for booleans; 0 for byte arrays, whose sizes differ
	dense          bool // each row has a slot of width bytes, also if it is NULL
	maxDef, maxRep uint8
}

func kindsOf(of []parquet.Leaf) []kind {
	kinds := make([]kind, len(of))
	for i := range of {
		l := &of[i]
		k := kind{typ: l.Type, width: l.Width(), maxDef: uint8(l.MaxDef), maxRep: uint8(l.MaxRep)}
		if l.Type == format.Boolean {
			k.width = 1
		}
		k.dense = l.MaxRep == 0 && k.width > 0 && k.width <= widestSlot
		kinds[i] = k
	}
	return kinds
}

// column holds a leaf's entries of consecutive rows. There are three forms:
//
//   - dense: values has a slot for each row, and def a level;
//   - flat, but not dense: the value of row i, if it has one, is
//     values[starts[i]:starts[i+1]], and def has a level for each row;
//   - repeated: the values of row i are values[starts[i]:starts[i+1]], and its
//     entries are entries[i] up to entries[i+1] of rep and def.
//
// Byte arrays are held with their lengths, as in PLAIN; a boolean is a byte. def is
// nil if the leaf is not repeated and no row is NULL.
type column struct {
	values   []byte
	starts   []uint32
	entries  []uint32
	rep, def []uint8
}

// bytes returns the memory of the column.
func (c *column) bytes() int64 {
	return int64(cap(c.values)+cap(c.rep)+cap(c.def)) + 4*int64(cap(c.starts)+cap(c.entries))
}

// Block holds consecutive rows. It is immutable and safe for concurrent use.
type Block struct {
	rows  int
	kinds []kind
	cols  []column
}

// Len returns the number of rows.
func (b *Block) Len() int { return b.rows }

// Bytes returns the memory that the block takes.
func (b *Block) Bytes() (n int64) {
	for i := range b.cols {
		n += b.cols[i].bytes()
	}
	return n
}

// Builder makes blocks from pages. It is not safe for concurrent use.
type Builder struct {
	of      []parquet.Leaf
	kinds   []kind
	cols    []column
	scratch []byte
	limit   int64
	held    int64 // bytes of values and levels
}

// NewBuilder returns a builder of blocks with the given leaves.
func NewBuilder(of []parquet.Leaf) *Builder {
	return &Builder{of: of, kinds: kindsOf(of), cols: make([]column, len(of)), limit: math.MaxInt64}
}

// Limit bounds the values and levels of a block, in bytes: Add returns an error that
// wraps fault.ErrMemory before it holds more. Values of dictionary-coded pages may
// take any multiple of the page's size.
func (b *Builder) Limit(bytes int64) { b.limit = bytes }

var errTooLarge = fmt.Errorf("%w: more than 4 GiB of values of one column", fault.ErrMemory)

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
	if err == nil {
		before := int64(len(c.values) + len(c.def) + len(c.rep))
		err = b.add(k, c, p, dict)
		b.held += int64(len(c.values)+len(c.def)+len(c.rep)) - before
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
		if b.held+int64(p.Values)*int64(k.width+1) > b.limit {
			return b.overLimit()
		}
		b.addDense(k, c, p, dict)
		return nil
	}
	from := len(c.values)
	most := min(math.MaxUint32, int64(from)+b.limit-b.held-2*int64(p.Values))
	if int64(from) > most {
		return b.overLimit()
	}
	values, ok := k.appendValues(c.values, p, dict, most)
	if !ok && most < math.MaxUint32 {
		return b.overLimit()
	}
	if !ok {
		return errTooLarge
	}
	c.values = values
	if k.maxRep > 0 {
		return k.addRepeated(c, p, from)
	}
	return k.addFlat(c, p, from)
}

func (b *Builder) overLimit() error {
	return fmt.Errorf("%w: rows to be held together take more than %d bytes", fault.ErrMemory, b.limit)
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
		c.def = appendLevel(make([]uint8, 0, max(rows+p.Values, cap(c.values)/max(k.width, 4))), k.maxDef, rows)
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
	if int64(first)+int64(p.Values) > math.MaxUint32 {
		return fmt.Errorf("%w: more than 2^32 entries of one column", fault.ErrMemory)
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
	pos    int // beyond the values after a length that is wrong
	width  int // of each value; 0: byte arrays
}

// step moves past one value.
func (w *walk) step() {
	if w.width > 0 {
		w.pos += w.width
		return
	}
	if w.pos > len(w.values)-4 {
		w.pos = math.MaxInt / 2
		return
	}
	b := w.values[w.pos:]
	w.pos += 4 + int(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24)
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
	b.cols, b.held = make([]column, len(out.cols)), 0
	for i := range out.cols {
		k, c := &b.kinds[i], &out.cols[i]
		have := len(c.starts)
		if k.dense {
			have = len(c.values) / k.width
		}
		if have != rows {
			return nil, fmt.Errorf("column %s: to be held in memory: %d rows, not %d", b.of[i].Dotted, have, rows)
		}
		if !k.dense {
			c.starts = append(c.starts, uint32(len(c.values)))
		}
		if k.maxRep > 0 {
			c.entries = append(c.entries, uint32(len(c.rep)))
		}
	}
	return out, nil
}
