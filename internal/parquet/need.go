package parquet

import (
	"runtime/debug"

	"github.com/parquet-go/parquet-go/format"
)

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
			bytes += 2*size + 4*int64(h.DictionaryPageHeader.V.NumValues) + c.wideBytes(h.DictionaryPageHeader.V.NumValues, format.Plain)
			c.pos += stored
		case format.DataPage:
			v := &h.DataPageHeader.V
			return bytes + pageNeed(size, v.NumValues, v.Encoding) + c.wideBytes(v.NumValues, v.Encoding)
		case format.DataPageV2:
			v := &h.DataPageHeaderV2.V
			return bytes + pageNeed(size, v.NumValues, v.Encoding) + c.wideBytes(v.NumValues, v.Encoding)
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
	return b.earlySize() + int64(cap(b.window)+cap(b.raw)+cap(b.plain)+cap(b.wide)+cap(b.picked)+cap(b.dict)+cap(b.rep)+cap(b.def)+
		4*(cap(b.offsets)+cap(b.indices)+cap(b.entries)+cap(b.values)))
}

// earlySize returns the size of pages that are, or were, decompressed early.
func (b *Buffers) earlySize() (n int64) {
	for i := range b.early {
		n += int64(cap(b.early[i].data))
	}
	return n
}
