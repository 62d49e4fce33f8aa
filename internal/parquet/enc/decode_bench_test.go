package enc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/bytestreamsplit"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

const benchValues = 1 << 15 // pages of them stay in the second-level cache, as in a scan

// perValue runs f and reports its time per value. A call handles benchValues
// values.
func perValue(b *testing.B, f func() error) {
	b.ReportAllocs()
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchValues, "ns/value")
	b.ReportMetric(0, "ns/op")
}

func packedSource(rng *rand.Rand, width int) []byte {
	src := binary.AppendUvarint(nil, benchValues/8<<1|1)
	return append(src, randomString(rng, benchValues/8*width)...)
}

func BenchmarkLevels(b *testing.B) {
	rng := rand.New(rand.NewPCG(21, 1))
	dst := make([]uint8, benchValues)
	b.Run("repeated", func(b *testing.B) {
		src := append(binary.AppendUvarint(nil, benchValues<<1), 1)
		perValue(b, func() error { return DecodeHybrid(dst, src, 1, 1) })
	})
	for _, width := range []int{1, 2, 3} {
		src := packedSource(rng, width)
		b.Run(fmt.Sprintf("packed/width=%d", width), func(b *testing.B) {
			perValue(b, func() error { return DecodeHybrid(dst, src, uint(width), 1<<width-1) })
		})
	}
	b.Run("runs", func(b *testing.B) { // 24 equal values, then 8 packed ones
		var src []byte
		for range benchValues / 32 {
			src = append(src, 24<<1, 1, 1<<1|1, byte(rng.Uint32()))
		}
		perValue(b, func() error { return DecodeHybrid(dst, src, 1, 1) })
	})
	b.Run("count", func(b *testing.B) {
		perValue(b, func() error { CountLevels(dst, 1); return nil })
	})
}

func BenchmarkIndices(b *testing.B) {
	rng := rand.New(rand.NewPCG(21, 2))
	dst := make([]uint32, benchValues)
	for _, width := range []int{1, 4, 7, 8, 9, 11, 13, 16, 17, 20, 32} {
		src := packedSource(rng, width)
		limit := uint32(1<<width - 1)
		b.Run(fmt.Sprintf("packed/width=%d", width), func(b *testing.B) {
			perValue(b, func() error { return DecodeHybrid(dst, src, uint(width), limit) })
		})
	}
	b.Run("runs", func(b *testing.B) { // 24 equal values, then 8 packed ones
		var src []byte
		for range benchValues / 32 {
			src = append(src, 24<<1, 1, 1<<1|1, 1, 2, 3, 4, 5, 6, 7, 8)
		}
		perValue(b, func() error { return DecodeHybrid(dst, src, 8, 255) })
	})
}

func BenchmarkValues(b *testing.B) {
	rng := rand.New(rand.NewPCG(21, 3))
	ints, longs, times := make([]int32, benchValues), make([]int64, benchValues), make([]int64, benchValues)
	for i := range ints {
		ints[i], longs[i] = rng.Int32N(1000), int64(rng.Uint64()>>4)
		times[i] = 1_700_000_000_000_000 + int64(i)*5000 + rng.Int64N(8000)
	}
	all, offsets, short := randomBytes(rng, benchValues)
	var equal []byte
	for range benchValues {
		equal = append(binary.LittleEndian.AppendUint32(equal, 36), randomString(rng, 36)...)
	}
	var bools []byte
	for range benchValues / 64 {
		bools = append(bools, 40<<1, 1, 3<<1|1, byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32()))
	}
	bools = append(binary.LittleEndian.AppendUint32(nil, uint32(len(bools))), bools...)
	must := func(src []byte, err error) []byte {
		if err != nil {
			b.Fatal(err)
		}
		return src
	}
	binaryPacked, split := delta.BinaryPackedEncoding{}, bytestreamsplit.Encoding{}
	lengths, prefixes := delta.LengthByteArrayEncoding{}, delta.ByteArrayEncoding{}
	for _, c := range []struct {
		name string
		kind kind
		enc  format.Encoding
		src  []byte
	}{
		{"plain/bytes=0..29", kind{format.ByteArray, 0}, format.Plain, short},
		{"plain/bytes=36", kind{format.ByteArray, 0}, format.Plain, equal},
		{"delta/int32", kind{format.Int32, 4}, format.DeltaBinaryPacked, must(binaryPacked.EncodeInt32(nil, ints))},
		{"delta/int64", kind{format.Int64, 8}, format.DeltaBinaryPacked, must(binaryPacked.EncodeInt64(nil, times))},
		{"delta/int64,wide", kind{format.Int64, 8}, format.DeltaBinaryPacked, must(binaryPacked.EncodeInt64(nil, longs))},
		{"delta/lengths", kind{format.ByteArray, 0}, format.DeltaLengthByteArray, must(lengths.EncodeByteArray(nil, all, offsets))},
		{"delta/prefixes", kind{format.ByteArray, 0}, format.DeltaByteArray, must(prefixes.EncodeByteArray(nil, all, offsets))},
		{"split/4", kind{format.Int32, 4}, format.ByteStreamSplit, must(split.EncodeInt32(nil, ints))},
		{"split/8", kind{format.Int64, 8}, format.ByteStreamSplit, must(split.EncodeInt64(nil, longs))},
		{"split/16", kind{format.FixedLenByteArray, 16}, format.ByteStreamSplit, randomString(rng, 16*benchValues)},
		{"split/5", kind{format.FixedLenByteArray, 5}, format.ByteStreamSplit, randomString(rng, 5*benchValues)},
		{"rle/bool", kind{format.Boolean, 0}, format.RLE, bools},
	} {
		b.Run(c.name, func(b *testing.B) {
			var buf []byte
			perValue(b, func() error {
				got, _, err := Decode(c.kind.of, c.kind.width, c.enc, c.src, buf, benchValues)
				if c.enc != format.Plain {
					buf = got
				}
				return err
			})
		})
	}
}

// BenchmarkGather reports the time per value of the page, selected or not.
func BenchmarkGather(b *testing.B) {
	rng := rand.New(rand.NewPCG(21, 4))
	src := randomString(rng, 16*benchValues)
	_, _, short := randomBytes(rng, benchValues)
	var equal []byte
	for range benchValues {
		equal = append(binary.LittleEndian.AppendUint32(equal, 36), randomString(rng, 36)...)
	}
	indices := packedSource(rng, 11)
	for _, c := range []struct {
		name string
		sel  []uint32
	}{
		{"1in100", pick(rng, benchValues, 199, 1)},
		{"1in10", pick(rng, benchValues, 19, 1)},
		{"1in2", pick(rng, benchValues, 3, 1)},
		{"runs", pick(rng, benchValues, 20, 20)},
		{"all", pick(rng, benchValues, 1, 1<<20)},
	} {
		var buf []byte
		var numbers []uint32
		bytesOf := func(src []byte) func() error {
			return func() (err error) {
				buf, _, err = GatherByteArrays(buf[:0], src, benchValues, c.sel)
				return err
			}
		}
		for _, width := range []int{4, 8, 16} {
			b.Run(fmt.Sprintf("fixed%d/%s", width, c.name), func(b *testing.B) {
				perValue(b, func() error { buf = GatherFixed(buf[:0], src, width, c.sel); return nil })
			})
		}
		b.Run("bools/"+c.name, func(b *testing.B) {
			perValue(b, func() error { buf = GatherBools(buf[:0], src, c.sel); return nil })
		})
		b.Run("bytes/0..29/"+c.name, func(b *testing.B) { perValue(b, bytesOf(short)) })
		b.Run("bytes/36/"+c.name, func(b *testing.B) { perValue(b, bytesOf(equal)) })
		b.Run("hybrid/11/"+c.name, func(b *testing.B) {
			perValue(b, func() (err error) {
				numbers, err = GatherHybrid(numbers[:0], indices, benchValues, 11, 1<<11-1, c.sel)
				return err
			})
		})
		b.Run("levels/"+c.name, func(b *testing.B) {
			levels := src[:benchValues]
			perValue(b, func() error { numbers = SelectValues(numbers[:0], levels, 1, c.sel); return nil })
		})
	}
}

// BenchmarkDecompress decompresses a page of 1 MiB that resembles the URLs of a
// log.
func BenchmarkDecompress(b *testing.B) {
	rng := rand.New(rand.NewPCG(21, 5))
	var page []byte
	for len(page) < 1<<20 {
		page = fmt.Appendf(page, "https://shop.example.org/%s/item-%d?ref=%x\n",
			[]string{"de", "en", "fr"}[rng.IntN(3)], rng.IntN(5000), rng.Uint32())
	}
	page = page[:1<<20]
	var gz, br, frame bytes.Buffer
	gw := gzip.NewWriter(&gz)
	bw := brotli.NewWriterLevel(&br, 5)
	fw := lz4.NewWriter(&frame)
	zw, _ := zstd.NewWriter(nil)
	block := make([]byte, lz4.CompressBlockBound(len(page)))
	n, _ := lz4.CompressBlock(page, block, nil)
	gw.Write(page)
	bw.Write(page)
	fw.Write(page)
	gw.Close()
	bw.Close()
	fw.Close()
	for _, c := range []struct {
		name  string
		codec format.CompressionCodec
		src   []byte
	}{
		{"snappy", format.Snappy, s2.EncodeSnappy(nil, page)},
		{"zstd", format.Zstd, zw.EncodeAll(page, nil)},
		{"gzip", format.Gzip, gz.Bytes()},
		{"brotli", format.Brotli, br.Bytes()},
		{"lz4raw", format.Lz4Raw, block[:n]},
		{"lz4frame", format.Lz4, frame.Bytes()},
	} {
		b.Run(c.name, func(b *testing.B) {
			var d Decompressor
			defer d.Close()
			var buf []byte
			b.ReportAllocs()
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				got, err := d.Decompress(c.codec, buf, c.src, len(page))
				if err != nil {
					b.Fatal(err)
				}
				buf = got
			}
		})
	}
}
