package parquet

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// minEntryWeight is the weight, in a page's size, of a NULL, a boolean or a
// dictionary index, and the minimum for any value.
const minEntryWeight = 4

// storedShare limits small pages: a stored page is copied only if it has at least
// 1/storedShare of the page size, and the pending page is cut short for it only if
// it has that much too.
const storedShare = 16

// mode is how a chunk's values are written.
type mode uint8

const (
	undecided mode = iota // no value yet
	coded                 // as dictionary indices
	plain                 // without dictionary
)

// ChunkWriter makes a column chunk from the pages that it is given. It is not safe
// for concurrent use.
//
// A page ends at the first row boundary after its entries' weight reaches
// WriterOptions.PageBytes, so the page boundaries depend on the entries alone, not
// on how they are divided into input pages.
//
// If the first values of a chunk are dictionary-coded, the chunk gets a dictionary
// too, merged from those of its inputs: the values in use, in order of first use.
// It ends when plain values arrive or when it becomes too large; the rest of the
// chunk is plain. It is dropped if the first page is smaller without it. See
// [ChunkWriter.KeepDictionary] for another way.
type ChunkWriter struct {
	w     *Writer
	leaf  *meta.Leaf
	order meta.Order
	limit int // weight of a full page
	*chunkState

	numbered bool // plain values go into the dictionary too
	keeps    bool // the input's dictionary is kept whole
	kept     kept
	mode     mode
	// encoding is the encoding of pages without dictionary: that of the first page
	// that was added without one, PLAIN before that.
	encoding format.Encoding
	known    bool // such a page was added
	entries  int64
	rows     int64
	nulls    int64
	coded    int // dictionary-coded pages
	inUse    int // dictionary entries used by them
	out      pageBytes
	dictOut  pageBytes // the dictionary page, once no more values are coded
	plainN   int64     // uncompressed size of both in bytes
	kinds    []pageKind
	index    pageIndex
	bounds   meta.Bounds
	inexact  bool // bounds may be wider than the values
	unsure   bool // nulls is not known
	err      error
}

// chunkState is the part of a ChunkWriter's memory that is reused by others.
type chunkState struct {
	page pending
	dict *dictBuilder // nil unless values are coded
}

// pending holds the entries of the next page.
type pending struct {
	entries, values, rows int
	weight                int
	rep, def              []uint8
	plain                 []byte
	indices               []uint32
	encoding              format.Encoding // future encoding of plain
}

func (p *pending) reset() {
	*p = pending{rep: p.rep[:0], def: p.def[:0], plain: p.plain[:0], indices: p.indices[:0]}
}

// Chunk starts a column chunk of a leaf, counted from 0.
func (w *Writer) Chunk(leaf int) *ChunkWriter {
	pool := w.opts.Pool
	pool.mu.Lock()
	defer pool.mu.Unlock()
	var s *chunkState
	if n := len(pool.states); n > 0 {
		s = pool.states[n-1]
		pool.states = pool.states[:n-1]
	} else {
		s = new(chunkState)
	}
	return &ChunkWriter{w: w, leaf: &w.leaves[leaf], order: w.order[leaf], limit: w.opts.PageBytes, chunkState: s}
}

// UseDictionary makes the chunk start with a dictionary even if its values arrive
// plain. It must be called before the first page is added.
func (c *ChunkWriter) UseDictionary() { c.numbered = c.leaf.Type != format.Boolean }

// Pending returns the memory of the next page and of the dictionary, in bytes.
func (c *ChunkWriter) Pending() int64 {
	if c.chunkState == nil {
		return 0
	}
	p := &c.page
	return int64(cap(p.rep) + cap(p.def) + cap(p.plain) + 4*cap(p.indices) + c.dict.held())
}

// Encoded returns the bytes of the pages that are complete.
func (c *ChunkWriter) Encoded() int64 { return c.out.n + c.dictOut.n }

// Add adds the entries of a page. dict is the dictionary of the page's chunk. While
// the ChunkWriter is in use, the same pointer must mean the same dictionary. Add
// keeps no memory of either, apart from the pointer dict. A page of a repeated leaf
// may begin and end within a row. p.Stored must be nil unless its levels are those
// of the leaf to be written.
func (c *ChunkWriter) Add(p *Page, dict *Dictionary) error {
	if c.chunkState == nil {
		return errors.New("a page for a finished column chunk")
	}
	if c.err == nil {
		c.err = c.add(p, dict)
	}
	return c.err
}

func (c *ChunkWriter) add(p *Page, dict *Dictionary) error {
	if p.Values == 0 {
		return nil
	}
	if p.Undecoded() {
		return c.addSealed(p, dict)
	}
	if err := c.check(p, dict); err != nil {
		return err
	}
	if c.keeps && p.Coded && p.NonNull > 0 {
		if err := c.checkKept(dict); err != nil {
			return err
		}
	}
	var at cursor
	switch {
	case p.NonNull == 0:
	case c.mode == undecided && (p.Coded || c.numbered):
		c.mode = coded
		c.dict = c.w.takeDict()
		if c.keeps {
			c.dict.keep(c.leaf.Width(), dict)
			break
		}
		c.dict.start(c.leaf.Width(), c.w.opts.DictBytes, c.w.growDicts)
	case c.mode == undecided:
		c.mode = plain
	case c.mode == coded && !p.Coded && !c.numbered:
		var err error
		if at, err = c.turnPlain(p); err != nil {
			return err
		}
	}
	if p.NonNull > 0 && !p.Coded && !c.known {
		c.known, c.encoding = true, p.Encoding
	}
	if c.copyable(p) && (c.page.entries == 0 || c.page.weight >= c.limit/storedShare) {
		return c.addStored(p)
	}
	return c.addEntries(p, dict, at)
}

// addEntries adds the entries from at on.
func (c *ChunkWriter) addEntries(p *Page, dict *Dictionary, at cursor) error {
	for at.entry < p.Values {
		if c.page.weight >= c.limit && (p.Rep == nil || p.Rep[at.entry] == 0) {
			if err := c.finishPage(); err != nil {
				return err
			}
			continue
		}
		var err error
		switch {
		case p.NonNull > 0 && c.mode == coded:
			at, err = c.addCoded(p, dict, at)
		case p.NonNull == 0 || !p.Coded:
			at, err = c.addPlain(p, at)
		default:
			r := c.w.takeRecoding()
			at, err = c.addDecoded(p, dict, at, r)
			c.w.putRecoding(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sizes returns the bytes, or indices, of a page's values, and how many they should be.
func (p *Page) sizes(l *meta.Leaf) (size, want int) {
	size, want = len(p.Plain), p.NonNull*l.Width()
	switch {
	case p.Coded:
		return len(p.Indices), p.NonNull
	case l.Type == format.Boolean:
		want = (p.NonNull + 7) / 8
	case l.Type == format.ByteArray:
		want = max(size, 4*p.NonNull)
	}
	return size, want
}

// check does the cheap checks that p is consistent and belongs to the chunk's
// column.
func (c *ChunkWriter) check(p *Page, dict *Dictionary) error {
	l := c.leaf
	there := p.Values
	if l.MaxDef > 0 && len(p.Def) == p.Values {
		there = bytes.Count(p.Def, []byte{uint8(l.MaxDef)})
	}
	size, want := p.sizes(l)
	switch {
	case (l.MaxDef > 0) != (p.Def != nil) || (l.MaxRep > 0) != (p.Rep != nil),
		p.Def != nil && len(p.Def) != p.Values, p.Rep != nil && len(p.Rep) != p.Values:
		return c.fail("a page of %d entries with %d definition and %d repetition levels", p.Values, len(p.Def), len(p.Rep))
	case there != p.NonNull || size != want:
		return c.fail("a page of %d values with %d, in %d bytes or indices", there, p.NonNull, size)
	case p.Coded && p.NonNull > 0 && (dict == nil || l.Type == format.Boolean):
		return c.fail("a page of indices without a dictionary")
	case c.entries == 0 && c.page.entries == 0 && p.Values > 0 && p.Rep != nil && p.Rep[0] != 0:
		return c.fail("a column chunk that begins in the middle of a row")
	}
	return nil
}

func (c *ChunkWriter) fail(format string, args ...any) error {
	return fmt.Errorf("column %s: to be written: "+format, append([]any{c.leaf.Dotted}, args...)...)
}

// addPlain adds as many entries from at on as belong to the pending page.
func (c *ChunkWriter) addPlain(p *Page, at cursor) (cursor, error) {
	to, weight, err := c.reach(p, at, false)
	if err != nil {
		return to, err
	}
	g := &c.page
	if n := to.value - at.value; n > 0 {
		if g.values == 0 {
			g.encoding = c.encoding
		}
		if c.leaf.Type == format.Boolean {
			g.plain = enc.AppendBits(g.plain, g.values, p.Plain, at.value, n)
		} else {
			g.plain = append(g.plain, p.Plain[at.pos:to.pos]...)
		}
		g.values += n
	}
	g.weight += weight
	return to, c.addLevels(p, at.entry, to.entry)
}

// addLevels adds the levels of entries [from, to) and counts the entries.
func (c *ChunkWriter) addLevels(p *Page, from, to int) error {
	g := &c.page
	g.entries += to - from
	if p.Def != nil {
		g.def = append(g.def, p.Def[from:to]...)
	}
	if p.Rep == nil {
		g.rows += to - from
	} else {
		g.rep = append(g.rep, p.Rep[from:to]...)
		g.rows += bytes.Count(p.Rep[from:to], []byte{0})
	}
	if g.entries > MaxPageValues {
		return faults.Unsupported(fault.At{Column: c.leaf.Dotted}, "a row with more than %d values in one column", MaxPageValues)
	}
	return nil
}

// copyable reports whether p may be copied as it is stored.
func (c *ChunkWriter) copyable(p *Page) bool {
	return p.Stored != nil && p.Stored.Codec == c.w.opts.Compression.Codec && !p.Coded && p.NonNull > 0 &&
		(!c.known || p.Encoding == c.encoding) && p.Rep == nil && c.leaf.MaxRep == 0 && p.Stored.Size >= c.limit/storedShare
}

func (c *ChunkWriter) addStored(p *Page) error {
	if c.page.entries > 0 {
		if err := c.finishPage(); err != nil {
			return err
		}
	}
	b, err := c.order.BoundsOf(p.Plain, p.NonNull)
	if err != nil {
		return c.fail("%w", err)
	}
	return c.emit(&encodedPage{
		entries: p.Values, rows: p.Values, values: p.NonNull, encoding: p.Encoding,
		size: p.Stored.Size, body: p.Stored.Body, bounds: b,
	})
}

// Finish completes the chunk. The ChunkWriter cannot be used afterwards.
func (c *ChunkWriter) Finish() (*EncodedChunk, error) {
	if c.chunkState == nil {
		return nil, errors.New("a column chunk finished twice")
	}
	for c.err == nil && c.page.entries > 0 {
		c.err = c.finishPage()
	}
	var e *EncodedChunk
	if c.err == nil {
		e, c.err = c.encoded()
	}
	c.w.putState(c.chunkState)
	c.chunkState = nil
	return e, c.err
}
