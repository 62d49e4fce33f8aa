package leaves

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// A block is stored as its number of rows and its leaves. Integers have 4 bytes. A
// leaf is
//
//   - a byte: the parts that follow;
//   - for a repeated leaf, the number of entries and their repetition levels;
//   - definition levels, if not all are at the maximum;
//   - the size of the values and the values, in the form that columns have, if there
//     are any.
//
// Where each row starts is not stored.
const (
	hasLevels = 1 << iota // definition levels
	hasValues
)

// Append appends the given rows of the block, all if rows is nil, to dst in a form
// that Parse reads. It may write to all of dst's capacity.
func (b *Block) Append(dst []byte, rows []uint32) []byte {
	n := len(rows)
	if rows == nil {
		n = b.rows
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	for i := range b.cols {
		p := portion{from: &b.cols[i], rows: rows, n: n}
		dst = p.appendTo(dst, &b.kinds[i])
	}
	return dst
}

// appendTo appends the stored form of the rows.
func (p *portion) appendTo(dst []byte, k *kind) []byte {
	c := p.from
	at := len(dst)
	dst = append(dst, 0)
	if k.maxRep > 0 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(p.sum(c.entries)))
		dst = p.appendParts(dst, c.rep, c.entries)
	}
	levels := len(dst)
	switch {
	case c.def == nil:
	case k.maxRep > 0:
		dst = p.appendParts(dst, c.def, c.entries)
	default:
		dst = p.appendLevels(dst, c.def, k)
	}
	values := true
	if c.def != nil {
		n := bytes.Count(dst[levels:], []byte{k.maxDef})
		values = n > 0
		if n == len(dst)-levels {
			dst = dst[:levels]
		} else {
			dst[at] |= hasLevels
		}
	}
	if !values || p.n == 0 {
		return dst
	}
	dst[at] |= hasValues
	if k.dense {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(p.n*k.width))
		return p.appendSlots(dst, k)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(p.sum(c.starts)))
	return p.appendParts(dst, c.values, c.starts)
}

// Parse reads a block that Append wrote. It checks all sizes and levels. The block
// refers to src.
func Parse(of []meta.Leaf, src []byte) (*Block, error) {
	in := cursor.Cursor{Rest: src}
	rows := uint64(in.U32())
	if rows > maxPositions {
		return nil, faults.Corrupt(fault.At{}, "stored rows: %d of them", rows)
	}
	b := &Block{rows: int(rows), kinds: kindsOf(of), cols: make([]column, len(of))}
	for i := range of {
		if what := b.kinds[i].parse(&b.cols[i], &in, b.rows); what != "" {
			return nil, faults.Corrupt(fault.At{Column: of[i].Dotted}, "stored rows: %s", what)
		}
	}
	if in.Short || len(in.Rest) > 0 {
		return nil, faults.Corrupt(fault.At{}, "stored rows with %d bytes after the last one, or too few", len(in.Rest))
	}
	return b, nil
}

// parse reads a column of the given number of rows. It returns what is wrong, if
// anything.
func (k *kind) parse(c *column, in *cursor.Cursor, rows int) (what string) {
	parts := in.U8()
	entries := uint64(rows)
	if k.maxRep > 0 {
		entries = uint64(in.U32())
		c.rep = in.Take(entries)
		if in.Short || bytes.Count(c.rep, []byte{0}) != rows || rows > 0 && c.rep[0] != 0 || exceeds(c.rep, k.maxRep) {
			return "repetition levels"
		}
	}
	there := int(entries) // values
	if parts&hasLevels != 0 && k.maxDef > 0 {
		c.def = in.Take(entries)
		if in.Short || exceeds(c.def, k.maxDef) {
			return "definition levels"
		}
		there = bytes.Count(c.def, []byte{k.maxDef})
	}
	if parts&hasValues != 0 {
		c.values = in.Take(uint64(in.U32()))
	}
	switch {
	case in.Short, parts&^(hasLevels|hasValues) != 0, (there > 0) != (parts&hasValues != 0):
		return "parts"
	case k.typ == format.Boolean && exceeds(c.values, 1):
		return "booleans"
	case k.dense:
		size := uint64(rows) * uint64(k.width)
		if there == 0 && size <= math.MaxInt { // all rows are NULL, and their levels were there
			c.values = make([]byte, size)
		}
		if uint64(len(c.values)) != size {
			return "values"
		}
		return ""
	case uint64(len(c.values)) < uint64(there)*uint64(k.least()):
		return "values"
	}
	return k.parseStarts(c, rows, int(entries))
}

// least returns the size of the smallest value.
func (k *kind) least() int {
	if k.width == 0 {
		return 4
	}
	return k.width
}

// exceeds reports whether a level, or a boolean, is above max.
func exceeds(b []uint8, max uint8) bool {
	return len(b) > 0 && slices.Max(b) > max
}

// parseStarts finds where each row starts. The number of values was compared with
// their size, so that no memory is allocated for rows that cannot be there.
func (k *kind) parseStarts(c *column, rows, entries int) (what string) {
	w := walk{values: c.values, width: k.width}
	c.starts = make([]uint32, 0, rows+1)
	if k.maxRep > 0 {
		c.entries = make([]uint32, 0, rows+1)
	}
	for i := range entries {
		if k.maxRep == 0 || c.rep[i] == 0 {
			c.starts = append(c.starts, uint32(w.pos))
			if k.maxRep > 0 {
				c.entries = append(c.entries, uint32(i))
			}
		}
		if c.def == nil || c.def[i] == k.maxDef {
			w.step()
		}
	}
	if w.end() != nil {
		return "values"
	}
	c.starts = append(c.starts, uint32(len(c.values)))
	if k.maxRep > 0 {
		c.entries = append(c.entries, uint32(entries))
	}
	if k.maxRep > 0 && c.def == nil {
		c.def = appendLevel(make([]uint8, 0, entries), k.maxDef, entries)
	}
	return ""
}
