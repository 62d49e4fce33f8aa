package parquet

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/parquet-go/parquet-go/format"
)

// minEntryWeight is what a NULL, a boolean or a dictionary index counts
// towards the size of a page, and the least that any value does.
const minEntryWeight = 4

// storedShare of a page's size is the least that a stored page must have to be
// copied as it is, and that a page is finished with to make way for one.
const storedShare = 16

// mode is how a chunk's values are written.
type mode uint8

const (
	undecided mode = iota // no value has come yet
	coded                 // by a dictionary
	plain                 // without
)

// ChunkWriter makes a column chunk of the pages it is given. It belongs to one
// goroutine at a time.
//
// A page is cut as soon as its entries weigh what WriterOptions.PageBytes
// says, and where a row begins, so that the cuts depend on the entries alone
// and not on the pages in which they come.
//
// A chunk whose first values are coded by a dictionary gets one itself, merged
// from those of its inputs: the values that are used, in the order of their
// first use. It ends where plain values come or it becomes too large; what
// comes behind is plain. It is given up if the first page is smaller without.
type ChunkWriter struct {
	w     *Writer
	leaf  *Leaf
	order valueOrder
	limit int // weight of a page
	*chunkState

	numbered bool // plain values go into the dictionary too
	mode     mode
	// encoding is that of pages without the dictionary: the one of the first
	// page that came without, and PLAIN before it.
	encoding format.Encoding
	known    bool // whether there was one
	entries  int64
	rows     int64
	nulls    int64
	coded    int // dictionary-encoded pages
	inUse    int // entries of the dictionary that they use
	out      storage
	dictOut  storage // the dictionary page, once no value is coded any more
	plainN   int64   // bytes of both, pages not compressed
	kinds    []pageKind
	index    pageIndex
	bounds   bounds
	err      error
}

// chunkState is the memory of a ChunkWriter that others use after it.
type chunkState struct {
	page pending
	dict *dictBuilder // nil unless values are coded
}

// pending holds the entries of the page to come.
type pending struct {
	entries, values, rows int
	weight                int
	rep, def              []uint8
	plain                 []byte
	indices               []uint32
	encoding              format.Encoding // to be, of plain
}

func (p *pending) reset() {
	*p = pending{rep: p.rep[:0], def: p.def[:0], plain: p.plain[:0], indices: p.indices[:0]}
}

// Chunk starts a column chunk of a leaf, which counts from 0.
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

// UseDictionary makes the chunk begin with a dictionary also if its values come
// plain. It is called before the first page is added.
func (c *ChunkWriter) UseDictionary() { c.numbered = c.leaf.Type != format.Boolean }

// Size is the number of bytes of memory that the chunk holds.
func (c *ChunkWriter) Size() int64 { return c.Pending() + c.out.held + c.dictOut.held }

// Pending is Size without pages that are encoded: what the page to come and the
// dictionary take.
func (c *ChunkWriter) Pending() int64 {
	if c.chunkState == nil {
		return 0
	}
	p := &c.page
	return int64(cap(p.rep) + cap(p.def) + cap(p.plain) + 4*cap(p.indices) + c.dict.held())
}

// Add takes the entries of a page. dict is the dictionary of the chunk it is
// from; the same pointer must mean the same dictionary for as long as the
// ChunkWriter is in use. Nothing of either is kept but dict itself. A page of a
// repeated leaf may begin and end within a row. p.Stored must be nil unless its
// levels are those of the leaf written.
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
	if err := c.check(p, dict); err != nil {
		return err
	}
	var at cursor
	switch {
	case p.NonNull == 0:
	case c.mode == undecided && (p.Coded || c.numbered):
		c.mode = coded
		c.dict = c.w.takeDict()
		c.dict.start(c.leaf.width(), c.w.opts.DictBytes, c.w.growDicts)
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

// check checks that p is consistent and of the chunk's column, as far as that
// is cheap.
func (c *ChunkWriter) check(p *Page, dict *Dictionary) error {
	l := c.leaf
	there := p.Values
	if l.MaxDef > 0 && len(p.Def) == p.Values {
		there = bytes.Count(p.Def, []byte{uint8(l.MaxDef)})
	}
	size, want := len(p.Plain), p.NonNull*l.width()
	switch {
	case p.Coded:
		size, want = len(p.Indices), p.NonNull
	case l.Type == format.Boolean:
		want = (p.NonNull + 7) / 8
	case l.Type == format.ByteArray:
		want = max(size, 4*p.NonNull)
	}
	switch {
	case (l.MaxDef > 0) != (p.Def != nil) || (l.MaxRep > 0) != (p.Rep != nil),
		p.Def != nil && len(p.Def) != p.Values, p.Rep != nil && len(p.Rep) != p.Values:
		return c.fail("a page of %d entries with %d definition and %d repetition levels", p.Values, len(p.Def), len(p.Rep))
	case there != p.NonNull || size != want:
		return c.fail("a page of %d values with %d, in %d bytes or indices", there, p.NonNull, size)
	case p.Coded && p.NonNull > 0 && (dict == nil || l.Type == format.Boolean):
		return c.fail("a page of indices without a dictionary")
	case c.entries == 0 && c.page.entries == 0 && c.midRow(p):
		return c.fail("a column chunk that begins in the middle of a row")
	}
	return nil
}

func (c *ChunkWriter) fail(format string, args ...any) error {
	return fmt.Errorf("column %s: to be written: "+format, append([]any{c.leaf.Dotted}, args...)...)
}

// midRow reports whether p goes on with the row at hand.
func (c *ChunkWriter) midRow(p *Page) bool { return p.Values > 0 && p.Rep != nil && p.Rep[0] != 0 }

// addPlain adds entries from at on, as many as belong to the pending page.
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
			g.plain = appendBits(g.plain, g.values, p.Plain, at.value, n)
		} else {
			g.plain = append(g.plain, p.Plain[at.pos:to.pos]...)
		}
		g.values += n
	}
	g.weight += weight
	return to, c.addLevels(p, at.entry, to.entry)
}

// addLevels adds the levels of entries [from, to) and counts them.
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
		return fault.Unsupported(fault.At{Column: c.leaf.Dotted}, "a row with more than %d values in one column", MaxPageValues)
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
	b, err := c.order.boundsOf(p.Plain, p.NonNull, c.leaf)
	if err != nil {
		return c.fail("%w", err)
	}
	return c.emit(&encodedPage{
		entries: p.Values, rows: p.Values, values: p.NonNull, encoding: p.Encoding,
		size: p.Stored.Size, body: p.Stored.Body, bounds: b,
	})
}

// Finish ends the chunk. The ChunkWriter is of no use afterwards.
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
