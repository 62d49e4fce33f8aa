package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// workspace is the memory for encoding one page at a time.
type workspace struct {
	body    []byte
	used    []byte   // per dictionary entry: 1 if it is used in the page
	entries []uint32 // those that are
	values  []byte   // their values
	enc     enc.Encoder
	header  thriftBuffer
	codec   enc.Compressor
	level   int // compression level of codec
}

// recoding is the memory for converting coded entries to plain values.
type recoding struct {
	plain    []byte // values of the indices
	rep, def []byte
	indices  []uint32
}

// encodedPage is a compressed data page.
type encodedPage struct {
	entries, rows, values int
	encoding              format.Encoding
	size                  int // uncompressed size of body
	body                  []byte
	bounds                meta.Bounds
	sealed                *undecodedPage // the page was not decoded; nil: it was made here
}

// finishPage encodes the pending page. If it is the first coded page and would be
// smaller without the dictionary, the dictionary is dropped, and some of the page's
// entries may stay pending.
func (c *ChunkWriter) finishPage() error {
	if !c.keeps && c.mode == coded && c.coded == 0 && c.page.values > 0 && !c.dictionaryPays() {
		return c.takeBack(0)
	}
	err := c.writePending(c.mode == coded && (c.page.values > 0 || c.coded > 0))
	c.page.reset()
	return err
}

// writePending encodes the pending page, with dictionary indices if byDict is set.
func (c *ChunkWriter) writePending(byDict bool) error {
	g := &c.page
	ws := c.w.takeSpace()
	defer c.w.putSpace(ws)
	p := encodedPage{entries: g.entries, rows: g.rows, values: g.values, encoding: format.Plain}
	body := c.appendLevels(ws.body[:0])
	var err error
	if byDict {
		p.encoding = format.RLEDictionary
		width := indexWidth(c.dict.merged().Len)
		if g.values > 0 {
			p.bounds, err = c.codedBounds(ws)
		}
		body = enc.AppendHybrid(append(body, byte(width)), g.indices, width)
		c.coded++
	} else {
		p.bounds, err = c.order.BoundsOf(g.plain, g.values)
		if err == nil && len(body) == 0 && !enc.CanEncode(c.leaf.Type, c.leaf.Width(), g.encoding) {
			return c.compressed(ws, &p, g.plain)
		}
		if err == nil {
			body, p.encoding = ws.enc.Append(body, c.leaf.Type, c.leaf.Width(), g.encoding, g.plain, g.values)
		}
	}
	ws.body = body
	if err != nil {
		return c.fail("%w", err)
	}
	return c.compressed(ws, &p, body)
}

// compressed compresses a page's body and adds the page to the chunk.
func (c *ChunkWriter) compressed(ws *workspace, p *encodedPage, body []byte) (err error) {
	p.size = len(body)
	if err := c.checkSize(p.size); err != nil {
		return err
	}
	if p.body, err = ws.codec.Compress(body, c.w.opts.Compression); err != nil {
		return c.fail("%w", err)
	}
	return c.emitIn(ws, p)
}

func (c *ChunkWriter) checkSize(n int) error {
	if n > enc.MaxPageSize {
		return faults.Unsupported(fault.At{Column: c.leaf.Dotted}, "a row with %s in one column; the limit is %s", show.Size(int64(n)), show.Size(enc.MaxPageSize))
	}
	return nil
}

// emit adds an encoded page to the chunk.
func (c *ChunkWriter) emit(p *encodedPage) error {
	ws := c.w.takeSpace()
	defer c.w.putSpace(ws)
	return c.emitIn(ws, p)
}

func (c *ChunkWriter) emitIn(ws *workspace, p *encodedPage) error {
	if p.sealed != nil {
		return c.emitAs(ws, p, p.sealed.storedHeader(p.body), p.sealed.facts.nulls)
	}
	h := meta.PageHeader{
		Type: format.DataPage, UncompressedPageSize: int32(p.size), CompressedPageSize: int32(len(p.body)),
		CRC: thrift.New(int32(crc32.ChecksumIEEE(p.body))),
		DataPageHeader: thrift.New(meta.DataPageHeader{
			NumValues: int32(p.entries), Encoding: p.encoding,
			DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		}),
	}
	return c.emitAs(ws, p, &h, int64(p.entries-p.values))
}

// emitAs adds an encoded page with the given header. nulls is -1 if it is not known.
func (c *ChunkWriter) emitAs(ws *workspace, p *encodedPage, h *meta.PageHeader, nulls int64) error {
	at := c.out.n
	n, err := c.put(ws, &c.out, h, p.body)
	if err != nil {
		return err
	}
	c.index.add(at, int(c.out.n-at), c.rows, nulls, c.order, p.values, p.bounds)
	c.bounds.Add(c.order, p.bounds)
	c.plainN += int64(n + p.size)
	c.entries += int64(p.entries)
	c.rows += int64(p.rows)
	c.nulls += nulls
	c.unsure = c.unsure || nulls < 0
	countKind(&c.kinds, h.Type, p.encoding)
	return nil
}

// put stores a page and returns the size of its header.
func (c *ChunkWriter) put(ws *workspace, to *pageBytes, h *meta.PageHeader, body []byte) (int, error) {
	head, err := ws.header.marshal(h)
	if err != nil {
		return 0, c.fail("%w", err)
	}
	if err := c.w.store(to, head); err != nil {
		return 0, err
	}
	return len(head), c.w.store(to, body)
}

// pageKind counts the pages of one type and encoding.
type pageKind = format.PageEncodingStats

func countKind(kinds *[]pageKind, t format.PageType, e format.Encoding) {
	for i := range *kinds {
		if k := &(*kinds)[i]; k.PageType == t && k.Encoding == e {
			k.Count++
			return
		}
	}
	*kinds = append(*kinds, pageKind{PageType: t, Encoding: e, Count: 1})
}

// appendLevels appends the pending page's levels, each kind preceded by its length.
func (c *ChunkWriter) appendLevels(dst []byte) []byte {
	g := &c.page
	if m := c.leaf.MaxRep; m > 0 {
		dst = appendLevels(dst, g.rep, m, g.rows == g.entries)
	}
	if m := c.leaf.MaxDef; m > 0 {
		dst = appendLevels(dst, g.def, m, g.values == g.entries)
	}
	return dst
}

func appendLevels(dst []byte, levels []uint8, max int, same bool) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	width := enc.LevelWidth(max)
	if same {
		dst = enc.AppendRun(dst, uint32(levels[0]), len(levels), width)
	} else {
		dst = enc.AppendHybrid(dst, levels, width)
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// encoded returns the completed chunk.
func (c *ChunkWriter) encoded() (*EncodedChunk, error) {
	if c.mode == coded {
		if err := c.endDictionary(); err != nil {
			return nil, err
		}
	}
	if c.coded > 0 {
		countKind(&c.kinds, format.DictionaryPage, format.Plain)
	}
	e := &EncodedChunk{
		w: c.w, leaf: c.leaf.Index, rows: c.rows, entries: c.entries, dict: c.dictOut, pages: c.out, plainSize: c.plainN,
		kinds: c.kinds, index: c.index,
	}
	e.index.setOrder(c.order)
	e.stats = c.order.Statistics(c.bounds, c.nulls)
	if c.unsure {
		e.stats.NullCount = thrift.Null[int64]{}
	}
	if c.inexact && e.stats.MinValue.Valid {
		e.stats.IsMinValueExact, e.stats.IsMaxValueExact = thrift.New(false), thrift.New(false)
	}
	return e, nil
}

// EncodedChunk is a column chunk that is ready to be written: encoded, in memory,
// or stored in another file.
type EncodedChunk struct {
	w         *Writer
	leaf      int
	rows      int64
	entries   int64
	dict      pageBytes // the dictionary page
	pages     pageBytes
	plainSize int64 // uncompressed size of both in bytes
	kinds     []pageKind
	index     pageIndex
	stats     meta.Statistics
	written   bool

	stored     *storedRange // the chunk in its file; nil: it is in dict and pages
	storedDict int64        // bytes of its dictionary page
	filter     *storedRange // its Bloom filter, in the same file; may be nil
}

// Bytes returns the size of the chunk in the file, in bytes.
func (e *EncodedChunk) Bytes() int64 {
	if e.stored != nil {
		return e.stored.size - e.stored.cut
	}
	return e.dict.n + e.pages.n
}

// Pages returns the number of data pages.
func (e *EncodedChunk) Pages() (n int64) {
	for _, k := range e.kinds {
		if k.PageType != format.DictionaryPage {
			n += int64(k.Count)
		}
	}
	return n
}

// Size returns the chunk's memory in bytes, 0 if it is read from another file.
func (e *EncodedChunk) Size() int64 {
	n := e.dict.held + e.pages.held
	if e.stored != nil {
		n += int64(len(e.stored.kept))
	}
	return n
}

// place returns the footer's entry for the chunk at the given offset.
func (e *EncodedChunk) place(at int64, l *meta.Leaf, codec format.CompressionCodec) meta.ColumnChunk {
	dict := max(e.dict.n, e.storedDict)
	md := meta.ColumnMetaData{
		Type: l.Type, PathInSchema: l.Path, Codec: codec, NumValues: e.entries,
		TotalUncompressedSize: e.plainSize, TotalCompressedSize: e.Bytes(),
		DataPageOffset: at + dict, Statistics: e.stats, EncodingStats: e.kinds,
	}
	if dict > 0 {
		md.DictionaryPageOffset = at
	}
	add := func(kind format.Encoding) {
		for _, have := range md.Encodings {
			if have == kind {
				return
			}
		}
		md.Encodings = append(md.Encodings, kind)
	}
	for _, k := range e.kinds {
		add(k.Encoding)
	}
	if l.MaxDef > 0 || l.MaxRep > 0 {
		add(format.RLE)
	}
	return meta.ColumnChunk{FileOffset: md.DataPageOffset, MetaData: md}
}

func (e *EncodedChunk) write(s *sink) error {
	if e.stored != nil {
		return e.stored.write(s)
	}
	for _, part := range [...]*pageBytes{&e.dict, &e.pages} {
		if err := part.each(s.write); err != nil {
			return err
		}
	}
	return nil
}

// thriftBuffer serialises structures one at a time in reusable memory.
type thriftBuffer struct {
	buf bytes.Buffer
	enc *thrift.Encoder
}

func (t *thriftBuffer) marshal(v any) ([]byte, error) {
	if t.enc == nil {
		t.enc = thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(&t.buf))
	}
	t.buf.Reset()
	if err := t.enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding a page header: %w", err)
	}
	return t.buf.Bytes(), nil
}
