package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// modelColumn is the test's own representation of a column: a path of nodes, the
// entries of all row groups, and how its input is stored.
type modelColumn struct {
	statsCase
	nodes   []format.FieldRepetitionType // above the leaf, and the leaf's own
	maxDef  int
	maxRep  int
	groups  [][]input
	useDict bool
}

// input is a sequence of entries as in an input chunk: coded or in one encoding. It
// may begin and end within a row.
type input struct {
	rep, def []uint8
	values   [][]byte // PLAIN, byte arrays without their length
	coded    bool
	encoding format.Encoding
	dict     *Dictionary
	indices  []uint32
}

// modelCases returns the types in the tests of bounds, with few distinct values or
// with many.
func modelCases() []statsCase {
	var out []statsCase
	for _, c := range statsCases() {
		draw := c.values
		out = append(out, c)
		few := c
		few.name += " few"
		few.values = func(rng *rand.Rand) []byte {
			return draw(rand.New(rand.NewPCG(uint64(rng.IntN(12)), 1)))
		}
		out = append(out, few)
	}
	return out
}

// encodingsOf returns the possible encodings of a leaf's type.
func encodingsOf(l *meta.Leaf) []format.Encoding {
	out := []format.Encoding{format.Plain}
	for _, e := range []format.Encoding{format.RLE, format.DeltaBinaryPacked, format.DeltaLengthByteArray, format.DeltaByteArray, format.ByteStreamSplit} {
		if enc.CanEncode(l.Type, l.Width(), e) {
			out = append(out, e)
		}
	}
	return out
}

// model is a table.
type model struct {
	columns []*modelColumn
	rows    []int // per row group
}

func newModel(rng *rand.Rand, columns, groups, rows int) *model {
	m := new(model)
	for range groups {
		m.rows = append(m.rows, 1+rng.IntN(rows))
	}
	cases := modelCases()
	for range columns {
		c := &modelColumn{statsCase: cases[rng.IntN(len(cases))], useDict: rng.IntN(4) == 0}
		for range 1 + rng.IntN(3) {
			r := []format.FieldRepetitionType{format.Required, format.Optional, format.Repeated}[rng.IntN(3)]
			c.nodes = append(c.nodes, r)
			if r != format.Required {
				c.maxDef++
			}
			if r == format.Repeated {
				c.maxRep++
			}
		}
		leaf := c.bareLeaf()
		for _, n := range m.rows {
			c.groups = append(c.groups, c.inputs(rng, leaf, n))
		}
		m.columns = append(m.columns, c)
	}
	return m
}

func (c *modelColumn) bareLeaf() *meta.Leaf {
	return &meta.Leaf{Type: c.typ, TypeLength: c.length, MaxDef: c.maxDef, MaxRep: c.maxRep}
}

func (m *model) schema() []meta.Element {
	root := meta.Element{Name: "schema"}
	root.NumChildren.Set(int32(len(m.columns)))
	out := []meta.Element{root}
	for i, c := range m.columns {
		for depth, r := range c.nodes {
			e := meta.Element{Name: fmt.Sprintf("n%d", depth)}
			e.NumChildren.Set(1)
			if depth == len(c.nodes)-1 {
				e = c.leaf()
			}
			if depth == 0 {
				e.Name = fmt.Sprintf("c%d", i)
				e.FieldID.Set(int32(100 + i))
			}
			e.RepetitionType.Set(r)
			out = append(out, e)
		}
	}
	return out
}

// row draws the levels of one row, and its values.
func (c *modelColumn) row(rng *rand.Rand, nulls int, in *input) {
	var walk func(depth int, rep, next, def uint8)
	walk = func(depth int, rep, next, def uint8) {
		if depth == len(c.nodes) {
			in.rep, in.def = append(in.rep, rep), append(in.def, def)
			in.values = append(in.values, c.values(rng))
			return
		}
		switch c.nodes[depth] {
		case format.Required:
			walk(depth+1, rep, next, def)
			return
		case format.Repeated:
			next++
		}
		n := 1
		if rng.IntN(100) < nulls {
			n = 0
		} else if c.nodes[depth] == format.Repeated {
			n = 1 + rng.IntN(5)
		}
		if n == 0 {
			in.rep, in.def = append(in.rep, rep), append(in.def, def)
		}
		for range n {
			walk(depth+1, rep, next, def+1)
			rep = next
		}
	}
	walk(0, 0, 0, 0)
}

// inputs draws rows and divides them like input chunks.
func (c *modelColumn) inputs(rng *rand.Rand, leaf *meta.Leaf, rows int) []input {
	var all input
	nulls := []int{0, 10, 90, 100}[rng.IntN(4)]
	for range rows {
		c.row(rng, nulls, &all)
	}
	var cuts []int
	for range rng.IntN(4) {
		cuts = append(cuts, rng.IntN(len(all.def)+1))
	}
	slices.Sort(cuts)
	encodings := encodingsOf(leaf)
	mostly := rng.IntN(3) // coded, plain, both
	var out []input
	from, value := 0, 0
	for _, to := range append(cuts, len(all.def)) {
		in := input{rep: all.rep[from:to], def: all.def[from:to], encoding: encodings[rng.IntN(len(encodings))]}
		n := bytes.Count(in.def, []byte{uint8(c.maxDef)})
		in.values = all.values[value : value+n]
		if c.typ != format.Boolean && (mostly == 0 || mostly == 2 && rng.IntN(2) == 0) {
			in.code(rng, leaf)
		}
		out = append(out, in)
		from, value = to, value+n
	}
	return out
}

// code makes a dictionary in random order, with some unused entries.
func (in *input) code(rng *rand.Rand, leaf *meta.Leaf) {
	var entries [][]byte
	numbers := map[string]uint32{}
	unused := make([]byte, max(leaf.Width(), 1))
	for i := range unused {
		unused[i] = 0xee
	}
	for _, v := range in.values {
		if rng.IntN(20) == 0 {
			entries = append(entries, unused)
		}
		if _, ok := numbers[string(v)]; !ok || rng.IntN(50) == 0 { // some are duplicated
			numbers[string(v)] = uint32(len(entries))
			entries = append(entries, v)
		}
		in.indices = append(in.indices, numbers[string(v)])
	}
	in.coded = true
	in.encoding = format.RLEDictionary
	in.dict = &Dictionary{Len: len(entries), Plain: plainOf(leaf, entries)}
	if leaf.Type == format.ByteArray {
		in.dict.offsets = byteArrayOffsets(nil, in.dict.Plain, len(entries))
	}
}

// page returns the page of entries [from, to), whose first value has the given
// index.
func (in *input) page(leaf *meta.Leaf, from, to, value int) (*Page, int) {
	p := &Page{Values: to - from, Encoding: in.encoding, Coded: in.coded}
	if leaf.MaxDef > 0 {
		p.Def = slices.Clone(in.def[from:to])
	}
	if leaf.MaxRep > 0 {
		p.Rep = slices.Clone(in.rep[from:to])
	}
	p.Rows = bytes.Count(in.rep[from:to], []byte{0})
	p.NonNull = bytes.Count(in.def[from:to], []byte{uint8(leaf.MaxDef)})
	if in.coded {
		p.Indices = slices.Clone(in.indices[value : value+p.NonNull])
	} else {
		p.Plain = plainOf(leaf, in.values[value:value+p.NonNull])
	}
	return p, value + p.NonNull
}

// write writes the table. Pages have up to step entries.
func (m *model) write(rng *rand.Rand, step int, opts WriterOptions) ([]byte, error) {
	var out bytes.Buffer
	w, err := NewWriter(&out, m.schema(), nil, opts)
	if err != nil {
		return nil, err
	}
	for g, rows := range m.rows {
		chunks := make([]*EncodedChunk, len(m.columns))
		for i, c := range m.columns {
			cw := w.Chunk(i)
			if c.useDict {
				cw.UseDictionary()
			}
			for _, in := range c.groups[g] {
				for from, value := 0, 0; from < len(in.def); {
					to := min(from+1+rng.IntN(step), len(in.def))
					var p *Page
					p, value = in.page(&w.leaves[i], from, to, value)
					if err := cw.Add(p, in.dict); err != nil {
						return nil, err
					}
					p.scribble()
					from = to
				}
			}
			if chunks[i], err = cw.Finish(); err != nil {
				return nil, err
			}
		}
		if err := w.RowGroup(int64(rows), chunks); err != nil {
			return nil, err
		}
	}
	_, _, err = w.Close()
	return out.Bytes(), err
}

// scribble overwrites everything that the writer must have copied.
func (p *Page) scribble() {
	for _, b := range [][]byte{p.Rep, p.Def, p.Plain} {
		for i := range b {
			b[i] = 0xdd
		}
	}
	clear(p.Indices)
}

// entries renders entries of a column for comparison.
func entries(rep, def []uint8, maxDef int, value func(i int) []byte, dst []string) []string {
	n := 0
	for i := range def {
		s := fmt.Sprintf("%d %d", rep[i], def[i])
		if int(def[i]) == maxDef {
			s += fmt.Sprintf(" %x", value(n))
			n++
		}
		dst = append(dst, s)
	}
	return dst
}

// want returns the column's entries in one row group.
func (c *modelColumn) want(g int) (out []string) {
	for _, in := range c.groups[g] {
		out = entries(in.rep, in.def, c.maxDef, func(i int) []byte { return in.values[i] }, out)
	}
	return out
}

// readPage is a page as read back: its entries, values and position.
type readPage struct {
	entries []string
	values  [][]byte
	indices []uint32
	coded   bool
	offset  int64
	rows    int
	nulls   int
}

func readBack(t testing.TB, f *File, g, l int) (pages []readPage, dict *Dictionary) {
	c := f.Chunk(g, l)
	defer c.Close()
	leaf := &f.Leaves[l]
	for {
		p, err := c.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return pages, c.Dictionary()
		}
		if err != nil {
			t.Fatal(err)
		}
		r := readPage{coded: p.Coded, offset: p.Offset, rows: p.Rows, nulls: p.Values - p.NonNull, indices: slices.Clone(p.Indices)}
		for i := range p.NonNull {
			r.values = append(r.values, slices.Clone(valueOf(leaf, p, c.Dictionary(), i)))
		}
		rep, def := p.Rep, p.Def
		if rep == nil {
			rep = make([]uint8, p.Values)
		}
		if def == nil {
			def = make([]uint8, p.Values)
		}
		r.entries = entries(rep, def, leaf.MaxDef, func(i int) []byte { return r.values[i] }, nil)
		pages = append(pages, r)
	}
}

// valueOf returns value i of a page, a boolean as one byte.
func valueOf(l *meta.Leaf, p *Page, dict *Dictionary, i int) []byte {
	if l.Type == format.ByteArray {
		return p.Bytes(i, dict)
	}
	if l.Type == format.Boolean {
		return []byte{p.Plain[i/8] >> (i % 8) & 1}
	}
	from, w := p.Plain, l.Width()
	if p.Coded {
		i, from = int(p.Indices[i]), dict.Plain
	}
	return from[i*w : (i+1)*w]
}

// verify reads a file and compares it with the table it was written from.
func (m *model) verify(t testing.TB, b []byte, opts WriterOptions) *File {
	f, err := Open(nil, bytes.NewReader(b), int64(len(b)), "written")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.RowGroups) != len(m.rows) {
		t.Fatalf("%d row groups, not %d", len(f.RowGroups), len(m.rows))
	}
	for g, rows := range m.rows {
		decoded := &f.Metadata.RowGroups[g]
		if decoded.NumRows != int64(rows) || int(decoded.Ordinal.V) != g {
			t.Fatalf("row group %d has %d rows and ordinal %d", g, decoded.NumRows, decoded.Ordinal.V)
		}
		var packed, unpacked int64
		for i, c := range m.columns {
			pages, dict := readBack(t, f, g, i)
			var got []string
			for _, p := range pages {
				got = append(got, p.entries...)
			}
			if want := c.want(g); !slices.Equal(got, want) {
				t.Fatalf("column %d, %s: %d entries, not the %d written", i, c.name, len(got), len(want))
			}
			chunk := &decoded.Columns[i]
			checkChunkMeta(t, b, chunk, pages, dict)
			checkDictionary(t, &f.Leaves[i], pages, dict, opts)
			c.checkStatistics(t, chunk, pages)
			c.checkIndex(t, b, chunk, pages)
			packed += chunk.MetaData.TotalCompressedSize
			unpacked += chunk.MetaData.TotalUncompressedSize
		}
		if decoded.TotalCompressedSize != packed || decoded.TotalByteSize != unpacked || decoded.FileOffset <= 0 {
			t.Fatalf("row group %d: sizes %d %d, not %d %d", g, decoded.TotalCompressedSize, decoded.TotalByteSize, packed, unpacked)
		}
	}
	return f
}

// checkChunkMeta compares a chunk's metadata with its page headers.
func checkChunkMeta(t testing.TB, b []byte, c *meta.ColumnChunk, pages []readPage, dict *Dictionary) {
	t.Helper()
	md := &c.MetaData
	pos := md.DataPageOffset
	if dict != nil {
		pos = md.DictionaryPageOffset
	} else if md.DictionaryPageOffset != 0 {
		t.Fatalf("a dictionary page at %d that is not there", md.DictionaryPageOffset)
	}
	start := pos
	unpacked := int64(0)
	kinds := map[[2]int32]int32{}
	encodings := map[format.Encoding]bool{}
	for n := 0; pos < start+md.TotalCompressedSize; {
		var h meta.PageHeader
		size, err := meta.Decode(b[pos:], &h)
		if err != nil {
			t.Fatal(err)
		}
		if !h.CRC.Valid {
			t.Fatal("a page without checksum")
		}
		if known, err := thrift.Marshal(new(thrift.CompactProtocol), &h); err != nil || !bytes.Equal(known, b[pos:pos+int64(size)]) {
			t.Fatalf("a page header that says more than its fields here: %x, %v", b[pos:pos+int64(size)], err)
		}
		e := h.DataPageHeader.V.Encoding
		switch {
		case h.Type == format.DictionaryPage:
			e = h.DictionaryPageHeader.V.Encoding
		case pos != pages[n].offset || n == 0 && pos != md.DataPageOffset:
			t.Fatalf("page %d at %d, not %d", n, pos, pages[n].offset)
		default:
			n++
		}
		kinds[[2]int32{int32(h.Type), int32(e)}]++
		encodings[e] = true
		pos += int64(size) + int64(h.CompressedPageSize)
		unpacked += int64(size) + int64(h.UncompressedPageSize)
	}
	if pos != start+md.TotalCompressedSize || unpacked != md.TotalUncompressedSize {
		t.Fatalf("%d bytes, %d unpacked; the footer says %d, %d", pos-start, unpacked, md.TotalCompressedSize, md.TotalUncompressedSize)
	}
	for _, k := range md.EncodingStats {
		key := [2]int32{int32(k.PageType), int32(k.Encoding)}
		if kinds[key] != k.Count {
			t.Fatalf("encoding stats %v: %d pages", k, kinds[key])
		}
		delete(kinds, key)
	}
	for _, e := range md.Encodings {
		delete(encodings, e)
	}
	if len(kinds) > 0 || len(encodings) > 0 {
		t.Fatalf("pages %v or encodings %v that the footer does not name", kinds, encodings)
	}
}

// checkDictionary checks that the dictionary has exactly the values in use, once
// each, in order of first use, and that no coded page follows a plain one.
func checkDictionary(t testing.TB, l *meta.Leaf, pages []readPage, dict *Dictionary, opts WriterOptions) {
	t.Helper()
	next := uint32(0)
	left := false
	for _, p := range pages {
		if p.coded && left {
			t.Fatal("a page by the dictionary behind a plain one")
		}
		left = left || !p.coded && len(p.values) > 0
		for _, i := range p.indices {
			if i > next {
				t.Fatalf("entry %d is used before entry %d", i, next)
			}
			next = max(next, i+1)
		}
	}
	if dict == nil {
		if next > 0 {
			t.Fatal("no dictionary")
		}
		return
	}
	if int(next) != dict.Len || len(dict.Plain) > opts.DictBytes && opts.DictBytes > 0 {
		t.Fatalf("a dictionary of %d entries, %d bytes; %d are used", dict.Len, len(dict.Plain), next)
	}
	seen := map[string]bool{}
	for i := range dict.Len {
		v, _ := dict.value(uint32(i), l.Width())
		if seen[string(v)] {
			t.Fatalf("value %x is twice in the dictionary", v)
		}
		seen[string(v)] = true
	}
}

func (c *modelColumn) checkStatistics(t testing.TB, chunk *meta.ColumnChunk, pages []readPage) {
	t.Helper()
	var all [][]byte
	nulls, values := 0, 0
	for _, p := range pages {
		all = append(all, p.values...)
		nulls += p.nulls
		values += len(p.entries)
	}
	s := &chunk.MetaData.Statistics
	if !s.NullCount.Valid || s.NullCount.V != int64(nulls) || chunk.MetaData.NumValues != int64(values) {
		t.Fatalf("%s: statistics with %d nulls of %d entries, not %d of %d", c.name, s.NullCount.V, chunk.MetaData.NumValues, nulls, values)
	}
	if s.Min.Valid || s.Max.Valid || s.DistinctCount.Valid || s.MinValue.Valid != s.MaxValue.Valid {
		t.Fatalf("%s: statistics %v", c.name, s)
	}
	lo, hi, ok := c.extremesOf(all)
	if !ok {
		if s.MinValue.Valid && c.less != nil {
			t.Fatalf("%s: bounds %x %x of values without order", c.name, s.MinValue.V, s.MaxValue.V)
		}
		return
	}
	if !s.MinValue.Valid {
		if max(len(lo), len(hi)) <= meta.MaxBound {
			t.Fatalf("%s: no bounds, of %x %x", c.name, lo, hi)
		}
		return
	}
	c.checkHold(t, s.MinValue.V, s.MaxValue.V, lo, hi, meta.MaxBound)
	if e := s.IsMinValueExact; e.Valid && e.V != c.same(s.MinValue.V, lo) || !e.Valid && !c.same(s.MinValue.V, lo) {
		t.Fatalf("%s: the least value %x is said to be exact, for %x", c.name, s.MinValue.V, lo)
	}
	if e := s.IsMaxValueExact; e.Valid && e.V != c.same(s.MaxValue.V, hi) || !e.Valid && !c.same(s.MaxValue.V, hi) {
		t.Fatalf("%s: the greatest value %x is said to be exact, for %x", c.name, s.MaxValue.V, hi)
	}
}

// checkHold checks bounds of [lo, hi] that are shortened to limit bytes.
func (c *modelColumn) checkHold(t testing.TB, gotLo, gotHi, lo, hi []byte, limit int) {
	t.Helper()
	switch {
	case c.less(lo, gotLo) || c.less(gotHi, hi):
		t.Fatalf("%s: bounds %x %x do not hold %x %x", c.name, gotLo, gotHi, lo, hi)
	case len(lo) <= limit && !c.same(gotLo, lo) || len(hi) <= limit && !c.same(gotHi, hi):
		t.Fatalf("%s: bounds %x %x, not %x %x", c.name, gotLo, gotHi, lo, hi)
	}
}

// checkIndex compares the page index with the pages.
func (c *modelColumn) checkIndex(t testing.TB, b []byte, chunk *meta.ColumnChunk, pages []readPage) {
	t.Helper()
	var offsets format.OffsetIndex
	at := chunk.OffsetIndexOffset
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), b[at:at+int64(chunk.OffsetIndexLength)], &offsets); err != nil {
		t.Fatal(err)
	}
	if len(offsets.PageLocations) != len(pages) {
		t.Fatalf("%d pages in the offset index, not %d", len(offsets.PageLocations), len(pages))
	}
	row := 0
	end := chunk.MetaData.DataPageOffset
	for i, p := range pages {
		l := offsets.PageLocations[i]
		if l.Offset != p.offset || l.Offset != end || l.FirstRowIndex != int64(row) || p.entries[0][0] != '0' {
			t.Fatalf("page %d: %+v, at %d with row %d", i, l, p.offset, row)
		}
		row += p.rows
		end += int64(l.CompressedPageSize)
	}
	if chunk.ColumnIndexLength == 0 {
		c.checkNoIndex(t, pages)
		return
	}
	var index format.ColumnIndex
	at = chunk.ColumnIndexOffset
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), b[at:at+int64(chunk.ColumnIndexLength)], &index); err != nil {
		t.Fatal(err)
	}
	if n := len(pages); len(index.NullPages) != n || len(index.NullCounts) != n || len(index.MinValues) != n || len(index.MaxValues) != n {
		t.Fatal("a column index of another number of pages")
	}
	up, down, last := true, true, -1
	for i, p := range pages {
		if index.NullCounts[i] != int64(p.nulls) || index.NullPages[i] != (len(p.values) == 0) {
			t.Fatalf("page %d: %d nulls, NULL page %v", i, index.NullCounts[i], index.NullPages[i])
		}
		if len(p.values) == 0 {
			continue
		}
		lo, hi, ok := c.extremesOf(p.values)
		if !ok && c.less != nil {
			t.Fatalf("page %d: bounds of values without order", i)
		}
		if ok {
			c.checkHold(t, index.MinValues[i], index.MaxValues[i], lo, hi, maxIndexBound)
		}
		if last >= 0 && c.less != nil {
			up = up && !c.less(index.MinValues[i], index.MinValues[last]) && !c.less(index.MaxValues[i], index.MaxValues[last])
			down = down && !c.less(index.MinValues[last], index.MinValues[i]) && !c.less(index.MaxValues[last], index.MaxValues[i])
		}
		last = i
	}
	want := format.Unordered
	if up {
		want = format.Ascending
	} else if down {
		want = format.Descending
	}
	if index.BoundaryOrder != want && c.less != nil {
		t.Fatalf("%s: pages %v, not %v", c.name, index.BoundaryOrder, want)
	}
}

// checkNoIndex checks that there is a reason for the column index to be missing.
func (c *modelColumn) checkNoIndex(t testing.TB, pages []readPage) {
	t.Helper()
	if c.less == nil {
		return
	}
	for _, p := range pages {
		_, hi, ok := c.extremesOf(p.values)
		if len(p.values) > 0 && (!ok || len(hi) > maxIndexBound) {
			return
		}
	}
	t.Fatalf("%s: no column index", c.name)
}

var modelCodecs = []format.CompressionCodec{format.Uncompressed, format.Snappy, format.Gzip, format.Zstd, format.Brotli, format.Lz4Raw}

// writeModel writes a table in three ways that must give the same bytes, and
// verifies them.
func writeModel(t testing.TB, seed uint64) (*model, []byte, *File) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log("seed", seed)
		}
	}()
	rng := rand.New(rand.NewPCG(seed, 0))
	m := newModel(rng, 1+rng.IntN(4), 1+rng.IntN(3), []int{3, 60, 700}[rng.IntN(3)])
	opts := WriterOptions{
		Compression: enc.Compression{Codec: modelCodecs[rng.IntN(len(modelCodecs))]},
		PageBytes:   []int{1, 50, 400, 5000, 0}[rng.IntN(5)],
		DictBytes:   []int{1, 60, 1000, 0}[rng.IntN(4)],
	}
	if opts.PageBytes == 1 { // very many pages, which would be too slow with the slowest codecs
		opts.Compression.Codec = modelCodecs[rng.IntN(2)]
	}
	b, err := m.write(rng, 1<<30, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{1, 30} {
		again, err := m.write(rng, step, opts)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%d bytes, and %d by pages of %d entries, %v", len(b), len(again), step, err)
		}
	}
	return m, b, m.verify(t, b, opts)
}

func TestWriterModel(t *testing.T) {
	n := uint64(40)
	if testing.Short() {
		n = 20
	}
	for seed := range n {
		writeModel(t, seed)
	}
}

func FuzzWriter(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { writeModel(t, seed) })
}
