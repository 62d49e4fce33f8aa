package parquet

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// decode decodes the selected rows of a data page into c.page and counts the page. If it can
// predict where the last of them ends, it decompresses no more than that.
func (c *Chunk) decode(h *meta.PageHeader, body []byte) error {
	if need := c.needed(h, c.rows); need > 0 {
		before := *c
		c.need = need
		err := c.decodePage(h, body)
		if c.need = 0; err == nil {
			return nil
		}
		*c = before // the values may be longer than expected, or there is a fault
	}
	return c.decodePage(h, body)
}

// errPart means that more of a page is needed than was decompressed.
var errPart = errors.New("more of the page is needed")

func (c *Chunk) decodePage(h *meta.PageHeader, body []byte) error {
	var values []byte
	var err error
	if c.v2 = h.Type == format.DataPageV2; c.v2 {
		values, c.page.Encoding, err = c.openV2(h, body)
	} else {
		values, c.page.Encoding, err = c.openV1(h, body)
	}
	if err != nil || c.page.Values == 0 {
		return err
	}
	if err := errors.Join(c.count(), c.landed()); err != nil {
		return err
	}
	if c.v2 {
		if err := c.checkV2(&h.DataPageHeaderV2.V); err != nil {
			return err
		}
	}
	if c.selected && !c.narrow() {
		return c.decodeSelected(values)
	}
	if c.need > 0 {
		return errPart
	}
	if c.leaf.MaxRep == 0 && !c.v2 && (c.leaf.MaxDef == 0 || h.DataPageHeader.V.DefinitionLevelEncoding == format.RLE) {
		c.stored = StoredPage{Body: body, Size: int(h.UncompressedPageSize), Codec: c.md.Codec}
		c.page.Stored = &c.stored
	}
	c.fillDef()
	if isCoded(c.page.Encoding) {
		return c.decodeIndices(values, nil, true)
	}
	c.page.Plain, err = c.plainOf(values)
	return err
}

// fillDef writes the definition levels if they are all the same.
func (c *Chunk) fillDef() {
	if c.page.Def != nil && c.sameDef {
		enc.Fill(c.page.Def, c.def)
	}
}

// checkCount checks the number of entries in a page's header.
func (c *Chunk) checkCount(n int32) error {
	switch {
	case n < 0 || int64(n) > c.md.NumValues-c.values:
		return c.corrupt(nil, "%d values where the column chunk has %d left", n, c.md.NumValues-c.values)
	case n > MaxPageValues:
		return faults.Unsupported(c.here(), "page too large: %d values", n).
			WithHint("write the file again with smaller pages, as of 1 MiB")
	}
	c.page.Values = int(n)
	return nil
}

// openV1 decompresses a V1 page, reads its levels and returns the bytes of its
// values.
func (c *Chunk) openV1(h *meta.PageHeader, body []byte) ([]byte, format.Encoding, error) {
	if !h.DataPageHeader.Valid {
		return nil, 0, c.noHeader()
	}
	dh := &h.DataPageHeader.V
	if err := c.checkCount(dh.NumValues); err != nil || dh.NumValues == 0 {
		return nil, 0, err
	}
	data, err := c.inflate(body, int64(h.UncompressedPageSize), dh.NumValues)
	if err != nil {
		return nil, 0, err
	}
	if c.page.Rep, data, err = c.levelsV1(&c.buf.rep, c.leaf.MaxRep, dh.RepetitionLevelEncoding, data); err != nil {
		return nil, 0, err
	}
	if c.page.Def, data, err = c.levelsV1(&c.buf.def, c.leaf.MaxDef, dh.DefinitionLevelEncoding, data); err != nil {
		return nil, 0, err
	}
	return data, dh.Encoding, nil
}

func (c *Chunk) noHeader() error { return c.corrupt(nil, "no header of a data page") }

func (c *Chunk) longLevels() error {
	return c.corrupt(nil, "the page's levels are longer than the page")
}

// levelsV1 reads the levels of a V1 page and returns the bytes after them. Levels
// are runs preceded by their length or, in the deprecated form, bits without a
// length.
func (c *Chunk) levelsV1(buf *[]uint8, max int, encoding format.Encoding, data []byte) ([]uint8, []byte, error) {
	if max == 0 {
		return nil, data, nil
	}
	switch encoding {
	case format.RLE:
	case format.BitPacked:
		return c.packedLevels(buf, max, data)
	default:
		return nil, nil, c.corrupt(nil, "levels encoded as %v", encoding)
	}
	if len(data) < 4 {
		return nil, nil, c.corrupt(nil, "the page ends within its levels")
	}
	n := binary.LittleEndian.Uint32(data)
	data = data[4:]
	if uint64(n) > uint64(len(data)) {
		return nil, nil, c.corrupt(nil, "the page ends within its levels")
	}
	dst, err := c.levels(buf, max, data[:n])
	return dst, data[n:], err
}

// packedLevels reads levels in the deprecated BIT_PACKED encoding.
func (c *Chunk) packedLevels(buf *[]uint8, max int, data []byte) ([]uint8, []byte, error) {
	size := enc.PackedSize(c.page.Values, enc.LevelWidth(max))
	if size > uint64(len(data)) {
		return nil, nil, c.corrupt(nil, "the page ends within its levels")
	}
	dst := enc.Reuse(*buf, c.page.Values)
	*buf = dst
	if buf == &c.buf.def {
		c.sameDef = false
	}
	unpackBits := enc.UnpackHighFirst
	if c.f.Metadata.LowBitsFirst() {
		unpackBits = func(dst []uint8, src []byte, width uint, limit uint8) bool {
			return enc.Unpack(dst, src, width, uint32(limit))
		}
	}
	if !unpackBits(dst, data, enc.LevelWidth(max), uint8(max)) {
		return nil, nil, c.corrupt(enc.ErrBound, "the page's levels do not decode")
	}
	return dst, data[size:], nil
}

// levels decodes the page's levels. If definition levels are all the same, it
// records that and leaves writing them to fillDef, when the number of wanted
// entries is known.
func (c *Chunk) levels(buf *[]uint8, max int, data []byte) ([]uint8, error) {
	dst := enc.Reuse(*buf, c.page.Values)
	*buf = dst
	if buf == &c.buf.def {
		level, ok := enc.ConstantLevel(data, c.page.Values, enc.LevelWidth(max))
		if ok && level <= uint32(max) {
			c.sameDef, c.def = true, uint8(level)
			return dst, nil
		}
		c.sameDef = false
	}
	if err := enc.DecodeHybrid(dst, data, enc.LevelWidth(max), uint32(max)); err != nil {
		return nil, c.corrupt(err, "the page's levels do not decode")
	}
	return dst, nil
}

// openV2 reads the levels of a V2 page, which are never compressed, and returns the
// decompressed bytes of its values.
func (c *Chunk) openV2(h *meta.PageHeader, body []byte) ([]byte, format.Encoding, error) {
	if !h.DataPageHeaderV2.Valid {
		return nil, 0, c.noHeader()
	}
	dh := &h.DataPageHeaderV2.V
	if err := c.checkCount(dh.NumValues); err != nil || dh.NumValues == 0 {
		return nil, 0, err
	}
	rep, def := int64(dh.RepetitionLevelsByteLength), int64(dh.DefinitionLevelsByteLength)
	size := int64(h.UncompressedPageSize) - rep - def
	if rep < 0 || def < 0 || rep+def > int64(len(body)) || size < 0 {
		return nil, 0, c.longLevels()
	}
	var err error
	if c.leaf.MaxRep == 0 { // the bytes may be present nevertheless
		c.page.Rep = nil
	} else if c.page.Rep, err = c.levels(&c.buf.rep, c.leaf.MaxRep, body[:rep]); err != nil {
		return nil, 0, err
	}
	if c.leaf.MaxDef == 0 {
		c.page.Def = nil
	} else if c.page.Def, err = c.levels(&c.buf.def, c.leaf.MaxDef, body[rep:rep+def]); err != nil {
		return nil, 0, err
	}
	values := body[rep+def:]
	switch {
	case size == 0:
		return nil, dh.Encoding, nil // codecs differ in what they store for no bytes
	case dh.IsCompressed.Valid && !dh.IsCompressed.V && !c.f.Metadata.FalseFlags():
		if int64(len(values)) != size {
			return nil, 0, c.corrupt(nil, "the page is not compressed, and its sizes differ")
		}
	default:
		if values, err = c.inflate(values, size, dh.NumValues); err != nil {
			return nil, 0, err
		}
	}
	return values, dh.Encoding, nil
}

// count counts the page's rows and values and adds them to the chunk's totals.
func (c *Chunk) count() error {
	p := &c.page
	p.Rows, p.NonNull = p.Values, p.Values
	if p.Rep != nil {
		p.Rows = enc.CountLevels(p.Rep, 0)
		switch begins := p.Rep[0] == 0; {
		case !begins && c.values == 0:
			return c.corrupt(nil, "the column begins in the middle of a row")
		case !begins && c.ended:
			return c.corrupt(nil, "the page begins in the middle of a row")
		}
		c.ended = false
	}
	switch full := uint8(c.leaf.MaxDef); {
	case p.Def == nil:
	case !c.sameDef:
		p.NonNull = enc.CountLevels(p.Def, full)
	case c.def != full:
		p.NonNull = 0
	}
	c.values += int64(p.Values)
	c.rows += int64(p.Rows)
	if c.rows > c.wanted {
		return c.corrupt(nil, "more rows than the row group's %d", c.wanted)
	}
	return nil
}

func (c *Chunk) checkV2(dh *meta.DataPageHeaderV2) error {
	p := &c.page
	counted := countsValues(c.leaf, dh) || c.leaf.MaxRep == 0 // then the values count the rows, and some writers miscount them
	switch {
	case int(dh.NumRows) != p.Rows && !counted:
		return c.corrupt(nil, "the page has %d rows, its header says %d", p.Rows, dh.NumRows)
	case p.Rep != nil && p.Rep[0] != 0 && !counted:
		return c.corrupt(nil, "the page begins in the middle of a row")
	case int(dh.NumNulls) != p.Values-p.NonNull && !c.f.Metadata.FalseNulls():
		return c.corrupt(nil, "the page has %d nulls, its header says %d", p.Values-p.NonNull, dh.NumNulls)
	}
	return nil
}

// plainOf converts the page's values to PLAIN form.
func (c *Chunk) plainOf(src []byte) ([]byte, error) {
	p := &c.page
	plain, tail, err := c.decodeValues(src)
	if err == nil {
		err = c.ends(tail)
	}
	switch {
	case errors.Is(err, enc.ErrEncoding):
		e := faults.Unsupported(c.here(), "the page's values")
		e.Err = err
		return nil, e
	case errors.Is(err, enc.ErrExpands) && c.f.room.Most(enc.MaxPageSize) < enc.MaxPageSize:
		return nil, c.f.room.TooLarge(c.here(), "the page, whose values share bytes,", enc.MaxPageSize)
	case errors.Is(err, enc.ErrExpands):
		return nil, c.expands()
	case err != nil:
		return nil, c.corrupt(err, "the page's values do not decode (%v)", p.Encoding)
	}
	if p.Encoding != format.Plain && cap(plain) > cap(c.buf.plain) {
		c.buf.plain = plain
	}
	return plain, nil
}

// ends checks that the page's values may be followed by tail bytes. In V1 pages
// they may: fastparquet pads them with zeros. Such pages are not copied as stored.
func (c *Chunk) ends(tail int) error {
	p := &c.page
	switch {
	case tail == 0:
	case c.v2 && p.Encoding != format.DeltaBinaryPacked && p.Encoding != format.RLE: // these two encodings mark their own end
		return enc.ErrTrailing
	default:
		p.Stored = nil
	}
	return nil
}

// decodeValues decodes the page's values. Values of DELTA_BYTE_ARRAY share bytes
// and may expand by any factor; the memory budget limits their size.
func (c *Chunk) decodeValues(src []byte) (plain []byte, tail int, err error) {
	p := &c.page
	shared := c.leaf.Type == format.ByteArray || c.leaf.Type == format.FixedLenByteArray
	if c.f.room == nil || p.Encoding != format.DeltaByteArray || !shared || p.NonNull == 0 {
		return enc.Decode(c.leaf.Type, c.leaf.Width(), p.Encoding, src, c.buf.plain, p.NonNull)
	}
	return enc.DecodeDeltaBytes(c.leaf.Type, c.leaf.Width(), src, c.buf.plain, p.NonNull, c.f.room.Most(enc.MaxPageSize))
}

// isCoded reports whether the encoding stores dictionary indices.
func isCoded(e format.Encoding) bool {
	return e == format.PlainDictionary || e == format.RLEDictionary
}

// decodeIndices decodes the dictionary indices at the given positions, or all.
func (c *Chunk) decodeIndices(src []byte, at []uint32, all bool) error {
	p := &c.page
	width, limit, err := c.indexWidth(src)
	if err != nil {
		return err
	}
	total := p.NonNull
	if !all {
		p.NonNull = len(at)
	}
	p.Indices = enc.Reuse(c.buf.indices, p.NonNull)
	c.buf.indices = p.Indices
	switch {
	case width == 0:
		clear(p.Indices)
	case all:
		err = enc.DecodeHybrid(p.Indices, src[1:], width, limit)
	default:
		p.Indices, err = enc.GatherHybrid(p.Indices[:0], src[1:], total, width, limit, at)
	}
	if err != nil {
		return c.corrupt(err, "the page's dictionary indices do not decode")
	}
	return nil
}

// indexWidth reads the first byte of dictionary indices, which is their width in
// bits, and returns the largest valid index.
func (c *Chunk) indexWidth(src []byte) (width uint, limit uint32, err error) {
	p := &c.page
	p.Coded = true
	if p.NonNull == 0 {
		return 0, 0, nil // writers differ in what they store for no values
	}
	if c.dict == nil {
		return 0, 0, c.corrupt(nil, "dictionary indices without a dictionary")
	}
	if c.dict.Len == 0 || len(src) == 0 {
		return 0, 0, c.corrupt(nil, "%d dictionary indices in %d bytes, for %d entries", p.NonNull, len(src), c.dict.Len)
	}
	switch {
	case src[0] > 32:
		return 0, 0, c.corrupt(nil, "dictionary indices of %d bits", src[0])
	case src[0] == 0:
		if err := enc.CheckZeros(src[1:], p.NonNull); err != nil {
			return 0, 0, c.corrupt(err, "the page's dictionary indices do not decode")
		}
	}
	return uint(src[0]), uint32(min(c.dict.Len-1, math.MaxInt32)), nil
}

// addShape adds the page's entries to the chunk's shape.
func (c *Chunk) addShape() { c.shape = c.f.AddShape(c.shape, c.leaf.Index, c.page.Rep, c.page.Def) }

// Shape returns the shape of the rows read so far, nil if some of them were not
// decoded.
func (c *Chunk) Shape() meta.Shape { return c.shape }
