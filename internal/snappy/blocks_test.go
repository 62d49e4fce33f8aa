package snappy

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/klauspost/compress/s2"
)

// text returns n bytes with repeats.
func text(r *rand.Rand, n int) []byte {
	b := make([]byte, 0, n+600)
	letters := 1 + r.IntN(200)
	for len(b) < n {
		if len(b) == 0 || r.IntN(3) == 0 {
			for range 1 + r.IntN(1<<r.IntN(10)) {
				b = append(b, byte(r.IntN(letters)))
			}
			continue
		}
		offset := 1 + r.IntN(len(b))
		if r.IntN(4) == 0 {
			offset = 1 + r.IntN(min(len(b), 70))
		}
		for range 1 + r.IntN(80) {
			b = append(b, b[len(b)-offset])
		}
	}
	return b[:n]
}

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// block returns a block with a header that gives the size.
func block(size int, elements []byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(size)), elements...)
}

// literal appends a literal whose length is in the tag (extra 0) or in extra bytes.
func literal(b, text []byte, extra int) []byte {
	n := len(text) - 1
	if extra == 0 {
		return append(append(b, byte(n<<2)), text...)
	}
	b = append(b, byte((59+extra)<<2))
	for i := range extra {
		b = append(b, byte(n>>(8*i)))
	}
	return append(b, text...)
}

// shortest returns how many bytes of its own a literal's length needs.
func shortest(size int) int {
	switch {
	case size <= 60:
		return 0
	case size <= 1<<8:
		return 1
	case size <= 1<<16:
		return 2
	}
	return 3
}

func copy1(b []byte, size, offset int) []byte {
	return append(b, byte(1|(size-4)<<2|offset>>8<<5), byte(offset))
}

func copy2(b []byte, size, offset int) []byte {
	return append(b, byte(2|(size-1)<<2), byte(offset), byte(offset>>8))
}

func copy4(b []byte, size, offset int) []byte {
	return binary.LittleEndian.AppendUint32(append(b, byte(3|(size-1)<<2)), uint32(offset))
}

// elements returns a block of at least n bytes that no encoder would write. If wild, some
// of its offsets lead before the start.
func elements(r *rand.Rand, n int, wild bool) []byte {
	var b []byte
	size := 0
	far := []int{0, 1, 10}[r.IntN(3)] // of 20 copies, those with four bytes of offset
	for size < n {
		if size == 0 || r.IntN(3) == 0 {
			l := 1 + r.IntN(1<<r.IntN(10))
			if r.IntN(50) == 0 {
				l = 1 + r.IntN(70_000)
			}
			extra := shortest(l)
			if extra < 2 && r.IntN(20) == 0 {
				extra += 1 + r.IntN(3)
			}
			b, size = literal(b, random(r, l), extra), size+l
			continue
		}
		offset, l := 1+r.IntN(min(size, 65535)), 1+r.IntN(64)
		if r.IntN(3) == 0 {
			offset = 1 + r.IntN(min(size, 70))
		}
		lost := wild && r.IntN(500) == 0
		if lost {
			offset = r.IntN(65536)
		}
		switch k := r.IntN(20); {
		case k < far:
			if r.IntN(2) == 0 {
				offset = 1 + r.IntN(size)
			}
			if lost {
				offset = r.IntN(2*size) | r.IntN(2)<<r.IntN(32)
			}
			b = copy4(b, l, offset)
		case k < 15 && offset < 2048:
			l = 4 + r.IntN(8)
			b = copy1(b, l, offset)
		default:
			b = copy2(b, l, offset)
		}
		size += l
	}
	return block(size, b)
}

// hostile returns a random block that is often changed, cut or of another size than it says.
// plain means that it is valid and has no elements that only s2 writes.
func hostile(r *rand.Rand) (b []byte, plain bool) {
	size := 1 + r.IntN(1<<(1+r.IntN(17)))
	if r.IntN(20) == 0 {
		size = 1<<16 + r.IntN(1<<17) // lean steps
	}
	wild := r.IntN(6) == 0
	kind, damage := r.IntN(5), r.IntN(8)
	switch kind {
	case 0:
		b = s2.EncodeSnappy(nil, text(r, size))
	case 1:
		b = s2.EncodeSnappyBetter(nil, text(r, size))
	case 2:
		b = s2.EncodeBetter(nil, text(r, size)) // repeats of the last offset are written as offset 0
	default:
		b = elements(r, size, wild)
	}
	switch damage {
	case 0:
		for range 1 + r.IntN(4) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
	case 1:
		for range 1 + r.IntN(4) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
	case 2:
		b = b[:1+r.IntN(len(b))]
	case 3: // the output ends long before the input
		size, header := binary.Uvarint(b)
		b = block(1+r.IntN(int(size)), b[header:])
	}
	return b, kind != 2 && damage > 3 && !wild
}
