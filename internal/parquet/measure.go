package parquet

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"runtime/debug"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/faults"
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
		return nil, faults.Corrupt(c.at, "the pages have %d blocks of rows, want %d", len(m.out.Blocks), blocks)
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

// usualNeed is the memory in bytes that a page and a dictionary of usual size take.
const usualNeed = 4 << 20

// Need returns the approximate memory, in bytes, that decoding the column chunk
// takes for its dictionary and one page; results are not included. It uses the
// headers of the dictionary and the first data page as far as they are readable. It
// reports no errors; these are found when the chunk is read.
func (f *File) Need(rowGroup, leaf int) (bytes int64) {
	md := &f.Metadata.RowGroups[rowGroup].Columns[leaf].MetaData
	if f.remote != nil { // a header would be a request
		return min(md.TotalUncompressedSize, usualNeed)
	}
	c := f.Chunk(rowGroup, leaf)
	defer c.Close()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil { // the mapped page is gone
			bytes = md.TotalUncompressedSize
		}
	}()
	for range 2 {
		h, _, err := c.readHeader()
		if err != nil {
			return bytes
		}
		if _, err := c.checkSizes(h); err != nil {
			return bytes
		}
		size, stored := int64(h.UncompressedPageSize), int64(h.CompressedPageSize)
		if c.mapped() == nil {
			bytes = max(bytes, max(stored, f.windowSize())+headerAhead)
		}
		switch h.Type {
		case format.DictionaryPage:
			bytes += 2*size + 4*int64(h.DictionaryPageHeader.V.NumValues)
			c.pos += stored
		case format.DataPage:
			return bytes + pageNeed(size, h.DataPageHeader.V.NumValues, h.DataPageHeader.V.Encoding)
		case format.DataPageV2:
			return bytes + pageNeed(size, h.DataPageHeaderV2.V.NumValues, h.DataPageHeaderV2.V.Encoding)
		default:
			return bytes
		}
	}
	return bytes
}

// pageNeed returns the approximate size of a decoded data page.
func pageNeed(size int64, values int32, e format.Encoding) int64 {
	const levels = 2 // bytes per entry
	switch n := int64(values); e {
	case format.PlainDictionary, format.RLEDictionary:
		return size + (levels+4)*n
	case format.Plain:
		return size + levels*n
	default: // converted to PLAIN
		return 3*size + levels*n
	}
}

// Size returns the size of the buffers in bytes.
func (b *Buffers) Size() int64 {
	return int64(cap(b.window) + cap(b.raw) + cap(b.plain) + cap(b.picked) + cap(b.dict) + cap(b.rep) + cap(b.def) +
		4*(cap(b.offsets)+cap(b.indices)+cap(b.entries)+cap(b.values)))
}
