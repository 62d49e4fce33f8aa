package parquet

import (
	"bytes"
	"hash/crc32"
	"math/bits"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// addCoded adds as many entries from at on as belong to the pending page, as
// indices of the merged dictionary. If the dictionary is full, the chunk continues
// without it.
func (c *ChunkWriter) addCoded(p *Page, dict *Dictionary, at cursor) (cursor, error) {
	to, weight, err := c.reach(p, at, true)
	if err != nil {
		return to, err
	}
	g := &c.page
	n := to.value - at.value
	g.indices = enc.GrowTo(g.indices, g.values+n)
	var done int
	if p.Coded {
		done, err = c.dict.translate(g.indices[g.values:], p.Indices[at.value:to.value], dict)
	} else {
		done, to.pos, err = c.dict.numbers(g.indices[g.values:], p.Plain, at.pos)
	}
	g.indices = g.indices[:g.values+done]
	if err != nil {
		return to, c.fail("%w", err)
	}
	if done < n {
		to.entry = nthValue(p, c.leaf.MaxDef, at, done)
		to.value = at.value + done
		weight = (to.entry - at.entry) * minEntryWeight
	}
	g.values += done
	g.weight += weight
	if err := c.addLevels(p, at.entry, to.entry); err != nil || done == n {
		return to, err
	}
	return to, c.leaveDictionary(p.Rep != nil && p.Rep[to.entry] != 0)
}

// nthValue returns the entry of the n-th value from at on, counted from 0.
func nthValue(p *Page, maxDef int, at cursor, n int) int {
	e := at.entry
	if p.Def == nil {
		return e + n
	}
	for ; ; e++ {
		if int(p.Def[e]) == maxDef {
			if n == 0 {
				return e
			}
			n--
		}
	}
}

// addDecoded decodes some of the entries from at on into r and adds them as plain
// values.
func (c *ChunkWriter) addDecoded(p *Page, dict *Dictionary, at cursor, r *recoding) (cursor, error) {
	var part Page
	rest := p.Indices[at.value:]
	n, err := dict.values(&r.plain, rest, c.leaf.Width(), c.limit)
	if err != nil {
		return at, c.fail("%w", err)
	}
	to := cursor{entry: p.Values, value: at.value + n}
	if n < len(rest) {
		to.entry = nthValue(p, c.leaf.MaxDef, at, n)
	}
	part.Values, part.NonNull, part.Plain = to.entry-at.entry, n, r.plain
	if p.Def != nil {
		part.Def = p.Def[at.entry:to.entry]
	}
	if p.Rep != nil {
		part.Rep = p.Rep[at.entry:to.entry]
	}
	return to, c.addEntries(&part, nil, cursor{})
}

// turnPlain ends the dictionary before the plain values of p. NULLs before the
// first value are still added to the coded part, so that the result does not depend
// on whether they come in a page of their own.
func (c *ChunkWriter) turnPlain(p *Page) (at cursor, err error) {
	if p.Def != nil && !c.copyable(p) {
		at.entry = bytes.IndexByte(p.Def, uint8(c.leaf.MaxDef))
		nulls := Page{Values: at.entry, Def: p.Def[:at.entry]}
		if p.Rep != nil {
			nulls.Rep = p.Rep[:at.entry]
		}
		if err := c.add(&nulls, nil); err != nil {
			return at, err
		}
	}
	return at, c.leaveDictionary(p.Rep != nil && p.Rep[at.entry] != 0)
}

// leaveDictionary completes the coded part of the chunk; the rest is plain. within
// means that the last row continues. The whole row must then be plain, so that the
// next page begins with a row.
func (c *ChunkWriter) leaveDictionary(within bool) error {
	if c.mode == plain { // the dictionary has already been dropped
		return nil
	}
	from := c.page.entries
	if !c.keeps && c.coded == 0 && c.page.values > 0 && !c.dictionaryPays() {
		from = 0
	} else if within {
		from = bytes.LastIndexByte(c.page.rep, 0)
	}
	return c.takeBack(from)
}

// takeBack continues without the dictionary. It finishes the pending page with the
// entries before from, which are coded, and adds the other entries as plain values.
// The dictionary's memory then serves other chunks.
func (c *ChunkWriter) takeBack(from int) error {
	c.mode = plain
	r := c.w.takeRecoding()
	defer c.w.putRecoding(r)
	g := &c.page
	rest := Page{Values: g.entries - from, NonNull: g.entries - from, Coded: true}
	if c.leaf.MaxDef > 0 {
		r.def = append(r.def[:0], g.def[from:]...)
		rest.Def = r.def
		rest.NonNull = bytes.Count(rest.Def, []byte{uint8(c.leaf.MaxDef)})
		g.def = g.def[:from]
	}
	rest.Rows = rest.Values
	if c.leaf.MaxRep > 0 {
		r.rep = append(r.rep[:0], g.rep[from:]...)
		rest.Rep = r.rep
		rest.Rows = bytes.Count(rest.Rep, []byte{0})
		g.rep = g.rep[:from]
	}
	g.entries, g.rows = from, g.rows-rest.Rows
	g.values -= rest.NonNull
	r.indices = append(r.indices[:0], g.indices[g.values:]...)
	g.indices = g.indices[:g.values]
	rest.Indices = r.indices
	if g.entries > 0 {
		if err := c.writePending(g.values > 0 || c.coded > 0); err != nil {
			return err
		}
	}
	g.reset()
	g.indices = nil // no more indices will follow
	dict := c.dict.merged()
	for at := (cursor{}); at.entry < rest.Values; {
		var err error
		if rest.NonNull == 0 {
			at, err = c.addPlain(&Page{Values: rest.Values, Def: rest.Def, Rep: rest.Rep}, at)
		} else {
			at, err = c.addDecoded(&rest, dict, at, r)
		}
		if err != nil {
			return err
		}
	}
	return c.endDictionary()
}

// dictionaryPays reports whether the dictionary and the pending page's indices take
// fewer bytes than its values.
func (c *ChunkWriter) dictionaryPays() bool {
	d := c.dict.merged()
	most := len(d.Plain) + (c.page.values*int(indexWidth(d.Len))+7)/8
	if w := c.leaf.Width(); w > 0 {
		return most < c.page.values*w
	}
	size := 0
	for _, i := range c.page.indices {
		if size += 4 + int(d.size(i)); size > most {
			return true
		}
	}
	return false
}

// indexWidth returns the number of bits of the indices of n entries. It is at least
// 1, because some readers do not support 0.
func indexWidth(n int) uint { return uint(max(1, bits.Len(uint(max(n, 1)-1)))) }

// codedBounds returns the bounds of the dictionary entries that the pending page
// uses, and records how many entries are in use.
func (c *ChunkWriter) codedBounds(ws *workspace) (meta.Bounds, error) {
	d := c.dict.merged()
	used := enc.Reuse(ws.used, d.Len)
	ws.used = used
	clear(used)
	for _, i := range c.page.indices {
		used[i] = 1
	}
	n := bytes.Count(used, []byte{1})
	c.inUse = max(c.inUse, 1+bytes.LastIndexByte(used, 1))
	ws.entries = enc.Reuse(ws.entries, n+1)
	k := 0
	for i, u := range used { // each is written, over the one before if that is not used
		ws.entries[k] = uint32(i)
		k += int(u)
	}
	if w := c.leaf.Width(); w > 0 {
		ws.values = enc.GatherFixed(ws.values[:0], d.Plain, w, ws.entries[:n])
	} else {
		ws.values, _, _ = enc.GatherByteArrays(ws.values[:0], d.Plain, d.Len, ws.entries[:n]) // checked when they were added
	}
	return c.order.BoundsOf(ws.values, n)
}

// endDictionary encodes the dictionary, if any page is coded, and returns its
// memory to the pool.
func (c *ChunkWriter) endDictionary() (err error) {
	if c.coded > 0 && c.dictOut.n == 0 {
		err = c.dictionaryPage()
	}
	c.w.putDict(c.dict)
	c.dict = nil
	return err
}

// dictionaryPage encodes the dictionary without the entries that only values taken
// back used, or whole if it is the input's.
func (c *ChunkWriter) dictionaryPage() error {
	d := c.dict.merged()
	if c.keeps {
		return c.writeDictionary(d.Plain, d.Len)
	}
	plain := d.Plain
	if c.inUse < d.Len {
		if w := c.leaf.Width(); w > 0 {
			plain = plain[:c.inUse*w]
		} else {
			plain = plain[:d.offsets[c.inUse]-4]
		}
	}
	return c.writeDictionary(plain, c.inUse)
}

// writeDictionary encodes a dictionary of n values.
func (c *ChunkWriter) writeDictionary(plain []byte, n int) error {
	ws := c.w.takeSpace()
	defer c.w.putSpace(ws)
	body, err := ws.codec.Compress(plain, c.w.opts.Compression)
	if err != nil {
		return c.fail("%w", err)
	}
	h := meta.PageHeader{
		Type: format.DictionaryPage, UncompressedPageSize: int32(len(plain)), CompressedPageSize: int32(len(body)),
		CRC:                  thrift.New(int32(crc32.ChecksumIEEE(body))),
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: int32(n), Encoding: format.Plain}),
	}
	head, err := c.put(ws, &c.dictOut, &h, body)
	c.plainN += int64(head + len(plain))
	return err
}

// LeavesDictionary reports whether, according to the footer, a column chunk has
// both dictionary-coded and other data pages, that is, whether its writer started a
// dictionary and then gave it up.
func (f *File) LeavesDictionary(rowGroup, leaf int) bool {
	byDict, others := false, false
	for _, s := range f.chunk(rowGroup, leaf).MetaData.EncodingStats {
		if s.Count <= 0 || s.PageType != format.DataPage && s.PageType != format.DataPageV2 {
			continue
		}
		if isCoded(s.Encoding) {
			byDict = true
		} else {
			others = true
		}
	}
	return byDict && others
}

// NoDictionary makes all values plain, even those that arrive coded. It must be
// called before the first page is added.
func (c *ChunkWriter) NoDictionary() { c.mode = plain }
