// Package bloom is a Bloom filter of 64-bit hashes: the bits of a filter of package codec,
// for programs that have hashes of their own or hand the bits to another system.
//
// A filter is an array of blocks, of one cache line or half of one; a hash sets eight bits in
// one block. Filters of equal geometry and size OR-merge. codec/FORMAT.md specifies which bits a hash sets;
// [Split256] is the split-block Bloom filter of the Parquet format.
//
// Methods that only read may run concurrently; those that change a filter need exclusive
// access.
package bloom

import (
	"fmt"

	room "github.com/bloomjoin/bloomjoin/internal/bloom"
)

// Geometry is how a hash selects bits. Both geometries set eight bits per key, one in each of
// the eight lanes of a block. The zero value lets the rate choose.
type Geometry uint8

const (
	// Split256 is Parquet's geometry: blocks of 256 bits, eight lanes of 32.
	Split256 = Geometry(room.Split256)
	// Split512 has blocks of 512 bits, eight lanes of 64. Larger blocks even out the number
	// of keys per block, which saves bits at low rates: 4 % at 1 %, 7 % at 0.1 %, 10 % at
	// 0.01 %.
	Split512 = Geometry(room.Split512)
)

// String returns the geometry's name for reports and the command line.
func (g Geometry) String() string { return room.Geometry(g).String() }

// Cardinality is an estimated number of keys with its standard error.
type Cardinality struct {
	Keys   float64
	StdErr float64
}

// Filter is a Bloom filter in memory, made by [New] or part of a filter of package codec,
// which must not be changed. The zero value and nil have no bits: they cannot record keys,
// so they let every key pass, and never merge with another filter.
type Filter room.Filter

func (f *Filter) in() *room.Filter { return (*room.Filter)(f) }

// New returns an empty filter of hashes for up to the given number of keys at a
// false-positive rate between 0 and 1, which takes about 10 bits a key at 1 %: memory that is
// allocated at once. A zero geometry is [Split512] for low rates, else [Split256].
func New(g Geometry, keys uint64, fpr float64) (*Filter, error) {
	if !(fpr > 0 && fpr < 1) {
		return nil, fmt.Errorf("false-positive rate %g: want more than 0 and less than 1", fpr)
	}
	if g == 0 {
		g = Geometry(room.GeometryFor(fpr))
	}
	p := room.Params{Geometry: room.Geometry(g), Hash: room.Hash{ID: room.XXH3}, Blocks: room.Geometry(g).BlocksFor(keys, fpr)}
	if p.Geometry.FPR(p.Blocks, keys) > fpr {
		return nil, fmt.Errorf("%d keys at a false-positive rate of %g: want fewer keys or a higher rate, the largest filter has %d blocks", keys, fpr, p.Blocks)
	}
	f, err := room.New(p)
	return (*Filter)(f), err
}

// Geometry returns the filter's geometry.
func (f *Filter) Geometry() Geometry { return Geometry(f.in().Params().Geometry) }

// Blocks returns the number of blocks.
func (f *Filter) Blocks() uint64 { return f.in().Params().Blocks }

// Add adds the keys with the given hashes.
func (f *Filter) Add(hashes []uint64) { f.in().Add(hashes) }

// Contains reports whether a key with hash h may have been added.
func (f *Filter) Contains(h uint64) bool { return f.in().Contains(h) }

// Probe appends to rows the positions in hashes whose keys may have been added, in ascending
// order, and returns it. A position that is missing was certainly not added. There may be
// up to 2^32 hashes. Probe allocates only if rows has no room for a position per hash.
func (f *Filter) Probe(hashes []uint64, rows []uint32) []uint32 { return f.in().Probe(hashes, rows) }

// Union makes f the filter of both key sets: the bits are those of a filter to which all keys
// of both were added. Geometry and size must be equal; otherwise f is unchanged and the
// error wraps fault.ErrMismatch.
func (f *Filter) Union(g *Filter) error { return f.in().Union(g.in()) }

// Count estimates the number of distinct keys that were added, by linear counting in each
// block. A full block makes both results +Inf. The first call after a change reads all bits.
func (f *Filter) Count() Cardinality { return Cardinality(f.in().Count()) }

// FPR returns the false-positive rate that follows from the filter's bits. The first call
// after a change reads all bits.
func (f *Filter) FPR() float64 { return f.in().FPR() }

// AppendBlocks appends blocks lo to hi (exclusive) to dst, lanes in order, each lane
// little-endian: the layout of Parquet's bitset. Blocks that the filter does not have are
// left out.
func (f *Filter) AppendBlocks(dst []byte, lo, hi uint64) []byte {
	return f.in().AppendBlocks(dst, lo, hi)
}
