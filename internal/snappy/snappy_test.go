package snappy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// largest is the size of the largest block of the tests.
const largest = 300 << 10

// Decode returns what s2 does, and does not change bytes after dst.
func TestDecode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, largest+256)
	right, wrong := 0, 0
	for range cases.Count(300, 800, 30_000) {
		src, _ := hostile(r)
		size, err := s2.DecodedLen(src)
		if err != nil || size > largest {
			size = 100
		}
		want, wantErr := s2.Decode(nil, src)
		for i := range buf {
			buf[i] = 0xA5
		}
		err = Decode(buf[:size], src)
		if wantErr == nil && len(want) != size {
			wantErr = errSize
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("% .30x: %v, want %v", src, err, wantErr)
		}
		if err != nil {
			wrong++
		} else if right++; !bytes.Equal(buf[:size], want) {
			t.Fatalf("% .30x: wrong bytes", src)
		}
		if len(bytes.TrimRight(buf[size:], "\xA5")) > 0 {
			t.Fatalf("% .30x: dst's spare capacity has changed", src)
		}
	}
	if right == 0 || wrong == 0 {
		t.Errorf("%d blocks were right and %d wrong", right, wrong)
	}
}

// Errors are those of s2.
func TestErrors(t *testing.T) {
	page := text(rand.New(rand.NewPCG(3, 4)), 20_000)
	src := s2.EncodeSnappy(nil, page)
	for _, c := range []struct {
		name string
		size int
		src  []byte
		want error
	}{
		{"right", len(page), src, nil},
		{"shorter than the block says", len(page) - 1, src, errSize},
		{"longer than the block says", len(page) + 1, src, errSize},
		{"cut", len(page), src[:len(src)-1], s2.ErrCorrupt},
		{"one element too many", len(page), copy2(bytes.Clone(src), 1, 1), s2.ErrCorrupt},
		{"nothing", 0, nil, s2.ErrCorrupt},
		{"no elements", 20_000, block(20_000, nil), s2.ErrCorrupt},
		{"an empty block", 0, []byte{0}, nil},
		{"a size above 4 GiB", 0, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 1}, s2.ErrCorrupt},
	} {
		if err := Decode(make([]byte, c.size), c.src); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// columns are pages as logs have them, by kind of column.
func columns(r *rand.Rand) map[string][]byte {
	const size = 1 << 20
	page := func(value func(b []byte) []byte) []byte {
		b := make([]byte, 0, size+100)
		for len(b) < size {
			b = value(b)
		}
		return b[:size]
	}
	hosts := []string{"https://shop.example.com/", "https://www.example.org/news/", "http://m.example.net/"}
	words := []string{"item", "cart", "search", "user", "order", "view", "list", "page", "offer", "help"}
	word := func(b []byte) []byte { return append(append(b, words[r.IntN(len(words))]...), '/') }
	return map[string][]byte{
		"urls": page(func(b []byte) []byte {
			b = word(word(append(append(b, 60, 0, 0, 0), hosts[r.IntN(3)]...)))
			for range 6 {
				b = append(b, '0'+byte(r.IntN(10)))
			}
			return b
		}),
		"hex": page(func(b []byte) []byte {
			b = append(b, 16, 0, 0, 0)
			for range 16 {
				b = append(b, "0123456789abcdef"[r.IntN(16)])
			}
			return b
		}),
		"doubles": page(func(b []byte) []byte {
			return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(r.IntN(100_000))/100))
		}),
		"integers": page(func(b []byte) []byte { return binary.LittleEndian.AppendUint64(b, uint64(r.IntN(1_000_000))) }),
		"literals": random(r, size),
	}
}

// encode compresses a page in pieces of 64 KiB, as the format's first encoder does and most
// others do. No offset has four bytes then.
func encode(page []byte) []byte {
	b := block(len(page), nil)
	for piece := range slices.Chunk(page, 1<<16) {
		one := s2.EncodeSnappy(nil, piece)
		_, header := binary.Uvarint(one)
		b = append(b, one[header:]...)
	}
	return b
}

func BenchmarkDecode(b *testing.B) {
	pages := columns(rand.New(rand.NewPCG(5, 6)))
	for _, name := range []string{"urls", "urls-far", "hex", "doubles", "integers", "literals"} {
		page := pages[strings.TrimSuffix(name, "-far")]
		src, dst := encode(page), make([]byte, len(page))
		if name == "urls-far" {
			src = s2.EncodeSnappy(nil, page)
		}
		n, blocks := 0, []Block{{}, {Dst: bytes.Clone(page)}, {Dst: bytes.Clone(page)}}
		for _, d := range []struct {
			by     string
			decode func(dst, src []byte) error
		}{
			{"ours", Decode},
			{"ours-in-turns", func(dst, src []byte) error {
				blocks[0].Src, blocks[0].Dst, n = src, dst, n+1
				for i := range blocks[1:] {
					blocks[1+i].Src = src
				}
				if n%3 > 0 {
					return nil
				}
				DecodeBlocks(blocks)
				return errors.Join(blocks[0].Err, blocks[1].Err, blocks[2].Err)
			}},
			{"s2", func(dst, src []byte) error { _, err := s2.Decode(dst, src); return err }},
		} {
			b.Run("page="+name+"/by="+d.by, func(b *testing.B) {
				b.SetBytes(int64(len(dst)))
				for b.Loop() {
					if err := d.decode(dst, src); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
