package joins

import "github.com/bloomjoin/bloomjoin/internal/joins/internal/table"

// portion is one of several portions of the IDs with which a row group is joined
// in turn because they exceed the memory together. A log row without an ID in one
// portion may have one in another, so it is known to have none only at the last one. A
// nil portion is all of the IDs.
//
// The row group is read by one worker, in order, for each portion.
type portion struct {
	last   bool
	joined *[]uint64   // bit set of rows with an ID, shared by the portions
	keys   *table.Side // of the row group; marked: those with an ID in this portion or an earlier one
	row    int         // number of the batch's first row
}

// join records that a row of the batch has an ID. first reports whether no earlier
// portion had one.
func (p *portion) join(row int) (first bool) {
	if p == nil {
		return true
	}
	at := p.row + row
	for at/64 >= len(*p.joined) {
		*p.joined = append(*p.joined, 0)
	}
	word, bit := &(*p.joined)[at/64], uint64(1)<<(at%64)
	first = *word&bit == 0
	*word |= bit
	return first
}

// unmatched reports whether a row of the batch, which has no ID in this portion, is
// now known to have none at all.
func (p *portion) unmatched(row int) bool {
	if p == nil {
		return true
	}
	at := p.row + row
	return p.last && !(at/64 < len(*p.joined) && (*p.joined)[at/64]>>(at%64)&1 != 0)
}

// pass moves on to the next batch.
func (p *portion) pass(rows int) {
	if p != nil {
		p.row += rows
	}
}

// counts reports whether rows are counted in this portion.
func (p *portion) counts() bool { return p == nil || p.last }
