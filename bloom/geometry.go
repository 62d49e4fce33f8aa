package bloom

import (
	"fmt"
	"math/bits"
)

// Geometry says how a hash becomes bits. The value is part of the filter's
// file format. Both geometries set eight bits for a key, one in each of the
// eight lanes of a block that lies in one cache line.
type Geometry uint8

const (
	// Split256 is Parquet's geometry: blocks of 256 bits, eight lanes of 32.
	Split256 Geometry = 1
	// Split512 has blocks of 512 bits, eight lanes of 64. A larger block evens
	// out how many keys share it, which saves bits where the rate is low: 4 %
	// at 1 %, 7 % at 0.1 %, 10 % at 0.01 %.
	Split512 Geometry = 2
)

// String returns the geometry's name in reports and on the command line.
func (g Geometry) String() string {
	switch g {
	case Split256:
		return "split-256"
	case Split512:
		return "split-512"
	}
	return fmt.Sprintf("geometry %d", uint8(g))
}

// Geometries returns those that there are.
func Geometries() []Geometry { return []Geometry{Split256, Split512} }

const (
	lanes    = 8
	wordBits = 64
	// MaxBlocks bounds a filter: fastrange picks a block by 32 bits of hash.
	MaxBlocks = 1 << 32
)

// valid reports whether this package knows g.
func (g Geometry) valid() bool { return g == Split256 || g == Split512 }

// laneBits returns the bits in a lane.
func (g Geometry) laneBits() int {
	if g == Split512 {
		return 64
	}
	return 32
}

// words returns the 64-bit words in a block: one for each lane of Split512,
// for every second one of Split256.
func (g Geometry) words() uint64 { return uint64(lanes * g.laneBits() / wordBits) }

// BlockBytes returns the bytes in a block: 32 or 64.
func (g Geometry) BlockBytes() uint64 { return g.words() * wordBits / 8 }

// index returns the block that hash h belongs to, among n.
func index(h, n uint64) uint64 {
	hi, lo := bits.Mul64(h>>32, n)
	return hi<<32 | lo>>32
}

// salts are the odd multipliers that the Parquet specification fixes.
var salts = [lanes]uint32{
	0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
	0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
}

// spread multiplies the whole hash in Split512, whose bit numbers are the
// product's upper 48 bits, six for each lane. Being odd it loses nothing: two
// keys agree in all lanes by accident alone. (2^64 divided by the golden
// ratio: Knuth, The Art of Computer Programming, vol. 3, section 6.4.)
const spread = 0x9e3779b97f4a7c15
