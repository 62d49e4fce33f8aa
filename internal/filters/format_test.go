package filters

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// All numbers in FORMAT.md that can be checked are correct.
func TestFormatNumbers(t *testing.T) {
	b, err := os.ReadFile("../../codec/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, want := range []string{
		fmt.Sprintf("of no bytes `%016x`", xxh3.Hash(nil)),
		fmt.Sprintf("bytes `00 … 07` `%016x`", xxh3.Hash([]byte{0, 1, 2, 3, 4, 5, 6, 7})),
		strings.ToUpper(fmt.Sprintf("`% x`", magic)),
		fmt.Sprintf("Fewer than %d bytes", prologueBytes+sectionBytes+trailerBytes),
		fmt.Sprintf("starts at a multiple of %d", pageBytes),
		fmt.Sprintf("at most 2^%d |", log2(maxHeader)),
		fmt.Sprintf("chunk: 2^%d", log2(chunkBytes)),
		fmt.Sprintf("1 to 2^%d", log2(MaxShards)),
		fmt.Sprintf("1 to %d. A register", MaxRegister),
		fmt.Sprintf("compression, at most 2^%d. Bloom", log2(maxPart)),
		fmt.Sprintf("of each %d bytes of a Bloom", pageBytes),
		fmt.Sprintf("%d/256", denseShare),
		fmt.Sprintf("%d/256", 256-denseShare),
		fmt.Sprintf("2^%d bytes: a HyperLogLog", log2(RegisterCount)),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("FORMAT.md lacks %q", want)
		}
	}
	for _, s := range sections() {
		row := fmt.Sprintf("| %d | %s | %s |", s.id, s.name, map[bool]string{true: "yes", false: "no"}[s.critical])
		if !strings.Contains(text, row) {
			t.Errorf("FORMAT.md lacks %q", row)
		}
	}
}

func log2(n uint64) (k int) {
	for ; n > 1; n /= 2 {
		k++
	}
	return k
}

// A reader written from FORMAT.md's Bloom section alone finds the keys.
func TestFormatBloom(t *testing.T) {
	salts := [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}
	values := keysFrom(1, 300)
	const n = 45
	file := encode(t, bloomFilter(t, n, values), Options{Uncompressed: true})
	h, err := DecodeHeader(bytes.NewReader(file), int64(len(file)), "f")
	if err != nil {
		t.Fatal(err)
	}
	bits := make([]byte, n*32)
	for _, v := range values {
		key, _ := hex.DecodeString(fmt.Sprintf("%016x", v))
		for i := range 4 { // little-endian
			key[i], key[7-i] = key[7-i], key[i]
		}
		x := xxh3.HashSeed(key, 7)
		b := (x >> 32) * n >> 32
		for j, s := range salts {
			bit := int(uint32(x) * s >> 27)
			bits[int(b)*32+j*4+bit/8] |= 1 << (bit % 8)
		}
	}
	if !bytes.Equal(bits, file[h.PayloadOffset:][:len(bits)]) {
		t.Error("the bits are not those that FORMAT.md gives")
	}
}

// The same for the second geometry.
func TestFormatBloom512(t *testing.T) {
	values := keysFrom(1, 300)
	const n = 45
	file := encode(t, splitFilter(t, bloom.Split512, n, values), Options{Uncompressed: true})
	h, err := DecodeHeader(bytes.NewReader(file), int64(len(file)), "f")
	if err != nil {
		t.Fatal(err)
	}
	bits := make([]byte, n*64)
	for _, v := range values {
		h := xxh3.HashSeed(binary.LittleEndian.AppendUint64(nil, v), 7)
		b := (h >> 32) * n >> 32
		x := h * 0x9e3779b97f4a7c15
		for j := range 8 {
			bit := int(x >> (58 - 6*j) & 63)
			bits[int(b)*64+j*8+bit/8] |= 1 << (bit % 8)
		}
	}
	if h.PayloadBytes != uint64(len(bits)) || !bytes.Equal(bits, file[h.PayloadOffset:][:len(bits)]) {
		t.Error("the bits are not those that FORMAT.md gives")
	}
}
