package zstd

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

var columns = []string{"addresses", "hex", "integers", "times", "letters", "copies", "runs"}

// page returns a page like those of a log, with values of a kind of column.
func page(r *rand.Rand, kind string, size int) []byte {
	b := make([]byte, 0, size+100)
	words := []string{"item", "cart", "search", "user", "order", "https://shop.example.com/", "https://www.example.org/news/"}
	letters, longest := 1+r.IntN(256), 2+r.IntN(300)
	for len(b) < size {
		switch kind {
		case "addresses":
			b = append(append(b, words[r.IntN(len(words))]...), '/', '0'+byte(r.IntN(10)))
		case "hex":
			b = append(b, 16, 0, 0, 0)
			for range 16 {
				b = append(b, "0123456789abcdef"[r.IntN(16)])
			}
		case "integers":
			b = binary.LittleEndian.AppendUint64(b, uint64(r.IntN(1_000_000)))
		case "times":
			b = binary.LittleEndian.AppendUint64(b, uint64(len(b)*1000+r.IntN(700)))
		case "letters":
			b = append(b, byte(min(r.IntN(letters), r.IntN(letters))))
		case "copies": // literals and copies of all lengths and offsets
			for range r.IntN(longest) {
				b = append(b, byte(r.IntN(letters)))
			}
			if len(b) > 0 {
				offset := 1 + min(r.IntN(len(b)), r.IntN(1+longest))
				for range r.IntN(longest) {
					b = append(b, b[len(b)-offset])
				}
			}
		default: // runs
			b = append(b, bytes.Repeat([]byte{byte(r.IntN(3))}, r.IntN(3000))...)
		}
	}
	return b[:size]
}

// encoders are of all levels, with and without checksums.
func encoders(t testing.TB) (all []*zstd.Encoder) {
	for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBetterCompression, zstd.SpeedBestCompression} {
		for _, sum := range []bool{false, true} {
			w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(sum), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, w)
		}
	}
	return all
}

func oracle(t testing.TB) *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Close)
	return z
}

// Frames of encoders are decoded, and bytes after dst do not change.
func TestDecode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := encoders(t)
	var d Decoder
	if !d.Decode(make([]byte, MinSize), all[0].EncodeAll(page(r, "hex", MinSize), nil)) {
		t.Skip("not on this machine")
	}
	buf := make([]byte, 600_000)
	left, n := 0, cases.Count(100, 400, 5000)
	for range n {
		want := page(r, columns[r.IntN(len(columns))], MinSize+r.IntN(1+r.IntN(500_000)))
		src := all[r.IntN(len(all))].EncodeAll(want, nil)
		for i := range buf {
			buf[i] = 0xA5
		}
		dst := buf[:len(want)]
		if !d.Decode(dst, src) {
			left++ // it has a byte, repeated, in place of a block or its literals
		} else if !bytes.Equal(dst, want) {
			t.Fatalf("% .40x: wrong bytes", src)
		}
		if len(bytes.TrimRight(buf[len(dst):], "\xA5")) > 0 {
			t.Fatalf("% .40x: written behind dst", src)
		}
		cut := src[:r.IntN(len(src))]
		if d.Decode(dst, cut) || d.Decode(dst[:len(dst)-1], src) || d.Decode(buf[:len(dst)+1], src) {
			t.Fatalf("% .40x: decoded with another size", src)
		}
	}
	if left > n/25 {
		t.Errorf("%d of %d pages are left to another decoder", left, n)
	}
}

// changed returns a frame with a few bytes changed.
func changed(r *rand.Rand, src []byte) []byte {
	b := bytes.Clone(src)
	for range 1 + r.IntN(4) {
		at := r.IntN(len(b))
		if r.IntN(2) == 0 {
			at = min(at, 4+r.IntN(300)) // headers and tables
		}
		switch r.IntN(3) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			b[at] = byte(r.IntN(256))
		default:
			from := r.IntN(len(b))
			copy(b[at:min(at+1+r.IntN(20), len(b))], b[from:])
		}
	}
	return b
}

func BenchmarkDecode(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	z, w := oracle(b), encoders(b)[0]
	for _, name := range columns {
		want := page(r, name, 1<<20)
		src, dst := w.EncodeAll(want, nil), make([]byte, len(want))
		var d Decoder
		for _, by := range []string{"ours", "klauspost"} {
			b.Run("page="+name+"/by="+by, func(b *testing.B) {
				b.SetBytes(int64(len(dst)))
				for b.Loop() {
					if by == "ours" {
						if !d.Decode(dst, src) {
							b.Skip("not on this machine")
						}
					} else if _, err := z.DecodeAll(src, dst[:0]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
