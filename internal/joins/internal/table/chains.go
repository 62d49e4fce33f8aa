package table

import "github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"

// chains link the rows of each key in ascending order: a ring through all of them,
// whose last row the table knows. They take no memory until some key has two rows.
// One goroutine links rows, or several link those of different keys.
type chains struct {
	share  *budget.Share
	rows   uint64 // number of rows
	open   bool   // some key has two rows
	blocks [][]uint32
}

const (
	blockBits = 12
	blockRows = 1 << blockBits
)

// cover makes room for links of all rows, if there are any links. The error wraps
// [fault.ErrMemory].
func (c *chains) cover() error {
	for c.open && uint64(len(c.blocks))<<blockBits < c.rows {
		if err := c.share.Take(4*blockRows + chunkSlice); err != nil {
			return err
		}
		c.blocks = append(c.blocks, make([]uint32, blockRows))
	}
	return nil
}

// begin opens the chains when a key has its second row. The error wraps
// [fault.ErrMemory].
func (c *chains) begin() error {
	c.open = true
	return c.cover()
}

// at returns the link of a row: the next row of the ring plus one, or 0 if the row
// is the only one of its key.
func (c *chains) at(row uint32) *uint32 { return &c.blocks[row>>blockBits][row%blockRows] }

// link appends a row to the ring whose last row is last.
func (c *chains) link(last, row uint32) {
	first := *c.at(last)
	if first == 0 {
		first = last + 1
	}
	*c.at(row), *c.at(last) = first, row+1
}

// after returns the next row of the ring; after the last row, that is the first.
func (c *chains) after(row uint32) uint32 {
	if !c.open {
		return row
	}
	if next := *c.at(row); next != 0 {
		return next - 1
	}
	return row
}
