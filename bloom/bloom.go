// Package bloom is a Bloom filter for joins: built in parts, OR-merged into
// one, broadcast, and probed with every row of a log.
//
// It knows 64-bit hashes and nothing else. What a key is and how it becomes
// bytes is decided elsewhere; [Hash] turns those bytes into the 64 bits that
// [Filter.Add] and [Filter.Probe] take, a batch at a time.
//
// # Geometry
//
// [Split256] is the split-block Bloom filter of the Parquet format
// (https://github.com/apache/parquet-format/blob/master/BloomFilter.md). The
// filter is an array of N blocks of eight 32-bit lanes. A hash sets one bit in
// each lane of one block, so that a key costs one cache line:
//
//	block = (h>>32)·N >> 32              // fastrange on the high half
//	bit j = (uint32(h)·salt[j]) >> 27    // j = 0…7, on the low half
//
// The block number is floor(x·N) for an x in [0,1) that the hash alone
// determines. Hence block floor(b/f) of a filter with N/f blocks takes exactly
// the keys of block b here: OR-ing f neighbours folds a filter without knowing
// its keys ([Filter.Fold]), and filters of equal [Params] OR-merge
// ([Filter.Union]).
//
// # Concurrency
//
// Reading methods may run at the same time as each other. Methods that change
// a filter (Add, Union, Intersect, OrBlocks) need it for themselves.
package bloom

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// Geometry says how a hash becomes bits. The value is part of the filter's
// file format.
type Geometry uint8

// Split256 is Parquet's geometry: blocks of 256 bits, eight 32-bit lanes, one
// bit in each lane.
const Split256 Geometry = 1

// String returns the geometry's name in reports.
func (g Geometry) String() string {
	if g == Split256 {
		return "split-256"
	}
	return fmt.Sprintf("geometry %d", uint8(g))
}

const (
	lanes      = 8
	laneBits   = 32
	BlockBytes = lanes * laneBits / 8 // bytes in a block of Split256
	// MaxBlocks bounds a filter: fastrange picks a block by 32 bits of hash.
	MaxBlocks = 1 << 32
)

// salts are the odd multipliers that the Parquet specification fixes.
var salts = [lanes]uint32{
	0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
	0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
}

// Params is all that must agree before two filters may be merged or a filter
// probed. The zero value is not valid.
type Params struct {
	Geometry Geometry
	Hash     Hash
	Blocks   uint64 // N, from 1 to MaxBlocks
}

// Bytes returns the size of the filter's bits.
func (p Params) Bytes() uint64 { return p.Blocks * BlockBytes }

// Check returns an error for a geometry, hash or block count that this
// package cannot work with.
func (p Params) Check() error {
	if p.Geometry != Split256 {
		return fault.Unsupported(fault.At{}, "filter %s", p.Geometry)
	}
	if p.Blocks == 0 || p.Blocks > MaxBlocks {
		return fault.Corrupt(fault.At{}, "filter of %d blocks, want 1 to %d", p.Blocks, uint64(MaxBlocks))
	}
	return p.Hash.Check()
}

// Match returns nil if filters of p and q can be combined, else an error that
// names the first parameter in which q differs from p.
func (p Params) Match(q Params) error {
	switch {
	case p.Geometry != q.Geometry:
		return fault.Mismatch(fault.At{}, "filter geometry", p.Geometry.String(), q.Geometry.String())
	case p.Hash != q.Hash:
		return fault.Mismatch(fault.At{}, "filter hash", p.Hash.String(), q.Hash.String())
	case p.Blocks != q.Blocks:
		return fault.Mismatch(fault.At{}, "filter blocks", fmt.Sprint(p.Blocks), fmt.Sprint(q.Blocks))
	}
	return nil
}

// block is eight 32-bit lanes.
type block [lanes]uint32

// Filter is a Bloom filter in memory. Make one with [New].
type Filter struct {
	params Params
	blocks []block
}

// New returns an empty filter. It allocates p.Bytes() bytes: a caller that
// takes p from a file compares that with its limit first.
func New(p Params) (*Filter, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return &Filter{params: p, blocks: make([]block, p.Blocks)}, nil
}

// Params returns what the filter was made with.
func (f *Filter) Params() Params { return f.params }

// Clone returns a copy that shares nothing with f.
func (f *Filter) Clone() *Filter {
	return &Filter{params: f.params, blocks: append([]block(nil), f.blocks...)}
}

// index returns the block that hash h belongs to, among n.
func index(h, n uint64) uint64 {
	hi, lo := bits.Mul64(h>>32, n)
	return hi<<32 | lo>>32
}

// mask returns the bits of hash h within its block.
func mask(h uint64) (m block) {
	x := uint32(h)
	for j, s := range salts {
		m[j] = 1 << (x * s >> 27)
	}
	return m
}

// Add sets the bits of every hash.
func (f *Filter) Add(hashes []uint64) {
	n := uint64(len(f.blocks))
	for _, h := range hashes {
		b := &f.blocks[index(h, n)]
		for j, m := range mask(h) {
			b[j] |= m
		}
	}
}

// Probe appends to sel the positions in hashes of those that may have been
// added, in ascending order, and returns it. A position that is not returned
// was surely not added. There may be up to 2^32 hashes.
func (f *Filter) Probe(hashes []uint64, sel []uint32) []uint32 {
	n := uint64(len(f.blocks))
	for i, h := range hashes {
		if f.blocks[index(h, n)].has(uint32(h)) {
			sel = append(sel, uint32(i))
		}
	}
	return sel
}

// Contains reports whether hash h may have been added.
func (f *Filter) Contains(h uint64) bool {
	return f.blocks[index(h, uint64(len(f.blocks)))].has(uint32(h))
}

// has tests all eight bits without a branch: most probes miss, and in which
// lane is a matter of chance that a predictor cannot learn.
func (b *block) has(x uint32) bool {
	m := b[0] >> (x * salts[0] >> 27)
	m &= b[1] >> (x * salts[1] >> 27)
	m &= b[2] >> (x * salts[2] >> 27)
	m &= b[3] >> (x * salts[3] >> 27)
	m &= b[4] >> (x * salts[4] >> 27)
	m &= b[5] >> (x * salts[5] >> 27)
	m &= b[6] >> (x * salts[6] >> 27)
	m &= b[7] >> (x * salts[7] >> 27)
	return m&1 != 0
}

// AppendBlocks appends blocks lo to hi (exclusive) to dst, lanes in order,
// each lane little-endian: the layout of Parquet's bitset and of the filter's
// file.
func (f *Filter) AppendBlocks(dst []byte, lo, hi uint64) []byte {
	for i := range f.blocks[lo:hi] {
		for _, lane := range f.blocks[lo+uint64(i)] {
			dst = binary.LittleEndian.AppendUint32(dst, lane)
		}
	}
	return dst
}

// OrBlocks ORs src, in the layout of AppendBlocks, into the filter from block
// lo on. Reading a file into an empty filter and merging a file into a full
// one are the same call.
func (f *Filter) OrBlocks(lo uint64, src []byte) error {
	n := uint64(len(src)) / BlockBytes
	if uint64(len(src))%BlockBytes != 0 || lo > uint64(len(f.blocks)) || n > uint64(len(f.blocks))-lo {
		return fault.Corrupt(fault.At{}, "%d bytes at block %d do not fit a filter of %d blocks", len(src), lo, len(f.blocks))
	}
	for i := range n {
		b := &f.blocks[lo+i]
		for j := range b {
			b[j] |= binary.LittleEndian.Uint32(src[(i*lanes+uint64(j))*4:])
		}
	}
	return nil
}
