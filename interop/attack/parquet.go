package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Field numbers of parquet.thrift.
const (
	footerRowGroups = 4
	groupColumns    = 1
	chunkMeta       = 3
	metaCodec       = 4
	metaPlain       = 6
	metaStored      = 7
	metaData        = 9
	metaDictionary  = 11
	metaBloom       = 14
	pageKind        = 1
	pagePlain       = 2
	pageStored      = 3
	pageCRC         = 4
	pageV2          = 8
)

type page struct {
	header *node
	body   []byte
}

type chunk struct {
	meta  *node // ColumnChunk
	pages []page
	dict  bool // the first page is a dictionary
	moved int64
	extra []extra
}

// extra is an index or a Bloom filter.
type extra struct {
	at, size []int64 // the position and size in the chunk metadata
	header   *node
	rest     []byte
}

// parquetModel is a parsed Parquet file.
type parquetModel struct {
	footer *node
	chunks []*chunk
}

func takeParquet(b []byte) (mutable, error) {
	if len(b) < 12 || string(b[len(b)-4:]) != "PAR1" {
		return nil, errors.New("no footer")
	}
	size := int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	if size > len(b)-12 {
		return nil, errors.New("footer beyond the file")
	}
	m := &parquetModel{}
	var err error
	if m.footer, _, err = parseThrift(b[len(b)-8-size : len(b)-8]); err != nil {
		return nil, err
	}
	groups := m.footer.at(footerRowGroups)
	if groups == nil {
		return nil, errors.New("no row groups")
	}
	for _, g := range groups.list {
		columns := g.at(groupColumns)
		if columns == nil {
			return nil, errors.New("no columns")
		}
		for _, meta := range columns.list {
			c := &chunk{meta: meta}
			if err := c.take(b); err != nil {
				return nil, err
			}
			m.chunks = append(m.chunks, c)
		}
	}
	if !m.pages() {
		return nil, errors.New("no pages")
	}
	return m, nil
}

func (c *chunk) take(b []byte) error {
	meta := c.meta.at(chunkMeta)
	if meta == nil {
		return errors.New("no metadata")
	}
	start, size := meta.number0(metaData), meta.number0(metaStored)
	if d := meta.number0(metaDictionary); d > 0 && d < start {
		start, c.dict = d, true
	}
	if start < 4 || size < 0 || start+size > int64(len(b)) {
		return errors.New("a chunk beyond the file")
	}
	for rest := b[start : start+size]; len(rest) > 0; {
		h, n, err := parseThrift(rest)
		if err != nil {
			return err
		}
		stored := h.number0(pageStored)
		if stored < 0 || stored > int64(len(rest)-n) {
			return errors.New("a page beyond its chunk")
		}
		c.pages = append(c.pages, page{h, rest[n : n+int(stored)]})
		rest = rest[n+int(stored):]
	}
	for _, place := range [][2][]int64{{{6}, {7}}, {{4}, {5}}, {{chunkMeta, metaBloom}, {chunkMeta, 15}}} {
		at := c.meta.number0(place[0]...)
		if at <= 0 || at >= int64(len(b)) {
			continue
		}
		h, n, err := parseThrift(b[at:])
		if err != nil {
			continue
		}
		e := extra{at: place[0], size: place[1], header: h}
		if place[0][0] == chunkMeta {
			bits := h.number0(1)
			if bits < 0 || bits > int64(len(b))-at-int64(n) {
				continue
			}
			e.rest = b[at+int64(n) : at+int64(n)+bits]
		}
		c.extra = append(c.extra, e)
	}
	return nil
}

// pages reports whether the file has pages.
func (m *parquetModel) pages() bool {
	return slices.ContainsFunc(m.chunks, func(c *chunk) bool { return len(c.pages) > 0 })
}

func (m *parquetModel) clone() *parquetModel {
	c := &parquetModel{footer: m.footer.clone()}
	var metas []*node
	for _, g := range c.footer.at(footerRowGroups).list {
		metas = append(metas, g.at(groupColumns).list...)
	}
	for i, k := range m.chunks {
		k2 := &chunk{meta: metas[i], dict: k.dict, extra: slices.Clone(k.extra)}
		for _, p := range k.pages {
			k2.pages = append(k2.pages, page{p.header.clone(), p.body})
		}
		for j := range k2.extra {
			k2.extra[j].header = k2.extra[j].header.clone()
		}
		c.chunks = append(c.chunks, k2)
	}
	return c
}

// assemble returns the file with correct sizes, offsets and checksums. It calls last
// with the footer before it is written.
func (m *parquetModel) assemble(late map[*node]func(*node), last func(*node)) []byte {
	out := []byte("PAR1")
	for _, c := range m.chunks {
		meta := c.meta.at(chunkMeta)
		start, plain := int64(len(out)), int64(0)
		var places []int64
		var sizes []int64
		for i, p := range c.pages {
			p.header.set(int64(len(p.body)), pageStored)
			p.header.set(int64(int32(crc32.ChecksumIEEE(p.body))), pageCRC)
			if f := late[p.header]; f != nil {
				f(p.header)
			}
			at := int64(len(out))
			h := p.header.encode()
			plain += int64(len(h)) + max(p.header.number0(pagePlain), 0)
			out = append(append(out, h...), p.body...)
			if i > 0 || !c.dict {
				places, sizes = append(places, at), append(sizes, int64(len(out))-at)
			}
		}
		if c.dict {
			meta.set(start, metaDictionary)
		}
		if len(places) > 0 {
			meta.set(places[0], metaData)
		}
		c.moved = start
		meta.set(int64(len(out))-start, metaStored)
		meta.set(plain, metaPlain)
		for _, e := range c.extra {
			if e.at[0] == 4 && e.header.at(1) != nil {
				for i, p := range e.header.at(1).list {
					if i < len(places) {
						p.set(places[i], 1)
						p.set(sizes[i], 2)
					}
				}
			}
		}
	}
	for _, c := range m.chunks {
		for _, e := range c.extra {
			if f := late[e.header]; f != nil {
				f(e.header)
			}
			at := len(out)
			out = append(append(out, e.header.encode()...), e.rest...)
			c.meta.set(int64(at), e.at...)
			c.meta.set(int64(len(out)-at), e.size...)
		}
	}
	last(m.footer)
	footer := m.footer.encode()
	out = append(out, footer...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(footer)))
	return append(out, "PAR1"...)
}

var (
	zstdWriter, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	zstdReader, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
)

// coder returns functions that decompress and compress page bodies; nil for
// codecs that this program lacks.
func coder(codec int64) (inflate func([]byte) ([]byte, error), deflate func([]byte) []byte) {
	switch codec {
	case 0:
		same := func(b []byte) ([]byte, error) { return b, nil }
		return same, func(b []byte) []byte { return b }
	case 1:
		return func(b []byte) ([]byte, error) { return snappy.Decode(nil, b) }, func(b []byte) []byte { return snappy.Encode(nil, b) }
	case 2:
		return func(b []byte) ([]byte, error) {
				r, err := gzip.NewReader(bytes.NewReader(b))
				if err != nil {
					return nil, err
				}
				return io.ReadAll(r)
			}, func(b []byte) []byte {
				var out bytes.Buffer
				w := gzip.NewWriter(&out)
				_, _ = w.Write(b)
				_ = w.Close()
				return out.Bytes()
			}
	case 6:
		return func(b []byte) ([]byte, error) { return zstdReader.DecodeAll(b, nil) }, func(b []byte) []byte { return zstdWriter.EncodeAll(b, nil) }
	}
	return nil, nil
}

// changeBody applies change to the body of a page, decompressed where possible.
func (p *page) changeBody(codec int64, change func([]byte) []byte) string {
	levels := 0
	if v2 := p.header.at(pageV2); v2 != nil {
		levels = int(v2.number0(5) + v2.number0(6))
		if c := v2.at(7); c != nil && c.kind == kindFalse {
			codec = 0
		}
	}
	inflate, deflate := coder(codec)
	if levels < 0 || levels > len(p.body) || inflate == nil {
		p.body = change(p.body)
		return "stored body"
	}
	plain, err := inflate(p.body[levels:])
	if err != nil {
		p.body = change(p.body)
		return "stored body"
	}
	plain = append(slices.Clone(p.body[:levels]), plain...)
	plain = change(plain)
	levels = min(levels, len(plain))
	p.header.set(int64(len(plain)), pagePlain)
	p.body = append(slices.Clone(plain[:levels]), deflate(plain[levels:])...)
	return "body"
}

func (m *parquetModel) mutate(rng *rand.Rand) mutation {
	c := m.clone()
	late := map[*node]func(*node){}
	last := func(*node) {}
	var out mutation
	touched := map[int]bool{}
	pick := func() (*chunk, int) {
		for {
			i := rng.IntN(len(c.chunks))
			if len(c.chunks[i].pages) > 0 {
				touched[i] = true
				return c.chunks[i], rng.IntN(len(c.chunks[i].pages))
			}
		}
	}
	whole := false
	for range 1 + rng.IntN(3)/2 {
		what := ""
		switch k := rng.IntN(20); {
		case k < 5 || !c.pages():
			whole = true
			old := last
			seed := rng.Uint64()
			what = "footer"
			last = func(n *node) {
				old(n)
				out.what += " (" + mutateTree(rand.New(rand.NewPCG(seed, 1)), n) + ")"
			}
		case k < 9:
			ch, i := pick()
			seed := rng.Uint64()
			what = fmt.Sprintf("page header %d", i)
			late[ch.pages[i].header] = func(n *node) {
				out.what += " (" + mutateTree(rand.New(rand.NewPCG(seed, 1)), n) + ")"
			}
		case k < 16:
			ch, i := pick()
			what = ch.pages[i].changeBody(ch.meta.number0(chunkMeta, metaCodec), func(b []byte) []byte { return damage(rng, b) })
			if rng.IntN(3) == 0 {
				h := ch.pages[i].header
				fields := h.all(nil)
				f := fields[rng.IntN(len(fields))]
				if f.kind == kindI32 {
					f.number = oddNumber(rng, f.number)
					what += " and header"
				}
			}
		case k == 16:
			a, i := pick()
			b, j := pick()
			a.pages[i], b.pages[j] = b.pages[j], a.pages[i]
			what = "pages swapped"
		case k == 17:
			a, i := pick()
			a.pages = slices.Insert(a.pages, i, page{a.pages[i].header.clone(), a.pages[i].body})
			what = "page twice"
		case k == 18:
			a, i := pick()
			a.pages = slices.Delete(a.pages, i, i+1)
			what = "page dropped"
		case k == 19:
			ch, _ := pick()
			if len(ch.extra) == 0 {
				continue
			}
			e := &ch.extra[rng.IntN(len(ch.extra))]
			if len(e.rest) > 0 && rng.IntN(2) == 0 {
				e.rest = damage(rng, e.rest)
				what = "Bloom bits"
			} else {
				seed := rng.Uint64()
				late[e.header] = func(n *node) {
					out.what += " (" + mutateTree(rand.New(rand.NewPCG(seed, 1)), n) + ")"
				}
				what = "index"
			}
		}
		if out.what != "" {
			out.what += ", "
		}
		out.what += what
	}
	out.bytes = c.assemble(late, last)
	if groups := m.footer.at(footerRowGroups).list; !whole && len(touched) == 1 && len(groups) > 0 {
		for i := range touched {
			meta := m.chunks[i].meta.at(chunkMeta)
			if path := meta.at(3); path != nil && len(path.list) > 0 {
				out.column = string(path.list[0].bytes)
			}
		}
	}
	return out
}
