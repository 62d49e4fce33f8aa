package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// TestCopyDoubt: a page whose header does not fit its bytes is not copied as it is
// stored, although no checksum covers the header; reading it then reports what is
// wrong.
func TestCopyDoubt(t *testing.T) {
	integer := meta.Element{Type: thrift.New(format.Int64)}
	text := meta.Element{Type: thrift.New(format.ByteArray)}
	indices := []byte{1, 6, 0} // three times the first entry
	for what, f := range map[string]*File{
		"fewer bytes than values":                onePage(t, false, integer, format.Plain, nil, 0, make([]byte, 9*8), 10),
		"fewer bytes than values, byte arrays":   onePage(t, false, text, format.Plain, nil, 0, make([]byte, 9*4), 10),
		"more values than bytes, V2":             onePage(t, true, integer, format.Plain, nil, 0, make([]byte, 11*8), 10),
		"a dictionary of fewer bytes":            onePage(t, false, integer, format.RLEDictionary, make([]byte, 2*8), 3, indices, 3),
		"a dictionary of more bytes":             onePage(t, false, integer, format.RLEDictionary, make([]byte, 4*8), 3, indices, 3),
		"a dictionary of fewer bytes of strings": onePage(t, true, text, format.RLEDictionary, make([]byte, 2*4), 3, indices, 3),
	} {
		doubted(t, what, f, true)
	}

	var n copies
	f, err := openBytes(manyPages(t, 1000, 4<<10), "numbers")
	if err != nil {
		t.Fatal(err)
	}
	b, err := copyWhole(f, WriterOptions{Compression: enc.Compression{Codec: format.Snappy}}, &n)
	if err != nil {
		t.Fatal(err)
	}
	if f, err = openBytes(b, "snappy"); err != nil {
		t.Fatal(err)
	}
	c := f.Chunk(0, 0)
	h, at, err := c.readHeader()
	if err != nil {
		t.Fatal(err)
	}
	h.UncompressedPageSize++
	head, err := thrift.Marshal(new(thrift.CompactProtocol), h)
	if err != nil || int64(len(head)) != c.pos-at {
		t.Fatal(len(head), c.pos-at, err)
	}
	copy(b[at:], head)
	doubted(t, "another size than the compressed bytes state", f, true)

	in, err := os.ReadFile("testdata/writers/pyarrow-pages-v2.parquet")
	if err != nil {
		t.Fatal(err)
	}
	nullable := 0
	b = change(t, in, func(m *meta.Footer) {
		for i := range m.RowGroups[0].Columns {
			s := &m.RowGroups[0].Columns[i].MetaData.Statistics
			s.NullCount = thrift.New(s.NullCount.V + 1)
		}
	})
	if f, err = openBytes(b, "NULLs"); err != nil {
		t.Fatal(err)
	}
	for l := range f.Leaves {
		if f.Leaves[l].MaxDef > 0 {
			nullable++
			doubtedLeaf(t, "another number of NULLs", f, l, false)
		}
	}
	if nullable == 0 {
		t.Error("no leaf has NULLs")
	}
}

func doubted(t *testing.T, what string, f *File, corrupt bool) {
	t.Helper()
	doubtedLeaf(t, what, f, 0, corrupt)
}

// doubtedLeaf checks that a chunk is not copied as it is stored, and whether reading it
// is an error.
func doubtedLeaf(t *testing.T, what string, f *File, l int, corrupt bool) {
	t.Helper()
	w, err := NewWriter(io.Discard, f.Metadata.Schema, f.Metadata.ColumnOrders, sameCodec(f))
	if err != nil {
		t.Fatal(err)
	}
	if _, why, err := w.CopyChunk(t.Context(), f, 0, l, l, CopyOptions{}); why == "" || err != nil {
		t.Errorf("%s: leaf %d is copied: %q, %v", what, l, why, err)
	}
	if _, err = encodeAgain(w, f, 0, l); errors.Is(err, fault.ErrCorrupt) != corrupt {
		t.Errorf("%s: reading leaf %d: %v", what, l, err)
	}
}

// listPages returns a file of one repeated column with a V2 page for each list of
// repetition levels.
func listPages(t *testing.T, rows []int32, pages ...[]byte) *File {
	t.Helper()
	b, count := bytes.NewBufferString(magic), 0
	total := int64(0)
	for i, reps := range pages {
		var levels, plain []byte
		for _, rep := range reps {
			levels = append(levels, 2, rep) // a run of one
			plain = binary.LittleEndian.AppendUint32(plain, uint32(count))
			if count++; rep == 0 {
				total++
			}
		}
		def := []byte{byte(len(reps) << 1), 1}
		n := int32(len(levels) + len(def) + len(plain))
		head, err := thrift.Marshal(new(thrift.CompactProtocol), &meta.PageHeader{
			Type: format.DataPageV2, UncompressedPageSize: n, CompressedPageSize: n,
			DataPageHeaderV2: thrift.New(meta.DataPageHeaderV2{
				NumValues: int32(len(reps)), NumRows: rows[i],
				DefinitionLevelsByteLength: int32(len(def)), RepetitionLevelsByteLength: int32(len(levels)),
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range [][]byte{head, levels, def, plain} {
			b.Write(part)
		}
	}
	md := meta.ColumnMetaData{
		Type: format.Int32, PathInSchema: []string{"c"}, Encodings: []format.Encoding{format.Plain, format.RLE}, NumValues: int64(count),
		DataPageOffset: int64(len(magic)), TotalCompressedSize: int64(b.Len() - len(magic)), TotalUncompressedSize: int64(b.Len() - len(magic)),
	}
	m := meta.Footer{
		Version: 1, NumRows: total,
		Schema: []meta.Element{
			{Name: "root", NumChildren: thrift.New(int32(1))},
			{Name: "c", Type: thrift.New(format.Int32), RepetitionType: thrift.New(format.Repeated)},
		},
		RowGroups: []meta.RowGroup{{NumRows: total, TotalByteSize: md.TotalUncompressedSize, Columns: []meta.ColumnChunk{{MetaData: md}}}},
	}
	footer, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	f, err := openBytes(appendFooter(b.Bytes(), footer), "lists")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCopyWithinRow: V2 pages must begin with a row. A chunk with one that does not is
// not copied as it is stored, since readers find rows by the page index; and the end of a
// row that begins in an undecoded page is not lost.
func TestCopyWithinRow(t *testing.T) {
	doubted(t, "a page that begins within a row", listPages(t, []int32{3, 1}, []byte{0, 0, 0}, []byte{1, 0}), true)
	counting := func() *File { return listPages(t, []int32{3, 2}, []byte{0, 0, 0}, []byte{1, 0}) } // values, as old Arrow
	doubted(t, "a page that counts values as rows", counting(), false)

	c := counting().Chunk(0, 0)
	defer c.Close()
	c.Select([]uint32{0, 1, 2, 3})
	c.Undecoded()
	values := 0
	for {
		p, err := c.Next(t.Context())
		if errors.Is(err, fault.ErrCorrupt) && strings.Contains(err.Error(), "in the middle of a row") {
			break
		}
		if errors.Is(err, io.EOF) && values == 5 {
			break
		}
		if err != nil {
			t.Fatalf("%d of 5 values: %v", values, err)
		}
		values += p.Values
	}
}

// TestWrongRows: a repeated column must have as many rows as its row group. Only its levels
// show how many it has.
func TestWrongRows(t *testing.T) {
	for _, more := range []int64{-1, 0, 1, 100} {
		f := listPages(t, []int32{3, 1}, []byte{0, 0, 1, 0}, []byte{0, 1, 1})
		f.RowGroups[0].Rows += more
		c := f.Chunk(0, 0)
		var err error
		for err == nil {
			_, err = c.Next(t.Context())
		}
		c.Close()
		if more == 0 != errors.Is(err, io.EOF) || more != 0 != errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("a row group of %d rows, a column of 4: %v", 4+more, err)
		}
	}
}
