package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// onePage returns a file of one required column with one data page of the given
// body, and a dictionary if dict is not nil.
func onePage(t *testing.T, v2 bool, e meta.Element, encoding format.Encoding, dict []byte, entries int, body []byte, values int) *File {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(magic)
	page := func(h *meta.PageHeader, body []byte) {
		h.UncompressedPageSize, h.CompressedPageSize = int32(len(body)), int32(len(body))
		h.CRC = thrift.New(int32(crc32.ChecksumIEEE(body)))
		head, err := thrift.Marshal(new(thrift.CompactProtocol), h)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(head)
		b.Write(body)
	}
	md := meta.ColumnMetaData{
		Type: e.Type.V, PathInSchema: []string{"c"}, Encodings: []format.Encoding{encoding},
		NumValues: int64(values), DataPageOffset: int64(b.Len()),
	}
	start := b.Len()
	if dict != nil {
		md.DictionaryPageOffset = int64(start)
		page(&meta.PageHeader{Type: format.DictionaryPage, DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: int32(entries)})}, dict)
		md.DataPageOffset = int64(b.Len())
	}
	if v2 {
		page(&meta.PageHeader{Type: format.DataPageV2, DataPageHeaderV2: thrift.New(meta.DataPageHeaderV2{NumValues: int32(values), NumRows: int32(values), Encoding: encoding})}, body)
	} else {
		page(&meta.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(meta.DataPageHeader{NumValues: int32(values), Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})}, body)
	}
	md.TotalCompressedSize = int64(b.Len() - start)
	md.TotalUncompressedSize = md.TotalCompressedSize
	e.Name, e.RepetitionType = "c", thrift.New(format.Required)
	m := meta.Footer{
		Version: 1, NumRows: int64(values), Schema: []meta.Element{{Name: "root", NumChildren: thrift.New(int32(1))}, e},
		RowGroups: []meta.RowGroup{{NumRows: int64(values), TotalByteSize: md.TotalUncompressedSize, Columns: []meta.ColumnChunk{{MetaData: md}}}},
	}
	footer, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	b.Write(footer)
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer))))
	b.WriteString(magic)
	f, err := Open(nil, bytes.NewReader(b.Bytes()), int64(b.Len()), "made.parquet")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestPadding: bytes after the last value of a V1 page are ignored in each
// encoding, for a whole read and for a selection; in a V2 page they are an error. A
// padded page is not copied as stored.
func TestPadding(t *testing.T) {
	const n = 40
	ints := plain32(slices.Repeat([]int32{3, 1, 4, 1}, n/4))
	texts := bytes.Repeat([]byte("\x02\x00\x00\x00ab\x00\x00\x00\x00"), n/2)
	bools := bytes.Repeat([]byte{0xa5}, n/8)
	element := func(t format.Type) meta.Element { return meta.Element{Type: thrift.New(t)} }
	var v enc.Encoder
	encode := func(l meta.Leaf, encoding format.Encoding, plain []byte) []byte {
		b, got := v.Append(nil, l.Type, l.Width(), encoding, plain, n)
		if got != encoding {
			t.Fatalf("%v instead of %v", got, encoding)
		}
		return bytes.Clone(b)
	}
	int32s, bytes4 := meta.Leaf{Type: format.Int32}, meta.Leaf{Type: format.ByteArray}
	for name, c := range map[string]struct {
		e     meta.Element
		enc   format.Encoding
		dict  []byte
		body  []byte
		plain []byte
		told  bool // the encoding marks the end of its values
	}{
		"plain int":     {element(format.Int32), format.Plain, nil, ints, ints, false},
		"plain text":    {element(format.ByteArray), format.Plain, nil, texts, texts, false},
		"plain bool":    {element(format.Boolean), format.Plain, nil, bools, bools, false},
		"rle bool":      {element(format.Boolean), format.RLE, nil, append([]byte{6, 0, 0, 0, n/8<<1 | 1}, bools...), bools, true},
		"delta":         {element(format.Int32), format.DeltaBinaryPacked, nil, encode(int32s, format.DeltaBinaryPacked, ints), ints, true},
		"split":         {element(format.Int32), format.ByteStreamSplit, nil, encode(int32s, format.ByteStreamSplit, ints), ints, false},
		"delta lengths": {element(format.ByteArray), format.DeltaLengthByteArray, nil, encode(bytes4, format.DeltaLengthByteArray, texts), texts, false},
		"delta bytes":   {element(format.ByteArray), format.DeltaByteArray, nil, encode(bytes4, format.DeltaByteArray, texts), texts, false},
		"dictionary":    {element(format.Int32), format.RLEDictionary, ints[:16], append([]byte{2, n/8<<1 | 1}, bytes.Repeat([]byte{0xe4}, n/4)...), ints, true},
	} {
		for _, v2 := range []bool{false, true} {
			for _, padding := range []int{0, 1, 8, 100} {
				f := onePage(t, v2, c.e, c.enc, c.dict, 4, append(bytes.Clone(c.body), make([]byte, padding)...), n)
				refused := v2 && padding > 0 && !c.told
				chunk := f.Chunk(0, 0)
				p, err := chunk.Next(t.Context())
				if refused {
					if !errors.Is(err, fault.ErrCorrupt) {
						t.Errorf("%s, V2, %d more bytes: %v", name, padding, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s, V2 %v, %d more bytes: %v", name, v2, padding, err)
				}
				got := p.Plain
				if p.Coded {
					got, _ = chunk.Dictionary().AppendValues(nil, p.Indices, 4, 1<<20)
				}
				if !bytes.Equal(got, c.plain) {
					t.Errorf("%s, V2 %v, %d more bytes: %x, want %x", name, v2, padding, got, c.plain)
				}
				if p.Stored != nil && padding > 0 && !p.Coded {
					t.Errorf("%s: a page with %d more bytes is copied with them", name, padding)
				}
				if _, err := chunk.Next(t.Context()); err != io.EOF {
					t.Errorf("%s: %v", name, err)
				}
				chunk.Close()
				some := f.Chunk(0, 0)
				some.Select([]uint32{1, 7, 39})
				if p, err := some.Next(t.Context()); err != nil || p.Values != 3 {
					t.Errorf("%s, V2 %v, %d more bytes, some rows: %v", name, v2, padding, err)
				}
				some.Close()
			}
		}
	}
}

// TestEmptyRuns: a run without values before the page's last value is corrupt, also
// in indices of zero bits, which take no bytes.
func TestEmptyRuns(t *testing.T) {
	for name, c := range map[string]struct {
		runs []byte
		ok   bool
	}{
		"no runs":                     {nil, true},
		"one run":                     {[]byte{3 << 1}, true},
		"one run of eight":            {[]byte{1<<1 | 1}, true},
		"two runs":                    {[]byte{1 << 1, 2 << 1}, true},
		"more after the last":         {[]byte{3 << 1, 0, 1}, true},
		"a repeated run of none":      {[]byte{0, 3 << 1}, false},
		"a bit-packed run of none":    {[]byte{1, 3 << 1}, false},
		"a run of none in between":    {[]byte{2 << 1, 1, 1 << 1}, false},
		"runs of fewer than the page": {[]byte{2 << 1}, false},
	} {
		for width := range byte(3) {
			if width > 0 && name == "no runs" {
				continue
			}
			body := []byte{width}
			for _, r := range c.runs { // each value takes a byte if it takes any
				body = append(body, r)
				if count := int(r >> 1); r&1 == 1 {
					body = append(body, make([]byte, count*int(width))...)
				} else if width > 0 && count > 0 {
					body = append(body, 0)
				}
			}
			f := onePage(t, false, meta.Element{Type: thrift.New(format.Int32)}, format.RLEDictionary, []byte{1, 0, 0, 0}, 1, body, 3)
			for _, rows := range [][]uint32{nil, {1}, {2}} {
				chunk := f.Chunk(0, 0)
				if rows != nil {
					chunk.Select(rows)
				}
				_, err := chunk.Next(t.Context())
				if c.ok && err != nil || !c.ok && !errors.Is(err, fault.ErrCorrupt) {
					t.Errorf("%s, %d bits, rows %v: %v", name, width, rows, err)
				}
				chunk.Close()
			}
		}
	}
}
