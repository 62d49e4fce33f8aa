package parquet

import (
	"errors"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/snappy"
)

// Pages in Snappy take much less time in turns than one after another. So a page that has to
// be decompressed takes the next ones along that the walk will want and whose bytes are
// at hand. The walk makes all its checks when it comes to them; one that did not
// decompress is decompressed again then, for the error.

// inTurns is how many pages are decompressed together.
const inTurns = snappy.AtOnce

// earlyPage is a page, or the tail of one, that is decompressed before its turn.
type earlyPage struct {
	data   []byte
	stored int   // its size as stored
	end    int64 // where that ends in the file; 0: no page
}

// forgetEarly drops pages that were decompressed early. Their memory is kept.
func (b *Buffers) forgetEarly() {
	for i := range b.early {
		b.early[i].end = 0
	}
}

// inflate decompresses src, which is a whole page or the tail of one, to size bytes. c.pos
// is behind it. The page has the given number of entries; of a dictionary, 0.
func (c *Chunk) inflate(src []byte, size int64, entries int32) ([]byte, error) {
	codec := c.md.Codec
	if !enc.Plausible(codec, int64(len(src)), size) {
		return nil, c.corrupt(nil, "%d bytes cannot decompress to %d", len(src), size)
	}
	if codec == format.Snappy && c.inflateInTurns(src, int(size), int64(entries)) {
		return c.buf.raw, nil
	}
	out, err := c.buf.codec.Decompress(codec, c.buf.raw, src, int(size))
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

// inflateInTurns puts the page into c.buf.raw, if it was decompressed early or is now, with
// others. It returns false if it is to be decompressed alone.
func (c *Chunk) inflateInTurns(src []byte, size int, entries int64) bool {
	b := c.buf
	for i := range b.early {
		if e := &b.early[i]; e.end == c.pos && e.stored == len(src) && len(e.data) == size {
			b.raw, e.data, e.end = e.data, b.raw[:0], 0
			return true
		}
	}
	if c.alone || size < snappy.MinSize {
		return false
	}
	var blocks [inTurns]snappy.Block
	n := 1
	b.forgetEarly()
	c.upcoming(entries, func(stored []byte, end int64, size int) bool {
		if !b.spare(int64(size)) {
			return false
		}
		e := &b.early[n-1]
		e.data, e.stored, e.end = reusePage(e.data, size), len(stored), end
		blocks[n] = snappy.Block{Dst: e.data, Src: stored}
		n++
		return n < inTurns
	})
	if n == 1 {
		return false
	}
	b.raw = reusePage(b.raw, size)
	blocks[0] = snappy.Block{Dst: b.raw, Src: src}
	snappy.DecodeBlocks(blocks[:n])
	for i := range blocks[1:n] {
		if blocks[1+i].Err != nil {
			b.early[i].end = 0
		}
	}
	return blocks[0].Err == nil
}

// reusePage is enc.Reuse with a little room: pages differ little in size.
func reusePage(buf []byte, size int) []byte {
	step := 1 << max(bits.Len(uint(size))-4, 0)
	return enc.Reuse(buf, (size+step-1)/step*step)[:size]
}

// headersAhead is the number of pages that are looked at for those that are wanted.
const headersAhead = 8

// upcoming yields pages behind c.pos that the walk will decompress, as far as their bytes
// are at hand: what is compressed of them, where that ends, and its size
// decompressed. The page before has the given number of entries.
func (c *Chunk) upcoming(entries int64, yield func(stored []byte, end int64, size int) bool) {
	b, pos := c.atHand(), c.pos
	values, row := c.values+entries, c.rows+entries
	for range headersAhead {
		var h meta.PageHeader
		n, err := meta.Decode(b[:min(len(b), headerAhead)], &h)
		size, stored := int64(h.UncompressedPageSize), int64(h.CompressedPageSize)
		if err != nil || stored < 0 || stored > int64(len(b)-n) || size < snappy.MinSize || size > enc.MaxPageSize {
			return
		}
		body := b[n : n+int(stored)]
		b, pos = b[n+int(stored):], pos+int64(n)+stored
		v1, v2 := &h.DataPageHeader.V, &h.DataPageHeaderV2.V
		var rows, levels int64
		var encoding format.Encoding
		switch {
		case h.Type == format.DataPage && h.DataPageHeader.Valid:
			entries, rows, encoding = int64(v1.NumValues), int64(v1.NumValues), v1.Encoding
		case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid && (v2.IsCompressed.V || !v2.IsCompressed.Valid):
			entries, rows, encoding = int64(v2.NumValues), int64(v2.NumRows), v2.Encoding
			levels = int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength)
		}
		if entries <= 0 || rows <= 0 || levels < 0 || levels > min(stored, size) {
			return
		}
		if c.leaf.MaxRep > 0 { // estimated
			row = int64(float64(values) / float64(c.md.NumValues) * float64(c.wanted))
		}
		wanted := c.wants(row, rows) && !(c.noCoded && isCoded(encoding)) && enc.Plausible(c.md.Codec, stored-levels, size-levels)
		if wanted && !yield(body[levels:], pos, int(size-levels)) {
			return
		}
		values, row = values+entries, row+rows
	}
}

// atHand returns the bytes of the chunk behind c.pos that are in memory.
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

// wants reports whether a page of n rows from row on will be decompressed, by what is known
// before the walk comes to it.
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
