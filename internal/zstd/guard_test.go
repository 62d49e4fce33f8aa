//go:build amd64 && !purego && linux

package zstd

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// guarded is memory between two regions whose access ends the process, which are larger than any
// offset or length of the tests' pages.
func guarded(t testing.TB, size int) []byte {
	const edge = 1 << 20
	page := unix.Getpagesize()
	m, err := unix.Mmap(-1, 0, (size+page-1)/page*page+2*edge, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	for _, end := range [][]byte{m[:edge], m[len(m)-edge:]} {
		if err := unix.Mprotect(end, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return m[edge : len(m)-edge]
}

// rig decodes frames in guarded memory, which they touch at one end or the other.
type rig struct {
	t        testing.TB
	src, dst []byte
	d        Decoder
}

const largest = 400_000

func newRig(t testing.TB) *rig {
	if !accelerated {
		t.Skip("this processor has no AVX2 and BMI2")
	}
	return &rig{t, guarded(t, 2*largest), guarded(t, largest), Decoder{}}
}

func (g *rig) decode(frame []byte, size int, atEnd bool) (dst []byte, ok bool) {
	src, dst := g.src[:len(frame):len(frame)], g.dst[:size:size]
	if atEnd {
		src, dst = g.src[len(g.src)-len(frame):], g.dst[len(g.dst)-size:]
	}
	copy(src, frame)
	ok = g.d.Decode(dst, src)
	if !bytes.Equal(src, frame) {
		g.t.Fatalf("% .40x: the input has changed", frame)
	}
	return dst, ok
}

// Changed frames are decoded like by klauspost/compress, or not at all, and nothing outside of
// the slices is touched.
func TestHostile(t *testing.T) {
	g, z, all := newRig(t), oracle(t), encoders(t)
	r := rand.New(rand.NewPCG(7, 8))
	decoded, n := 0, cases.Count(1000, 3000, 50_000)
	for range n / 10 {
		want := page(r, columns[r.IntN(len(columns))], MinSize+r.IntN(1+r.IntN(1+r.IntN(largest-MinSize))))
		frame := all[2*r.IntN(len(all)/2)].EncodeAll(want, nil) // checksums would find most changes
		for range 10 {
			b := changed(r, frame)
			want, err := z.DecodeAll(b, nil)
			size := len(want)
			if err != nil || size > largest {
				size = MinSize + r.IntN(largest-MinSize)
			}
			for _, atEnd := range []bool{true, false} {
				got, ok := g.decode(b, size, atEnd)
				switch {
				case ok && err != nil:
					t.Fatalf("% .40x: decoded; want %v", b, err)
				case ok && !bytes.Equal(got, want):
					t.Fatalf("% .40x: wrong bytes", b)
				case ok:
					decoded++
				case err == nil && size >= MinSize && atEnd:
					t.Logf("% .40x: left to another decoder", b)
				}
			}
		}
	}
	t.Logf("%d of %d were decoded", decoded, 2*n)
}

// The last sequences of a page are decoded at every distance from its ends.
func TestEnds(t *testing.T) {
	g, all := newRig(t), encoders(t)
	r := rand.New(rand.NewPCG(9, 10))
	for range cases.Count(4, 20, 200) {
		full := page(r, columns[r.IntN(len(columns))], MinSize+100+r.IntN(20_000))
		for cut := range 60 {
			want := full[:len(full)-cut]
			if got, ok := g.decode(all[(cut+r.IntN(2))%len(all)].EncodeAll(want, nil), len(want), true); !ok || !bytes.Equal(got, want) {
				t.Fatalf("a page of %d bytes: decoded is %t", len(want), ok)
			}
		}
	}
}

// A frame that states no size and has more bytes than the output is refused, and nothing is
// written after the output.
func TestShort(t *testing.T) {
	g := newRig(t)
	r := rand.New(rand.NewPCG(13, 14))
	for range cases.Count(20, 60, 1000) {
		for _, kind := range columns {
			want := page(r, kind, 3*MinSize)
			var frame bytes.Buffer
			w, err := zstd.NewWriter(&frame, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(1))
			if err != nil {
				t.Fatal(err)
			}
			for half := range slices.Chunk(want, 2*MinSize) {
				w.Write(half)
				w.Flush()
			}
			w.Close()
			if dst, ok := g.decode(frame.Bytes(), len(want), true); ok && !bytes.Equal(dst, want) {
				t.Fatalf("%s: wrong bytes", kind)
			}
			for range 100 {
				if size := MinSize + r.IntN(len(want)-MinSize); g.mustFail(frame.Bytes(), size) {
					t.Fatalf("%s: %d bytes are decoded to %d", kind, len(want), size)
				}
			}
		}
	}
}

// mustFail reports whether the frame is decoded, at either end.
func (g *rig) mustFail(frame []byte, size int) bool {
	_, a := g.decode(frame, size, true)
	_, b := g.decode(frame, size, false)
	return a || b
}

// Copies from before the output are not decoded.
func TestStart(t *testing.T) {
	g, z, n := newRig(t), oracle(t), 0
	r := rand.New(rand.NewPCG(15, 16))
	for range cases.Count(20, 60, 1000) {
		for _, kind := range []string{"addresses", "copies", "integers"} {
			all := page(r, kind, 2*MinSize)
			w, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(0, all[:MinSize]), zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(1))
			if err != nil {
				t.Fatal(err)
			}
			frame := w.EncodeAll(all[MinSize:], nil)
			if _, err := z.DecodeAll(frame, nil); err == nil {
				continue // it needs nothing of the dictionary
			}
			if n++; g.mustFail(frame, MinSize) {
				t.Fatalf("%s: decoded", kind)
			}
		}
	}
	if n == 0 {
		t.Error("no frame has a copy from before the output")
	}
}

// A block whose sequences take more literals than it has is not decoded.
func TestLiterals(t *testing.T) {
	g, w := newRig(t), encoders(t)[0]
	r := rand.New(rand.NewPCG(17, 18))
	n := 0
	for range cases.Count(20, 60, 1000) {
		b := w.EncodeAll(page(r, "times", MinSize), nil)
		head := word(b, 7) // after the frame's header
		literals := int(head >> 28 & 0xfffff)
		if head>>1&3 != 2 || head>>24&15 != 12 { // raw, 20 bits of length
			continue
		}
		cut := 1 + r.IntN(min(literals, 200))
		binary.LittleEndian.PutUint64(b[7:], head-uint64(cut)<<3-uint64(cut)<<28)
		if g.mustFail(slices.Delete(b, 13, 13+cut), MinSize) {
			t.Fatal("decoded")
		}
		n++
	}
	if n == 0 {
		t.Error("no block has plain literals")
	}
}

// If a block has fewer bits than its number of sequences needs, nothing before the input is read.
func TestBits(t *testing.T) {
	g, w, n := newRig(t), encoders(t)[0], 0
	r := rand.New(rand.NewPCG(19, 20))
	for range cases.Count(20, 60, 1000) {
		for _, kind := range []string{"addresses", "hex", "integers", "times"} {
			frame := w.EncodeAll(page(r, kind, MinSize), nil)
			m := &machine{}
			if _, ok := m.begin(make([]byte, MinSize), frame); !ok || !m.blocks[0].read(m) {
				t.Fatal(kind)
			}
			if count := m.blocks[0].body; m.blocks[0].kind == 2 && count[0] >= 128 && count[0] < 254 { // of two bytes
				count[0] = 254
				n++
				if _, ok := g.decode(frame, largest, false); ok || g.mustFail(frame, MinSize) {
					t.Fatalf("%s: decoded", kind)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no block has a count of two bytes")
	}
}

func FuzzDecode(f *testing.F) {
	all := encoders(f)
	r := rand.New(rand.NewPCG(11, 12))
	for i, kind := range columns {
		for _, size := range []int{MinSize, 70_000, 200_000} {
			f.Add(all[i%len(all)].EncodeAll(page(r, kind, size), nil))
		}
	}
	g, z := newRig(f), oracle(f)
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) > len(g.src) {
			return
		}
		want, err := z.DecodeAll(frame, nil)
		size := len(want)
		if err != nil || size > largest {
			size = min(max(size, MinSize), largest)
		}
		if got, ok := g.decode(frame, size, len(frame)%2 > 0); ok && (err != nil || !bytes.Equal(got, want)) {
			t.Errorf("decoded; want %v", err)
		}
	})
}
