package parquet

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

const (
	// MaxPageValues is the largest number of values in a page, including NULLs.
	MaxPageValues = 1 << 26

	maxHeaderSize = 8 << 20
	headerAhead   = 16 << 10 // bytes read past a page: more than the next page's header takes

	maxDictionaryHeader = 100 // bytes, for writers that did not count it in the chunk's size
)

// Buffers is the memory that pages are read and decoded into. It serves one Chunk
// after another. The zero value is ready to use. It is not safe for concurrent use.
type Buffers struct {
	window  []byte // stored bytes
	raw     []byte // decompressed page
	early   []earlyPage
	plain   []byte // values converted to PLAIN
	wide    []byte // values converted to a wider type
	picked  []byte // selected values
	dict    []byte // the dictionary
	offsets []uint32
	rep     []uint8
	def     []uint8
	indices []uint32
	entries []uint32 // entries of selected rows in the page
	values  []uint32 // values among those entries
	codec   enc.Decompressor

	charged int64 // bytes claimed for all of these
	beside  int64 // and for pages in early
	own     Claim // charged if shared is nil
	shared  *Claim
	ahead   *Ahead   // of the Chunk that reads into them
	mapping *Mapping // held for that Chunk; nil: none
}

// ChargeTo charges pages to a shared claim until the next call; nil: to the
// Buffers' own claim. No page may be in use.
func (b *Buffers) ChargeTo(c *Claim) { b.shared = c }

// Close frees the memory of the decoders and of large pages. The Buffers may be
// used again.
func (b *Buffers) Close() {
	b.codec.Close()
	b.Rest()
}

// Chunk walks the pages of one column chunk. It is not safe for concurrent use, but
// several Chunks of one File may be used concurrently.
type Chunk struct {
	f    *File
	leaf *meta.Leaf // as stored
	wide *widening  // of its pages and dictionary; nil: none
	md   *meta.ColumnMetaData
	at   fault.At

	pos, end int64
	winPos   int64 // position of buf.window in the file
	passed   int64 // start of the mapped bytes before pos that were not released yet

	selected bool
	left     []uint32 // selected rows still to come
	inRow    bool     // the last row seen is selected and may continue
	ended    bool     // the last row seen was returned undecoded, so it must not continue
	noCoded  bool     // skip dictionary-coded pages
	sealing  bool     // return pages undecoded if possible
	alone    bool     // decompress no page before its turn
	header   []byte   // of the last page, as stored; nil: not kept
	need     int      // bytes of the decompressed page up to its last selected row; 0: all
	index    *OffsetIndex
	indexed  bool // the index was looked up
	jumped   bool // the next page was found by the index
	run      int  // pages skipped in a row

	dict *Dictionary
	// dictBytes is the size charged for the dictionary.
	dictBytes int64
	pages     int   // data pages seen
	skipped   int   // data pages that were not decompressed
	values    int64 // entries seen
	rows      int64
	wanted    int64 // rows in the row group

	page    Page
	v2      bool // the page is a V2 page
	sameDef bool // all of the page's definition levels are def
	def     uint8
	stored  StoredPage
	sealed  *undecodedPage // nil: no page was left undecoded
	claims  *pageMetadata  // read with the first undecoded page
	shape   meta.Shape
	buf     *Buffers

	ahead       *Ahead // of a file over a network: the announced ranges
	unannounced bool   // more than the announced ranges is needed
	dictAt      int64  // of the dictionary, if the walk has passed over it; else 0
}

// Chunk starts a walk over the pages of a column chunk. rowGroup and leaf count
// from 0. The caller must close the Chunk.
func (f *File) Chunk(rowGroup, leaf int) *Chunk {
	return f.ChunkIn(new(Buffers), rowGroup, leaf)
}

// ChunkIn is [File.Chunk] with reusable memory. The caller must call [Buffers.Rest]
// when the Chunk is no longer used, even after an error.
func (f *File) ChunkIn(buf *Buffers, rowGroup, leaf int) *Chunk {
	md := &f.chunk(rowGroup, leaf).MetaData
	start := chunkStart(md)
	c := &Chunk{
		f: f, leaf: &f.Leaves[leaf], md: md, at: f.at(rowGroup, leaf),
		pos: start, end: start + md.TotalCompressedSize, passed: start,
		wanted: f.RowGroups[rowGroup].Rows, buf: buf,
	}
	if c.wide = f.widened(leaf); c.wide != nil {
		c.leaf = &c.wide.from
	}
	c.shape = f.NewShape(leaf)
	if buf.shared == nil {
		buf.Rest()
		buf.own.room = f.room
	}
	buf.ahead.Release()
	buf.ahead = nil
	buf.use(f)
	buf.window = buf.window[:0]
	buf.forgetPassed(nil, 0, 0)
	if f.Metadata.ShortChunks() && !f.Constant(leaf) {
		c.end = min(c.end+maxDictionaryHeader, f.footerPos)
	}
	return c
}

// Select restricts the walk to the given rows of the row group: ascending, without
// duplicates, counted from 0. Pages without any of them are not returned, nor
// decompressed if their headers show which rows they hold. Other pages are returned
// with only the entries of these rows. Select must be called before Next.
func (c *Chunk) Select(rows []uint32) { c.selected, c.left = true, rows }

// Pages returns the number of data pages seen so far, and how many of them were not
// decompressed; none of a constant.
func (c *Chunk) Pages() (seen, skipped int) {
	if c.f.Constant(c.leaf.Index) {
		return 0, 0
	}
	return c.pages, c.skipped
}

// Close frees the memory of the decoders, the page and the dictionary.
func (c *Chunk) Close() {
	c.Leave()
	c.page, c.stored, c.sealed, c.claims, c.dict = Page{}, StoredPage{}, nil, nil, nil
	c.buf.Close()
}

// Dictionary returns the chunk's dictionary, or nil if it has none. It is read with
// the first page, or earlier by ReadDictionary.
func (c *Chunk) Dictionary() *Dictionary { return c.dict }

// ReadDictionary reads the dictionary page, if the chunk begins with one, before
// any data page. It returns nil if there is none.
func (c *Chunk) ReadDictionary(ctx context.Context) (d *Dictionary, err error) {
	defer c.recovered(&err)
	if c.pages > 0 || c.dict != nil || c.md.NumValues == 0 {
		return c.dict, nil
	}
	c.Announce()
	start := c.pos
	h, _, err := c.readHeader()
	if err != nil {
		return nil, err
	}
	if h.Type != format.DictionaryPage {
		c.pos = start
		return nil, nil
	}
	if err := c.charge(ctx, h); err != nil {
		return nil, err
	}
	body, err := c.readBody(h)
	if err != nil {
		return nil, err
	}
	defer func(was bool) { c.alone = was }(c.alone)
	c.alone = true // the dictionary may show that no page is needed
	err = c.dictionary(h, body)
	return c.dict, err
}

// SkipCoded makes Next skip pages whose values are dictionary indices according to
// their headers, without decompressing them.
func (c *Chunk) SkipCoded() { c.noCoded = true }

// Next returns the next data page that has entries, or io.EOF after the last one. A
// walk over all rows checks the chunk's totals at the end; a walk over selected
// rows ends after the last of them. An error is final.
func (c *Chunk) Next(ctx context.Context) (p *Page, err error) {
	defer c.recovered(&err)
	c.Announce()
	for c.values < c.md.NumValues {
		if c.selected && len(c.left) == 0 && !c.inRow {
			c.pass(0)
			return nil, io.EOF
		}
		c.pass(passAtOnce)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.jump(); err != nil {
			return nil, err
		}
		header, offset, err := c.readHeader()
		if err != nil {
			return nil, err
		}
		if n, ok := c.without(header); ok {
			if err := c.skip(header, n); err != nil {
				return nil, err
			}
			continue
		}
		if c.postpone(header, offset) {
			continue
		}
		if err := c.lateDictionary(ctx, header); err != nil {
			return nil, err
		}
		if c.sealing {
			if sealed, err := c.seal(ctx, header, offset); sealed || err != nil {
				return &c.page, err
			}
		}
		if err := c.charge(ctx, header); err != nil {
			return nil, err
		}
		body, err := c.readBody(header)
		if err != nil {
			return nil, err
		}
		switch header.Type {
		case format.DictionaryPage:
			err = c.dictionary(header, body)
		case format.DataPage, format.DataPageV2:
			c.pages++
			c.page = Page{Number: c.pages, Offset: offset, FirstRow: c.rows}
			c.run = 0
			if err = c.decode(header, body); err == nil {
				err = c.finish(ctx, header)
			}
			if err == nil && c.page.Values > 0 {
				if c.shape != nil {
					c.addShape()
				}
				return &c.page, nil
			}
		case format.IndexPage:
		default:
			err = faults.Unsupported(c.here(), "page type %d", int32(header.Type)).
				WithHint("write the file again with another program")
		}
		if err != nil {
			return nil, err
		}
	}
	c.pass(0)
	switch {
	case c.rows != c.wanted:
		return nil, c.wrongRows()
	case len(c.left) > 0:
		return nil, faults.Corrupt(c.at, "the column ends before row %d", c.left[0])
	}
	return nil, io.EOF
}

// wrongRows returns the error for pages that have other rows than the row group.
func (c *Chunk) wrongRows() error {
	return faults.Wanted(faults.Corrupt(c.at, "rows of the column's pages"), fmt.Sprintf("%d, as the row group has", c.wanted), fmt.Sprint(c.rows))
}

// recovered converts a panic to an error; see panics.Recover.
func (c *Chunk) recovered(err *error) {
	if r := recover(); r != nil {
		*err = panics.Error(c.here(), r)
	}
}

// passAtOnce is the number of mapped bytes that are released before the end of a chunk.
const passAtOnce = 2 << 20

// pass releases the mapped bytes that the walk has passed, if there are more than
// least.
func (c *Chunk) pass(least int64) {
	if m := c.mapped(); m != nil && m.Passed != nil && c.pos-c.passed > least {
		m.Passed(c.passed, c.pos)
		c.passed = c.pos
	}
}

// Leave releases the mapped bytes of a walk that ends before the end of the chunk. The
// page must no longer be used.
func (c *Chunk) Leave() { c.pass(0) }

// here returns the place of the page being read, for errors.
func (c *Chunk) here() fault.At {
	at := c.at
	at.Page = c.pages
	return at
}

func (c *Chunk) corrupt(err error, format string, args ...any) error {
	e := faults.Corrupt(c.here(), format, args...)
	e.Err = notEnd(err)
	return e
}

// notEnd returns err or, if it could be taken for the end of the pages, as when a
// decompressor finds nothing, another error.
func notEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// peek returns n bytes at c.pos, or fewer at the end of the chunk or of an
// announced range.
func (c *Chunk) peek(n int64) ([]byte, error) {
	n = min(n, c.end-c.pos)
	if m := c.mapped(); m != nil {
		return m.Bytes[c.pos : c.pos+n : c.pos+n], nil
	}
	size := min(max(n, c.f.readSize), c.end-c.pos)
	if c.f.remote != nil {
		n, size = c.within(n)
	}
	w := c.buf.window
	from := c.pos - c.winPos
	if from < 0 || from > int64(len(w)) {
		w, from = w[:0], 0
	}
	if have := int64(len(w)) - from; have < n {
		next := w
		if int64(cap(w)) < size {
			next = make([]byte, size, size+size/4)
		}
		next = next[:size]
		copy(next, w[from:])
		w, from, c.winPos = next, 0, c.pos
		if err := c.f.readFull(w[have:], c.pos+have); err != nil {
			c.buf.window = w[:0]
			return nil, err
		}
		c.buf.window = w
	}
	return w[from : from+n], nil
}

// readHeader reads the page header at c.pos and moves past it. offset is the
// header's position.
func (c *Chunk) readHeader() (*meta.PageHeader, int64, error) {
	for size := c.headerAhead(); ; size *= 8 {
		b, err := c.peek(size)
		if err != nil {
			return nil, 0, err
		}
		h := new(meta.PageHeader)
		n, err := meta.Decode(b, h)
		if err == nil {
			if c.header != nil {
				c.header = append(c.header[:0], b[:n]...)
			}
			offset := c.pos
			c.pos += int64(n)
			return h, offset, nil
		}
		switch {
		case !errors.Is(err, meta.ErrShort):
			return nil, 0, c.headerFault(err)
		case int64(len(b)) < size && c.further():
			size /= 8
		case int64(len(b)) < size:
			return nil, 0, c.headerFault(fmt.Errorf("%d of %d values read: %w", c.values, c.md.NumValues, err))
		case size >= maxHeaderSize:
			return nil, 0, faults.Unsupported(c.here(), "a page header of more than %s", show.Size(maxHeaderSize)).
				WithHint("write the file again without long statistics in its pages")
		}
	}
}

func (c *Chunk) headerFault(err error) error {
	at := c.at
	at.Page = c.pages + 1
	return &fault.Error{Kind: fault.ErrCorrupt, At: at, What: "no valid page header", Err: notEnd(err)}
}

// checkSizes checks the sizes in a page's header.
func (c *Chunk) checkSizes(h *meta.PageHeader) (at fault.At, err error) {
	at = c.at
	if h.Type != format.DictionaryPage {
		at.Page = c.pages + 1
	}
	size, stored := int64(h.UncompressedPageSize), int64(h.CompressedPageSize)
	switch {
	case size < 0 || stored < 0:
		return at, faults.Corrupt(at, "negative page sizes")
	case stored > c.end-c.pos:
		return at, faults.Corrupt(at, "a page of %d bytes, which does not fit into the column chunk", stored)
	case size > enc.MaxPageSize || stored > enc.MaxPageSize:
		return at, faults.Unsupported(at, "page too large: %s, %s decompressed; the limit is %s", show.Size(stored), show.Size(size), show.Size(enc.MaxPageSize)).
			WithHint("write the file again with smaller pages, as of 1 MiB")
	}
	return at, nil
}

// readBody checks the header's sizes, reads the page's stored bytes and verifies
// their checksum.
func (c *Chunk) readBody(h *meta.PageHeader) ([]byte, error) {
	at, err := c.checkSizes(h)
	if err != nil {
		return nil, err
	}
	stored := int64(h.CompressedPageSize)
	body, err := c.peek(stored + c.headerAhead()) // including the next header
	if err == nil && int64(len(body)) < stored && c.further() {
		body, err = c.peek(stored)
	}
	if err != nil {
		return nil, err
	}
	body = body[:stored]
	if m := c.mapped(); m != nil && m.Read != nil {
		m.Read(stored)
	}
	if h.CRC.Valid {
		if got := crc32.ChecksumIEEE(body); got != uint32(h.CRC.V) {
			return nil, wrongCRC(at, h, got)
		}
	}
	c.pos += stored
	return body, nil
}

func wrongCRC(at fault.At, h *meta.PageHeader, got uint32) error {
	return faults.Wanted(faults.Corrupt(at, "the page's checksum"), fmt.Sprintf("%08x", uint32(h.CRC.V)), fmt.Sprintf("%08x", got))
}

// checkDictionary checks the header of a dictionary page. again means that the
// chunk had one before.
func (c *Chunk) checkDictionary(h *meta.PageHeader, again bool) error {
	dh := &h.DictionaryPageHeader.V
	switch {
	case !h.DictionaryPageHeader.Valid || dh.NumValues < 0:
		return faults.Corrupt(c.at, "the dictionary page has no valid header")
	case again || c.pages > 0:
		return faults.Corrupt(c.at, "a dictionary page after another page")
	case dh.Encoding != format.Plain && dh.Encoding != format.PlainDictionary:
		return faults.Unsupported(c.at, "a dictionary encoded as %v", dh.Encoding)
	case c.leaf.Type == format.Boolean:
		return faults.Unsupported(c.at, "a dictionary of booleans")
	case dh.NumValues > MaxPageValues:
		return faults.Unsupported(c.at, "page too large: %d dictionary entries", dh.NumValues)
	}
	return nil
}

// dictionary decodes the dictionary page.
func (c *Chunk) dictionary(h *meta.PageHeader, body []byte) error {
	if err := c.checkDictionary(h, c.dict != nil); err != nil {
		return err
	}
	data, err := c.inflate(body, int64(h.UncompressedPageSize), 0)
	if err != nil {
		return err
	}
	n := int(h.DictionaryPageHeader.V.NumValues)
	plain, tail, err := enc.CheckPlain(c.leaf.Type, c.leaf.Width(), data, n)
	if err == nil && tail > 0 {
		err = enc.ErrTrailing
	}
	if err != nil {
		return &fault.Error{Kind: fault.ErrCorrupt, At: c.at, What: "the dictionary's values do not decode", Err: err}
	}
	if c.md.Codec == format.Uncompressed { // plain is part of the window
		c.buf.dict = append(c.buf.dict[:0], plain...)
	} else {
		c.buf.dict, c.buf.raw = plain, c.buf.dict[:0]
	}
	if c.wide != nil {
		wide, ok := c.wide.plain(c.buf.raw, c.buf.dict)
		if !ok {
			return c.expands()
		}
		c.buf.raw, c.buf.dict = c.buf.dict[:0], wide
	}
	c.dict = &Dictionary{Len: n, Plain: c.buf.dict}
	if c.leaf.Type == format.ByteArray {
		c.buf.offsets = byteArrayOffsets(c.buf.offsets, plain, n)
		c.dict.offsets = c.buf.offsets
	}
	return nil
}

// byteArrayOffsets returns the start of each of n checked values, after its length,
// and where another one would start. It uses buf's memory if it is large enough.
func byteArrayOffsets(buf []uint32, plain []byte, n int) []uint32 {
	offsets := enc.Reuse(buf, n+1)
	pos := uint32(4)
	for i := range n {
		offsets[i] = pos
		pos += 4 + uint32(plain[pos-4]) + uint32(plain[pos-3])<<8 + uint32(plain[pos-2])<<16 + uint32(plain[pos-1])<<24
	}
	offsets[n] = pos
	return offsets
}
