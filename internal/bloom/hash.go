package bloom

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// HashID identifies a hash function. Its value is part of the file format.
type HashID uint8

const (
	// XXH3 is the 64-bit XXH3 with a seed, the project's own hash.
	XXH3 HashID = 1
	// XXH64 is the hash of Parquet's Bloom filters: XXH64 with seed 0 over the
	// plain-encoded value.
	XXH64 HashID = 2
	// Keyed is reserved for a hash with a secret key. Nothing writes it yet.
	Keyed HashID = 3
)

// Hash is a hash function with its seed. It is comparable and recorded in every
// filter. The zero value is not valid; Hash{ID: XXH3} is the default.
type Hash struct {
	ID   HashID
	Seed uint64
}

// String returns the hash's name for reports and errors.
func (h Hash) String() string {
	switch h.ID {
	case XXH3:
		return fmt.Sprintf("xxh3-64 seed %d", h.Seed)
	case XXH64:
		return fmt.Sprintf("xxh64 seed %d", h.Seed)
	case Keyed:
		return "keyed hash"
	}
	return fmt.Sprintf("hash %d seed %d", h.ID, h.Seed)
}

// Check returns an error if this package cannot compute the hash.
func (h Hash) Check() error {
	if h.ID == XXH3 || h.ID == XXH64 && h.Seed == 0 {
		return nil
	}
	return faults.Unsupported(fault.At{}, "filter hash: %s", h)
}

// Sum hashes b.
func (h Hash) Sum(b []byte) uint64 {
	if h.ID == XXH64 {
		return xxhash.Sum64(b)
	}
	return xxh3.HashSeed(b, h.Seed)
}

// Bits 64…127 and 128…191 of XXH3's default secret, and the multiplier of its
// 4-to-8-byte path.
const (
	xxh3Secret8  = 0x1cad21f72c81017c
	xxh3Secret16 = 0xdb979083e96dd4de
	xxh3Mul      = 0x9fb21c651e98df25
)

// Sum64 hashes the eight little-endian bytes of each value into dst, which must be
// at least as long as values. The result equals Sum over those bytes.
func (h Hash) Sum64(dst, values []uint64) {
	dst = dst[:len(values)]
	if h.ID == XXH64 {
		var b [8]byte
		for i, v := range values {
			binary.LittleEndian.PutUint64(b[:], v)
			dst[i] = xxhash.Sum64(b[:])
		}
		return
	}
	// XXH3's path for inputs of 4 to 8 bytes, at length 8
	seed := h.Seed ^ uint64(bits.ReverseBytes32(uint32(h.Seed)))<<32
	sumInts(dst, values, uint64(xxh3Secret8^xxh3Secret16)-seed)
}

// AppendInts appends the hashes of [Hash.Sum64] to dst.
func (h Hash) AppendInts(dst, values []uint64) []uint64 {
	n := len(dst)
	dst = slices.Grow(dst, len(values))[:n+len(values)]
	h.Sum64(dst[n:], values)
	return dst
}

// sumIntsPortable is sumInts in Go.
func sumIntsPortable(dst, values []uint64, flip uint64) {
	dst = dst[:len(values)]
	for i, v := range values {
		x := bits.RotateLeft64(v, 32) ^ flip
		x ^= bits.RotateLeft64(x, 49) ^ bits.RotateLeft64(x, 24)
		x *= xxh3Mul
		x ^= x>>35 + 8
		x *= xxh3Mul
		dst[i] = x ^ x>>28
	}
}
