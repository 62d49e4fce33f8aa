package parquet

import (
	"context"
	"errors"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// MaxRow is the largest size of a row in bytes.
const MaxRow = 1 << 30

// RowReader reads rows of some leaves of a row group, batch by batch. It is not safe for
// concurrent use.
type RowReader struct {
	Rows  int   // largest number of rows in a batch
	Bytes int64 // wanted size of a batch, which may become twice as large
	// Again replaces Bytes once each batch reads pages again: larger batches then read them
	// less often.
	Again int64
	Keep  int64 // largest size of the pages that wait for the next batch
	// PerRow is the expected size of a row: first the footer's, which is too small if there are
	// dictionaries, then that of the last batch.
	PerRow  float64
	Padding int64 // bytes of a row that are charged in addition to its values

	f       *File
	group   int
	picked  []uint32 // nil: all rows
	from    int      // first row of the batch, among those to read
	end     int      // number of rows to read
	claim   *Claim   // for the pages of all cursors
	cursors []*leafCursor
	reading *leafCursor
	free    []*Buffers
	again   bool     // some pages were dropped between batches
	listed  []uint32 // rows for which chunks were opened again, if all are read

	// The batch.
	n     int
	bytes int64
}

// NewRowReader returns a reader of the given rows of a row group: ascending, without
// duplicates, counted from 0; nil means all. Pages without any of them are neither
// validated nor decoded. The caller sets the limits and must close the RowReader.
func (f *File) NewRowReader(ctx context.Context, group int, leaves []int, rows []uint32) *RowReader {
	r := &RowReader{f: f, group: group, picked: rows, end: len(rows), claim: f.ClaimFor(ctx)}
	if total := f.RowGroups[group].Rows; rows == nil || int64(len(rows)) == total {
		r.picked, r.end = nil, int(total)
	}
	r.claim.Evict = r.evict
	for _, l := range leaves {
		r.cursors = append(r.cursors, &leafCursor{leaf: &f.Leaves[l], at: f.at(group, l)})
	}
	r.PerRow = f.RowBytes(group, leaves)
	if f.remote != nil { // announces what all of them read
		for _, c := range r.cursors {
			r.open(c)
			c.chunk.Announce()
		}
	}
	return r
}

// RowBytes returns the size of a row of some leaves of a row group according to the
// footer.
func (f *File) RowBytes(group int, leaves []int) float64 {
	rg := &f.Metadata.RowGroups[group]
	bytes := 8 * float64(rg.NumRows)
	for _, l := range leaves {
		bytes += float64(min(rg.Columns[l].MetaData.TotalUncompressedSize, 1<<40))
	}
	return bytes / float64(max(rg.NumRows, 1))
}

// Left returns the number of rows after the last batch.
func (r *RowReader) Left() int { return r.end - r.from }

// errLarge means that the batch would exceed its limit.
var errLarge = errors.New("the batch exceeds its limit")

// Next calls read to read the next rows with [RowReader.Pages]. If they turn out to
// take more than twice the wanted size, Charge and Pages fail; read returns that error
// and is called again with fewer rows. Next returns the number of rows that were read.
func (r *RowReader) Next(read func(n int) error) (n int, err error) {
	r.n = int(min(float64(r.limit())/(r.PerRow+float64(r.Padding))+1, float64(min(r.Left(), r.Rows))))
	for {
		r.bytes = int64(r.n) * r.Padding
		err := read(r.n)
		if err == nil {
			break
		}
		r.Rest()
		if !errors.Is(err, errLarge) {
			return 0, err
		}
		r.n = max(1, min(r.n/2, int(float64(r.n)*float64(r.limit())/float64(r.bytes))))
	}
	r.PerRow = max(float64(r.bytes)/float64(r.n)-float64(r.Padding), 1)
	r.from += r.n
	return r.n, nil
}

func (r *RowReader) limit() int64 {
	if r.again {
		return r.Again
	}
	return r.Bytes
}

// Pages passes the entries of the batch to add, leaf by leaf, and checks that leaves of
// one repeated group agree. Pages that hold rows of the next batch stay in memory if
// there is room.
func (r *RowReader) Pages(ctx context.Context, add func(leaf int, p *Page, dict *Dictionary) error) error {
	shapes := map[int]meta.Shape{}
	kept := int64(0)
	last := r.n == r.Left()
	for i, c := range r.cursors {
		r.reading = c
		if c.chunk != nil && c.until < r.from+r.n {
			r.leave(c)
		}
		r.open(c)
		c.chunk.alone = !last // pages of several leaves are in memory then
		shape := r.f.NewShape(c.leaf.Index)
		if err := c.take(ctx, r.n, last, func(p *Page, dict *Dictionary) error {
			if shape != nil {
				shape = r.f.AddShape(shape, c.leaf.Index, p.Rep, p.Def)
			}
			return add(i, p, dict)
		}); err != nil {
			return err
		}
		shapes[c.leaf.Index] = shape
		if size := c.buf.Size(); last || r.claim.Crowded() || kept+size > r.Keep {
			r.leave(c)
			r.again = r.again || !last
		} else {
			kept += size
		}
	}
	if last {
		r.Rest()
	}
	return r.f.CheckShapes(r.group, shapes)
}

// Charge adds the size of entries of a leaf to the batch before they are copied.
func (r *RowReader) Charge(l *meta.Leaf, p *Page, dict *Dictionary) error {
	n := p.PlainSize(dict, l.Width()) + 4*int64(p.Values)
	if l.Width() > 0 && l.MaxRep == 0 {
		n = int64(p.Values) * int64(l.Width()) // NULLs take as much
	}
	r.bytes += n + int64(len(p.Rep)+len(p.Def))
	if r.n > 1 && r.bytes > 2*r.limit() {
		return errLarge
	} else if r.n > 1 {
		return nil
	}
	at := r.f.at(r.group, 0)
	at.Column = l.Dotted
	if r.bytes > MaxRow {
		return faults.Unsupported(at, "a row of %d bytes", r.bytes)
	} else if r.bytes > r.f.room.Most(MaxRow) {
		return r.f.room.TooLarge(at, "a row", r.bytes)
	}
	return nil
}

// buffersPool has Buffers that no reader uses.
var buffersPool = sync.Pool{New: func() any { return new(Buffers) }}

// reopened is the number of rows for which a chunk that was closed is opened again. A list of
// them is held in memory.
const reopened = 256 << 10

// open opens the chunk of a cursor at the batch's first row, unless it is open.
func (r *RowReader) open(c *leafCursor) {
	if c.chunk != nil {
		return
	}
	if n := len(r.free); n > 0 {
		c.buf, r.free = r.free[n-1], r.free[:n-1]
	} else {
		c.buf = buffersPool.Get().(*Buffers)
		c.buf.ChargeTo(r.claim)
	}
	c.chunk, c.until = r.f.ChunkIn(c.buf, r.group, c.leaf.Index), r.end
	c.chunk.shape = nil // Pages compares those of the batch
	if r.again {
		c.until = r.from + r.n // what is selected of a page is copied
	}
	switch {
	case r.picked != nil:
		c.chunk.Select(r.picked[r.from:c.until])
	case r.from > 0:
		if len(r.listed) == 0 || r.from+r.n > int(r.listed[0])+len(r.listed) {
			r.listed = make([]uint32, min(c.until-r.from, max(r.n, reopened)))
			for i := range r.listed {
				r.listed[i] = uint32(r.from + i)
			}
		}
		first := int(r.listed[0])
		c.until = min(c.until, first+len(r.listed))
		c.chunk.Select(r.listed[r.from-first : c.until-first])
	default:
		c.until = r.end
	}
}

// leave closes the chunk of a cursor. The memory of its page serves the next one that is opened.
func (r *RowReader) leave(c *leafCursor) {
	if c.chunk == nil {
		return
	}
	c.chunk.Leave()
	c.buf.release()
	r.free = append(r.free, c.buf)
	c.buf, c.chunk, c.page, c.part = nil, nil, nil, Page{}
}

// evict frees the pages of all leaves but the one that is being read.
func (r *RowReader) evict() {
	for _, c := range r.cursors {
		if c != r.reading {
			r.leave(c)
		}
	}
	for _, b := range r.free {
		b.Rest()
	}
}

// Rest frees all pages. They are read again if rows of the next batch are in them.
func (r *RowReader) Rest() {
	r.reading = nil
	r.evict()
}

// Close frees all memory.
func (r *RowReader) Close() {
	r.Rest()
	for _, b := range r.free {
		b.Close()
		b.ChargeTo(nil)
		buffersPool.Put(b)
	}
	r.free = nil
}
