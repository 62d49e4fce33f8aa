package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// auditedPages are the values of a column of three pages; 0 stands for NULL.
var auditedPages = [][]int64{{1, 2, 0, 3}, {4, 0, 0, 9}, {0, 0}}

// audited is what a file says of auditedPages.
type audited struct {
	createdBy string
	rows      int64
	pages     []auditedHeader
	offsets   []format.PageLocation
	columns   thriftColumnIndex
	chunk     meta.Statistics
	lacks     int64 // a value that the Bloom filter does not have
	unordered bool  // the file declares no order of bounds
}

type auditedHeader struct {
	Type         format.PageType `thrift:"1,required"`
	Uncompressed int32           `thrift:"2,required"`
	Compressed   int32           `thrift:"3,required"`
	V1           thrift.Null[struct {
		NumValues  int32           `thrift:"1,required"`
		Encoding   format.Encoding `thrift:"2,required"`
		Def        format.Encoding `thrift:"3,required"`
		Rep        format.Encoding `thrift:"4,required"`
		Statistics meta.Statistics `thrift:"5,optional"`
	}] `thrift:"5,optional"`
	V2 thrift.Null[struct {
		NumValues  int32             `thrift:"1,required"`
		NumNulls   int32             `thrift:"2,required"`
		NumRows    int32             `thrift:"3,required"`
		Encoding   format.Encoding   `thrift:"4,required"`
		Def        int32             `thrift:"5,required"`
		Rep        int32             `thrift:"6,required"`
		Compressed thrift.Null[bool] `thrift:"7,optional"`
		Statistics meta.Statistics   `thrift:"8,optional"`
	}] `thrift:"8,optional"`
}

func long(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// file returns the file that says change of the pages.
func (x audited) file(t *testing.T, v2 bool, change func(*audited)) *File {
	t.Helper()
	marshal := func(v any) []byte {
		b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	x.createdBy, x.rows, x.pages, x.offsets = "parquet-mr version 1.13.0", 10, make([]auditedHeader, 3), make([]format.PageLocation, 3)
	stats := func(lo, hi, nulls int64) (s meta.Statistics) {
		if s.NullCount = thrift.New(nulls); lo > 0 {
			s.MinValue, s.MaxValue = thrift.New(long(lo)), thrift.New(long(hi))
			s.IsMinValueExact, s.IsMaxValueExact = thrift.New(true), thrift.New(true)
		}
		return s
	}
	each := []meta.Statistics{stats(1, 3, 1), stats(4, 9, 2), stats(0, 0, 2)}
	x.chunk = stats(1, 9, 5)
	bodies := make([][]byte, 3)
	filter, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: bloom.Hash{ID: bloom.XXH64}, Blocks: 4})
	if err != nil {
		t.Fatal(err)
	}
	for i, values := range auditedPages {
		var def, plain []byte
		nulls := int32(0)
		for _, v := range values {
			if v == 0 {
				nulls++
				def = enc.AppendRun(def, 0, 1, 1)
				continue
			}
			def, plain = enc.AppendRun(def, 1, 1, 1), append(plain, long(v)...)
		}
		h, n := &x.pages[i], int32(len(values))
		if v2 {
			h.Type, h.V2.Valid = format.DataPageV2, true
			h.V2.V.NumValues, h.V2.V.NumRows, h.V2.V.NumNulls, h.V2.V.Def, h.V2.V.Statistics = n, n, nulls, int32(len(def)), each[i]
			bodies[i] = append(def, plain...)
		} else {
			h.V1.Valid, h.V1.V.NumValues, h.V1.V.Def, h.V1.V.Rep, h.V1.V.Statistics = true, n, format.RLE, format.RLE, each[i]
			bodies[i] = append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(def))), def...), plain...)
		}
		h.Uncompressed, h.Compressed = int32(len(bodies[i])), int32(len(bodies[i]))
		x.columns.NullPages = append(x.columns.NullPages, len(plain) == 0)
		x.columns.MinValues = append(x.columns.MinValues, each[i].MinValue.V)
		x.columns.MaxValues = append(x.columns.MaxValues, each[i].MaxValue.V)
		x.columns.NullCounts = append(x.columns.NullCounts, int64(nulls))
	}
	x.columns.BoundaryOrder = format.Ascending
	if change != nil {
		change(&x)
	}
	for _, values := range auditedPages {
		for _, v := range values {
			if v != 0 && v != x.lacks {
				filter.Add([]uint64{bloom.Hash{ID: bloom.XXH64}.Sum(long(v))})
			}
		}
	}
	b := []byte(magic)
	row := int64(0)
	for i := range x.pages {
		head := marshal(&x.pages[i])
		x.offsets[i].Offset += int64(len(b))
		x.offsets[i].CompressedPageSize += int32(len(head) + len(bodies[i]))
		x.offsets[i].FirstRowIndex += row
		row += int64(len(auditedPages[i]))
		b = append(append(b, head...), bodies[i]...)
	}
	c := meta.ColumnChunk{MetaData: meta.ColumnMetaData{
		Type: format.Int64, PathInSchema: []string{"k"}, NumValues: 10, TotalCompressedSize: int64(len(b) - 4), DataPageOffset: 4, Statistics: x.chunk,
	}}
	put := func(v ...byte) (int64, int32) { b = append(b, v...); return int64(len(b) - len(v)), int32(len(v)) }
	c.OffsetIndexOffset, c.OffsetIndexLength = put(marshal(&format.OffsetIndex{PageLocations: x.offsets})...)
	c.ColumnIndexOffset, c.ColumnIndexLength = put(marshal(&x.columns)...)
	bits := filter.AppendBlocks(nil, 0, 4)
	head := marshal(&format.BloomFilterHeader{
		NumBytes: int32(len(bits)), Algorithm: format.BloomFilterAlgorithm{Value: new(format.SplitBlockAlgorithm)},
		Hash: format.BloomFilterHash{Value: new(format.XxHash)}, Compression: format.BloomFilterCompression{Value: new(format.BloomFilterUncompressed)},
	})
	c.MetaData.BloomFilterOffset, c.MetaData.BloomFilterLength = put(append(head, bits...)...)
	m := meta.Footer{
		Version: 1, NumRows: 10, CreatedBy: x.createdBy, ColumnOrders: []format.ColumnOrder{{Value: new(format.TypeDefinedOrder)}},
		Schema: []meta.Element{
			{Name: "root", NumChildren: thrift.New[int32](1)},
			{Name: "k", Type: thrift.New(format.Int64), RepetitionType: thrift.New(format.Optional)},
		},
		RowGroups: []meta.RowGroup{{Columns: []meta.ColumnChunk{c}, NumRows: 10}},
	}
	if x.unordered {
		m.ColumnOrders = nil
	}
	footer, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	b = append(append(b, footer...), binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))...)
	b = append(b, magic...)
	f, err := Open(nil, bytes.NewReader(b), int64(len(b)), "f")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// auditFile returns the first error, and the notes before it.
func auditFile(f *File) (notes string, err error) {
	for g := range f.RowGroups {
		for l := range f.Leaves {
			if err := f.Audit(context.Background(), g, l, func(err error) { notes += err.Error() + "\n" }); err != nil {
				return notes, err
			}
		}
	}
	return notes, nil
}

// Each claim of a file is changed separately; the audit names it, in an error or in a note.
func TestAuditNamesTheClaim(t *testing.T) {
	page := func(i int, change func(rows *int32, s *meta.Statistics)) func(*audited) {
		return func(x *audited) {
			h := &x.pages[i]
			if change(&h.V2.V.NumRows, &h.V2.V.Statistics); h.V1.Valid {
				change(new(int32), &h.V1.V.Statistics)
			}
		}
	}
	stats := func(i int, change func(s *meta.Statistics)) func(*audited) {
		return page(i, func(_ *int32, s *meta.Statistics) { change(s) })
	}
	by := func(name string, change func(*audited)) func(*audited) {
		return func(x *audited) { x.createdBy = name; change(x) }
	}
	fewNulls := func(x *audited) { x.chunk.NullCount.V, x.columns.NullCounts = 4, nil }
	highMin := func(x *audited) { x.chunk.MinValue.V = long(2) }
	for name, c := range map[string]struct {
		change func(*audited)
		want   string // of the error; of a note if it begins with a blank
	}{
		"nothing":                     {nil, ""},
		"chunk's NULLs":               {fewNulls, "f: row group 1: column k: corrupt: the chunk's number of NULLs: want 5, as decoded, got 4 (conditions such as IS NULL may lose rows"},
		"of a writer known for it":    {by("hyparquet 1", fewNulls), " the chunk's number of NULLs: want 5, as decoded, got 4; scans do not rely on it"},
		"chunk's NULLs, too many":     {func(x *audited) { x.chunk.NullCount.V, x.columns.NullCounts = 6, nil }, "the chunk's number of NULLs: want 5"},
		"chunk's NULLs and the pages": {func(x *audited) { x.chunk.NullCount.V = 0 }, "the column index: 5 NULLs in all pages, the column chunk has 0"},
		"chunk's minimum":             {highMin, "column k: corrupt: the chunk's bounds: want 1 to 9, as decoded, got 2 to 9 (conditions and keys on the column may lose rows"},
		"in no known order":           {func(x *audited) { highMin(x); x.unordered = true }, ""},
		"of a writer not believed":    {by("hyparquet 1", highMin), " the chunk's bounds: want 1 to 9"},
		"chunk's maximum":             {func(x *audited) { x.chunk.MaxValue.V = long(8) }, "the chunk's bounds: want 1 to 9, as decoded, got 1 to 8"},
		"bounds apart":                {func(x *audited) { x.chunk.MinValue.V = long(10) }, "the chunk's bounds: want 1 to 9, as decoded, got 10 to 9"},
		"a bound of another width":    {func(x *audited) { x.chunk.MinValue.V = []byte{1} }, "the chunk's bounds: want 1 to 9, as decoded, got 0x01 to"},
		"an exact bound":              {func(x *audited) { x.chunk.MinValue.V = long(0) }, "the chunk's exact bounds: want 1 to 9, as decoded, got 0 to 9"},
		"a wider bound":               {func(x *audited) { x.chunk.MinValue.V, x.chunk.IsMinValueExact.V = long(0), false }, ""},
		"a bound alone": {func(x *audited) {
			x.chunk.MinValue, x.chunk.MaxValue.V = thrift.Null[[]byte]{}, long(8)
		}, "the chunk's bounds: want 1 to 9, as decoded, got 1 to 8"},
		"header's NULLs":         {stats(1, func(s *meta.Statistics) { s.NullCount.V = 0 }), " page 2: the header's number of NULLs: want 2, as decoded, got 0"},
		"header's minimum":       {stats(1, func(s *meta.Statistics) { s.MinValue.V = long(5) }), "page 2: corrupt: the header's bounds: want 4 to 9, as decoded, got 5 to 9"},
		"header's maximum":       {stats(0, func(s *meta.Statistics) { s.MaxValue.V = long(2) }), "page 1: corrupt: the header's bounds"},
		"header's exact maximum": {stats(0, func(s *meta.Statistics) { s.MaxValue.V = long(4) }), "page 1: corrupt: the header's exact bounds"},
		"header's rows":          {page(1, func(n *int32, _ *meta.Statistics) { *n = 5 }), "2page 2: corrupt: the header's rows: want 4, as decoded, got 5"},
		"rows of a writer known": {by("parquet-go", page(1, func(n *int32, _ *meta.Statistics) { *n = 5 })), "2 page 2: the header's rows: want 4, as decoded, got 5"},
		"index's NULLs":          {func(x *audited) { x.columns.NullCounts[0], x.columns.NullCounts[1] = 0, 3 }, "page 1: corrupt: the column index's number of NULLs: want 1, as decoded, got 0"},
		"index's NULL page": {func(x *audited) {
			x.columns.NullPages[0], x.columns.NullCounts, x.chunk.NullCount.Valid = true, nil, false
		}, " page 1: the column index's NULL page: want false, as decoded, got true"},
		"index's NULL page, counted": {func(x *audited) {
			x.columns.NullPages[0], x.columns.NullCounts[0], x.chunk.NullCount.Valid = true, 4, false
		}, "page 1: corrupt: the column index's NULL page: want false"},
		"index's page of values": {func(x *audited) { x.columns.NullPages[2] = false }, "page 3: corrupt: the column index's NULL page: want true, as decoded, got false"},
		"index's minimum":        {func(x *audited) { x.columns.MinValues[1] = long(5) }, "page 2: corrupt: the column index's bounds: want 4 to 9, as decoded, got 5 to 9"},
		"index's maximum":        {func(x *audited) { x.columns.MaxValues[0] = long(2) }, "page 1: corrupt: the column index's bounds"},
		"index's wider bound":    {func(x *audited) { x.columns.MaxValues[1] = long(100) }, ""},
		"index's order":          {func(x *audited) { x.columns.BoundaryOrder = format.Descending }, "page 2: corrupt: the column index's order of pages: want UNORDERED, as decoded, got DESCENDING"},
		"index's first row":      {func(x *audited) { x.offsets[1].FirstRowIndex = 1 }, "page 2: corrupt: the offset index's offset, size and first row: want "},
		"index's offset": {func(x *audited) {
			x.offsets[1].Offset, x.offsets[1].CompressedPageSize, x.offsets[0].CompressedPageSize = 1, -1, 1
		}, "page 1: corrupt: the offset index's offset, size and first row"},
		"index's size":              {func(x *audited) { x.offsets[2].CompressedPageSize = -1 }, "the offset index: its last page ends at"},
		"index's gap":               {func(x *audited) { x.offsets[0].CompressedPageSize = -1 }, "the offset index: page 2 is at"},
		"Bloom filter":              {func(x *audited) { x.lacks = 9 }, "page 2: corrupt: the Bloom filter: want every value, as decoded, got one that it lacks (lookups of keys may lose rows"},
		"of a writer that frees it": {by("parquet-go version 18.0.0", func(x *audited) { x.lacks = 9 }), " the Bloom filter: want every value"},
	} {
		for _, v2 := range []bool{false, true} {
			want := c.want
			if only, ok := strings.CutPrefix(want, "2"); ok {
				if want = only; !v2 {
					want = ""
				}
			}
			notes, err := auditFile(audited{}.file(t, v2, c.change))
			note, noted := strings.CutPrefix(want, " ")
			switch {
			case noted && (err != nil || !strings.Contains(notes, note)):
				t.Errorf("%s, V2 %v: want a note %q, got %q, error %v", name, v2, note, notes, err)
			case !noted && (want == "") != (err == nil), !noted && want != "" && !strings.Contains(fmt.Sprint(err), want), !noted && notes != "":
				t.Errorf("%s, V2 %v: want %q, got %v, notes %q", name, v2, want, err, notes)
			case err != nil && !errors.Is(err, fault.ErrCorrupt):
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// The audit finds nothing in valid files of many writers, and says so of every type.
func TestAuditOfValidFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if shared := os.Getenv("BLOOMJOIN_SHARED"); shared != "" {
		more, err := filepath.Glob(filepath.Join(shared, "corpora/parquet-testing/data/*.parquet"))
		if err != nil || len(more) < 60 {
			t.Fatalf("%d files, %v", len(more), err)
		}
		paths = append(paths, more...)
	}
	valid := 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Open(nil, bytes.NewReader(b), int64(len(b)), filepath.Base(path))
		if err != nil {
			continue // other tests say which ones
		}
		_, err = auditFile(f)
		if valid++; err != nil && errors.Is(err, fault.ErrCorrupt) && !strings.Contains(path, "corrupt") && !strings.Contains(path, "malformed") {
			t.Errorf("%v (%s)", err, f.Metadata.CreatedBy)
		}
	}
	if valid < 10 {
		t.Errorf("only %d files", valid)
	}
}

// A copy does not pass on a number of NULLs that the page index contradicts.
func TestCopyDropsDoubtfulNulls(t *testing.T) {
	for _, nulls := range []int64{5, 0} {
		f := audited{}.file(t, false, func(x *audited) { x.chunk.NullCount.V = nulls })
		w, err := NewWriter(new(bytes.Buffer), f.Metadata.Schema, nil, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e, why, err := w.CopyChunk(context.Background(), f, 0, 0, 0, CopyOptions{})
		if err != nil || why != "" {
			t.Fatal(err, why)
		}
		if n := e.stats.NullCount; n.Valid != (nulls == 5) || n.V != nulls {
			t.Errorf("%d NULLs according to the chunk: the copy has %+v", nulls, n)
		}
	}
}

// Rows of flat V2 pages are their values, whatever their headers say: all are read, and pages
// are skipped, by their values.
func TestMiscountedRows(t *testing.T) {
	for _, rows := range []int32{0, 3, 5} {
		f := audited{}.file(t, true, func(x *audited) {
			for i := range x.pages {
				x.pages[i].V2.V.NumRows = rows
			}
		})
		for row, want := range map[uint32]int64{0: 1, 3: 3, 7: 9} {
			c := f.Chunk(0, 0)
			c.Select([]uint32{row})
			p, err := c.Next(context.Background())
			if err != nil || !bytes.Equal(p.Plain, long(want)) {
				t.Errorf("%d rows in each header, row %d: %v, %v", rows, row, p, err)
			}
			if pages, skipped := c.Pages(); pages != int(row/4)+1 || skipped != int(row/4) {
				t.Errorf("%d rows in each header, row %d: %d pages seen, %d skipped", rows, row, pages, skipped)
			}
			c.Close()
		}
		w, err := NewWriter(new(bytes.Buffer), f.Metadata.Schema, nil, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, why, err := w.CopyChunk(context.Background(), f, 0, 0, 0, CopyOptions{}); err != nil || !strings.Contains(why, "another number of rows") {
			t.Errorf("copied whole: %q, %v", why, err)
		}
	}
}
