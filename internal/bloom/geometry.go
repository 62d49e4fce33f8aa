package bloom

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Geometry is how a hash selects bits. Its value is part of the file format. Both
// geometries set eight bits per key, one in each of the eight lanes of a block,
// which lies within one cache line.
type Geometry uint8

const (
	// Split256 is Parquet's geometry: blocks of 256 bits, eight lanes of 32.
	Split256 Geometry = 1
	// Split512 has blocks of 512 bits, eight lanes of 64. Larger blocks even out
	// the number of keys per block, which saves bits at low rates: 4 % at 1 %, 7 %
	// at 0.1 %, 10 % at 0.01 %.
	Split512 Geometry = 2
)

// String returns the geometry's name for reports and the command line.
func (g Geometry) String() string {
	switch g {
	case Split256:
		return "split-256"
	case Split512:
		return "split-512"
	}
	return fmt.Sprintf("geometry %d", uint8(g))
}

// Geometries returns all supported geometries.
func Geometries() []Geometry { return []Geometry{Split256, Split512} }

// BitsPerKey is how many bits a key sets: one in each lane.
const BitsPerKey = lanes

const (
	lanes    = 8
	wordBits = 64
	// MaxBlocks is the largest number of blocks: fastrange picks a block with 32
	// bits of the hash.
	MaxBlocks = 1 << 32
)

// valid reports whether this package supports g.
func (g Geometry) valid() bool { return g == Split256 || g == Split512 }

// laneBits returns the number of bits in a lane.
func (g Geometry) laneBits() int {
	if g == Split512 {
		return 64
	}
	return 32
}

// words returns the number of 64-bit words in a block: one per lane in Split512,
// one per two lanes in Split256.
func (g Geometry) words() uint64 { return uint64(lanes * g.laneBits() / wordBits) }

// BlockBytes returns the size of a block in bytes: 32 or 64.
func (g Geometry) BlockBytes() uint64 { return g.words() * wordBits / 8 }

// Block returns the number of the block in which a hash is looked up.
func (p Params) Block(h uint64) uint64 { return index(h, p.Blocks) }

// index returns the block, among n, that hash h belongs to.
func index(h, n uint64) uint64 {
	hi, lo := bits.Mul64(h>>32, n)
	return hi<<32 | lo>>32
}

// Block returns the block, among n, that hash h belongs to. It never falls as h rises.
func Block(h, n uint64) uint64 { return index(h, n) }

// InBlock256 reports whether a key with hash h may be in its block of a Split256 filter,
// given in the layout of [Filter.AppendBlocks].
func InBlock256(block *[32]byte, h uint64) bool {
	var b block256
	for i := range b {
		b[i] = binary.LittleEndian.Uint64(block[8*i:])
	}
	return has256(&b, h) != 0
}

// salts are the odd multipliers in the Parquet specification.
var salts = [lanes]uint32{
	0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
	0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
}

// spread multiplies the whole hash in Split512. The bit numbers are the product's
// upper 48 bits, six for each lane. Multiplication by an odd number is a bijection,
// so two keys agree in all lanes only by chance. (2^64 divided by the golden ratio:
// Knuth, The Art of Computer Programming, vol. 3, section 6.4.)
const spread = 0x9e3779b97f4a7c15

// Place returns the block, among n of Split256, that hash h belongs to, and the numbers of
// its bits there, counted from 0: one in each lane, in the order of the lanes.
func Place(h, n uint64) (block uint64, at [BitsPerKey]uint8) {
	for j := range at {
		at[j] = uint8(32*j) | uint8(uint32(h)*salts[j]>>27)
	}
	return index(h, n), at
}
