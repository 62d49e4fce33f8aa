package parquet

import (
	"context"
	"slices"
	"sort"
	"sync"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/storage"
)

// A file over a network is read in ranges that are announced before they are read,
// so that the storage can join and fetch them in parallel. A walk announces the pages
// that the offset index locates for its rows, or its whole chunk, and reads nothing
// else. Indexes lie together, so they are read and kept in blocks: of the whole file, or
// of a row group.

const (
	maxIndexBlock = 4 << 20
	fewIndexes    = 64 << 10  // bytes of a file's indexes that are read at once in any case
	farWindow     = 256 << 10 // bytes copied at a time from fetched ranges
	stepHeader    = 512       // bytes read for a header, if walks step from one to the next
	usualPage     = 1 << 20   // the usual size of pages in bytes, decompressed
)

// remote holds the additional state of a File over a network.
type remote struct {
	src storage.Prefetcher

	mu     sync.Mutex
	all    storage.Range // of all indexes; Len 0: they do not lie together
	blocks []*indexBlock
}

// indexBlock is a range of indexes that is read at once.
type indexBlock struct {
	storage.Range
	read func() ([]byte, error) // once
}

// Prefetch makes walks over pages announce their ranges to the storage before they read
// them. It must be called before any page is read.
func (f *File) Prefetch(src storage.Prefetcher) {
	f.remote = &remote{src: src}
	var all indexes
	for g := range f.Metadata.RowGroups {
		all.add(f, g, true)
		all.add(f, g, false)
	}
	f.remote.all, _ = all.together()
}

// Remote reports whether Prefetch was called.
func (f *File) Remote() bool { return f.remote != nil }

// Rest frees what a file over a network keeps between walks.
func (f *File) Rest() {
	if r := f.remote; r != nil {
		r.mu.Lock()
		r.blocks = nil
		r.mu.Unlock()
	}
}

// indexes sums up where some indexes are.
type indexes struct{ lo, hi, sum int64 }

// add adds the offset indexes or the column indexes of a row group.
func (x *indexes) add(f *File, rowGroup int, offsets bool) {
	for i := range f.Metadata.RowGroups[rowGroup].Columns {
		c := f.chunk(rowGroup, i)
		pos, n := c.ColumnIndexOffset, int64(c.ColumnIndexLength)
		if offsets {
			pos, n = c.OffsetIndexOffset, int64(c.OffsetIndexLength)
		}
		if pos <= 0 || n <= 0 || pos >= f.footerPos || n > f.footerPos-pos {
			continue // there is none, or readIndex returns the error
		}
		if x.sum == 0 {
			x.lo = pos
		}
		x.lo, x.hi, x.sum = min(x.lo, pos), max(x.hi, pos+n), x.sum+n
	}
}

// together returns the range of the indexes if it is small and holds little else.
func (x *indexes) together() (r storage.Range, ok bool) {
	n := x.hi - x.lo
	if x.sum == 0 || n > maxIndexBlock || x.sum < n/2 {
		return r, false
	}
	return storage.Range{Off: x.lo, Len: n}, true
}

// indexBytes returns n bytes at pos, which are an index of a row group.
func (f *File) indexBytes(rowGroup int, offsets bool, pos, n int64) ([]byte, error) {
	if f.remote == nil {
		b := make([]byte, n)
		return b, f.readFull(b, pos)
	}
	k := f.remote.block(f, rowGroup, offsets, storage.Range{Off: pos, Len: n})
	b, err := k.read()
	if err != nil {
		return nil, err
	}
	at := pos - k.Off
	return b[at : at+n : at+n], nil
}

// block returns the block that holds a range.
func (r *remote) block(f *File, rowGroup int, offsets bool, of storage.Range) *indexBlock {
	gap := r.src.Gap()
	r.mu.Lock()
	defer r.mu.Unlock()
	holds := func(k storage.Range) bool { return k.Off <= of.Off && of.Off+of.Len <= k.Off+k.Len }
	for _, k := range r.blocks {
		if holds(k.Range) {
			return k
		}
	}
	var group indexes
	group.add(f, rowGroup, offsets)
	if part, ok := group.together(); r.all.Len <= max(gap, fewIndexes) && holds(r.all) {
		of = r.all
	} else if ok && holds(part) {
		of = part
	}
	k := &indexBlock{Range: of, read: sync.OnceValues(func() ([]byte, error) {
		b := make([]byte, of.Len)
		return b, f.readFull(b, of.Off)
	})}
	r.blocks = append(r.blocks, k)
	return k
}

// Ahead is an announcement of what a walk will read.
type Ahead struct {
	ranges  []storage.Range // ascending
	steps   bool            // nothing was announced: the walk finds pages by their headers
	late    bool            // the dictionary was not announced, as it may not be needed
	release func()
}

// Release drops fetched bytes that were not read. It may be called again, and on nil.
func (a *Ahead) Release() {
	if a != nil {
		a.release()
	}
}

// Ahead announces what a walk over a column chunk will read for the given rows of the
// row group, nil for all. It returns nil for a file that is not over a network. The
// result is passed to Chunk.Expect, or released.
func (f *File) Ahead(rowGroup, leaf int, rows []uint32) *Ahead {
	switch {
	case rows == nil:
		return f.ahead(rowGroup, leaf, nil)
	case len(rows) == 0:
		return nil
	}
	return f.ahead(rowGroup, leaf, func(lo, hi int64) bool {
		for len(rows) > 0 && int64(rows[0]) < lo {
			rows = rows[sort.Search(len(rows), func(k int) bool { return int64(rows[k]) >= lo }):]
		}
		return len(rows) > 0 && int64(rows[0]) < hi
	})
}

// AheadOf is Ahead for ascending ranges of rows, ends exclusive.
func (f *File) AheadOf(rowGroup, leaf int, spans rows.Set) *Ahead {
	if len(spans) == 0 {
		return nil
	}
	return f.ahead(rowGroup, leaf, func(lo, hi int64) bool {
		for len(spans) > 0 && spans[0][1] <= lo {
			spans = spans[1:]
		}
		return len(spans) > 0 && spans[0][0] < hi
	})
}

// ahead is Ahead for the pages of which wanted returns true. It is called with the rows
// of pages in ascending order.
func (f *File) ahead(rowGroup, leaf int, wanted func(lo, hi int64) bool) *Ahead {
	if f.remote == nil {
		return nil
	}
	a := &Ahead{release: func() {}}
	f.locate(a, rowGroup, leaf, wanted)
	if len(a.ranges) > 0 {
		a.release = f.remote.src.Prefetch(a.ranges)
	}
	return a
}

// Again announces the same ranges again, so that their bytes can be read twice.
func (f *File) Again(a *Ahead) *Ahead {
	again := &Ahead{release: func() {}}
	if a != nil && len(a.ranges) > 0 {
		again.release = f.remote.src.Prefetch(a.ranges)
	}
	return again
}

// locate sets the ranges of a: the wanted pages and the dictionary. If wanted is nil or the pages
// cannot be located, it announces the whole chunk, or lets the walk step from header to header.
func (f *File) locate(a *Ahead, rowGroup, leaf int, wanted func(lo, hi int64) bool) {
	c := f.ChunkIn(new(Buffers), rowGroup, leaf)
	defer c.Close()
	if c.end <= c.pos || c.pos >= f.Size { // constants follow the file's end, in memory
		return
	}
	whole := []storage.Range{{Off: c.pos, Len: c.end - c.pos}}
	if wanted == nil || c.leaf.MaxRep > 0 {
		a.ranges = whole
		return
	}
	x, ok, err := f.OffsetIndex(rowGroup, leaf)
	if err != nil || !ok { // the walk returns the error again, or does without the index
		pages, unwanted := c.divided(wanted)
		switch {
		case unwanted == pages:
		case float64(c.end-c.pos)/float64(pages)*float64(unwanted) > float64(f.remote.src.Gap())*float64(pages):
			// Fetching the unwanted pages would take longer than a request for each page.
			a.steps = true
		default:
			a.ranges = whole
		}
		return
	}
	for i, p := range x.Pages {
		if !wanted(p.FirstRow, x.End(i)) {
			continue
		}
		if dict := x.Pages[0].Offset - c.pos; a.ranges == nil && dict > 0 {
			if a.late = i > 0 && f.LeavesDictionary(rowGroup, leaf); !a.late {
				a.ranges = append(a.ranges, storage.Range{Off: c.pos, Len: dict})
			}
		}
		if k := len(a.ranges) - 1; k >= 0 && a.ranges[k].Off+a.ranges[k].Len == p.Offset {
			a.ranges[k].Len += int64(p.Size)
		} else {
			a.ranges = append(a.ranges, storage.Range{Off: p.Offset, Len: int64(p.Size)})
		}
	}
}

// divided estimates how many pages the chunk has, and how many of them are not wanted.
func (c *Chunk) divided(wanted func(lo, hi int64) bool) (pages, unwanted int64) {
	pages = min(max(c.md.TotalUncompressedSize/usualPage, 1), max(c.wanted, 1))
	for i := range pages {
		if !wanted(c.wanted*i/pages, c.wanted*(i+1)/pages) {
			unwanted++
		}
	}
	return pages, unwanted
}

// Expect gives the walk the ranges that were announced for it. Without it, the walk
// announces its ranges when it begins.
func (c *Chunk) Expect(a *Ahead) {
	c.ahead, c.buf.ahead = a, a
}

// Announce announces now what the walk will read. Without it and without Expect, the walk
// does so when it begins.
func (c *Chunk) Announce() {
	if c.f.remote == nil || c.ahead != nil {
		return
	}
	var rows []uint32
	if c.selected {
		if rows = c.left; rows == nil {
			rows = []uint32{}
		}
	}
	c.Expect(c.f.Ahead(c.at.RowGroup-1, c.leaf.Index, rows))
}

// within returns how many of the n bytes at c.pos were announced, and how many to copy at once.
// Both are n if none were announced, or after further.
func (c *Chunk) within(n int64) (some, window int64) {
	if c.unannounced || c.ahead == nil {
		return n, n
	}
	i, ok := slices.BinarySearchFunc(c.ahead.ranges, c.pos, func(r storage.Range, pos int64) int {
		switch {
		case r.Off+r.Len <= pos:
			return -1
		case r.Off > pos:
			return 1
		}
		return 0
	})
	if !ok {
		return n, n
	}
	left := c.ahead.ranges[i].Off + c.ahead.ranges[i].Len - c.pos
	return min(n, left), min(max(n, farWindow), left)
}

// further lets the walk read outside the announced ranges, because a page does not end
// where the offset index says. It returns false if it was called before.
func (c *Chunk) further() bool {
	if c.ahead == nil || c.unannounced {
		return false
	}
	c.unannounced = true
	return true
}

// headerAhead returns how many bytes to read, after a page, for the next page's header.
func (c *Chunk) headerAhead() int64 {
	if c.ahead != nil && c.ahead.steps {
		return stepHeader
	}
	return headerAhead
}

// postpone steps over the dictionary after the header, if the writer gave it up for later pages,
// so that the wanted ones may not need it.
func (c *Chunk) postpone(h *meta.PageHeader, offset int64) bool {
	if c.ahead == nil || !c.ahead.steps || c.dict != nil || h.Type != format.DictionaryPage || h.CompressedPageSize < 0 ||
		!c.f.LeavesDictionary(c.at.RowGroup-1, c.leaf.Index) {
		return false
	}
	c.dictAt = offset
	c.pos += min(int64(h.CompressedPageSize), c.end-c.pos)
	return true
}

// lateDictionary reads the dictionary that the walk has passed over, if the page after the
// header needs it.
func (c *Chunk) lateDictionary(ctx context.Context, h *meta.PageHeader) error {
	coded := h.Type == format.DataPage && isCoded(h.DataPageHeader.V.Encoding) || h.Type == format.DataPageV2 && isCoded(h.DataPageHeaderV2.V.Encoding)
	if c.dictAt == 0 || c.dict != nil || !coded {
		return nil
	}
	back, pages := c.pos, c.pages
	c.pos, c.pages = c.dictAt, 0
	defer func() { c.pos, c.pages = back, pages }()
	d, _, err := c.readHeader()
	if err != nil {
		return err
	}
	if d.Type != format.DictionaryPage {
		return faults.Corrupt(c.at, "dictionary indices, and no dictionary")
	}
	if err := c.charge(ctx, d); err != nil {
		return err
	}
	body, err := c.readBody(d)
	if err != nil {
		return err
	}
	return c.dictionary(d, body)
}
