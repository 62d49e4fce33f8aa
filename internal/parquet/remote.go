package parquet

import (
	"slices"
	"sort"
	"sync"

	"github.com/bloomjoin/bloomjoin/storage"
)

// A file over a network is read in ranges that are announced before they are read,
// so that the storage can join and fetch them in parallel. A walk announces the pages
// that the offset index locates for its rows, or its whole chunk, and reads nothing
// else. The indexes of a file lie together and are read with one request.

// Limits of the region of a file's indexes that is read at once.
const (
	maxIndexRegion = 4 << 20
	farWindow      = 256 << 10 // bytes copied at a time from what was fetched
	stepHeader     = 512       // bytes read for a header, if walks step from one to the next
)

// remote is what a File over a network has in addition.
type remote struct {
	src storage.Prefetcher

	mu     sync.Mutex
	region storage.Range // of all indexes; Len 0: there are none, or they are scattered
	bytes  []byte        // of the region; nil: not read
}

// Prefetch makes walks over pages announce to the storage what they will read. It must
// be called before any page is read.
func (f *File) Prefetch(src storage.Prefetcher) {
	f.remote = &remote{src: src, region: f.indexRegion()}
}

// Remote reports whether Prefetch was called.
func (f *File) Remote() bool { return f.remote != nil }

// Rest frees what a file over a network keeps between walks.
func (f *File) Rest() {
	if r := f.remote; r != nil {
		r.mu.Lock()
		r.bytes = nil
		r.mu.Unlock()
	}
}

// indexRegion returns the range of all offset and column indexes, or an empty one
// unless they lie together.
func (f *File) indexRegion() storage.Range {
	lo, hi, sum := f.footerPos, int64(0), int64(0)
	add := func(pos int64, n int32) {
		if pos <= 0 || n <= 0 || pos >= f.footerPos {
			return // readIndex returns the error
		}
		lo, hi, sum = min(lo, pos), max(hi, min(pos+int64(n), f.footerPos)), sum+int64(n)
	}
	for g := range f.Metadata.RowGroups {
		for i := range f.Metadata.RowGroups[g].Columns {
			c := &f.Metadata.RowGroups[g].Columns[i]
			add(c.OffsetIndexOffset, c.OffsetIndexLength)
			add(c.ColumnIndexOffset, c.ColumnIndexLength)
		}
	}
	if hi <= lo || hi-lo > maxIndexRegion || sum < (hi-lo)/2 {
		return storage.Range{}
	}
	return storage.Range{Off: lo, Len: hi - lo}
}

// indexBytes returns n bytes at pos, which belong to an index.
func (f *File) indexBytes(pos int64, n int64) ([]byte, error) {
	r := f.remote
	if r == nil || pos < r.region.Off || pos+n > r.region.Off+r.region.Len {
		b := make([]byte, n)
		return b, f.readFull(b, pos)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes == nil {
		b := make([]byte, r.region.Len)
		if err := f.readFull(b, r.region.Off); err != nil {
			return nil, err
		}
		r.bytes = b
	}
	at := pos - r.region.Off
	return r.bytes[at : at+n : at+n], nil
}

// Ahead is an announcement of what a walk will read.
type Ahead struct {
	ranges  []storage.Range // ascending
	steps   bool            // nothing was announced: the walk finds pages by their headers
	release func()
}

// Release drops what was fetched and not read. It may be called again, and on nil.
func (a *Ahead) Release() {
	if a != nil {
		a.release()
	}
}

// Ahead announces what a walk over a column chunk will read for the given rows of the
// row group, nil for all. It returns nil for a file that is not over a network. The
// result is passed to Chunk.Expect, or released.
func (f *File) Ahead(rowGroup, leaf int, rows []uint32) *Ahead {
	if rows == nil {
		return f.ahead(rowGroup, leaf, nil)
	}
	return f.ahead(rowGroup, leaf, func(lo, hi int64) bool {
		for len(rows) > 0 && int64(rows[0]) < lo {
			rows = rows[sort.Search(len(rows), func(k int) bool { return int64(rows[k]) >= lo }):]
		}
		return len(rows) > 0 && int64(rows[0]) < hi
	})
}

// AheadOf is Ahead for ascending ranges of rows, ends exclusive.
func (f *File) AheadOf(rowGroup, leaf int, spans [][2]int64) *Ahead {
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
	if a.ranges, a.steps = f.rangesOf(rowGroup, leaf, wanted); len(a.ranges) > 0 {
		a.release = f.remote.src.Prefetch(a.ranges)
	}
	return a
}

// rangesOf returns the bytes of the wanted pages and of the dictionary. If the pages
// cannot be located or wanted is nil, it returns the whole chunk, or says that the walk
// should step from header to header.
func (f *File) rangesOf(rowGroup, leaf int, wanted func(lo, hi int64) bool) (ranges []storage.Range, steps bool) {
	c := f.ChunkIn(new(Buffers), rowGroup, leaf)
	if c.end <= c.pos || c.pos >= f.Size { // constants follow the file's end, in memory
		return nil, false
	}
	whole := []storage.Range{{Off: c.pos, Len: c.end - c.pos}}
	if wanted == nil || c.leaf.MaxRep > 0 {
		return whole, false
	}
	x, ok, err := f.OffsetIndex(rowGroup, leaf)
	if err != nil || !ok { // the walk returns the error again, or does without the index
		pages, unwanted := c.divided(wanted)
		switch {
		case unwanted == pages:
			return nil, false
		case float64(c.end-c.pos)/float64(pages)*float64(unwanted) > float64(f.remote.src.Gap())*float64(pages):
			// The pages that are not wanted take longer than a request for each page.
			return nil, true
		}
		return whole, false
	}
	for i, p := range x.Pages {
		if !wanted(p.FirstRow, x.End(i)) {
			continue
		}
		if first := x.Pages[0].Offset; ranges == nil && first > c.pos {
			ranges = append(ranges, storage.Range{Off: c.pos, Len: first - c.pos})
		}
		if k := len(ranges) - 1; k >= 0 && ranges[k].Off+ranges[k].Len == p.Offset {
			ranges[k].Len += int64(p.Size)
		} else {
			ranges = append(ranges, storage.Range{Off: p.Offset, Len: int64(p.Size)})
		}
	}
	return ranges, false
}

// usualPage is the usual size of pages in bytes, decompressed.
const usualPage = 1 << 20

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

// Expect makes the walk read what was announced for it. Without it, the walk announces
// what it reads when it begins.
func (c *Chunk) Expect(a *Ahead) {
	c.ahead, c.buf.ahead = a, a
}

// Announce announces what the walk will read, unless that was done. Otherwise it is
// announced when the walk begins.
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

// within returns how many of n bytes at c.pos were announced, or n if none were or the
// walk has found that they do not suffice, and how many to copy at once.
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

// further makes the walk read more than was announced, since a page ends elsewhere than
// the offset index says. It returns false if it did so before.
func (c *Chunk) further() bool {
	if c.ahead == nil || c.unannounced {
		return false
	}
	c.unannounced = true
	return true
}

// headerAhead returns how many bytes to read for a page header after others.
func (c *Chunk) headerAhead() int64 {
	if c.ahead != nil && c.ahead.steps {
		return stepHeader
	}
	return headerAhead
}
