package parquet

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/parquet-go/parquet-go/format"
)

// BlockRows is the number of rows that a Footprint tells apart.
const BlockRows = 1024

// Footprint says how many bytes a column chunk takes when it is decoded:
// values, offsets and levels. Dictionaries make that a very different number
// from the chunk's size on disk.
type Footprint struct {
	Blocks []int64 // of each BlockRows rows in turn
	MaxRow int64   // of the largest row
}

// ValidateChunk decodes a whole column chunk and reports the first thing that
// is wrong with it: checksums, sizes, levels, values, and the totals against
// the footer. INT96 timestamps must fit into 64 bits of nanoseconds. rowGroup
// and leaf count from 0.
func (f *File) ValidateChunk(ctx context.Context, rowGroup, leaf int) error {
	_, err := f.Measure(ctx, new(Buffers), rowGroup, leaf, nil)
	return err
}

// Measure validates a column chunk as [File.ValidateChunk] does, and returns
// what it takes in memory. If rows is not nil, that is done of these rows alone,
// ascending, and other pages than theirs are not looked at.
func (f *File) Measure(ctx context.Context, buf *Buffers, rowGroup, leaf int, rows []uint32) (*Footprint, error) {
	c := f.ChunkIn(buf, rowGroup, leaf)
	n := f.RowGroups[rowGroup].Rows
	if rows != nil {
		c.Select(rows)
		n = int64(len(rows))
	}
	return c.measure(ctx, n)
}

// measure reads all that the chunk has to give, which must be so many rows.
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
		if c.leaf.Type == format.Int96 {
			if err := c.checkInt96(p); err != nil {
				return nil, err
			}
		}
		m.add(p, c.dict)
	}
	m.endRow()
	if blocks := (rows + BlockRows - 1) / BlockRows; int64(len(m.out.Blocks)) != blocks {
		return nil, fault.Corrupt(c.at, "the pages have %d blocks of rows, want %d", len(m.out.Blocks), blocks)
	}
	return &m.out, nil
}

// meter adds up entries as they come.
type meter struct {
	leaf *Leaf
	out  Footprint
	rows int64 // begun
	row  int64 // bytes of the current one
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
	fixed := int64(max(m.leaf.width(), 1)) + 4
	values := p.Plain
	next := 0 // value
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

const (
	julianEpoch = 2440588 // Julian day number of 1970-01-01
	dayNanos    = int64(24 * 60 * 60 * 1e9)
)

// Int96Nanos converts an INT96 timestamp, 12 bytes as stored (nanoseconds of
// the day, Julian day number, both little-endian), to nanoseconds since the
// epoch. It reports false when they do not fit.
func Int96Nanos(b []byte) (int64, bool) {
	nanos := int64(binary.LittleEndian.Uint64(b))
	days := int64(int32(binary.LittleEndian.Uint32(b[8:]))) - julianEpoch
	days += nanos / dayNanos
	nanos %= dayNanos
	if days < 0 && nanos > 0 { // keep both of one sign, so that a sum that fits has a product that fits
		days++
		nanos -= dayNanos
	} else if days > 0 && nanos < 0 {
		days--
		nanos += dayNanos
	}
	if days > math.MaxInt64/dayNanos || days < math.MinInt64/dayNanos {
		return 0, false
	}
	t := days*dayNanos + nanos
	if days > 0 && t < 0 || days < 0 && t > 0 {
		return 0, false
	}
	return t, true
}

// checkInt96 checks the page's timestamps. Those of a dictionary are checked
// when they are used.
func (c *Chunk) checkInt96(p *Page) error {
	check := func(b []byte) error {
		if _, ok := Int96Nanos(b); !ok {
			return fault.Unsupported(c.here(), "an INT96 timestamp beyond the years 1677 to 2262")
		}
		return nil
	}
	if p.Coded {
		for _, i := range p.Indices {
			if err := check(c.dict.Plain[12*i : 12*i+12]); err != nil {
				return err
			}
		}
		return nil
	}
	for b := p.Plain; len(b) > 0; b = b[12:] {
		if err := check(b[:12]); err != nil {
			return err
		}
	}
	return nil
}
