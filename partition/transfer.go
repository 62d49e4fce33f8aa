package partition

import (
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// Transfer counts requests and bytes of reads over a network.
type Transfer struct {
	Requests, Bytes float64
}

// Add returns the sum of two transfers.
func (t Transfer) Add(other Transfer) Transfer {
	return Transfer{t.Requests + other.Requests, t.Bytes + other.Bytes}
}

// Times returns n times the transfer.
func (t Transfer) Times(n float64) Transfer { return Transfer{t.Requests * n, t.Bytes * n} }

// Assumptions about a storage, see package store: how far apart two ranges may be
// to be fetched together, how much one request fetches, the ends of objects from which
// they are opened, and the objects that are fetched whole.
const (
	transferGap   = 1 << 20
	transferSize  = 8 << 20
	transferSmall = 256 << 10
	transferTail  = 32 << 10
	assumedPage   = 1 << 20 // before compression; the footer does not have it
)

// OpenTransfer returns what opening the file took; zero unless it is read over a
// network.
func (f *File) OpenTransfer() Transfer {
	if f.src == nil || !f.remote() {
		return Transfer{}
	}
	return Transfer{1, float64(min(f.Size, transferTail))}
}

// Transfer estimates what a scan of the row groups lo to hi, exclusive, reads over a
// network: the top-level columns first in whole, nil meaning all, and those of the
// columns rest that a share of the rows needs, spread at random; those in both are read once. Of columns with an
// offset index these are pages. It is zero unless the file is read over a network.
// Transfer reads nothing but the footer, which does not have sizes of pages.
func (f *File) Transfer(lo, hi int, first, rest []int, share float64) (ofFirst, ofRest Transfer) {
	p := f.parquet()
	switch {
	case f.src == nil || !f.remote() || lo >= hi:
		return Transfer{}, Transfer{}
	case f.Size <= transferTail: // kept since it was opened
		return Transfer{}, Transfer{}
	case f.Size <= transferSmall:
		return Transfer{1, float64(f.Size)}, Transfer{}
	case p == nil: // read from one end to the other
		bytes := float64(f.Size) * float64(hi-lo) / float64(max(f.NumGroups(), 1))
		return Transfer{math.Ceil(bytes / transferSize), bytes}, Transfer{}
	}
	again := func(c int) bool { return first == nil || slices.Contains(first, c) }
	rest = slices.DeleteFunc(slices.Clone(rest), again)
	indexed := false
	for g := lo; g < hi; g++ {
		rows := float64(f.GroupRows(g))
		ofFirst = ofFirst.Add(groupTransfer(f.wantedChunks(p.File(), g, first), rows, 1))
		if len(rest) > 0 && share > 0 {
			chunks := f.wantedChunks(p.File(), g, rest)
			ofRest = ofRest.Add(groupTransfer(chunks, rows, share))
			indexed = indexed || slices.ContainsFunc(chunks, func(c *parquet.ColumnChunk) bool { return c.OffsetIndexOffset != 0 })
		}
	}
	if indexed && share < 1 { // the indexes lie together
		ofRest.Requests++
	}
	return ofFirst, ofRest
}

// wantedChunks returns the stored chunks of columns of a row group.
func (f *File) wantedChunks(p *parquet.File, group int, columns []int) (chunks []*parquet.ColumnChunk) {
	var names []string
	for _, c := range columns {
		names = append(names, f.Schema().Field(c).Name)
	}
	all := p.Metadata.RowGroups[group].Columns
	for i := range all {
		if (columns == nil || slices.Contains(names, p.Leaves[i].Path[0])) && all[i].MetaData.DataPageOffset < f.Size { // else it is a constant
			chunks = append(chunks, &all[i])
		}
	}
	return chunks
}

// groupTransfer estimates the transfer of chunks of a row group that has a number of
// rows. Each chunk is announced, and so fetched, by itself.
func groupTransfer(chunks []*parquet.ColumnChunk, rows, share float64) (t Transfer) {
	for _, c := range chunks {
		bytes := float64(c.MetaData.TotalCompressedSize)
		pages := math.Ceil(math.Max(float64(c.MetaData.TotalUncompressedSize), 1) / assumedPage)
		if c.OffsetIndexOffset == 0 { // pages cannot be located, so the chunk is read if one is wanted
			pages = 1
		}
		touched := 1 - math.Pow(1-share, rows/pages)
		t.Bytes += bytes * touched
		switch {
		case bytes*(1-touched)/pages <= transferGap*touched: // between pages there is less than takes as long as a request
			t.Requests += math.Min(1, touched*pages) * math.Ceil(bytes*touched/transferSize)
		default:
			t.Requests += touched * pages
		}
	}
	return t
}
