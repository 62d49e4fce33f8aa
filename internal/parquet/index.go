package parquet

import (
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// The page index of a column chunk has two structures: the offset index gives the
// position and first row of each data page, the column index gives bounds of its
// values (https://github.com/apache/parquet-format, PageIndex.md). Both are
// optional, and readers can do without them. An index that breaks the format's
// rules or contradicts the footer makes the file corrupt for callers that ask for
// it, because other parts may be wrong too.
//
// Some claims of an index cannot be checked without reading the pages: that a page
// begins with the given row, at that row's first value, and that its values are
// within the bounds. Page readers check at least the rows.

// maxIndexSize bounds the size of an index in bytes. Decoded, it takes up to about
// 24 times as much.
const maxIndexSize = 32 << 20

// PageLocation locates a data page.
type PageLocation struct {
	Offset   int64 // in the file
	Size     int32 // bytes, including the header
	FirstRow int64 // first row of the page, counted from 0 in the row group
}

// OffsetIndex locates the data pages of a column chunk. They lie within the chunk,
// do not overlap, and ascend by offset and by row; the first one begins with row 0.
type OffsetIndex struct {
	Pages []PageLocation
	rows  int64
}

// End returns the end (exclusive) of page i's rows: the first row of the next page,
// or the number of rows in the row group.
func (x *OffsetIndex) End(i int) int64 {
	if i+1 < len(x.Pages) {
		return x.Pages[i+1].FirstRow
	}
	return x.rows
}

// ColumnIndex describes the contents of a column chunk's pages. Its lists have an
// entry per page of the chunk's offset index. Bounds are PLAIN values, byte arrays
// without their length, in the column order that the file declares. The caller must
// check that it knows this order and that the bounds are plausible.
type ColumnIndex struct {
	Null       []bool   // the page has only NULLs, so its bounds are meaningless
	Min, Max   [][]byte // bounds of the values, which need not occur as values
	NullCounts []int64  // -1 for pages without a count; nil if no page has one
	Boundaries format.BoundaryOrder
}

type thriftOffsetIndex struct {
	PageLocations thrift.Slice[format.PageLocation] `thrift:"1,required"`
}

type thriftColumnIndex struct {
	NullPages     thrift.Slice[bool]   `thrift:"1,required"`
	MinValues     thrift.Slice[[]byte] `thrift:"2,required"`
	MaxValues     thrift.Slice[[]byte] `thrift:"3,required"`
	BoundaryOrder format.BoundaryOrder `thrift:"4,required"`
	NullCounts    thrift.Slice[int64]  `thrift:"5,optional"`
}

// OffsetIndex returns the offset index of a column chunk. rowGroup and leaf count
// from 0. ok is false if the chunk has no offset index or no values. It is safe for
// concurrent use.
func (f *File) OffsetIndex(rowGroup, leaf int) (x *OffsetIndex, ok bool, err error) {
	at := f.at(rowGroup, leaf)
	defer panics.Recover(at, &err)
	c := f.chunk(rowGroup, leaf)
	if c.OffsetIndexOffset == 0 || c.MetaData.NumValues == 0 {
		return nil, false, nil
	}
	var t thriftOffsetIndex
	if err := f.readIndex(at, offsetIndexName, c.OffsetIndexOffset, c.OffsetIndexLength, &t); err != nil {
		return nil, false, err
	}
	x = &OffsetIndex{Pages: make([]PageLocation, len(t.PageLocations)), rows: f.RowGroups[rowGroup].Rows}
	for i, p := range t.PageLocations {
		x.Pages[i] = PageLocation{Offset: p.Offset, Size: p.CompressedPageSize, FirstRow: p.FirstRowIndex}
	}
	start := chunkStart(&c.MetaData)
	if err := x.check(start, start+c.MetaData.TotalCompressedSize); err != nil {
		return nil, false, corruptIndex(at, offsetIndexName, err)
	}
	return x, true, nil
}

// check returns an error for the first rule that the pages break. The chunk's pages
// must lie between the offsets start and end.
func (x *OffsetIndex) check(start, end int64) error {
	if len(x.Pages) == 0 {
		return fmt.Errorf("it has no pages, the row group %d rows", x.rows)
	}
	next, row := start, int64(-1)
	for i, p := range x.Pages {
		switch {
		case p.Size <= 0:
			return fmt.Errorf("page %d has %d bytes", i+1, p.Size)
		case p.Offset < next:
			return fmt.Errorf("page %d is at %d, before the end of what precedes it at %d", i+1, p.Offset, next)
		case p.Offset > end || int64(p.Size) > end-p.Offset:
			return fmt.Errorf("page %d, %d bytes at %d, reaches beyond the column chunk, which ends at %d", i+1, p.Size, p.Offset, end)
		case i > 0 && p.Offset > next:
			return fmt.Errorf("page %d is at %d, the one before it ends at %d", i+1, p.Offset, next)
		case i == 0 && p.FirstRow != 0:
			return fmt.Errorf("page 1 begins with row %d, not with row 0", p.FirstRow)
		case p.FirstRow <= row:
			return fmt.Errorf("page %d begins with row %d, the one before it with row %d", i+1, p.FirstRow, row)
		case p.FirstRow >= x.rows:
			return fmt.Errorf("page %d begins with row %d of %d", i+1, p.FirstRow, x.rows)
		}
		next, row = p.Offset+int64(p.Size), p.FirstRow
	}
	if next < end { // rows of a page that is not listed would pass for those of another
		return fmt.Errorf("its last page ends at %d, the column chunk at %d", next, end)
	}
	return nil
}

// ColumnIndex returns the column index of a column chunk whose offset index is x.
// ok is false if the chunk has none. It is safe for concurrent use.
func (f *File) ColumnIndex(rowGroup, leaf int, x *OffsetIndex) (_ *ColumnIndex, ok bool, err error) {
	at := f.at(rowGroup, leaf)
	defer panics.Recover(at, &err)
	c := f.chunk(rowGroup, leaf)
	if c.ColumnIndexOffset == 0 {
		return nil, false, nil
	}
	var t thriftColumnIndex
	if err := f.readIndex(at, "column index", c.ColumnIndexOffset, c.ColumnIndexLength, &t); err != nil {
		return nil, false, err
	}
	ci := &ColumnIndex{Null: t.NullPages, Min: t.MinValues, Max: t.MaxValues, Boundaries: t.BoundaryOrder}
	if len(t.NullCounts) > 0 {
		ci.NullCounts = t.NullCounts
	}
	nulls := int64(-1)
	if n := c.MetaData.Statistics.NullCount; n.Valid && f.Metadata.NullsBelieved() {
		nulls = n.V
	}
	if err := ci.check(x, f.Leaves[leaf].MaxRep == 0, nulls); err != nil {
		return nil, false, corruptIndex(at, "column index", err)
	}
	if w := f.widened(leaf); w != nil {
		for i := range ci.Min {
			ci.Min[i], ci.Max[i] = w.bound(ci.Min[i]), w.bound(ci.Max[i])
		}
	}
	return ci, true, nil
}

// check returns an error for the first rule that the index breaks. A flat column
// has one entry per row. nulls is the chunk's number of NULLs, negative if unknown: if the
// pages have another one, rows would be lost by the one or the other.
func (ci *ColumnIndex) check(x *OffsetIndex, flat bool, nulls int64) error {
	pages := len(x.Pages)
	for _, list := range []struct {
		name string
		n    int
	}{{"null pages", len(ci.Null)}, {"least values", len(ci.Min)}, {"greatest values", len(ci.Max)}} {
		if list.n != pages {
			return fmt.Errorf("%d %s for %d pages", list.n, list.name, pages)
		}
	}
	if ci.NullCounts == nil {
		return nil
	}
	if len(ci.NullCounts) != pages {
		return fmt.Errorf("%d numbers of NULLs for %d pages", len(ci.NullCounts), pages)
	}
	total, known := int64(0), flat && nulls >= 0
	for i, n := range ci.NullCounts {
		// parquet-mr writes -1 for pages without statistics.
		if rows := x.End(i) - x.Pages[i].FirstRow; n < -1 || flat && n > rows {
			return fmt.Errorf("%d NULLs in page %d of %d rows", n, i+1, rows)
		} else if n < 0 || ci.Null[i] && n < rows { // parquet-mr knows nothing about the page
			known = false
		}
		total += n
	}
	if known && total != nulls {
		return fmt.Errorf("%d NULLs in all pages, the column chunk has %d", total, nulls)
	}
	return nil
}

const offsetIndexName = "offset index"

// readIndex decodes the structure of n bytes at pos into v.
func (f *File) readIndex(at fault.At, name string, pos int64, n int32, v any) error {
	switch {
	case pos < int64(len(magic)) || n <= 0 || pos > f.footerPos || int64(n) > f.footerPos-pos:
		return faults.Corrupt(at, "the %s, %d bytes at %d, lies outside the file's data", name, n, pos)
	case n > maxIndexSize:
		return faults.Unsupported(at, "the %s has %s; the limit is %s", name, show.Size(int64(n)), show.Size(maxIndexSize)).
			WithHint("write the file again with larger pages, or without a page index")
	}
	b, err := f.indexBytes(at.RowGroup-1, name == offsetIndexName, pos, int64(n))
	if err != nil {
		return err
	}
	if _, err := meta.Decode(b, v); err != nil {
		return corruptIndex(at, name, err)
	}
	return nil
}

func corruptIndex(at fault.At, name string, err error) error {
	e := faults.Corrupt(at, "the %s", name)
	e.Err = err
	return e.WithHint("write the file again, without a page index or with another program")
}

const (
	bloomBlock      = 32 // bytes
	maxBloomSize    = 128 << 20
	bloomHeaderSize = 256 // more than the four fields of a header take
)

// BloomFilter returns the bitset of a column chunk's Parquet Bloom filter: N blocks
// of 32 bytes, each eight little-endian 32-bit lanes, keyed by XXH64 with seed 0 of
// the PLAIN-encoded value (a byte array without its length). ok is false if the
// chunk has none. rowGroup and leaf count from 0.
func (f *File) BloomFilter(rowGroup, leaf int) (bits []byte, ok bool, err error) {
	defer panics.Recover(f.at(rowGroup, leaf), &err)
	pos, head, size, err := f.findBloom(rowGroup, leaf)
	if err != nil || size == 0 {
		return nil, false, err
	}
	bits = make([]byte, size)
	if err := f.readFull(bits, pos+head); err != nil {
		return nil, false, err
	}
	return bits, true, nil
}

// findBloom returns the position of a column chunk's Bloom filter and the bytes of
// its header and of its bitset, 0 if the chunk has none.
func (f *File) findBloom(rowGroup, leaf int) (pos, head, size int64, err error) {
	at := f.at(rowGroup, leaf)
	md := &f.chunk(rowGroup, leaf).MetaData
	if pos = md.BloomFilterOffset; pos == 0 {
		return 0, 0, 0, nil
	}
	if pos < int64(len(magic)) || pos >= f.footerPos {
		return 0, 0, 0, faults.Corrupt(at, "the Bloom filter lies outside the file's data")
	}
	b := make([]byte, min(bloomHeaderSize, f.footerPos-pos))
	if err := f.readFull(b, pos); err != nil {
		return 0, 0, 0, err
	}
	var h format.BloomFilterHeader
	n, err := meta.Decode(b, &h)
	if err != nil {
		return 0, 0, 0, &fault.Error{Kind: fault.ErrCorrupt, At: at, What: "no valid header of the Bloom filter", Err: err}
	}
	if err := checkBloomHeader(at, &h); err != nil {
		return 0, 0, 0, err
	}
	head, size = int64(n), int64(h.NumBytes)
	if size > f.footerPos-pos-head || md.BloomFilterLength > 0 && int64(md.BloomFilterLength) != size+head {
		return 0, 0, 0, faults.Corrupt(at, "the Bloom filter's size, %d bytes, does not fit", size)
	}
	return pos, head, size, nil
}

func checkBloomHeader(at fault.At, h *format.BloomFilterHeader) error {
	if _, ok := h.Algorithm.Value.(*format.SplitBlockAlgorithm); !ok {
		return faults.Unsupported(at, "a Bloom filter of an unknown algorithm")
	}
	if _, ok := h.Hash.Value.(*format.XxHash); !ok {
		return faults.Unsupported(at, "a Bloom filter of an unknown hash")
	}
	if _, ok := h.Compression.Value.(*format.BloomFilterUncompressed); !ok {
		return faults.Unsupported(at, "a compressed Bloom filter")
	}
	switch {
	case h.NumBytes <= 0 || h.NumBytes%bloomBlock != 0:
		return faults.Corrupt(at, "a Bloom filter of %d bytes", h.NumBytes)
	case h.NumBytes > maxBloomSize:
		return faults.Unsupported(at, "a Bloom filter of %d bytes", h.NumBytes)
	}
	return nil
}
