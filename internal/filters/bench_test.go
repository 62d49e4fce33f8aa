package filters

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// benchBytes is the size of the benchmarks' filters.
const benchBytes = 128 << 20

// fill is how full a benchmark's filter is: each of its bits is set with
// probability 2^-halvings, as in a filter of random keys.
type fill struct {
	name     string
	halvings int
}

// A sealed filter is half full and does not compress. One of 64 partial filters
// holds 1/64 of the keys.
var (
	halfFull = fill{"half", 1}
	sparse   = fill{"64th", 6}
)

// filter returns a filter of benchBytes.
func (l fill) filter(tb testing.TB, g bloom.Geometry) *Filter {
	tb.Helper()
	f := bloomFilter(tb, 1, nil)
	f.SetBloom(l.bits(tb, bloom.Params{Geometry: g, Hash: xxh3Hash, Blocks: benchBytes / g.BlockBytes()}))
	return f
}

func (l fill) bits(tb testing.TB, p bloom.Params) *bloom.Filter {
	tb.Helper()
	b, err := bloom.New(p)
	if err != nil {
		tb.Fatal(err)
	}
	r := rand.NewPCG(1, 2)
	chunk := make([]byte, chunkBytes)
	for at := uint64(0); at < p.Bytes(); {
		chunk = chunk[:min(chunkBytes, p.Bytes()-at)]
		for i := 0; i < len(chunk); i += 8 {
			w := r.Uint64()
			for range l.halvings - 1 {
				w &= r.Uint64()
			}
			binary.LittleEndian.PutUint64(chunk[i:], w)
		}
		if err := b.OrBlocks(at/p.Geometry.BlockBytes(), chunk); err != nil {
			tb.Fatal(err)
		}
		at += uint64(len(chunk))
	}
	return b
}

// benchFile writes a filter to a file and opens it.
func benchFile(tb testing.TB, f *Filter, opts Options) *os.File {
	tb.Helper()
	file, err := os.Create(filepath.Join(tb.TempDir(), "filter"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { file.Close() })
	if _, err := Encode(file, f, opts); err != nil {
		tb.Fatal(err)
	}
	return file
}

func benchHeader(tb testing.TB, file *os.File) *Header {
	tb.Helper()
	info, err := file.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	h, err := DecodeHeader(file, info.Size(), file.Name())
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

type benchCase struct {
	fill fill
	opts Options
}

func (c benchCase) String() string {
	if c.opts.Uncompressed {
		return fmt.Sprintf("fill=%s/uncompressed", c.fill.name)
	}
	return fmt.Sprintf("fill=%s", c.fill.name)
}

func benchCases() []benchCase {
	return []benchCase{{halfFull, Options{}}, {halfFull, Options{Uncompressed: true}}, {sparse, Options{}}, {sparse, Options{Uncompressed: true}}}
}

func BenchmarkEncode(b *testing.B) {
	for _, c := range benchCases() {
		b.Run(c.String(), func(b *testing.B) {
			f := c.fill.filter(b, bloom.Split512)
			file, err := os.Create(filepath.Join(b.TempDir(), "filter"))
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			for _, to := range []struct {
				name string
				io.Writer
			}{{"discard", io.Discard}, {"file", file}} {
				b.Run("to="+to.name, func(b *testing.B) {
					b.SetBytes(benchBytes)
					b.ReportAllocs()
					for b.Loop() {
						if _, err := file.Seek(0, io.SeekStart); err != nil {
							b.Fatal(err)
						}
						n, err := Encode(to, f, c.opts)
						if err != nil {
							b.Fatal(err)
						}
						b.ReportMetric(float64(n)/benchBytes, "stored/byte")
					}
				})
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range benchCases() {
		b.Run(c.String(), func(b *testing.B) {
			h := benchHeader(b, benchFile(b, c.fill.filter(b, bloom.Split512), c.opts))
			b.SetBytes(benchBytes)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.Load(Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOrInto counts the bytes of all merged filters: files, each read once,
// times benchBytes.
func BenchmarkOrInto(b *testing.B) {
	for _, c := range benchCases() {
		for _, n := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/files=%d", c, n), func(b *testing.B) {
				f := c.fill.filter(b, bloom.Split512)
				file := benchFile(b, f, c.opts)
				files := make([]*Header, n)
				for i := range files {
					files[i] = benchHeader(b, file)
				}
				into := f.Bloom().Clone()
				b.SetBytes(int64(n) * benchBytes)
				b.ReportAllocs()
				for b.Loop() {
					if err := OrInto(b.Context(), into, files...); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
