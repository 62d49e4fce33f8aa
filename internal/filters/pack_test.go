package filters

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// randomBits returns n bytes in which each bit is set with probability p, rounded
// to a multiple of 2^-16.
func randomBits(seed uint64, n int, p float64) []byte {
	r := rand.NewPCG(seed, uint64(p*1e6))
	b := make([]byte, n)
	limit, x := uint64(p*(1<<16)), uint64(0)
	for i := range 8 * n {
		if i%4 == 0 {
			x = r.Uint64()
		}
		if x&0xffff < limit {
			b[i/8] |= 1 << (i % 8)
		}
		x >>= 16
	}
	return b
}

// chunkFilter returns a filter whose bits are one chunk.
func chunkFilter(t testing.TB, bits []byte) *Filter {
	f := splitFilter(t, bloom.Split512, uint64(len(bits)/64), nil)
	if err := f.Bloom().OrBlocks(0, bits); err != nil {
		t.Fatal(err)
	}
	return f
}

// entropy returns the entropy of a bit that is set with probability p.
func entropy(p float64) float64 {
	return -p*math.Log2(p) - (1-p)*math.Log2(1-p)
}

func TestDenseShare(t *testing.T) {
	if h := entropy(denseShare / 256.); h < 15./16 || h > 15./16+0.002 {
		t.Errorf("entropy at %d/256 is %v, want just above 15/16", denseShare, h)
	}
}

// Whatever the share of set bits, a chunk is not much larger than the best that
// zstd achieves at any level, or than its entropy. Where compression is not tried,
// it would have saved nothing.
func TestPackedSize(t *testing.T) {
	var levels []*zstd.Encoder
	for _, l := range []zstd.EncoderLevel{zstd.SpeedDefault, zstd.SpeedBetterCompression} {
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(l), zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		levels = append(levels, enc)
	}
	const size = 128 << 10
	for _, p := range []float64{0.001, 0.004, 0.01, 0.0117, 0.016, 0.05, 0.1, 0.2, 0.27, 0.33, 0.345, 0.36, 0.38, 0.5, 0.63, 0.7, 0.9, 0.99} {
		bits := randomBits(9, size, p)
		h := header(t, encode(t, chunkFilter(t, bits), Options{}), "f")
		best := size
		for _, enc := range levels {
			best = min(best, len(enc.EncodeAll(bits, nil)))
		}
		stored := int(h.StoredBytes)
		if stored > best+best/8 {
			t.Errorf("share %v: %d bytes stored, zstd makes %d", p, stored, best)
		}
		// Huffman codes take at least one bit per byte.
		if floor := max(entropy(p)*size, size/8); stored < size && p > 0.0117 && p < 0.988 && float64(stored) > 1.5*floor {
			t.Errorf("share %v: %d bytes stored, entropy %.0f", p, stored, floor)
		}
		if methodFor(bits) == none && best < size-size/16 {
			t.Errorf("share %v: not tried, and zstd makes %d of %d bytes", p, best, size)
		}
		if e := entropy(p); e < 0.92 && stored == size {
			t.Errorf("share %v: entropy %.3f, and nothing was saved", p, e)
		}
	}
}

// A chunk that is well filled on average but not evenly is compressed.
func TestUnevenChunk(t *testing.T) {
	bits := append(make([]byte, 100_032), randomBits(1, 200_000, 0.75)...)
	bits = append(bits, bytes.Repeat([]byte{0xff}, 40_064)...)
	f := chunkFilter(t, bits)
	h := header(t, encode(t, f, Options{}), "f")
	if want := uint64(len(bits) * 3 / 5); h.StoredBytes > want {
		t.Errorf("%d of %d bytes stored, want at most %d", h.StoredBytes, len(bits), want)
	}
	if describe(t, decode(t, encode(t, f, Options{}))) != describe(t, f) {
		t.Error("not the same filter")
	}
}

// The frames of literals follow RFC 8878: a decoder without any hints reads them,
// for blocks of every kind and at the ends of ranges.
func TestLiteralFrames(t *testing.T) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(chunkBytes), zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	p := new(packer) // reused, so that no frame may depend on earlier ones
	for _, n := range []int{1, 63, 1000, 4096, zstdBlockBytes - 1, zstdBlockBytes, zstdBlockBytes + 1, chunkBytes - 32, chunkBytes} {
		for name, b := range map[string][]byte{
			"zeros": make([]byte, n), "ones": bytes.Repeat([]byte{255}, n), "even": randomBits(1, n, 0.5),
			"few": randomBits(2, n, 0.02), "quarter": randomBits(3, n, 0.25),
			"mixed": append(make([]byte, n/2), randomBits(4, n-n/2, 0.3)...),
		} {
			frame, err := appendLiterals(nil, b, &p.huff)
			if err != nil {
				t.Fatal(err)
			}
			got, err := dec.DecodeAll(frame, nil)
			if err != nil || !bytes.Equal(got, b) {
				t.Errorf("%d bytes, %s: decoded to %d bytes, error %v", n, name, len(got), err)
			}
			fresh, err := appendLiterals(nil, b, &new(packer).huff)
			if err != nil || !bytes.Equal(fresh, frame) {
				t.Errorf("%d bytes, %s: the frame depends on the one before", n, name)
			}
			if max := 9 + 9*((n+zstdBlockBytes-1)/zstdBlockBytes) + n; len(frame) > max {
				t.Errorf("%d bytes, %s: a frame of %d bytes, want at most %d", n, name, len(frame), max)
			}
		}
	}
}

func BenchmarkPack(b *testing.B) {
	for halvings := range 7 {
		r := rand.NewPCG(1, uint64(halvings))
		bits := make([]byte, chunkBytes)
		for i := 0; i < len(bits); i += 8 {
			w := r.Uint64()
			for range halvings {
				w &= r.Uint64()
			}
			binary.LittleEndian.PutUint64(bits[i:], w)
		}
		s, err := newSource(chunkFilter(b, bits))
		if err != nil {
			b.Fatal(err)
		}
		enc, err := newZstd()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("set=%d:%d", 1, 2<<halvings), func(b *testing.B) {
			p := new(packer)
			b.SetBytes(chunkBytes)
			for b.Loop() {
				if err := p.pack(s, enc, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(p.stored()))/chunkBytes, "stored/byte")
		})
	}
}
