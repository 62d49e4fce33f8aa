package join

import "github.com/bloomjoin/bloomjoin/join/internal/table"

// block is one of several parts of the IDs that rows of one row group are joined
// with, one after the other, because they do not fit into memory together. A log
// row that has no ID in one block may have one in another: only after the last
// one it is known to have none. A nil block is all of the IDs.
//
// The row group is read by one worker, in order, for each block.
type block struct {
	last   bool
	joined *[]uint64   // bit set of rows that have an ID, shared by the blocks
	keys   *table.Side // of the row group; marked: those that have an ID, in this block or before
	row    int         // number of the batch's first row
}

// join notes that a row of the batch has an ID. first reports whether no block
// before had one.
func (b *block) join(row int) (first bool) {
	if b == nil {
		return true
	}
	at := b.row + row
	for at/64 >= len(*b.joined) {
		*b.joined = append(*b.joined, 0)
	}
	word, bit := &(*b.joined)[at/64], uint64(1)<<(at%64)
	first = *word&bit == 0
	*word |= bit
	return first
}

// lone reports whether a row of the batch, which has no ID in this block, has
// none at all, and this is the time to say so.
func (b *block) lone(row int) bool {
	if b == nil {
		return true
	}
	at := b.row + row
	return b.last && !(at/64 < len(*b.joined) && (*b.joined)[at/64]>>(at%64)&1 != 0)
}

// pass goes on to the next batch.
func (b *block) pass(rows int) {
	if b != nil {
		b.row += rows
	}
}

// counts reports whether the rows are counted in this block.
func (b *block) counts() bool { return b == nil || b.last }
