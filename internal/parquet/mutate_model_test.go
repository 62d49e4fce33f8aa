package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// apart is a Parquet file split into parts, to be changed and assembled again. The
// assembled file is consistent except for the change, so that a reader gets as far
// as the change.
type apart struct {
	name   string
	footer []byte
	chunks [][][]modelPage // by row group and leaf
	crc    bool            // every page has a checksum
}

type modelPage struct {
	header meta.PageHeader
	body   []byte
}

// takeApart reads the file's pages.
func takeApart(name string, b []byte) (*apart, error) {
	f, err := Open(nil, bytes.NewReader(b), int64(len(b)), name)
	if err != nil {
		return nil, err
	}
	m := &apart{name: name, footer: b[f.footerPos : len(b)-tailSize], crc: true}
	for g := range f.RowGroups {
		var group [][]modelPage
		for l := range f.Leaves {
			var pages []modelPage
			c := f.Chunk(g, l)
			for c.pos < c.end {
				h, _, err := c.readHeader()
				if err != nil {
					break // some writers leave space after a chunk
				}
				body, err := c.readBody(h)
				if err != nil {
					return nil, err
				}
				m.crc = m.crc && h.CRC.Valid
				pages = append(pages, modelPage{*h, bytes.Clone(body)})
			}
			c.Close()
			group = append(group, pages)
		}
		m.chunks = append(m.chunks, group)
	}
	return m, nil
}

// inflated returns the model without compression and checksums, so that changes of
// pages reach the decoders.
func (m *apart) inflated() (*apart, error) {
	decoded, err := decodeFooter(m.footer)
	if err != nil {
		return nil, err
	}
	out := &apart{name: m.name + " inflated"}
	for g, group := range m.chunks {
		out.chunks = append(out.chunks, nil)
		for l, pages := range group {
			md := &decoded.RowGroups[g].Columns[l].MetaData
			var plain []modelPage
			for _, p := range pages {
				if p, err = p.inflated(md.Codec); err != nil {
					return nil, err
				}
				plain = append(plain, p)
			}
			md.Codec = format.Uncompressed
			out.chunks[g] = append(out.chunks[g], plain)
		}
	}
	out.footer, err = decoded.Encode()
	return out, err
}

func (p modelPage) inflated(codec format.CompressionCodec) (modelPage, error) {
	levels := 0
	if v2 := p.header.DataPageHeaderV2; v2.Valid {
		levels = int(v2.V.RepetitionLevelsByteLength + v2.V.DefinitionLevelsByteLength)
		if v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
			codec = format.Uncompressed
		}
	}
	var values []byte
	if size := int(p.header.UncompressedPageSize) - levels; size > 0 {
		var err error
		if values, err = new(enc.Decompressor).Decompress(codec, nil, p.body[levels:], size); err != nil {
			return p, err
		}
	}
	p.body = append(bytes.Clone(p.body[:levels]), values...)
	p.header.CompressedPageSize = p.header.UncompressedPageSize
	p.header.CRC = thrift.Null[int32]{}
	return p, nil
}

func (m *apart) clone() *apart {
	c := *m
	c.chunks = nil
	for _, group := range m.chunks {
		var g [][]modelPage
		for _, pages := range group {
			g = append(g, slices.Clone(pages))
		}
		c.chunks = append(c.chunks, g)
	}
	return &c
}

// assemble returns the file. It calls change with the footer before writing it.
func (m *apart) assemble(change func(*meta.Footer)) ([]byte, error) {
	decoded, err := decodeFooter(m.footer)
	if err != nil {
		return nil, err
	}
	out := []byte(magic)
	for g, group := range m.chunks {
		for l, pages := range group {
			chunk := &decoded.RowGroups[g].Columns[l]
			chunk.OffsetIndexOffset, chunk.OffsetIndexLength, chunk.ColumnIndexOffset, chunk.ColumnIndexLength = 0, 0, 0, 0
			md := &chunk.MetaData
			md.DictionaryPageOffset, md.BloomFilterOffset, md.BloomFilterLength = 0, 0, 0
			start := int64(len(out))
			md.DataPageOffset = start
			for i, p := range pages {
				if i == 0 && p.header.DictionaryPageHeader.Valid {
					md.DictionaryPageOffset = start
				} else if i == 1 && md.DictionaryPageOffset > 0 {
					md.DataPageOffset = int64(len(out))
				}
				header, err := thrift.Marshal(new(thrift.CompactProtocol), &p.header)
				if err != nil {
					return nil, err
				}
				out = append(append(out, header...), p.body...)
			}
			md.TotalCompressedSize = int64(len(out)) - start
		}
	}
	if change != nil {
		change(decoded)
	}
	footer, err := decoded.Encode()
	if err != nil {
		return nil, err
	}
	return appendFooter(out, footer), nil
}

func appendFooter(out, footer []byte) []byte {
	out = append(out, footer...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(footer)))
	return append(out, magic...)
}

// mutation is a changed file with a description of the change.
type mutation struct {
	from *apart
	kind string
	b    []byte
	// guarded means that only bytes of one page covered by a checksum were changed.
	// Whatever can still be read equals the original; errors are about that page.
	guarded bool
	page    int // among the chunk's data pages, from 1; 0 for the dictionary
}

// mutator makes mutations of models and of combinations of them.
type mutator struct {
	models []*apart
	whole  [][]byte // assembled
}

func newMutator(models []*apart) (*mutator, error) {
	u := &mutator{models: models}
	for _, m := range models {
		b, err := m.assemble(nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		u.whole = append(u.whole, b)
	}
	return u, nil
}

func (u *mutator) mutate(rng *rand.Rand) (*mutation, error) {
	i := rng.IntN(len(u.models))
	m := u.models[i]
	if rng.IntN(4) == 0 {
		kind, b := u.mutateBytes(rng, u.whole[i])
		return &mutation{from: m, kind: kind, b: b}, nil
	}
	if rng.IntN(5) == 0 {
		kind, change := changeFooter(rng)
		b, err := m.assemble(change)
		return &mutation{from: m, kind: kind, b: b}, err
	}
	c := m.clone()
	kind, page := u.mutatePages(rng, c)
	b, err := c.assemble(nil)
	return &mutation{from: m, kind: kind, b: b, guarded: m.crc && page >= 0, page: page}, err
}

// mutateBytes changes bytes anywhere in a file.
func (u *mutator) mutateBytes(rng *rand.Rand, whole []byte) (kind string, b []byte) {
	b = bytes.Clone(whole)
	footer := len(b) - tailSize - int(binary.LittleEndian.Uint32(b[len(b)-tailSize:]))
	switch rng.IntN(6) {
	case 0:
		damage(rng, b)
		return "bytes anywhere", b
	case 1:
		damage(rng, b[footer:])
		return "bytes of the footer", b
	case 2:
		return "the end cut off", b[:rng.IntN(len(b))]
	case 3:
		at := rng.IntN(footer)
		return "bytes cut out", slices.Delete(b, at, at+1+rng.IntN(min(footer-at, 100)))
	case 4:
		other := u.whole[rng.IntN(len(u.whole))]
		from := rng.IntN(len(other))
		part := other[from:min(len(other), from+1+rng.IntN(200))]
		copy(b[rng.IntN(footer):footer], part)
		return "bytes of another file", b
	}
	other := u.whole[rng.IntN(len(u.whole))]
	n := int(binary.LittleEndian.Uint32(other[len(other)-tailSize:]))
	return "another file's footer", appendFooter(b[:footer], other[len(other)-tailSize-n:len(other)-tailSize])
}

// damage flips bits, or sets bytes to values that are special to decoders.
func damage(rng *rand.Rand, b []byte) {
	for range 1 + rng.IntN(3) {
		if len(b) == 0 {
			return
		}
		if at := rng.IntN(len(b)); rng.IntN(2) == 0 {
			b[at] ^= 1 << rng.IntN(8)
		} else {
			b[at] = []byte{0, 1, 0x7f, 0x80, 0xfe, 0xff}[rng.IntN(6)]
		}
	}
}

// mutatePages changes a page, or the sequence of pages. It returns the page's
// number if only bytes covered by its checksum were changed, else -1.
func (u *mutator) mutatePages(rng *rand.Rand, m *apart) (kind string, page int) {
	pages := m.anyChunk(rng)
	if len(*pages) == 0 {
		return "nothing", -1
	}
	at := rng.IntN(len(*pages))
	p := &(*pages)[at]
	p.body = bytes.Clone(p.body)
	switch rng.IntN(10) {
	case 0, 1:
		damage(rng, p.body)
		for _, q := range (*pages)[:at+1] {
			if !q.header.DictionaryPageHeader.Valid {
				page++
			}
		}
		return "bytes of a page", page
	case 2, 3: // most errors are possible at the start
		damage(rng, p.body[:min(len(p.body), 24)])
		p.seal()
		return "a page's first bytes, sealed", -1
	case 4:
		damage(rng, p.body)
		p.seal()
		return "bytes of a page, sealed", -1
	case 5:
		if n := len(p.body); rng.IntN(2) == 0 {
			p.body = p.body[:rng.IntN(n+1)]
		} else {
			p.body = append(p.body, p.body[:rng.IntN(n+1)]...)
		}
		p.header.CompressedPageSize = int32(len(p.body))
		p.seal()
		return "a page of another length, sealed", -1
	case 6:
		other := *u.models[rng.IntN(len(u.models))].anyChunk(rng)
		if len(other) > 0 {
			*p = other[rng.IntN(len(other))]
		}
		return "another file's page", -1
	case 7:
		switch other := rng.IntN(len(*pages)); rng.IntN(3) {
		case 0:
			*pages = slices.Delete(*pages, at, at+1)
		case 1:
			*pages = slices.Insert(*pages, other, *p)
		default:
			(*pages)[at], (*pages)[other] = (*pages)[other], (*pages)[at]
		}
		return "pages in another order", -1
	}
	return "a page header's " + changeHeader(rng, &p.header), -1
}

// anyChunk returns a random chunk that has pages, if it finds one.
func (m *apart) anyChunk(rng *rand.Rand) *[]modelPage {
	none := new([]modelPage)
	for range 10 {
		if len(m.chunks) == 0 {
			return none
		}
		group := m.chunks[rng.IntN(len(m.chunks))]
		if pages := &group[rng.IntN(len(group))]; len(*pages) > 0 {
			return pages
		}
	}
	return none
}

// seal corrects the checksum, if there is one.
func (p *modelPage) seal() {
	if p.header.CRC.Valid {
		p.header.CRC.V = int32(crc32.ChecksumIEEE(p.body))
	}
}

// odd returns a different number to replace v.
func odd[T int32 | int64](rng *rand.Rand, v T) T {
	switch rng.IntN(8) {
	case 0:
		return v + 1
	case 1:
		return v - 1
	case 2:
		return 0
	case 3:
		return -v
	case 4:
		return 2 * v
	case 5:
		return math.MaxInt32
	case 6:
		return v ^ 1<<rng.IntN(31)
	}
	return T(rng.Int32())
}

// changeHeader changes one field and returns its name.
func changeHeader(rng *rand.Rand, h *meta.PageHeader) string {
	encoding := format.Encoding(rng.IntN(11))
	switch rng.IntN(4) {
	case 0:
		h.UncompressedPageSize = odd(rng, h.UncompressedPageSize)
		return "size"
	case 1:
		h.CompressedPageSize = odd(rng, h.CompressedPageSize)
		return "compressed size"
	case 2:
		if rng.IntN(4) == 0 {
			h.Type = format.PageType(rng.IntN(5))
			return "type"
		}
	}
	switch {
	case h.DictionaryPageHeader.Valid:
		d := &h.DictionaryPageHeader.V
		if rng.IntN(3) == 0 {
			d.Encoding = encoding
			return "dictionary encoding"
		}
		d.NumValues = odd(rng, d.NumValues)
		return "number of dictionary entries"
	case h.DataPageHeader.Valid:
		d := &h.DataPageHeader.V
		switch rng.IntN(4) {
		case 0:
			d.Encoding = encoding
			return "encoding"
		case 1:
			d.DefinitionLevelEncoding = encoding
			return "level encoding"
		}
		d.NumValues = odd(rng, d.NumValues)
		return "number of values"
	case h.DataPageHeaderV2.Valid:
		d := &h.DataPageHeaderV2.V
		field := []*int32{&d.NumValues, &d.NumNulls, &d.NumRows, &d.RepetitionLevelsByteLength, &d.DefinitionLevelsByteLength}
		if i := rng.IntN(len(field) + 1); i < len(field) {
			*field[i] = odd(rng, *field[i])
			return "number"
		}
		d.Encoding = encoding
		return "encoding"
	}
	return "nothing"
}

// changeFooter returns a change of one field of the footer.
func changeFooter(rng *rand.Rand) (kind string, change func(*meta.Footer)) {
	change = func(decoded *meta.Footer) {
		if len(decoded.RowGroups) == 0 {
			return
		}
		group := &decoded.RowGroups[rng.IntN(len(decoded.RowGroups))]
		chunk := &group.Columns[rng.IntN(len(group.Columns))]
		element := &decoded.Schema[rng.IntN(len(decoded.Schema))]
		md := &chunk.MetaData
		switch rng.IntN(12) {
		case 0:
			decoded.NumRows = odd(rng, decoded.NumRows)
		case 1:
			decoded.NumRows -= group.NumRows
			group.NumRows = odd(rng, group.NumRows)
			decoded.NumRows += group.NumRows
		case 2:
			md.NumValues = odd(rng, md.NumValues)
		case 3:
			md.TotalCompressedSize = odd(rng, md.TotalCompressedSize)
		case 4:
			md.DataPageOffset = odd(rng, md.DataPageOffset)
		case 5:
			md.DictionaryPageOffset = odd(rng, md.DictionaryPageOffset)
		case 6:
			md.Codec = format.CompressionCodec(rng.IntN(9))
		case 7:
			md.Type = format.Type(rng.IntN(8))
			for i := range decoded.Schema { // also in the schema, so that they agree
				if decoded.Schema[i].Name == md.PathInSchema[len(md.PathInSchema)-1] {
					decoded.Schema[i].Type.V = md.Type
					decoded.Schema[i].TypeLength = thrift.New(int32(1 + rng.IntN(40)))
				}
			}
		case 8:
			element.RepetitionType.V = format.FieldRepetitionType(rng.IntN(3))
		case 9:
			element.TypeLength = thrift.New(odd(rng, element.TypeLength.V))
		case 10:
			element.NumChildren = thrift.New(odd(rng, element.NumChildren.V))
		case 11:
			group.Columns = slices.Delete(group.Columns, 0, 1)
		}
	}
	return "the footer's fields", change
}

// decodeFooter decodes a footer without checking it.
func decodeFooter(b []byte) (*meta.Footer, error) {
	m, _, err := meta.DecodeFooter(b)
	return m, err
}
