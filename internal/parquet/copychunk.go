package parquet

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"

	"github.com/parquet-go/parquet-go/format"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Bytes that are read at a time to check a chunk, and to copy it. Many chunks may be
// checked at the same time, but an output copies one after the other.
const (
	checkPiece = 256 << 10
	copyPiece  = 1 << 20
)

// MayCopy returns why CopyChunk cannot copy a chunk, or "" if the footer shows no reason.
// rowGroup, from and to count from 0. It is safe for concurrent use.
func (w *Writer) MayCopy(f *File, rowGroup, from, to int) (why string) {
	md := &f.chunk(rowGroup, from).MetaData
	a, b := &f.Leaves[from], &w.leaves[to]
	switch codec := w.opts.Compression.Codec; {
	case md.NumValues == 0:
		return "there are no values"
	case md.Codec == format.Lz4:
		return "compressed with the deprecated LZ4"
	case md.Codec != codec:
		return fmt.Sprintf("compressed with %v, the output with %v", md.Codec, codec)
	case w.opts.Compression.Level != 0:
		return "the output has a compression level of its own"
	case a.Type != b.Type || a.TypeLength != b.TypeLength:
		return "the output's column has another type"
	case f.widened(from) != nil:
		return "the file stores the column with another type than its table"
	case a.MaxDef != b.MaxDef || a.MaxRep != b.MaxRep:
		return "the output's column has other levels"
	case f.Metadata.ShortChunks():
		return "its writer understated the sizes of chunks"
	case f.Metadata.PadsPages():
		return "its writer pads pages"
	}
	return ""
}

// CopyChunk prepares a column chunk of f to be written as it is stored as the chunk
// of w's leaf to: with its page headers, compressed pages and dictionary, and with
// the statistics, also of pages, column index and Bloom filter that its writer is trusted for. It
// reads the chunk and checks headers, sizes, checksums and, except in V1 pages of
// repeated leaves, rows, but decodes nothing. Damage is an error. why, if not
// empty, says why the chunk cannot be copied this way although nothing is wrong
// with it; e is then nil.
//
// Without o.Keep, e holds none of the chunk's bytes: RowGroup reads them again, so f must
// be readable until then. rowGroup, from and to count from 0. It is
// safe for concurrent use.
func (w *Writer) CopyChunk(ctx context.Context, f *File, rowGroup, from, to int, o CopyOptions) (e *EncodedChunk, why string, err error) {
	if why := w.MayCopy(f, rowGroup, from, to); why != "" {
		o.Ahead.Release()
		return nil, why, nil
	}
	c := f.ChunkIn(new(Buffers), rowGroup, from)
	defer c.Close()
	defer c.recovered(&err)
	if o.Ahead != nil {
		c.Expect(o.Ahead)
	}
	c.Announce()
	k := chunkWalk{Chunk: c, keeps: c.end-c.pos <= o.Keep}
	k.stored = storedRange{f: f, at: c.at, pos: c.pos, size: c.end - c.pos}
	if o := w.order[to]; o.Defined() && (!f.BoundsBelieved(c.leaf) || o.ByteArrays() && !f.Metadata.BoundsCoverEmpty()) {
		c.header = []byte{} // to leave out bounds, which readers of the copy would trust
	}
	if why, err := k.walk(ctx); why != "" || err != nil {
		return nil, why, err
	}
	e = &EncodedChunk{
		w: w, leaf: to, rows: c.wanted, entries: c.values, plainSize: k.plainSize - k.stored.cut, kinds: k.kinds,
		stored: &k.stored, storedDict: k.dictSize,
	}
	order := f.BelievedOrder(c.leaf, w.order[to])
	if e.index, err = k.index(order); err != nil {
		return nil, "", err
	}
	e.stats = k.statistics(order)
	e.filter, err = f.storedFilter(rowGroup, from)
	return e, "", err
}

// CopyOptions are for chunks of files over a network, where reading is slow.
type CopyOptions struct {
	Ahead *Ahead // the announced ranges of the chunk; nil: none
	Keep  int64  // largest chunk, in bytes, that stays in memory instead of being read again
}

// chunkWalk walks the pages of a chunk without decoding them.
type chunkWalk struct {
	*Chunk
	stored    storedRange
	keeps     bool // the chunk's bytes
	sum       xxh3.Hasher
	dictSize  int64 // of the dictionary page, with its header
	plainSize int64 // of all pages, decompressed, with their headers
	kinds     []pageKind
	pages     []walkedPage
	unknown   bool  // the rows of some page are not known
	doubt     bool  // the page index is damaged, or contradicts the chunk's number of NULLs
	nulls     int64 // -1: not known
}

// walkedPage is a data page.
type walkedPage struct {
	pageFacts
	at, size int64 // position in the file; size with its header
	row      int64 // its first row, unless unknown
	cut      int64 // bytes that are left out before it
}

// walk walks all pages. why says why the chunk cannot be copied as it is stored.
func (k *chunkWalk) walk(ctx context.Context) (why string, err error) {
	if k.mapped() == nil {
		if err := k.buf.charge(ctx, k.at, "a piece of the column", min(max(checkPiece, k.f.windowSize()), k.end-k.pos)); err != nil {
			return "", err
		}
	}
	for k.values < k.md.NumValues {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if why, err := k.page(); why != "" || err != nil {
			return why, err
		}
	}
	switch {
	case !k.unknown && k.rows != k.wanted:
		return "", k.wrongRows()
	case k.nulls >= 0 && k.otherNulls(k.nulls):
		return "its statistics have another number of NULLs than its pages", nil
	case k.pos < k.end:
		return "bytes follow its last page", nil
	}
	k.pass(0)
	k.stored.sum = k.sum.Sum64()
	return "", nil
}

// page walks over one page.
func (k *chunkWalk) page() (why string, err error) {
	if k.have() < headerAhead { // readHeader would read only so much
		if _, err := k.peek(checkPiece); err != nil {
			return "", err
		}
	}
	h, at, err := k.readHeader()
	if err != nil {
		return "", err
	}
	size := k.pos - at
	place, err := k.checkSizes(h)
	if err != nil {
		return "", err
	}
	var p pageFacts
	switch h.Type {
	case format.DictionaryPage:
		if err := k.checkDictionary(h, k.dictSize > 0); err != nil {
			return "", err
		}
		if why := k.dictionaryDoubt(h); why != "" {
			return why, nil
		}
		k.dictSize = size + int64(h.CompressedPageSize)
		p.encoding = h.DictionaryPageHeader.V.Encoding
	case format.DataPage, format.DataPageV2:
		k.Chunk.pages++
		if p, why, err = k.facts(h, k.dictSize > 0); why != "" || err != nil {
			return why, err
		}
		k.pages = append(k.pages, walkedPage{p, at, size + int64(h.CompressedPageSize), k.rows, k.stored.cut})
		if err := cmp.Or(k.bare(h, at, size), k.tally(p)); err != nil {
			return "", err
		}
	default:
		return fmt.Sprintf("it has a page of type %v", h.Type), nil
	}
	k.plainSize += size + int64(h.UncompressedPageSize)
	countKind(&k.kinds, h.Type, p.encoding)
	k.pos = at
	if _, err = k.read(size, false); err != nil {
		return "", err
	}
	crc, err := k.read(int64(h.CompressedPageSize), h.CRC.Valid)
	if err == nil && h.CRC.Valid && crc != uint32(h.CRC.V) {
		err = wrongCRC(place, h, crc)
	}
	return "", err
}

// bare leaves the statistics out of the copy of a header, if they have bounds that are not trusted.
func (k *chunkWalk) bare(h *meta.PageHeader, at, size int64) error {
	if k.header == nil {
		return nil
	}
	var claims pageClaims
	if _, err := meta.Decode(k.header, &claims); err != nil {
		return k.headerFault(err)
	}
	for _, s := range []*meta.Statistics{&claims.V1.Statistics, &claims.V2.V.Statistics} {
		if !s.MinValue.Valid && !s.MaxValue.Valid {
			continue
		}
		b, err := new(thriftBuffer).marshal(h)
		if err != nil {
			return err
		}
		k.stored.heads = append(k.stored.heads, bareHead{at - k.stored.pos, size, b})
		k.stored.cut += size - int64(len(b))
	}
	return nil
}

// tally adds a data page to the chunk's totals.
func (k *chunkWalk) tally(p pageFacts) error {
	k.values += p.entries
	if p.nulls < 0 || k.nulls < 0 {
		k.nulls = -1
	} else {
		k.nulls += p.nulls
	}
	if p.rows < 0 {
		k.unknown = true
		return nil
	}
	if k.rows += p.rows; k.rows > k.wanted {
		return k.corrupt(nil, "more rows than the row group's %d", k.wanted)
	}
	return nil
}

// read reads n bytes, adds them to the chunk's hash and, if it is wanted, returns
// their CRC-32.
func (k *chunkWalk) read(n int64, wanted bool) (crc uint32, err error) {
	for n > 0 {
		b, err := k.some(n)
		if err != nil {
			return 0, err
		}
		if wanted {
			crc = crc32.Update(crc, crc32.IEEETable, b)
		}
		if k.keeps {
			if k.stored.kept == nil {
				k.stored.kept = make([]byte, 0, k.stored.size)
			}
			k.stored.kept = append(k.stored.kept, b...)
		} else {
			_, _ = k.sum.Write(b) // it does not fail
		}
		n -= int64(len(b))
		k.pos += int64(len(b))
		k.pass(passAtOnce)
	}
	return crc, nil
}

// some returns the next bytes of the chunk, at least one and at most n.
func (k *chunkWalk) some(n int64) ([]byte, error) {
	if have := k.have(); have > 0 {
		return k.peek(min(n, have))
	}
	b, err := k.peek(checkPiece)
	return b[:min(n, int64(len(b)))], err
}

// have returns the number of bytes at k.pos that can be read without a copy.
func (k *chunkWalk) have() int64 {
	if k.mapped() != nil {
		return min(k.end-k.pos, checkPiece)
	}
	from := k.pos - k.winPos
	if from < 0 || from > int64(len(k.buf.window)) {
		return 0
	}
	return int64(len(k.buf.window)) - from
}

// pageFacts are what a data page's header says.
type pageFacts struct {
	entries  int64
	rows     int64 // that begin in the page; -1: not known without its levels
	nulls    int64 // -1: not known
	encoding format.Encoding
}

// facts returns what the header of the page at c.pos says and checks what can be
// checked without decompressing the page. why says why a copy of the stored page
// may mean something else to other readers, or be harder to read for them. byDict
// means that the chunk has a dictionary.
func (c *Chunk) facts(h *meta.PageHeader, byDict bool) (p pageFacts, why string, err error) {
	if h.Type == format.DataPageV2 {
		p, why, err = c.factsV2(h)
	} else {
		p, why, err = c.factsV1(h)
	}
	switch {
	case why != "" || err != nil:
	case p.entries == 0:
		why = "it has a page without values"
	case isCoded(p.encoding) && !byDict:
		why = "it has dictionary indices and no dictionary"
	case p.encoding == format.DeltaByteArray && c.f.Metadata.SharedDeltas():
		why = "its pages depend on each other"
	default:
		why = c.sizeDoubt(h, p)
	}
	switch p.encoding {
	case format.Plain, format.PlainDictionary, format.RLEDictionary, format.RLE, format.DeltaBinaryPacked,
		format.DeltaLengthByteArray, format.DeltaByteArray, format.ByteStreamSplit:
	default:
		if why == "" {
			why = fmt.Sprintf("it has values encoded as %v", p.encoding)
		}
	}
	return p, why, err
}

func (c *Chunk) factsV1(h *meta.PageHeader) (p pageFacts, why string, err error) {
	if !h.DataPageHeader.Valid {
		return p, "", c.noHeader()
	}
	dh := &h.DataPageHeader.V
	p = pageFacts{entries: int64(dh.NumValues), rows: int64(dh.NumValues), encoding: dh.Encoding}
	if c.leaf.MaxRep > 0 {
		p.rows = -1
	}
	if c.leaf.MaxDef > 0 {
		p.nulls = -1
	}
	if err := c.checkCount(dh.NumValues); err != nil {
		return p, "", err
	}
	stored, size := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	switch {
	case !enc.Plausible(c.md.Codec, stored, size) || c.md.Codec == format.Uncompressed && stored != size:
		return p, "", c.corrupt(nil, "%d bytes cannot decompress to %d", stored, size)
	case c.leaf.MaxRep > 0 && dh.RepetitionLevelEncoding != format.RLE, c.leaf.MaxDef > 0 && dh.DefinitionLevelEncoding != format.RLE:
		why = "it has levels that are not encoded as RLE"
	}
	return p, why, nil
}

func (c *Chunk) factsV2(h *meta.PageHeader) (p pageFacts, why string, err error) {
	if !h.DataPageHeaderV2.Valid {
		return p, "", c.noHeader()
	}
	dh := &h.DataPageHeaderV2.V
	p = pageFacts{entries: int64(dh.NumValues), rows: int64(dh.NumRows), nulls: int64(dh.NumNulls), encoding: dh.Encoding}
	if err := c.checkCount(dh.NumValues); err != nil || dh.NumValues == 0 {
		return p, "", err
	}
	rep, def := int64(dh.RepetitionLevelsByteLength), int64(dh.DefinitionLevelsByteLength)
	stored, size := int64(h.CompressedPageSize)-rep-def, int64(h.UncompressedPageSize)-rep-def
	plain := dh.IsCompressed.Valid && !dh.IsCompressed.V
	l := c.leaf
	switch {
	case rep < 0 || def < 0 || stored < 0 || size < 0:
		return p, "", c.longLevels()
	case l.MaxRep > 0 && rep == 0 || l.MaxDef > 0 && def == 0:
		return p, "", c.corrupt(enc.ErrShort, "the page's levels do not decode")
	case plain && c.f.Metadata.FalseFlags():
		return p, "its writer declared compressed pages uncompressed", nil
	case c.f.Metadata.FalseNulls():
		return p, "its writer miscounted the NULLs of pages", nil
	case size == 0 && stored > 0 && (plain || c.md.Codec == format.Uncompressed):
		return p, "it has a page with bytes of no values", nil // decoding ignores them
	case plain && stored != size:
		return p, "", c.corrupt(nil, "the page is not compressed, and its sizes differ")
	case size > 0 && (!enc.Plausible(c.md.Codec, stored, size) || c.md.Codec == format.Uncompressed && stored != size):
		return p, "", c.corrupt(nil, "%d bytes cannot decompress to %d", stored, size)
	case p.nulls < 0 || p.nulls > p.entries || l.MaxDef == 0 && p.nulls > 0:
		return p, "", c.corrupt(nil, "the page has %d nulls among %d values", p.nulls, p.entries)
	case l.MaxRep == 0 && p.rows != p.entries:
		return p, "it has a page whose header has another number of rows than its values", nil
	case p.rows <= 0, p.rows > p.entries:
		return p, "", c.corrupt(nil, "the page has %d rows, and %d values", p.rows, p.entries)
	}
	if !c.beginsRow(h) {
		return p, "it has a page that does not begin with a row", nil
	}
	if countsValues(l, dh) && !c.oneEntryPerRow(h) {
		p.rows = -1
	}
	return p, "", nil
}

// storedRange is a range of a file's bytes that is to be copied.
type storedRange struct {
	f         *File
	at        fault.At
	pos, size int64
	sum       uint64 // XXH3 of the bytes
	kept      []byte // the bytes; nil: they are read again
	heads     []bareHead
	cut       int64 // how many bytes shorter they are than those that they replace
}

// bareHead is written in place of bytes of a range.
type bareHead struct {
	at, size int64 // of those bytes, in the range
	b        []byte
}

// put writes bytes of the range, from at on, and the heads in their places. It is called for all
// bytes in order.
func (r *storedRange) put(s *sink, b []byte, at int64) error {
	for len(r.heads) > 0 {
		h := &r.heads[0]
		n := min(max(h.at-at, 0), int64(len(b)))
		if err := s.write(b[:n]); err != nil || n == int64(len(b)) {
			return err
		}
		if b, at = b[n:], at+n; at == h.at {
			if err := s.write(h.b); err != nil {
				return err
			}
		}
		n = min(h.at+h.size-at, int64(len(b)))
		if b, at = b[n:], at+n; at < h.at+h.size {
			return nil
		}
		r.heads = r.heads[1:]
	}
	return s.write(b)
}

// write copies the range. It fails if the bytes are not those that were summed.
func (r *storedRange) write(s *sink) error {
	if r.kept != nil {
		return r.put(s, r.kept, 0)
	}
	h := xxh3.New()
	buf := s.buffer(r.size)
	for done := int64(0); done < r.size; {
		b := buf[:min(int64(len(buf)), r.size-done)]
		if err := r.f.readFull(b, r.pos+done); err != nil {
			return s.fail(err)
		}
		_, _ = h.Write(b) // it does not fail
		if err := r.put(s, b, done); err != nil {
			return err
		}
		done += int64(len(b))
	}
	if h.Sum64() != r.sum {
		return s.fail(faults.Corrupt(r.at, "the column changed while it was copied").
			WithHint("try again when no other program writes the file"))
	}
	return nil
}

// hash reads the range and sets its sum. Bytes of a file over a network are kept
// instead: a Bloom filter is small.
func (r *storedRange) hash() error {
	if r.f.remote != nil {
		r.kept = make([]byte, r.size)
		return r.f.readFull(r.kept, r.pos)
	}
	h := xxh3.New()
	buf := make([]byte, min(checkPiece, r.size))
	for done := int64(0); done < r.size; {
		b := buf[:min(int64(len(buf)), r.size-done)]
		if err := r.f.readFull(b, r.pos+done); err != nil {
			return err
		}
		_, _ = h.Write(b)
		done += int64(len(b))
	}
	r.sum = h.Sum64()
	return nil
}

// storedFilter returns where the Bloom filter of a column chunk is stored with its header, or nil
// if there is none or its writer is not trusted.
func (f *File) storedFilter(rowGroup, leaf int) (*storedRange, error) {
	if !f.Metadata.BloomBelieved(&f.Leaves[leaf]) {
		return nil, nil
	}
	pos, head, size, err := f.findBloom(rowGroup, leaf)
	if err != nil && !unusable(err) {
		return nil, err
	}
	if err != nil || size == 0 {
		return nil, nil
	}
	r := &storedRange{f: f, at: f.at(rowGroup, leaf), pos: pos, size: head + size}
	return r, r.hash()
}
