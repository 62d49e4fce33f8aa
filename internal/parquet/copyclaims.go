package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// This file decides which of an input's statistics and indexes hold for a copy of a
// chunk or a page, and checks them as far as that is possible without decoding
// values. What is in doubt is left out: it only saves readers work.

// statistics returns the statistics of the copy. Its bounds are in the given order;
// if that is undefined, it has none. Distinct counts are left out, because many
// writers estimate them.
func (k *chunkWalk) statistics(order meta.Order) (s meta.Statistics) {
	in := &k.md.Statistics
	nulls := k.nulls
	if n := in.NullCount; nulls < 0 && n.Valid && n.V >= 0 && n.V <= k.md.NumValues && k.f.Metadata.NullsBelieved() && !k.doubt {
		nulls = n.V
	}
	if nulls >= 0 {
		s.NullCount = thrift.New(nulls)
	}
	b := k.f.Bounds(k.at.RowGroup-1, k.leaf.Index, order)
	if b.Lo == nil || nulls == k.md.NumValues {
		return s
	}
	lo, hi, wholeLo, wholeHi := order.Shorten(b, meta.MaxBound)
	if lo == nil {
		return s
	}
	s.MinValue, s.MaxValue = thrift.New(bytes.Clone(lo)), thrift.New(bytes.Clone(hi))
	if s.IsMinValueExact = in.IsMinValueExact; !wholeLo || len(lo) != len(in.MinValue.V) {
		s.IsMinValueExact = thrift.New(false)
	}
	if s.IsMaxValueExact = in.IsMaxValueExact; !wholeHi {
		s.IsMaxValueExact = thrift.New(false)
	}
	return s
}

// Bounds returns the bounds in the statistics of a chunk, or none if they are missing or wrong in the
// given order, of [File.BelievedOrder].
func (f *File) Bounds(rowGroup, leaf int, order meta.Order) meta.Bounds {
	s := &f.chunk(rowGroup, leaf).MetaData.Statistics
	if !s.MinValue.Valid || !s.MaxValue.Valid {
		return meta.Bounds{}
	}
	b := meta.Bounds{Lo: present(s.MinValue.V), Hi: present(s.MaxValue.V)}
	if !order.Admits(b) {
		return meta.Bounds{}
	}
	return f.covering(b, order)
}

// covering widens b to include empty values if the file's writer may have ignored them. Readers
// trust the bounds of the copy, whose footer names another writer.
func (f *File) covering(b meta.Bounds, order meta.Order) meta.Bounds {
	if len(b.Lo) > 0 && order.ByteArrays() && !f.Metadata.BoundsCoverEmpty() {
		b.Lo = []byte{}
	}
	return b
}

// present returns b, never nil: an empty bound is a bound.
func present(b []byte) []byte {
	if b == nil {
		b = []byte{}
	}
	return b
}

// claim returns what the index says about page i, whose header is known: its bounds
// and its number of NULLs, -1 if not known. ok is false if that is impossible.
func (ci *ColumnIndex) claim(i int, p pageFacts, order meta.Order) (b meta.Bounds, nulls int64, ok bool) {
	nulls = p.nulls
	if ci.NullCounts != nil && ci.NullCounts[i] >= 0 {
		n := ci.NullCounts[i]
		if nulls >= 0 && n != nulls || n > p.entries {
			return b, nulls, false
		}
		nulls = n
	}
	if ci.Null[i] {
		return b, nulls, nulls == p.entries // parquet-mr also sets this for pages about which it knows nothing
	}
	b = meta.Bounds{Lo: present(ci.Min[i]), Hi: present(ci.Max[i])}
	ok = nulls < p.entries && order.Admits(b)
	return b, nulls, ok && len(b.Lo)+len(b.Hi) > 0 // some writers store missing bounds as empty ones
}

// index returns the page index of the copy: the pages as they were walked, with the
// bounds of the input's column index if these are in the given order and possible.
// If the walk does not know the rows of pages, the input's offset index gives them;
// without one, the copy has no index.
func (k *chunkWalk) index(order meta.Order) (x pageIndex, err error) {
	given, columns, err := k.indexes(order)
	if k.doubt = errors.Is(err, fault.ErrCorrupt); err != nil || given != nil && !k.fits(given) {
		given, columns = nil, nil
	}
	if err != nil && !unusable(err) {
		return x, err
	}
	if x.broken = columns == nil; k.unknown && given == nil {
		return x, nil
	}
	for i, p := range k.pages {
		if given != nil {
			p.row = given.Pages[i].FirstRow
		}
		var b meta.Bounds
		values := 1
		if columns != nil {
			var ok bool
			if b, p.nulls, ok = columns.claim(i, p.pageFacts, order); !ok {
				x.broken = true
			} else if columns.Null[i] {
				values = 0
			}
			b = k.f.covering(b, order)
		}
		end := k.stored.cut // bytes that are left out up to the end of the page
		if i+1 < len(k.pages) {
			end = k.pages[i+1].cut
		}
		x.add(p.at-k.pages[0].at-p.cut, int(p.size-end+p.cut), p.row, p.nulls, order, values, b)
	}
	if x.broken {
		x.columns = thriftColumnIndex{}
	}
	x.setOrder(order)
	return x, nil
}

// indexes returns the chunk's offset index and, if the order is defined, its column
// index; nil: there is none.
func (c *Chunk) indexes(order meta.Order) (x *OffsetIndex, columns *ColumnIndex, err error) {
	group, leaf := c.at.RowGroup-1, c.leaf.Index
	x, ok, err := c.f.OffsetIndex(group, leaf)
	if err != nil || !ok || !order.Defined() {
		return x, nil, err
	}
	columns, _, err = c.f.ColumnIndex(group, leaf, x)
	return x, columns, err
}

// fits reports whether the offset index lists exactly the pages that were walked.
func (k *chunkWalk) fits(x *OffsetIndex) bool {
	if len(x.Pages) != len(k.pages) {
		return false
	}
	for i, p := range k.pages {
		if g := x.Pages[i]; g.Offset != p.at || int64(g.Size) != p.size || !k.unknown && g.FirstRow != p.row {
			return false
		}
	}
	return true
}

// BelievedOrder returns order if the file's bounds for the leaf are in it and can be trusted,
// else the undefined order.
func (f *File) BelievedOrder(l *meta.Leaf, order meta.Order) meta.Order {
	if order != meta.OrderOf(l) || !f.BoundsBelieved(l) || l.IsFloat() && !f.Metadata.BoundsCoverNaN() {
		return meta.Order{}
	}
	return order
}

// unusable reports whether err says that an optional part of a file is damaged or
// has an unknown form.
func unusable(err error) bool {
	return errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrUnsupported)
}

// Checksums do not cover the headers of pages, and many files have none. What follows
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

// startsWithSize reports whether the stored bytes at c.pos+at begin with their decompressed size,
// as Snappy's must. It is true if that cannot be checked.
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
