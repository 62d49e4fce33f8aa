package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// benchPage is a page of n entries as a reader would return it.
type benchPage struct {
	name   string
	schema []meta.Element
	page   Page
	dict   *Dictionary
}

func benchPages() []benchPage {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 100_000
	ints := Page{Values: n, Rows: n, NonNull: n}
	for range n {
		ints.Plain = binary.LittleEndian.AppendUint64(ints.Plain, 1_600_000_000_000+rng.Uint64N(1<<32))
	}
	nulls := ints
	nulls.Def = make([]uint8, n)
	for i := range nulls.Def {
		nulls.Def[i] = uint8(min(1, rng.IntN(10)))
		nulls.NonNull -= 1 - int(nulls.Def[i])
	}
	nulls.Plain = ints.Plain[:8*nulls.NonNull]
	text := func(prefix string, digits int) (out []byte) {
		out = binary.LittleEndian.AppendUint32(nil, uint32(len(prefix)+digits))
		out = append(out, prefix...)
		for range digits {
			out = append(out, "0123456789abcdef"[rng.IntN(16)])
		}
		return out
	}
	strings, urls := Page{Values: n, Rows: n, NonNull: n}, Page{Values: n, Rows: n, NonNull: n}
	for range n {
		strings.Plain = append(strings.Plain, text("", 32)...)
		urls.Plain = append(urls.Plain, text("https://www.example.org/a/", 6+rng.IntN(20))...)
	}
	dict := &Dictionary{Len: 200, offsets: []uint32{4}}
	for range dict.Len {
		dict.Plain = append(dict.Plain, text("city-", 4+rng.IntN(8))...)
		dict.offsets = append(dict.offsets, uint32(len(dict.Plain)+4))
	}
	codes := Page{Values: n, Rows: n, NonNull: n, Coded: true, Indices: make([]uint32, n)}
	for i := range codes.Indices {
		codes.Indices[i] = uint32(rng.IntN(dict.Len))
	}
	large := &Dictionary{Len: 40_000}
	for i := range large.Len {
		large.Plain = binary.LittleEndian.AppendUint64(large.Plain, uint64(i)*77777)
	}
	many := Page{Values: n, Rows: n, NonNull: n, Coded: true, Indices: make([]uint32, n)}
	for i := range many.Indices {
		many.Indices[i] = uint32(rng.IntN(large.Len))
	}
	return []benchPage{
		{"int64", leafSchema(format.Int64, format.Required), ints, nil},
		{"int64null", leafSchema(format.Int64, format.Optional), nulls, nil},
		{"string32", leafSchema(format.ByteArray, format.Required), strings, nil},
		{"url", leafSchema(format.ByteArray, format.Required), urls, nil},
		{"dict200", leafSchema(format.ByteArray, format.Required), codes, dict},
		{"dict40000", leafSchema(format.Int64, format.Required), many, large},
	}
}

// leafSchema returns the schema of one column.
func leafSchema(t format.Type, r format.FieldRepetitionType) []meta.Element {
	root := meta.Element{Name: "schema"}
	root.NumChildren.Set(1)
	e := meta.Element{Name: "c"}
	e.Type.Set(t)
	e.RepetitionType.Set(r)
	return []meta.Element{root, e}
}

// BenchmarkChunkWriter writes chunks of 2 million entries. The codecs alone, on the
// same pages, are the lower limit.
func BenchmarkChunkWriter(b *testing.B) {
	const pages = 20
	for _, c := range benchPages() {
		for _, codec := range []format.CompressionCodec{format.Uncompressed, format.Snappy, format.Zstd} {
			b.Run(fmt.Sprintf("%s/%v", c.name, codec), func(b *testing.B) {
				w, err := NewWriter(io.Discard, c.schema, nil, WriterOptions{Compression: enc.Compression{Codec: codec}})
				if err != nil {
					b.Fatal(err)
				}
				size := 0
				for b.Loop() {
					cw := w.Chunk(0)
					for range pages {
						if err := cw.Add(&c.page, c.dict); err != nil {
							b.Fatal(err)
						}
					}
					e, err := cw.Finish()
					if err != nil {
						b.Fatal(err)
					}
					size = int(e.plainSize)
					if err := w.RowGroup(e.rows, []*EncodedChunk{e}); err != nil {
						b.Fatal(err)
					}
					w.groups, w.indexes = w.groups[:0], w.indexes[:0]
				}
				b.SetBytes(int64(size))
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pages*c.page.Values), "ns/value")
			})
		}
	}
}

// BenchmarkPageCodec only compresses pages of about a mebibyte.
func BenchmarkPageCodec(b *testing.B) {
	for _, c := range benchPages()[:4] {
		for _, codec := range []format.CompressionCodec{format.Snappy, format.Zstd} {
			b.Run(fmt.Sprintf("%s/%v", c.name, codec), func(b *testing.B) {
				var z enc.Compressor
				src := c.page.Plain[:min(len(c.page.Plain), DefaultPageBytes)]
				for b.Loop() {
					if _, err := z.Compress(src, enc.Compression{Codec: codec}); err != nil {
						b.Fatal(err)
					}
				}
				b.SetBytes(int64(len(src)))
				values := float64(c.page.NonNull) * float64(len(src)) / float64(len(c.page.Plain))
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/values, "ns/value")
			})
		}
	}
}
