package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// changing is a file whose reads are watched and that can change.
type changing struct {
	b       []byte
	largest int
}

func (c *changing) ReadAt(p []byte, off int64) (int, error) {
	c.largest = max(c.largest, len(p))
	return bytes.NewReader(c.b).ReadAt(p, off)
}

// manyPages returns a file of one column and two row groups, with several pages and
// an index each.
func manyPages(t testing.TB, rows, pageBytes int) []byte {
	t.Helper()
	var out bytes.Buffer
	schema := []meta.Element{
		{Name: "root", NumChildren: thrift.New(int32(1))},
		{Name: "x", Type: thrift.New(format.Int64), RepetitionType: thrift.New(format.Optional)},
	}
	w, err := NewWriter(&out, schema, nil, WriterOptions{PageBytes: pageBytes})
	if err != nil {
		t.Fatal(err)
	}
	for g := range 2 {
		p := Page{Values: rows, Rows: rows, NonNull: rows, Def: bytes.Repeat([]byte{1}, rows)}
		for i := range rows {
			p.Plain = binary.LittleEndian.AppendUint64(p.Plain, uint64(g*rows+i)*0x9e3779b97f4a7c15)
		}
		cw := w.Chunk(0)
		if err := cw.Add(&p, nil); err != nil {
			t.Fatal(err)
		}
		e, err := cw.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.RowGroup(int64(rows), []*EncodedChunk{e}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestCopyChanged: bytes that change between the check of a chunk and its copy are
// an error, and so is a file that ends early; the output cannot be completed then.
func TestCopyChanged(t *testing.T) {
	whole := manyPages(t, 5000, 4<<10)
	for what, change := range map[string]func(c *changing){
		"a value": func(c *changing) { c.b[len(c.b)/4] ^= 1 },
		"the end": func(c *changing) { c.b = c.b[:len(c.b)/4] },
	} {
		src := &changing{b: bytes.Clone(whole)}
		f, err := Open(nil, src, int64(len(whole)), "input")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w, err := NewWriter(&out, f.Metadata.Schema, nil, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e, why, err := w.CopyChunk(context.Background(), f, 0, 0, 0, CopyOptions{})
		if err != nil || why != "" {
			t.Fatal(why, err)
		}
		change(src)
		err = w.RowGroup(5000, []*EncodedChunk{e})
		if !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), "input") {
			t.Errorf("%s changed: %v", what, err)
		}
		if _, _, again := w.Close(); again == nil {
			t.Errorf("%s changed: the output was completed", what)
		}
	}
}

// TestCopyPieces: no matter how large a chunk or a page is, it is read in bounded
// pieces, and nothing of it is held.
func TestCopyPieces(t *testing.T) {
	in := manyPages(t, 1<<20, 5<<20)
	src := &changing{b: in}
	f, err := Open(nil, src, int64(len(in)), "input")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, f.Metadata.Schema, nil, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for g := range 2 {
		e, why, err := w.CopyChunk(context.Background(), f, g, 0, 0, CopyOptions{})
		if err != nil || why != "" || e.Size() != 0 || e.Bytes() < 8<<20 {
			t.Fatal(why, err)
		}
		if err := w.RowGroup(1<<20, []*EncodedChunk{e}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if src.largest > copyPiece || w.Pool().Held() > 0 {
		t.Errorf("a read of %d bytes, %d held", src.largest, w.Pool().Held())
	}
	if !bytes.Equal(out.Bytes(), in) {
		t.Error("a copy of all chunks of one of our files differs from it")
	}
}

// TestCopyMapped: chunks of a mapped file are read through the mapping, which is
// released, and written without it.
func TestCopyMapped(t *testing.T) {
	const rows = 20_000
	in := manyPages(t, rows, 4<<10)
	f, err := openBytes(in, "input")
	if err != nil {
		t.Fatal(err)
	}
	passed := int64(0)
	mapped := bytes.Clone(in)
	mapBytes(t, f, &Mapping{Bytes: mapped, Passed: func(lo, hi int64) { passed += hi - lo }})
	var out bytes.Buffer
	w, err := NewWriter(&out, f.Metadata.Schema, nil, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for g := range 2 {
		e, why, err := w.CopyChunk(context.Background(), f, g, 0, 0, CopyOptions{})
		if err != nil || why != "" {
			t.Fatal(why, err)
		}
		clear(mapped[:f.RowGroups[0].CompressedBytes]) // as if it were unmapped
		if err := w.RowGroup(rows, []*EncodedChunk{e}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), in) {
		t.Error("the copy differs")
	}
	if want := f.RowGroups[0].CompressedBytes + f.RowGroups[1].CompressedBytes; passed != want {
		t.Errorf("%d bytes released, want %d", passed, want)
	}
}

// change returns a file with a changed footer.
func change(t testing.TB, in []byte, f func(m *meta.Footer)) []byte {
	t.Helper()
	n := int(binary.LittleEndian.Uint32(in[len(in)-tailSize:]))
	m, err := decodeFooter(in[len(in)-tailSize-n : len(in)-tailSize])
	if err != nil {
		t.Fatal(err)
	}
	f(m)
	footer, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return appendFooter(bytes.Clone(in[:len(in)-tailSize-n]), footer)
}

// TestCopyWriters: statistics, column indexes and Bloom filters are copied only from
// writers that are known to get them right; files of some writers are not copied whole.
func TestCopyWriters(t *testing.T) {
	numbers := manyPages(t, 5000, 4<<10)
	indexed, err := os.ReadFile("testdata/data_index_bloom_encoding_stats.parquet") // parquet-rs, strings
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in             []byte
		by             string
		why            string
		Bounds, filter bool
	}{
		{numbers, "bloomjoin", "", true, false},
		{numbers, "parquet-mr version 1.12.0 (build x)", "", true, false},
		{numbers, "parquet-mr version 1.2.8", "understated", false, false},
		{numbers, "hyparquet", "", false, false},
		{numbers, "fastparquet-python version 2024.2.0", "pads pages", false, false},
		{numbers, "some other program", "", true, false},
		{indexed, "parquet-rs version 40.0.0", "", true, true},
		{indexed, "parquet-rs version 5.0.0", "", false, true}, // compares strings by length
		{indexed, "some other program", "", false, true},
		{indexed, "parquet-go version 18.0.0", "", true, false}, // Bloom filters of freed memory
	} {
		in := change(t, c.in, func(m *meta.Footer) {
			m.CreatedBy = c.by
			if m.ColumnOrders == nil {
				m.ColumnOrders = []format.ColumnOrder{{Value: &format.TypeDefinedOrder{}}}
			}
		})
		n := copies{whys: map[string]int{}}
		f, err := openBytes(in, c.by)
		if err != nil {
			t.Fatal(err)
		}
		out, err := copyWhole(f, sameCodec(f), &n)
		if err != nil {
			t.Fatal(c.by, err)
		}
		if got := fmt.Sprint(n.whys); (len(n.whys) > 0) != (c.why != "") || !strings.Contains(got, c.why) {
			t.Errorf("%s: %s", c.by, got)
		}
		if c.why != "" {
			continue
		}
		checkCopy(t, c.by, in, out)
		o, err := openBytes(out, c.by)
		if err != nil {
			t.Fatal(err)
		}
		chunk := &o.Metadata.RowGroups[0].Columns[0]
		indexed := chunk.ColumnIndexOffset > 0
		if s := &chunk.MetaData.Statistics; s.MinValue.Valid && !c.Bounds || indexed && !c.Bounds || c.Bounds && !s.MinValue.Valid && !indexed {
			t.Errorf("%s: statistics %v, column index %v", c.by, s.MinValue, indexed)
		}
		if got := chunk.MetaData.BloomFilterOffset > 0; got != c.filter {
			t.Errorf("%s: a Bloom filter: %v", c.by, got)
		}
		if c.by == "hyparquet" && chunk.MetaData.Statistics.NullCount.Valid {
			t.Errorf("%s: a number of NULLs", c.by)
		}
	}
}

// TestCopyOrders: bounds are left out if the file declares no order, or the output's
// column has another one.
func TestCopyOrders(t *testing.T) {
	in := manyPages(t, 500, 1<<10)
	undeclared := change(t, in, func(m *meta.Footer) { m.ColumnOrders = nil })
	unsigned := func(e *meta.Element) {
		e.LogicalType = thrift.New(format.LogicalType{Value: &format.IntType{BitWidth: 64}})
	}
	for what, c := range map[string]struct {
		in     []byte
		change func(e *meta.Element)
		Bounds bool
	}{
		"as it was":       {in, nil, true},
		"undeclared":      {undeclared, nil, false},
		"unsigned output": {in, unsigned, false},
	} {
		f, err := openBytes(c.in, what)
		if err != nil {
			t.Fatal(err)
		}
		schema := slices.Clone([]meta.Element(f.Metadata.Schema))
		if c.change != nil {
			c.change(&schema[1])
		}
		w, err := NewWriter(new(bytes.Buffer), schema, nil, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e, why, err := w.CopyChunk(context.Background(), f, 0, 0, 0, CopyOptions{})
		if err != nil || why != "" {
			t.Fatal(why, err)
		}
		if e.stats.MinValue.Valid != c.Bounds || e.index.bounded() != c.Bounds || e.stats.NullCount.V != 0 || !e.stats.NullCount.Valid {
			t.Errorf("%s: %+v, indexed %v", what, e.stats, e.index.bounded())
		}
	}
}

// TestCopyFloatBounds: bounds of floats are copied only from writers that write none if there is a
// NaN. The copy names this program as its writer, whose bounds say that there is no NaN.
func TestCopyFloatBounds(t *testing.T) {
	const rows = 600
	schema := []meta.Element{
		{Name: "root", NumChildren: thrift.New(int32(2))},
		{Name: "f", Type: thrift.New(format.Float), RepetitionType: thrift.New(format.Required)},
		{Name: "d", Type: thrift.New(format.Double), RepetitionType: thrift.New(format.Required)},
	}
	file := func(nan int) []byte { // a row, or -1
		t.Helper()
		var out bytes.Buffer
		w, err := NewWriter(&out, schema, nil, WriterOptions{PageBytes: 1 << 10})
		if err != nil {
			t.Fatal(err)
		}
		pages := [2]Page{{Values: rows, Rows: rows, NonNull: rows}, {Values: rows, Rows: rows, NonNull: rows}}
		for i := range rows {
			v := float64(i*7%rows) + 1
			if i == nan {
				v = math.NaN()
			}
			pages[0].Plain = binary.LittleEndian.AppendUint32(pages[0].Plain, math.Float32bits(float32(v)))
			pages[1].Plain = binary.LittleEndian.AppendUint64(pages[1].Plain, math.Float64bits(v))
		}
		var chunks []*EncodedChunk
		for i := range pages {
			cw := w.Chunk(i)
			if err := cw.Add(&pages[i], nil); err != nil {
				t.Fatal(err)
			}
			e, err := cw.Finish()
			if err != nil {
				t.Fatal(err)
			}
			chunks = append(chunks, e)
		}
		if err := w.RowGroup(rows, chunks); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	without, with := file(-1), file(rows/2)
	f, err := openBytes(with, "with NaN")
	if err != nil {
		t.Fatal(err)
	}
	for l := range f.Leaves {
		if f.Metadata.RowGroups[0].Columns[l].MetaData.Statistics.MinValue.Valid {
			t.Errorf("column %s has a NaN and bounds", f.Leaves[l].Dotted)
		}
	}
	for _, c := range []struct {
		by     string
		Bounds bool
	}{
		{"bloomjoin", true},
		{"parquet-mr version 1.13.1 (build x)", true},
		{"parquet-cpp-arrow version 15.0.0", false},
		{"parquet-cpp-arrow version 20.0.0", false},
		{"parquet-rs version 50.0.0", false},
		{"parquet-go version 18.4.0", false},
		{"github.com/parquet-go/parquet-go version 0.32.0(build )", false},
		{"DuckDB version v1.2.0 (build x)", false},
		{"some other program", false},
	} {
		ins := map[string][]byte{"without NaN": change(t, without, func(m *meta.Footer) { m.CreatedBy = c.by })}
		if !c.Bounds { // the bounds of the other values, as the format asks for
			ins["with NaN"] = change(t, with, func(m *meta.Footer) {
				m.CreatedBy = c.by
				for l, most := range [][]byte{
					binary.LittleEndian.AppendUint32(nil, math.Float32bits(rows)), binary.LittleEndian.AppendUint64(nil, math.Float64bits(rows)),
				} {
					s := &m.RowGroups[0].Columns[l].MetaData.Statistics
					s.MinValue, s.MaxValue = thrift.New(make([]byte, len(most))), thrift.New(most)
				}
			})
		}
		for what, in := range ins {
			f, err := openBytes(in, what)
			if err != nil {
				t.Fatal(err)
			}
			w, err := NewWriter(new(bytes.Buffer), schema, nil, WriterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for l := range f.Leaves {
				e, why, err := w.CopyChunk(context.Background(), f, 0, l, l, CopyOptions{})
				if err != nil || why != "" {
					t.Fatal(why, err)
				}
				if e.stats.MinValue.Valid != c.Bounds || e.stats.MaxValue.Valid != c.Bounds || e.index.bounded() != c.Bounds {
					t.Errorf("%s, column %s %s: bounds %v, indexed %v, want %v", c.by, f.Leaves[l].Dotted, what, e.stats.MinValue.Valid, e.index.bounded(), c.Bounds)
				}
			}
		}
	}
}

// TestCopyMixed: a row group can have chunks that were copied and chunks that were
// encoded.
func TestCopyMixed(t *testing.T) {
	for name, in := range copyInputs(t) {
		f, err := openBytes(in, name)
		if err != nil || len(f.Leaves) < 2 || f.Metadata.NumRows == 0 || whole(f) != nil {
			continue
		}
		var out bytes.Buffer
		w, err := NewWriter(&out, f.Metadata.Schema, f.Metadata.ColumnOrders, sameCodec(f))
		if err != nil {
			t.Fatal(err)
		}
		for g := range f.RowGroups {
			if f.RowGroups[g].Rows == 0 {
				continue
			}
			chunks := make([]*EncodedChunk, len(f.Leaves))
			for l := range chunks {
				why := "every other"
				if l%2 == 0 {
					chunks[l], why, err = w.CopyChunk(context.Background(), f, g, l, l, CopyOptions{})
				}
				if why != "" && err == nil {
					chunks[l], err = encodeAgain(w, f, g, l)
				}
				if err != nil {
					t.Fatal(name, err)
				}
			}
			if err := w.RowGroup(f.RowGroups[g].Rows, chunks); err != nil {
				t.Fatal(name, err)
			}
		}
		if _, _, err := w.Close(); err != nil {
			t.Fatal(name, err)
		}
		checkCopy(t, name, in, out.Bytes())
	}
}

// TestCopyPlaces: a chunk is found whether its dictionary page's offset is given, 0,
// or the data page's; bytes that belong to no page keep it from being copied whole.
func TestCopyPlaces(t *testing.T) {
	in, err := os.ReadFile("testdata/alltypes_plain.snappy.parquet")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		change func(md *meta.ColumnMetaData)
		why    bool
	}{
		"as it was":            {func(*meta.ColumnMetaData) {}, false},
		"no dictionary offset": {func(md *meta.ColumnMetaData) { md.DataPageOffset, md.DictionaryPageOffset = chunkStart(md), 0 }, false},
		"one more byte":        {func(md *meta.ColumnMetaData) { md.TotalCompressedSize++ }, true},
		"wrong size":           {func(md *meta.ColumnMetaData) { md.TotalUncompressedSize *= 3 }, false},
	} {
		b := change(t, in, func(m *meta.Footer) {
			m.CreatedBy = "parquet-cpp-arrow version 20.0.0"
			for i := range m.RowGroups[0].Columns {
				c.change(&m.RowGroups[0].Columns[i].MetaData)
			}
		})
		f, err := openBytes(b, what)
		if err != nil {
			t.Fatal(err)
		}
		n := copies{whys: map[string]int{}}
		out, err := copyWhole(f, sameCodec(f), &n)
		if err != nil {
			t.Fatal(what, err)
		}
		if c.why != (n.whys["bytes follow its last page"] == len(f.Leaves)) || c.why == (n.whole == len(f.Leaves)) {
			t.Errorf("%s: %+v", what, n)
		}
		checkCopy(t, what, b, out)
	}
}
