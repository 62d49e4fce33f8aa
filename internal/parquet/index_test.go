package parquet_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// indexed is a file of one column and 300 rows in three pages of 100 bytes, which
// are never read, with an index given as bytes.
type indexed struct {
	offsets, columns []byte
	optional         bool
	change           func(c *meta.ColumnChunk)
}

func (x indexed) file(t testing.TB) *parquet.File {
	t.Helper()
	b := append([]byte("PAR1"), make([]byte, 300)...)
	chunk := meta.ColumnChunk{MetaData: meta.ColumnMetaData{
		Type: format.Int64, PathInSchema: []string{"k"}, NumValues: 300, TotalCompressedSize: 300, DataPageOffset: 4,
	}}
	put := func(index []byte) (int64, int32) {
		if index == nil {
			return 0, 0
		}
		b = append(b, index...)
		return int64(len(b) - len(index)), int32(len(index))
	}
	chunk.OffsetIndexOffset, chunk.OffsetIndexLength = put(x.offsets)
	chunk.ColumnIndexOffset, chunk.ColumnIndexLength = put(x.columns)
	if x.change != nil {
		x.change(&chunk)
	}
	repetition := format.Required
	if x.optional {
		repetition = format.Optional
	}
	footer, err := (&meta.Footer{
		Version: 1, NumRows: 300,
		Schema: []meta.Element{
			{Name: "root", NumChildren: thrift.New[int32](1)},
			{Name: "k", Type: thrift.New(format.Int64), RepetitionType: thrift.New(repetition)},
		},
		RowGroups: []meta.RowGroup{{Columns: []meta.ColumnChunk{chunk}, NumRows: 300}},
	}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	b = append(append(b, footer...), binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))...)
	b = append(b, "PAR1"...)
	f, err := parquet.Open(nil, bytes.NewReader(b), int64(len(b)), "indexed")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var threePages = []format.PageLocation{
	{Offset: 4, CompressedPageSize: 100, FirstRowIndex: 0},
	{Offset: 104, CompressedPageSize: 100, FirstRowIndex: 50},
	{Offset: 204, CompressedPageSize: 100, FirstRowIndex: 299},
}

func columnIndex() format.ColumnIndex {
	bounds := [][]byte{{1}, {2}, {3}}
	return format.ColumnIndex{NullPages: make([]bool, 3), MinValues: bounds, MaxValues: bounds, NullCounts: []int64{0, -1, 1}}
}

func TestIndex(t *testing.T) {
	columns := columnIndex()
	f := indexed{offsets: encode(t, &format.OffsetIndex{PageLocations: threePages}), columns: encode(t, &columns)}.file(t)
	x, ok, err := f.OffsetIndex(0, 0)
	if !ok || err != nil || len(x.Pages) != 3 || x.Pages[1] != (parquet.PageLocation{Offset: 104, Size: 100, FirstRow: 50}) ||
		x.End(0) != 50 || x.End(2) != 300 {
		t.Fatalf("%+v, %v, %v", x, ok, err)
	}
	c, ok, err := f.ColumnIndex(0, 0, x)
	if !ok || err != nil || !slices.Equal(c.NullCounts, []int64{0, -1, 1}) || !bytes.Equal(c.Max[2], []byte{3}) || len(c.Min) != 3 || len(c.Null) != 3 {
		t.Fatalf("%+v, %v, %v", c, ok, err)
	}
	f = indexed{}.file(t)
	if x, ok, err := f.OffsetIndex(0, 0); ok || err != nil {
		t.Errorf("no index: %+v, %v", x, err)
	}
	if c, ok, err := f.ColumnIndex(0, 0, x); ok || err != nil {
		t.Errorf("no index: %+v, %v", c, err)
	}
}

// Each rule of an index is broken separately.
func TestIndexBroken(t *testing.T) {
	offsets := func(change func(p []format.PageLocation) []format.PageLocation) []byte {
		return encode(t, &format.OffsetIndex{PageLocations: change(slices.Clone(threePages))})
	}
	page := func(i int, change func(p *format.PageLocation)) []byte {
		return offsets(func(p []format.PageLocation) []format.PageLocation { change(&p[i]); return p })
	}
	right := encode(t, &format.OffsetIndex{PageLocations: threePages})
	columns := func(change func(c *format.ColumnIndex)) []byte {
		c := columnIndex()
		change(&c)
		return encode(t, &c)
	}
	where := func(change func(c *meta.ColumnChunk)) indexed {
		return indexed{offsets: right, columns: columns(func(*format.ColumnIndex) {}), change: change}
	}
	for name, c := range map[string]struct {
		file indexed
		want string
	}{
		"no pages":                   {indexed{offsets: offsets(func(p []format.PageLocation) []format.PageLocation { return p[:0] })}, "no pages"},
		"a page without bytes":       {indexed{offsets: page(1, func(p *format.PageLocation) { p.CompressedPageSize = 0 })}, "page 2 has 0 bytes"},
		"a negative size":            {indexed{offsets: page(1, func(p *format.PageLocation) { p.CompressedPageSize = -1 })}, "page 2 has -1 bytes"},
		"pages that overlap":         {indexed{offsets: page(0, func(p *format.PageLocation) { p.CompressedPageSize = 101 })}, "page 2 is at 104"},
		"before the chunk":           {indexed{offsets: page(0, func(p *format.PageLocation) { p.Offset = 3 })}, "page 1 is at 3"},
		"a negative offset":          {indexed{offsets: page(0, func(p *format.PageLocation) { p.Offset = math.MinInt64 })}, "page 1 is at"},
		"after the chunk":            {indexed{offsets: page(2, func(p *format.PageLocation) { p.CompressedPageSize = 101 })}, "beyond the column chunk"},
		"far after the chunk":        {indexed{offsets: page(2, func(p *format.PageLocation) { p.Offset = math.MaxInt64 })}, "beyond the column chunk"},
		"not from row 0":             {indexed{offsets: page(0, func(p *format.PageLocation) { p.FirstRowIndex = 1 })}, "not with row 0"},
		"a row in two pages":         {indexed{offsets: page(1, func(p *format.PageLocation) { p.FirstRowIndex = 0 })}, "page 2 begins with row 0"},
		"rows that descend":          {indexed{offsets: page(2, func(p *format.PageLocation) { p.FirstRowIndex = 49 })}, "page 3 begins with row 49"},
		"a row after the last":       {indexed{offsets: page(2, func(p *format.PageLocation) { p.FirstRowIndex = 300 })}, "page 3 begins with row 300 of 300"},
		"cut off":                    {indexed{offsets: right[:len(right)-1]}, "offset index"},
		"no structure":               {indexed{offsets: bytes.Repeat([]byte{0xff}, 20)}, "offset index"},
		"a list without end":         {indexed{offsets: []byte{0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07}}, "offset index"},
		"outside of the file":        {where(func(c *meta.ColumnChunk) { c.OffsetIndexOffset = 1 << 40 }), "outside"},
		"in the magic":               {where(func(c *meta.ColumnChunk) { c.OffsetIndexOffset = 1 }), "outside"},
		"into the footer":            {where(func(c *meta.ColumnChunk) { c.OffsetIndexLength = 1 << 20 }), "outside"},
		"no length":                  {where(func(c *meta.ColumnChunk) { c.OffsetIndexLength = 0 }), "outside"},
		"a page too many":            {indexed{offsets: right, columns: columns(func(c *format.ColumnIndex) { c.NullPages = append(c.NullPages, true) })}, "4 null pages for 3"},
		"a bound too few":            {indexed{offsets: right, columns: columns(func(c *format.ColumnIndex) { c.MinValues = c.MinValues[1:] })}, "2 least values for 3"},
		"an upper bound too few":     {indexed{offsets: right, columns: columns(func(c *format.ColumnIndex) { c.MaxValues = c.MaxValues[1:] })}, "2 greatest values for 3"},
		"a count too few":            {indexed{offsets: right, columns: columns(func(c *format.ColumnIndex) { c.NullCounts = c.NullCounts[1:] })}, "2 numbers of NULLs for 3"},
		"more NULLs than rows":       {indexed{offsets: right, columns: columns(func(c *format.ColumnIndex) { c.NullCounts[2] = 2 })}, "2 NULLs in page 3 of 1 rows"},
		"a negative number of NULLs": {indexed{offsets: right, columns: columns(func(c *format.ColumnIndex) { c.NullCounts[0] = -2 })}, "-2 NULLs"},
		"columns outside":            {where(func(c *meta.ColumnChunk) { c.ColumnIndexOffset = 1 << 40 }), "column index"},
		"columns cut off":            {where(func(c *meta.ColumnChunk) { c.ColumnIndexLength-- }), "column index"},
	} {
		f := c.file.file(t)
		x, ok, err := f.OffsetIndex(0, 0)
		if ok {
			_, _, err = f.ColumnIndex(0, 0, x)
		}
		var e *fault.Error
		if !errors.Is(err, fault.ErrCorrupt) || !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) ||
			e.At.RowGroup != 1 || e.At.Column != "k" {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// An index of arbitrary bytes is refused or obeys the rules.
func FuzzIndex(f *testing.F) {
	columns := columnIndex()
	f.Add(encode(f, &format.OffsetIndex{PageLocations: threePages}), encode(f, &columns))
	for _, name := range []string{"data_index_bloom_encoding_stats.parquet", "datapage_v1-snappy-compressed-checksum.parquet"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		file, err := parquet.Open(nil, bytes.NewReader(b), int64(len(b)), name)
		if err != nil {
			f.Fatal(err)
		}
		c := file.Metadata.RowGroups[0].Columns[0]
		f.Add(b[c.OffsetIndexOffset:][:c.OffsetIndexLength], b[c.ColumnIndexOffset:][:c.ColumnIndexLength])
	}
	f.Fuzz(func(t *testing.T, offsets, columns []byte) {
		file := indexed{offsets: offsets, columns: columns, optional: true}.file(t)
		x, ok, err := file.OffsetIndex(0, 0)
		if err != nil && !errors.Is(err, fault.ErrCorrupt) || errors.Is(err, panics.ErrRecovered) {
			t.Fatalf("an error that is none of the format: %v", err)
		}
		if !ok {
			return
		}
		next, row := int64(4), int64(0)
		for i, p := range x.Pages {
			if p.Offset < next || p.FirstRow != row || x.End(i) <= row || p.Size <= 0 {
				t.Fatalf("page %d: %+v", i, x.Pages)
			}
			next, row = p.Offset+int64(p.Size), x.End(i)
		}
		if next > 304 || row != 300 {
			t.Fatalf("%d bytes, %d rows: %+v", next, row, x.Pages)
		}
		c, ok, err := file.ColumnIndex(0, 0, x)
		if err != nil && !errors.Is(err, fault.ErrCorrupt) || errors.Is(err, panics.ErrRecovered) {
			t.Fatalf("an error that is none of the format: %v", err)
		}
		if n := len(x.Pages); ok && (len(c.Null) != n || len(c.Min) != n || len(c.Max) != n || c.NullCounts != nil && len(c.NullCounts) != n) {
			t.Fatalf("%d pages: %+v", n, c)
		}
	})
}
