package parquet

import (
	"cmp"
	"context"
	"hash/crc32"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Pages that lose no row are copied within a chunk without being decompressed. Such
// a page's indices refer to the dictionary of its chunk, which the copy therefore
// keeps whole, and its bounds are known only from the input's column index. The copy does
// not keep the input chunk's bounds, although it could mark them as inexact: some engines
// answer MIN and MAX from inexact bounds.

// undecodedPage is what is known of a page that was not decoded.
type undecodedPage struct {
	leaf   *meta.Leaf
	header meta.PageHeader
	facts  pageFacts
	null   bool        // all entries are NULL
	order  meta.Order  // of the bounds
	bounds meta.Bounds // none if not known
}

// pageMetadata is what a file's index says about the pages of a chunk.
type pageMetadata struct {
	order   meta.Order
	index   *OffsetIndex // nil: none
	columns *ColumnIndex // nil: none
}

// Undecoded makes Next return pages without decompressing and decoding them where
// that is possible, for a ChunkWriter that keeps the dictionary, and compresses with
// the same codec: pages all of whose rows are selected, that begin and end at row
// boundaries and whose headers show how many rows they have. Pages that a view gives a wider
// type are always decoded. It must be called before Next.
func (c *Chunk) Undecoded() { c.sealing = !c.f.Metadata.PadsPages() && c.wide == nil }

// seal makes the page after the header the current page without decoding it. It
// returns false if the page must be decoded.
func (c *Chunk) seal(ctx context.Context, h *meta.PageHeader, offset int64) (ok bool, err error) {
	if h.Type != format.DataPage && h.Type != format.DataPageV2 {
		return false, nil
	}
	place, err := c.checkSizes(h)
	if err != nil {
		return false, err
	}
	c.pages++
	f, why, err := c.facts(h, c.dict != nil && c.dict.Len > 0)
	if why != "" || err != nil || f.rows < 0 || !c.takes(f.rows) {
		c.pages-- // Next counts it
		return false, err
	}
	size := c.pos - offset + int64(h.CompressedPageSize)
	if c.f.room != nil && c.mapped() == nil {
		n := c.dictBytes + max(int64(h.CompressedPageSize), min(c.f.windowSize(), c.end-c.pos))
		if err := c.buf.charge(ctx, place, "the page, with its dictionary,", n); err != nil {
			return false, err
		}
	}
	body, err := c.readBody(h)
	if err != nil {
		return false, err
	}
	c.stored = StoredPage{Body: body, Size: int(h.UncompressedPageSize), Codec: c.md.Codec}
	if c.sealed == nil {
		c.sealed = new(undecodedPage)
	}
	*c.sealed = undecodedPage{leaf: c.leaf, header: *h, facts: f}
	if err := c.addClaims(offset, size); err != nil {
		return false, err
	}
	c.page = Page{
		Number: c.pages, Offset: offset, FirstRow: c.rows, Values: int(f.entries), Rows: int(f.rows), NonNull: -1,
		Encoding: f.encoding, Stored: &c.stored, sealed: c.sealed,
	}
	if n := c.sealed.facts.nulls; n >= 0 {
		c.page.NonNull = int(f.entries - n)
	}
	c.values += f.entries
	c.rows += f.rows
	if c.selected {
		c.left = c.left[f.rows:]
	}
	c.skipped++
	c.run, c.inRow, c.ended, c.shape = 0, false, true, nil
	if c.rows > c.wanted {
		return false, c.corrupt(nil, "more rows than the row group's %d", c.wanted)
	}
	return true, c.landed()
}

// takes reports whether all of the next n rows are selected.
func (c *Chunk) takes(n int64) bool {
	return !c.selected || int64(len(c.left)) >= n && int64(c.left[n-1]) == c.rows+n-1
}

// beginsRow reports whether the V2 page whose body is at c.pos begins at a row
// boundary, as it must.
func (c *Chunk) beginsRow(h *meta.PageHeader) bool {
	if c.leaf.MaxRep == 0 {
		return true
	}
	dh := &h.DataPageHeaderV2.V
	b, err := c.peek(min(int64(dh.RepetitionLevelsByteLength), headerAhead))
	if err != nil {
		return false // decoding the page will report it
	}
	level, ok := enc.ConstantLevel(b, 1, enc.LevelWidth(c.leaf.MaxRep))
	return ok && level == 0
}

// addClaims adds to c.sealed what the file's index says about the page.
func (c *Chunk) addClaims(offset, size int64) error {
	if c.claims == nil {
		k := &pageMetadata{order: c.f.BelievedOrder(c.leaf, meta.OrderOf(c.leaf))}
		var err error
		if k.index, k.columns, err = c.indexes(k.order); err != nil && !unusable(err) {
			return err
		}
		c.claims = k
	}
	k, s := c.claims, c.sealed
	if k.columns == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(k.index.Pages, offset, func(p PageLocation, at int64) int { return cmp.Compare(p.Offset, at) })
	if !ok || int64(k.index.Pages[i].Size) != size || k.index.Pages[i].FirstRow != c.rows {
		return nil
	}
	if b, nulls, ok := k.columns.claim(i, s.facts, k.order); ok {
		s.order, s.bounds, s.null, s.facts.nulls = k.order, c.f.covering(b, k.order), k.columns.Null[i], nulls
	}
	return nil
}

// KeepDictionary makes the chunk keep the dictionary of its input whole: all pages
// come from one chunk, in its order, but may come from several walks over it. They
// may be undecoded. It must be called before the first page is added.
func (c *ChunkWriter) KeepDictionary() { c.keeps = true }

// addSealed adds a page that was not decoded.
func (c *ChunkWriter) addSealed(p *Page, dict *Dictionary) error {
	s, l := p.sealed, c.leaf
	switch {
	case !c.keeps:
		return c.fail("an undecoded page for a chunk with a dictionary of its own")
	case p.Stored.Codec != c.w.opts.Compression.Codec:
		return c.fail("an undecoded page compressed with %v", p.Stored.Codec)
	case s.leaf.Type != l.Type || s.leaf.TypeLength != l.TypeLength || s.leaf.MaxDef != l.MaxDef || s.leaf.MaxRep != l.MaxRep:
		return c.fail("an undecoded page of another type")
	}
	if c.page.entries > 0 {
		if err := c.finishPage(); err != nil {
			return err
		}
	}
	e := &encodedPage{
		entries: p.Values, rows: p.Rows, values: 1, encoding: p.Encoding, size: p.Stored.Size, body: p.Stored.Body, sealed: s,
	}
	switch {
	case s.null:
		e.values = 0
	case s.order == c.order:
		e.bounds = s.bounds
		c.inexact = true
	}
	if e.bounds.Lo == nil {
		e.bounds.Broken = !s.null
	}
	if isCoded(p.Encoding) {
		c.coded++
		if err := c.keep(dict); err != nil {
			return err
		}
	} else if !c.known {
		c.known, c.encoding = true, p.Encoding
	}
	return c.emit(e)
}

// storedHeader returns the header of a copied page: what it said, without
// statistics, and with a checksum.
func (s *undecodedPage) storedHeader(body []byte) *meta.PageHeader {
	h := s.header
	if !h.CRC.Valid {
		h.CRC = thrift.New(int32(crc32.ChecksumIEEE(body)))
	}
	return &h
}

// keep writes the input's dictionary as the chunk's, once.
func (c *ChunkWriter) keep(dict *Dictionary) error {
	if err := c.checkKept(dict); err != nil || c.dictOut.n > 0 {
		return err
	}
	return c.writeDictionary(dict.Plain, dict.Len)
}

// checkKept checks that dict is the same dictionary as before.
func (c *ChunkWriter) checkKept(dict *Dictionary) error {
	k := &c.kept
	if dict == nil {
		return c.fail("a page of indices without a dictionary")
	}
	if dict == k.dict {
		return nil
	}
	sum := xxh3.Hash128(dict.Plain)
	if k.dict != nil && (k.len != dict.Len || k.sum != sum) {
		return c.fail("pages of two dictionaries")
	}
	k.dict, k.len, k.sum = dict, dict.Len, sum
	return nil
}

// kept identifies the dictionary that a chunk keeps.
type kept struct {
	dict *Dictionary // the last one seen; its values may be gone
	len  int
	sum  xxh3.Uint128
}

// keep makes b a copy of a dictionary, whose indices stay as they are.
func (b *dictBuilder) keep(width int, dict *Dictionary) {
	b.width, b.kept, b.from = width, true, nil
	b.dict = Dictionary{
		Len: dict.Len, Plain: append(b.dict.Plain[:0], dict.Plain...), offsets: append(b.dict.offsets[:0], dict.offsets...),
	}
}
