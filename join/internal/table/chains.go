package table

import "github.com/bloomjoin/bloomjoin/join/internal/budget"

// chains link the rows of each key, in ascending order: a ring through all of
// them, of which the table has the last. As long as no key has two rows, there
// is nothing to link, and they take no memory. Rows are linked by one goroutine,
// or by many those of different keys.
type chains struct {
	share  *budget.Share
	rows   uint64 // that there are
	open   bool   // some key has two
	blocks [][]uint32
}

const (
	blockBits = 12
	blockRows = 1 << blockBits
)

// cover makes room for the rows that there are, if links are needed. The error
// wraps [fault.ErrMemory].
func (c *chains) cover() error {
	for c.open && uint64(len(c.blocks))<<blockBits < c.rows {
		if err := c.share.Take(4*blockRows + chunkSlice); err != nil {
			return err
		}
		c.blocks = append(c.blocks, make([]uint32, blockRows))
	}
	return nil
}

// begin opens the chains. The error wraps [fault.ErrMemory].
func (c *chains) begin() error {
	c.open = true
	return c.cover()
}

// at returns where the link of a row stands: the next one of the ring, plus one,
// or 0 if the row is alone.
func (c *chains) at(row uint32) *uint32 { return &c.blocks[row>>blockBits][row%blockRows] }

// link puts a row behind the last one of its key.
func (c *chains) link(last, row uint32) {
	first := *c.at(last)
	if first == 0 {
		first = last + 1
	}
	*c.at(row), *c.at(last) = first, row+1
}

// after returns the row behind a row, and behind the last one the first.
func (c *chains) after(row uint32) uint32 {
	if !c.open {
		return row
	}
	if next := *c.at(row); next != 0 {
		return next - 1
	}
	return row
}
