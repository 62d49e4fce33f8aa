package parquet

import (
	"fmt"
	"slices"
	"sort"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// This file walks a chunk for selected rows. A page's header gives the number of
// rows in the page, except for V1 pages of repeated leaves, which must be decoded,
// and for V2 pages whose header may count values instead of rows.

// without reports whether the page after the header can be skipped, because it
// holds none of the selected rows or is dictionary-coded, and returns its number of
// rows.
func (c *Chunk) without(h *meta.PageHeader) (rows int64, ok bool) {
	if !c.selected && !c.noCoded {
		return 0, false
	}
	var encoding format.Encoding
	switch {
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		dh := &h.DataPageHeaderV2.V
		if countsValues(c.leaf, dh) && !c.oneEntryPerRow(h) {
			return 0, false
		}
		if rows, encoding = int64(dh.NumRows), dh.Encoding; c.leaf.MaxRep == 0 {
			rows = int64(dh.NumValues) // as decoding counts them
		}
	case h.Type == format.DataPage && h.DataPageHeader.Valid && c.leaf.MaxRep == 0:
		rows, encoding = int64(h.DataPageHeader.V.NumValues), h.DataPageHeader.V.Encoding
	default:
		return 0, false
	}
	if rows < 0 {
		return 0, false
	}
	if c.noCoded && isCoded(encoding) {
		return rows, true
	}
	return rows, c.selected && (len(c.left) == 0 || int64(c.left[0]) >= c.rows+rows)
}

// countsValues reports whether the header of a V2 page of a repeated leaf gives the
// number of values as the number of rows. Apache Arrow before 12 always writes
// that, and its pages may begin anywhere in a row; from other writers it means that
// each row has one entry.
func countsValues(l *meta.Leaf, dh *meta.DataPageHeaderV2) bool {
	return l.MaxRep > 0 && dh.NumRows == dh.NumValues
}

// oneEntryPerRow reports whether every entry of the V2 page starts a row. It reads
// the repetition levels, which are not compressed.
func (c *Chunk) oneEntryPerRow(h *meta.PageHeader) bool {
	dh := &h.DataPageHeaderV2.V
	if n := dh.RepetitionLevelsByteLength; dh.NumValues <= 0 || n < 0 || n > min(h.CompressedPageSize, headerAhead) {
		return false // or longer than constant levels would be
	}
	b, err := c.peek(int64(dh.RepetitionLevelsByteLength))
	if err != nil {
		return false // reading the page will report it
	}
	level, ok := enc.ConstantLevel(b, int(dh.NumValues), enc.LevelWidth(c.leaf.MaxRep))
	return ok && level == 0
}

// jumpAfter is the number of pages skipped by their headers before the page index
// is used to find the next wanted one.
const jumpAfter = 8

// jump moves to the page that holds the next selected row if many pages before it
// were skipped and the offset index locates it.
func (c *Chunk) jump() (err error) {
	least := jumpAfter
	if c.f.remote != nil { // only the pages that the index locates were announced
		least = 0
	}
	if c.run < least || !c.selected || len(c.left) == 0 || c.leaf.MaxRep > 0 {
		return nil
	}
	c.run = 0
	if !c.indexed {
		c.indexed = true
		if c.index, _, err = c.f.OffsetIndex(c.at.RowGroup-1, c.leaf.Index); err != nil {
			return err
		}
	}
	late := c.ahead != nil && c.ahead.late && c.pages == 0 && c.dict == nil && c.dictAt == 0
	if c.index == nil || c.pages >= len(c.index.Pages) || c.index.Pages[c.pages].FirstRow != c.rows || c.index.Pages[c.pages].Offset != c.pos && !late {
		return nil // the dictionary comes first, or there is no index, or one that does not list all pages
	}
	row := int64(c.left[0])
	to := c.pages + sort.Search(len(c.index.Pages)-c.pages, func(i int) bool { return c.index.End(c.pages+i) > row })
	if to <= c.pages || to >= len(c.index.Pages) {
		return nil
	}
	if late {
		c.dictAt = c.pos
	}
	p := c.index.Pages[to]
	c.skipped += to - c.pages
	c.pages, c.pos, c.passed = to, p.Offset, p.Offset
	c.rows, c.values = p.FirstRow, p.FirstRow
	c.jumped = true
	return nil
}

// landed checks that the page after a jump has the rows given by the index.
func (c *Chunk) landed() error {
	if !c.jumped {
		return nil
	}
	c.jumped = false
	if end := c.index.End(c.pages - 1); c.rows != end {
		return c.corrupt(nil, "the page ends with row %d, the page index says %d", c.rows, end)
	}
	return nil
}

// skip steps over a page with the given number of rows.
func (c *Chunk) skip(h *meta.PageHeader, rows int64) error {
	at, err := c.checkSizes(h)
	if err != nil {
		return err
	}
	n := h.DataPageHeader.V.NumValues
	if h.Type == format.DataPageV2 {
		n = h.DataPageHeaderV2.V.NumValues
	}
	if n < 0 || int64(n) > c.md.NumValues-c.values || rows > int64(n) || c.leaf.MaxRep == 0 && rows != int64(n) {
		return faults.Wanted(faults.Corrupt(at, "values of %d rows", rows), fmt.Sprintf("at most %d, the rest of the column chunk", c.md.NumValues-c.values), n)
	}
	for len(c.left) > 0 && int64(c.left[0]) < c.rows+rows { // the page may be skipped for its encoding and hold selected rows
		c.left = c.left[1:]
	}
	c.pages++
	c.skipped++
	c.run++
	c.values += int64(n)
	c.rows += rows
	c.inRow = false // the page begins at a row boundary, or no selected row continues
	c.pos += int64(h.CompressedPageSize)
	if c.rows > c.wanted {
		return faults.Wanted(faults.Corrupt(at, "rows of the column"), fmt.Sprintf("%d, as the row group has", c.wanted), "more")
	}
	return c.landed()
}

// narrow finds the entries of the selected rows in the page, whose levels are
// decoded and whose rows are counted. It returns true if all entries are selected;
// else c.buf.entries holds those that are.
func (c *Chunk) narrow() bool {
	p := &c.page
	first := c.rows - int64(p.Rows)
	n, _ := slices.BinarySearchFunc(c.left, c.rows, func(row uint32, end int64) int {
		if int64(row) < end {
			return -1
		}
		return 1
	})
	rows := c.left[:n]
	c.left = c.left[n:]
	if p.Rep == nil {
		if n == p.Rows {
			return true
		}
		entries := enc.Reuse(c.buf.entries, n)
		c.buf.entries = entries
		for i, row := range rows {
			entries[i] = row - uint32(first)
		}
		return false
	}
	return c.narrowRepeated(rows, first)
}

// narrowRepeated is narrow for repeated leaves, whose rows have any number of
// entries and may continue in the next page.
func (c *Chunk) narrowRepeated(rows []uint32, first int64) bool {
	p := &c.page
	entries := c.buf.entries[:0]
	row := first - 1
	in := c.inRow
	for i, rep := range p.Rep {
		if rep == 0 {
			row++
			if in = len(rows) > 0 && int64(rows[0]) == row; in {
				rows = rows[1:]
			}
		}
		if in {
			entries = append(entries, uint32(i))
		}
	}
	c.inRow = in
	c.buf.entries = entries
	return len(entries) == p.Values
}

// decodeSelected reduces the page to the entries in c.buf.entries and decodes their
// values.
func (c *Chunk) decodeSelected(src []byte) error {
	p := &c.page
	entries := c.buf.entries
	values := entries // positions among the page's values other than NULL
	total := p.NonNull
	rows := len(entries)
	if p.Rep != nil {
		rows = 0
		for i, e := range entries {
			p.Rep[i] = p.Rep[e]
			if p.Rep[i] == 0 {
				rows++
			}
		}
		p.Rep = p.Rep[:len(entries)]
	}
	if p.Def != nil {
		values = c.present(entries)
	}
	p.Values, p.Rows = len(entries), rows
	if len(entries) == 0 {
		return nil
	}
	if isCoded(p.Encoding) {
		return c.decodeIndices(src, values, false)
	}
	return c.pickPlain(src, total, values)
}

// present reduces the definition levels to those of the entries and returns the
// positions of the entries' values among the page's values other than NULL.
func (c *Chunk) present(entries []uint32) []uint32 {
	p := &c.page
	def := p.Def
	p.Def = p.Def[:len(entries)]
	switch full := uint8(c.leaf.MaxDef); {
	case c.sameDef:
		c.fillDef()
		if c.def != full {
			return nil
		}
		return entries
	case p.NonNull == p.Values:
		return entries // no value is NULL
	default:
		c.buf.values = enc.SelectValues(c.buf.values[:0], def, full, entries)
		enc.SelectLevels(def[:0], def, entries) // in place: writing never overtakes reading
		return c.buf.values
	}
}

// pickFirst is pickPlain for a PLAIN page whose first bytes alone were decompressed.
func (c *Chunk) pickFirst(src []byte, values []uint32) (err error) {
	p, dst, n, width := &c.page, c.buf.picked[:0], 0, c.leaf.Width()
	if len(values) > 0 {
		n = int(values[len(values)-1]) + 1
	}
	switch {
	case width == 0:
		if dst, _, err = enc.GatherByteArrays(dst, src, n, values); err != nil {
			return err
		}
	case n*width > len(src):
		return errPart
	default:
		dst = enc.GatherFixed(dst, src, width, values)
	}
	c.buf.picked = dst
	p.Plain, p.NonNull = dst, len(values)
	return nil
}

// leastPart is the size of the smallest page worth decompressing in part.
const leastPart = 64 << 10

// needed returns how many bytes of a page that begins with the given row must be decompressed for
// its selected rows; 0: all. It is an estimate if values differ in size or may be NULL.
func (c *Chunk) needed(h *meta.PageHeader, row int64) int {
	var n, levels int64
	var encoding format.Encoding
	switch {
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		n, encoding = int64(h.DataPageHeader.V.NumValues), h.DataPageHeader.V.Encoding
		if c.leaf.MaxDef > 0 {
			levels = n/4*int64(enc.LevelWidth(c.leaf.MaxDef)) + 64
		}
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		n, encoding = int64(h.DataPageHeaderV2.V.NumValues), h.DataPageHeaderV2.V.Encoding
	}
	size := int64(h.UncompressedPageSize)
	if !c.selected || c.leaf.MaxRep > 0 || n <= 0 || encoding != format.Plain || c.leaf.Type == format.Boolean || size < leastPart ||
		c.md.Codec != format.Snappy && c.md.Codec != format.Zstd {
		return 0
	}
	i, _ := slices.BinarySearchFunc(c.left, row+n, func(a uint32, b int64) int { return int(int64(a) - b) })
	if i == 0 || int64(c.left[i-1]) < row {
		return 0
	}
	rows := int64(c.left[i-1]) + 1 - row
	need := rows * int64(c.leaf.Width())
	if c.leaf.Width() == 0 || c.leaf.MaxDef > 0 {
		need = levels + int64(float64(size)*float64(rows)/float64(n)) + size/32
	}
	if need > size/8*7 {
		return 0
	}
	return int(need)
}

// pickPlain decodes the values at the given positions among total values.
func (c *Chunk) pickPlain(src []byte, total int, values []uint32) error {
	p := &c.page
	dst := c.buf.picked[:0]
	if c.need > 0 {
		return c.pickFirst(src, values)
	}
	if p.Encoding == format.Plain && c.leaf.Type == format.ByteArray {
		var tail int
		var err error
		if dst, tail, err = enc.GatherByteArrays(dst, src, total, values); err == nil {
			err = c.ends(tail)
		}
		if err != nil {
			return c.corrupt(err, "the page's values do not decode (%v)", p.Encoding)
		}
	} else {
		plain, err := c.plainOf(src)
		if err != nil {
			return err
		}
		switch c.leaf.Type {
		case format.ByteArray:
			if dst, _, err = enc.GatherByteArrays(dst, plain, total, values); err != nil {
				return c.corrupt(err, "the page's values do not decode (%v)", p.Encoding)
			}
		case format.Boolean:
			dst = enc.GatherBools(dst, plain, values)
		default:
			dst = enc.GatherFixed(dst, plain, c.leaf.Width(), values)
		}
	}
	c.buf.picked = dst
	p.Plain, p.NonNull = dst, len(values)
	return nil
}
