package parquet

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Checksums do not cover the headers of pages, and many files have none. This file
// compares sizes and counts in a header with what else is known without decompressing
// the page. A chunk in doubt is decoded, which finds out what is wrong.

// sizeDoubt returns why the sizes in the header of the data page at c.pos do not fit
// its values, or "".
func (c *Chunk) sizeDoubt(h *meta.PageHeader, p pageFacts) (why string) {
	at, size, compressed := int64(0), int64(h.UncompressedPageSize), true
	if h.Type == format.DataPageV2 {
		dh := &h.DataPageHeaderV2.V
		at = int64(dh.RepetitionLevelsByteLength) + int64(dh.DefinitionLevelsByteLength)
		size -= at
		compressed = !dh.IsCompressed.Valid || dh.IsCompressed.V
	}
	if compressed && !c.startsWithSize(at, int64(h.CompressedPageSize)-at, size) {
		return "it has a page that states two sizes"
	}
	known := h.Type == format.DataPageV2 || c.leaf.MaxDef+c.leaf.MaxRep == 0 // the bytes and number of its values
	if p.encoding != format.Plain && p.encoding != format.ByteStreamSplit || !known {
		return ""
	}
	least, exact := plainSize(c.leaf, p.entries-max(p.nulls, 0))
	if size < least || exact && size > least && h.Type == format.DataPageV2 { // V1 pages may be padded
		return "it has a page whose size does not fit its number of values"
	}
	return ""
}

// dictionaryDoubt is sizeDoubt for the dictionary page at c.pos.
func (c *Chunk) dictionaryDoubt(h *meta.PageHeader) (why string) {
	size := int64(h.UncompressedPageSize)
	least, exact := plainSize(c.leaf, int64(h.DictionaryPageHeader.V.NumValues))
	if size < least || exact && size > least || !c.startsWithSize(0, int64(h.CompressedPageSize), size) {
		return "the size of its dictionary does not fit"
	}
	return ""
}

// plainSize returns the size of n values in PLAIN form or, if they are byte arrays, the
// least it can be.
func plainSize(l *meta.Leaf, n int64) (size int64, exact bool) {
	switch l.Type {
	case format.Boolean:
		return (n + 7) / 8, true
	case format.ByteArray:
		return n * lengthSize, false
	}
	return n * int64(l.Width()), true
}

// startsWithSize reports whether stored bytes, from at bytes after c.pos, begin with
// the size to which they decompress, as those of snappy must. It is true if that is
// not known.
func (c *Chunk) startsWithSize(at, stored, size int64) bool {
	if c.md.Codec != format.Snappy || stored == 0 || at+binary.MaxVarintLen32 > headerAhead {
		return true
	}
	b, err := c.peek(at + min(stored, binary.MaxVarintLen32))
	if err != nil || int64(len(b)) < at {
		return true // reading the page will report it
	}
	n, read := binary.Uvarint(b[at:])
	return read > 0 && n == uint64(size)
}

// otherNulls reports whether the chunk's statistics, if they are to be believed, have
// another number of NULLs.
func (c *Chunk) otherNulls(nulls int64) bool {
	n := c.md.Statistics.NullCount
	return c.leaf.MaxDef > 0 && n.Valid && n.V != nulls && c.f.Metadata.NullsBelieved()
}
