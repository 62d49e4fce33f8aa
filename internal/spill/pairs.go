package spill

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// Pair is two integers, such as a key and its position.
type Pair struct{ A, B uint64 }

// MaxPairs is the largest number of pairs that are encoded together.
const MaxPairs = 1 << 20

// AppendPairs appends 1 to MaxPairs pairs for [Pairs]. Each side is encoded as the
// difference from its minimum, in as many bytes as the largest difference takes.
// Side A is signed, so small negative numbers are as compact as small positive
// ones.
func AppendPairs(dst []byte, pairs []Pair) []byte {
	loA, hiA := int64(pairs[0].A), int64(pairs[0].A)
	loB, hiB := pairs[0].B, pairs[0].B
	for _, p := range pairs {
		loA, hiA = min(loA, int64(p.A)), max(hiA, int64(p.A))
		loB, hiB = min(loB, p.B), max(hiB, p.B)
	}
	a, b := width(uint64(hiA-loA)), width(hiB-loB)
	dst = slices.Grow(dst, pairsHead+len(pairs)*(a+b)+8)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(pairs)))
	dst = append(dst, byte(a), byte(b))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(loA))
	dst = binary.LittleEndian.AppendUint64(dst, loB)
	at := len(dst)
	dst = dst[:at+len(pairs)*(a+b)+8] // each value is written as eight bytes, and the next one overwrites the excess
	if a > 0 {
		for _, p := range pairs {
			binary.LittleEndian.PutUint64(dst[at:], p.A-uint64(loA))
			at += a
		}
	}
	if b > 0 {
		for _, p := range pairs {
			binary.LittleEndian.PutUint64(dst[at:], p.B-loB)
			at += b
		}
	}
	return dst[:at]
}

const pairsHead = 4 + 2 + 8 + 8

// width returns the number of bytes that v takes.
func width(v uint64) int { return (bits.Len64(v) + 7) / 8 }

// Pairs decodes the output of AppendPairs, using dst's memory if it is large
// enough.
func Pairs(dst []Pair, b []byte) ([]Pair, error) {
	if len(b) < pairsHead {
		return nil, fmt.Errorf("pairs in %d bytes, want at least %d", len(b), pairsHead)
	}
	n, wa, wb := int(binary.LittleEndian.Uint32(b)), int(b[4]), int(b[5])
	loA, loB := binary.LittleEndian.Uint64(b[6:]), binary.LittleEndian.Uint64(b[14:])
	b = b[pairsHead:]
	if n > MaxPairs || wa > 8 || wb > 8 || n*(wa+wb) != len(b) {
		return nil, fmt.Errorf("%d pairs of %d+%d bytes in %d", n, wa, wb, len(b))
	}
	dst = slices.Grow(dst[:0], n)[:n]
	for i := range dst {
		dst[i] = Pair{loA, loB}
	}
	far, near := b[:n*wa], b[n*wa:]
	mask, i := maskOf(wa), 0
	for ; wa > 0 && len(far) >= 8; i, far = i+1, far[wa:] {
		dst[i].A += binary.LittleEndian.Uint64(far) & mask
	}
	for ; wa > 0 && i < n; i, far = i+1, far[wa:] {
		dst[i].A += short(far[:wa])
	}
	mask, i = maskOf(wb), 0
	for ; wb > 0 && len(near) >= 8; i, near = i+1, near[wb:] {
		dst[i].B += binary.LittleEndian.Uint64(near) & mask
	}
	for ; wb > 0 && i < n; i, near = i+1, near[wb:] {
		dst[i].B += short(near[:wb])
	}
	return dst, nil
}

// maskOf returns a mask of the low w bytes.
func maskOf(w int) uint64 { return ^uint64(0) >> (64 - 8*w) }

// short decodes a value of fewer than eight bytes.
func short(b []byte) uint64 {
	var v [8]byte
	copy(v[:], b)
	return binary.LittleEndian.Uint64(v[:])
}
