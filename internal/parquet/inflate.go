package parquet

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/snappy"
)

// Decompressing several Snappy pages in turns is much faster than one after another. A page
// that must be decompressed therefore takes along the next pages that the walk will want, if
// their bytes are in memory. The walk checks them when it reaches them, and decompresses a page
// that failed again, to report the error.

// earlyPage is a page, or the tail of one, that is decompressed before its turn.
type earlyPage struct {
	data   []byte
	of     *File // nil: no page
	stored int   // its size as stored
	end    int64 // offset in the file where the stored bytes end
	size   int   // decompressed; data may have less
	dict   bool
}

// takeEarly puts the page whose stored bytes src end at end into b.raw, if it was decompressed early.
func (b *Buffers) takeEarly(of *File, src []byte, end int64, size, need int) bool {
	for i := range b.early {
		if e := &b.early[i]; e.of == of && e.end == end && e.stored == len(src) && e.size == size && len(e.data) == need {
			b.raw, e.data, e.of = e.data, b.raw[:0], nil
			return true
		}
	}
	return false
}

// forgetPassed drops early pages that the walk will not use: all except dictionaries and pages of
// the file that end in (pos, end]. Some are decompressed for nothing, because the rows of a page
// may be an estimate.
func (b *Buffers) forgetPassed(of *File, pos, end int64) {
	for i := range b.early {
		if e := &b.early[i]; !e.dict && (e.of != of || e.end <= pos || e.end > end) {
			e.of = nil
		}
	}
}

// together is a set of pages decompressed in one call: early ones, and perhaps first the page
// whose turn it is.
type together struct {
	buf    *Buffers
	blocks []snappy.Block
	early  []int // index in buf.early of each of the last len(early) blocks
}

// add adds an early page, unless it is there already. It returns false if memory does not allow it.
func (t *together) add(of *File, stored []byte, end int64, size, need int) bool {
	b := t.buf
	if slices.ContainsFunc(b.early, func(e earlyPage) bool { return e.of == of && e.end == end }) {
		return true
	}
	at := slices.IndexFunc(b.early, func(e earlyPage) bool { return e.of == nil })
	if at < 0 {
		at, b.early = len(b.early), append(b.early, earlyPage{})
	}
	e := &b.early[at]
	if !b.spare(b.earlySize() + int64(max(size-cap(e.data), 0))) {
		return false
	}
	page := reusePage(e.data, size)
	*e = earlyPage{page[:need], of, len(stored), end, size, false}
	t.blocks, t.early = append(t.blocks, snappy.Block{Dst: page, Src: stored, Need: need}), append(t.early, at)
	return true
}

// decode decompresses the pages. Early ones that do not decompress are dropped.
func (t *together) decode() {
	snappy.DecodeBlocks(t.blocks)
	for i, b := range t.blocks[len(t.blocks)-len(t.early):] {
		if b.Err != nil {
			t.buf.early[t.early[i]].of = nil
		}
	}
}

// mostTogether is the maximum number of bytes of dictionaries that are decompressed together.
const mostTogether = 1 << 20

// Dictionaries decompresses the small dictionaries of a mapped row group's leaves together, for
// the next Chunks that read into b. Chunks with few pages have nothing else to decompress in turns.
func (b *Buffers) Dictionaries(f *File, group int, leaves []int) {
	// Pages that were decompressed early are dropped. Their memory is kept.
	for i := range b.early {
		b.early[i].of = nil
	}
	b.use(f)
	t, room := together{buf: b}, int64(mostTogether)
	for _, l := range leaves {
		md := &f.chunk(group, l).MetaData
		start := chunkStart(md)
		if b.mapping == nil || f.Constant(l) || md.Codec != format.Snappy || start+md.TotalCompressedSize > int64(len(b.mapping.Bytes)) {
			continue
		}
		h, body, rest := nextPage(b.mapping.Bytes[start : start+md.TotalCompressedSize])
		size := int64(h.UncompressedPageSize)
		if body == nil || h.Type != format.DictionaryPage || size < snappy.MinSize || size > room || !enc.Plausible(md.Codec, int64(len(body)), size) {
			continue
		}
		if !t.add(f, body, start+md.TotalCompressedSize-int64(len(rest)), int(size), int(size)) {
			break
		}
		room -= size
	}
	for _, i := range t.early {
		b.early[i].dict = true
	}
	t.decode()
}

// inflate decompresses src, a whole page or its tail after uncompressed levels, to size bytes.
// src ends at c.pos. entries is the number of entries in the page, 0 for a dictionary.
func (c *Chunk) inflate(src []byte, size int64, entries int32) ([]byte, error) {
	codec := c.md.Codec
	if !enc.Plausible(codec, int64(len(src)), size) {
		return nil, c.corrupt(nil, "%d bytes cannot decompress to %d", len(src), size)
	}
	if codec == format.Snappy && c.inflateInTurns(src, int(size), int64(entries)) {
		return c.buf.raw, nil
	}
	var out []byte
	var err error
	if c.need > 0 {
		out, err = c.buf.codec.DecompressPart(codec, c.buf.raw, src, int(size), partOf(int(size), c.need))
	} else {
		out, err = c.buf.codec.Decompress(codec, c.buf.raw, src, int(size))
	}
	switch {
	case errors.Is(err, enc.ErrCodec):
		return nil, faults.Unsupported(c.here(), "compression codec %v", codec).
			WithHint("write the file again with snappy, zstd, gzip, brotli or lz4")
	case err != nil:
		return nil, c.corrupt(err, "the page does not decompress (%v)", codec)
	}
	if codec != format.Uncompressed {
		c.buf.raw = out
	}
	return out, nil
}

// inflateInTurns puts the page into c.buf.raw if it was decompressed early, or decompresses it
// now with others. It returns false if the page must be decompressed alone.
func (c *Chunk) inflateInTurns(src []byte, size int, entries int64) bool {
	b, need := c.buf, partOf(size, c.need)
	if b.takeEarly(c.f, src, c.pos, size, need) {
		return true
	}
	b.forgetPassed(c.f, c.pos, c.end)
	if size < snappy.MinSize || c.alone && c.need == 0 {
		return false
	}
	t := together{buf: b, blocks: make([]snappy.Block, 1, snappy.AtOnce)}
	c.upcoming(entries, func(stored []byte, end int64, size, need int) bool {
		return t.add(c.f, stored, end, size, need) && len(t.blocks) < snappy.AtOnce
	})
	if len(t.early) == 0 && c.need == 0 {
		return false
	}
	b.raw = reusePage(b.raw, size)
	t.blocks[0] = snappy.Block{Dst: b.raw, Src: src, Need: need}
	t.decode()
	b.raw = b.raw[:need]
	return t.blocks[0].Err == nil
}

// partOf returns how many bytes of a size are needed, if need is not 0; else all.
func partOf(size, need int) int { return min(cmp.Or(need, size), size) }

// reusePage is enc.Reuse with a little room: pages differ little in size.
func reusePage(buf []byte, size int) []byte {
	step := 1 << max(bits.Len(uint(size))-4, 0)
	return enc.Reuse(buf, (size+step-1)/step*step)[:size]
}

// headersAhead is the number of page headers examined to find wanted pages.
const headersAhead = 8

// upcoming yields pages after c.pos that the walk will decompress, as long as their bytes are in
// memory: their compressed bytes, where these end in the file, their decompressed size, and how
// much of it is needed. The page before c.pos has the given number of entries.
func (c *Chunk) upcoming(entries int64, yield func(stored []byte, end int64, size, need int) bool) {
	if c.alone {
		return
	}
	b, pos := c.atHand(), c.pos
	values, row := c.values+entries, c.rows+entries
	for range headersAhead {
		h, body, rest := nextPage(b)
		size, stored := int64(h.UncompressedPageSize), int64(len(body))
		if body == nil || size < snappy.MinSize || size > enc.MaxPageSize {
			return
		}
		b, pos = rest, pos+int64(len(b)-len(rest))
		v1, v2 := &h.DataPageHeader.V, &h.DataPageHeaderV2.V
		var rows, levels int64
		var encoding format.Encoding
		switch {
		case h.Type == format.DataPage && h.DataPageHeader.Valid:
			entries, rows, encoding = int64(v1.NumValues), int64(v1.NumValues), v1.Encoding
		case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid && (v2.IsCompressed.V || !v2.IsCompressed.Valid):
			entries, rows, encoding = int64(v2.NumValues), int64(v2.NumValues), v2.Encoding // rows of repeated leaves are estimated
			levels = int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength)
		}
		if entries <= 0 || rows <= 0 || levels < 0 || levels > min(stored, size) {
			return
		}
		if c.leaf.MaxRep > 0 { // estimated
			row = int64(float64(values) / float64(c.md.NumValues) * float64(c.wanted))
		}
		wanted := c.wants(row, rows) && !(c.noCoded && isCoded(encoding)) && enc.Plausible(c.md.Codec, stored-levels, size-levels)
		if wanted && !yield(body[levels:], pos, int(size-levels), partOf(int(size-levels), c.needed(&h, row))) {
			return
		}
		values, row = values+entries, row+rows
	}
}

// nextPage returns the header at the start of b, the page's body and the bytes after it. The body
// is nil if b does not have all of it.
func nextPage(b []byte) (h meta.PageHeader, body, rest []byte) {
	n, err := meta.Decode(b[:min(len(b), headerAhead)], &h)
	if stored := int64(h.CompressedPageSize); err == nil && stored >= 0 && stored <= int64(len(b)-n) {
		body, rest = b[n:n+int(stored)], b[n+int(stored):]
	}
	return h, body, rest
}

// atHand returns the bytes of the chunk from c.pos on that are in memory.
func (c *Chunk) atHand() []byte {
	if m := c.mapped(); m != nil {
		return m.Bytes[c.pos:c.end]
	}
	from := c.pos - c.winPos
	if from < 0 || from > int64(len(c.buf.window)) {
		return nil
	}
	b := c.buf.window[from:]
	return b[:min(int64(len(b)), c.end-c.pos)]
}

// wants predicts whether the walk will decompress a page of n rows that begins with row.
func (c *Chunk) wants(row, n int64) bool {
	if !c.selected {
		return !c.sealing
	}
	i, _ := slices.BinarySearchFunc(c.left, row, func(a uint32, b int64) int { return int(int64(a) - b) })
	left := c.left[i:]
	if len(left) == 0 || int64(left[0]) >= row+n {
		return false
	}
	return !c.sealing || int64(len(left)) < n || int64(left[n-1]) != row+n-1
}
