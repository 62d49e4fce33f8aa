package parquet

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// BlockRows is the number of rows per block of a Footprint.
const BlockRows = 1024

// Footprint is the size of a column chunk's decoded values, offsets and levels in
// bytes. Because of dictionaries it may differ greatly from the chunk's size on
// disk.
type Footprint struct {
	Blocks []int64    // per BlockRows rows
	MaxRow int64      // size of the largest row
	Shape  meta.Shape // of the rows measured
}

// Measure decodes a whole column chunk and returns its size in memory, or the first
// error in it: checksums, sizes, levels, values, and the totals in the footer.
// rowGroup and leaf count from 0. If rows is not nil, Measure covers only these
// rows, which must be ascending, and does not validate other pages.
func (f *File) Measure(ctx context.Context, buf *Buffers, rowGroup, leaf int, rows []uint32) (*Footprint, error) {
	c := f.ChunkIn(buf, rowGroup, leaf)
	n := f.RowGroups[rowGroup].Rows
	if rows != nil {
		c.Select(rows)
		n = int64(len(rows))
	}
	return c.measure(ctx, n)
}

// measure reads the selected rows of the chunk, whose number must be rows.
func (c *Chunk) measure(ctx context.Context, rows int64) (*Footprint, error) {
	m := meter{leaf: c.leaf}
	for {
		p, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		m.add(p, c.dict)
	}
	m.endRow()
	if blocks := (rows + BlockRows - 1) / BlockRows; int64(len(m.out.Blocks)) != blocks {
		return nil, fault.Corrupt(c.at, "the pages have %d blocks of rows, want %d", len(m.out.Blocks), blocks)
	}
	m.out.Shape = c.shape
	return &m.out, nil
}

// meter sums up entries as they are read.
type meter struct {
	leaf *meta.Leaf
	out  Footprint
	rows int64 // rows begun
	row  int64 // bytes of the current row
}

func (m *meter) endRow() {
	if m.rows == 0 {
		return
	}
	m.out.MaxRow = max(m.out.MaxRow, m.row)
	m.out.Blocks[(m.rows-1)/BlockRows] += m.row
	m.row = 0
}

func (m *meter) add(p *Page, dict *Dictionary) {
	fixed := int64(max(m.leaf.Width(), 1)) + 4
	values := p.Plain
	next := 0 // index of the next value
	for i := range p.Values {
		if p.Rep == nil || p.Rep[i] == 0 {
			m.endRow()
			if m.rows%BlockRows == 0 {
				m.out.Blocks = append(m.out.Blocks, 0)
			}
			m.rows++
		}
		m.row += fixed
		if m.leaf.Type != format.ByteArray || p.Def != nil && int(p.Def[i]) != m.leaf.MaxDef {
			continue
		}
		if p.Coded {
			m.row += dict.size(p.Indices[next])
		} else {
			n := binary.LittleEndian.Uint32(values)
			m.row += int64(n)
			values = values[4+n:]
		}
		next++
	}
}

// addShape adds the page's entries to the chunk's shape.
func (c *Chunk) addShape() { c.shape = c.f.AddShape(c.shape, c.leaf.Index, c.page.Rep, c.page.Def) }

// Shape returns the shape of the rows read so far, nil if some of them were not
// decoded.
func (c *Chunk) Shape() meta.Shape { return c.shape }

// CheckShapes compares the shapes of leaves that were read for the same rows of a
// row group, counted from 0. shapes is keyed by leaf and need not have all leaves;
// a nil shape is ignored.
func (f *File) CheckShapes(rowGroup int, shapes map[int]meta.Shape) error {
	if l, before, ok := f.OtherShape(shapes); !ok {
		return fault.Corrupt(f.at(rowGroup, l), "the column repeats otherwise than column %s, which is in the same repeated group", f.Leaves[before].Dotted)
	}
	return nil
}
