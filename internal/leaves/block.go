package leaves

import (
	"math"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
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

func kindsOf(of []meta.Leaf) []kind {
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
