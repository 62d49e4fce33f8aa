package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// leafCursor reads rows of a leaf, some at a time. Its chunk may be closed between any two
// calls, and is then opened at the next row.
type leafCursor struct {
	leaf *meta.Leaf
	at   fault.At

	buf   *Buffers
	chunk *Chunk // nil: not open
	until int    // end of the rows for which it was opened
	page  *Page  // nil: none
	entry int    // of page: the next one
	value int    // of page: the next one other than NULL
	plain int    // of a page of byte arrays without indices: where that value begins

	part  Page   // what take passes on
	flags []byte // its booleans
}

// take passes the entries of the next n rows to add, page by page. last says that n rows
// are all that is left.
func (c *leafCursor) take(ctx context.Context, n int, last bool, add func(*Page, *Dictionary) error) error {
	for taken := 0; taken < n || c.leaf.MaxRep > 0 || last; {
		more, err := c.advance(ctx)
		if err != nil {
			return err
		}
		entries, begun := 0, 0
		if more {
			entries, begun = c.span(n - taken)
		}
		if taken += begun; entries == 0 && taken < n {
			return faults.Corrupt(c.at, "%d rows where there must be %d", taken, n)
		} else if entries == 0 {
			break
		}
		if err := add(c.next(entries, begun), c.chunk.Dictionary()); err != nil {
			return err
		}
	}
	return nil
}

// advance makes sure that the page has an entry left. It returns false at the end of
// the chunk.
func (c *leafCursor) advance(ctx context.Context) (bool, error) {
	for c.page == nil || c.entry == c.page.Values {
		p, err := c.chunk.Next(ctx)
		c.page, c.entry, c.value, c.plain = p, 0, 0, 0
		if err != nil {
			c.page = nil
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return false, err
		}
	}
	return true, nil
}

// span returns the number of entries of the page that belong to the row that has begun
// and the next n rows, and the number of rows that begin among them.
func (c *leafCursor) span(n int) (entries, begun int) {
	p := c.page
	if p.Rep == nil {
		n = min(n, p.Values-c.entry)
		return n, n
	}
	for _, rep := range p.Rep[c.entry:] {
		if rep == 0 {
			if begun == n {
				break
			}
			begun++
		}
		entries++
	}
	return entries, begun
}

// next returns the next entries of the page, among which the given number of rows
// begins. They are valid until the page is left.
func (c *leafCursor) next(entries, rows int) *Page {
	p := c.page
	from, to := c.entry, c.entry+entries
	c.entry = to
	if entries == p.Values {
		c.value = p.NonNull
		return p
	}
	c.part = Page{Number: p.Number, Values: entries, Rows: rows, NonNull: entries, Encoding: p.Encoding, Coded: p.Coded}
	q := &c.part
	if p.Rep != nil {
		q.Rep = p.Rep[from:to]
	}
	if p.Def != nil {
		q.Def = p.Def[from:to]
		if p.NonNull < p.Values {
			q.NonNull = bytes.Count(q.Def, []byte{uint8(c.leaf.MaxDef)})
		}
	}
	at := c.value
	c.value += q.NonNull
	switch width := c.leaf.Width(); {
	case p.Coded:
		q.Indices = p.Indices[at:c.value]
	case width > 0:
		q.Plain = p.Plain[at*width : c.value*width]
	case c.leaf.Type == format.Boolean:
		q.Plain = c.booleans(p.Plain, at, q.NonNull)
	default:
		start := c.plain
		for range q.NonNull {
			c.plain += 4 + int(binary.LittleEndian.Uint32(p.Plain[c.plain:]))
		}
		q.Plain = p.Plain[start:c.plain]
	}
	return q
}

// booleans returns n booleans from position at on, eight to a byte.
func (c *leafCursor) booleans(packed []byte, at, n int) []byte {
	if at%8 == 0 {
		return packed[at/8 : (at+n+7)/8]
	}
	c.flags = append(c.flags[:0], make([]byte, (n+7)/8)...)
	for i := range n {
		c.flags[i/8] |= packed[(at+i)/8] >> ((at + i) % 8) & 1 << (i % 8)
	}
	return c.flags
}
