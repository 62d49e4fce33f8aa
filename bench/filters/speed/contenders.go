package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	bitsandblooms "github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"
	"github.com/greatroar/blobloom"
	parquet "github.com/parquet-go/parquet-go/bloom"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bloom"
)

// filter is a measured filter. Keys are integers; both methods include hashing.
type filter interface {
	add(keys []uint64)
	// probe writes the positions of found keys to sel, which has room for one more
	// than keys, and returns their number. Filters that answer one key at a time
	// store their answers without a branch, since half of the branches would be
	// mispredicted.
	probe(keys []uint64, sel []uint32) int
	bytes() uint64
}

// contender is a kind of filter.
type contender struct {
	name   string
	module string // empty: this project
	make   func(keys uint64, bits float64) (filter, error)
}

func ourContenders() []contender {
	return []contender{
		{"bloomjoin-split-256", "", func(n uint64, bits float64) (filter, error) { return newOurs(bloom.Split256, n, bits) }},
		{"bloomjoin-split-512", "", func(n uint64, bits float64) (filter, error) { return newOurs(bloom.Split512, n, bits) }},
	}
}

func goRivals() []contender {
	return []contender{
		{"parquet-go", "github.com/parquet-go/parquet-go", newParquet},
		{"arrow-go", "github.com/apache/arrow-go/v18", newArrow},
		{"blobloom", "github.com/greatroar/blobloom", newBlobloom},
		{"bits-and-blooms", "github.com/bits-and-blooms/bloom/v3", newClassic},
	}
}

// contenders returns what this program measures: all filters and random memory
// access, or without assembly this project's filter only.
func contenders() []contender {
	if purego {
		return ourContenders()
	}
	all := append(ourContenders(), goRivals()...)
	return append(all, contender{memoryName, "", newMemory})
}

// find returns the contender with a name.
func find(name string) (contender, error) {
	for _, c := range contenders() {
		if c.name == name {
			return c, nil
		}
	}
	return contender{}, fmt.Errorf("no filter %q", name)
}

// rateOfClassic returns the false-positive rate of a classic filter with the given
// bits per key: 2^-(bits·ln 2).
func rateOfClassic(bits float64) float64 { return math.Exp2(-bits * math.Ln2) }

// ours is this project's filter.
type ours struct{ f *bloom.Filter }

func newOurs(g bloom.Geometry, n uint64, bits float64) (filter, error) {
	blocks := uint64(bits*float64(n)) / 8 / g.BlockBytes()
	f, err := bloom.New(bloom.Params{Geometry: g, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: blocks})
	return ours{f}, err
}

// add does what a builder does with integers: it hashes some and adds them.
func (o ours) add(keys []uint64) {
	var hashes [hashSpan]uint64
	hash := o.f.Params().Hash
	for len(keys) > 0 {
		n := min(len(keys), hashSpan)
		hash.Sum64(hashes[:n], keys[:n])
		o.f.Add(hashes[:n])
		keys = keys[n:]
	}
}

func (o ours) probe(keys []uint64, sel []uint32) int {
	return len(o.f.ProbeInts(keys, sel[:0]))
}
func (o ours) bytes() uint64 { return o.f.Params().Bytes() }

// hashSpan is the number of keys that are hashed at a time for filters that take
// hashes in bulk. Their hashes fit in the first-level cache.
const hashSpan = 1024

// parquetFilter is the split-block filter of parquet-go, with its vectorised XXH64
// and bulk insert, as its writer uses them.
type parquetFilter struct{ f parquet.SplitBlockFilter }

func newParquet(n uint64, bits float64) (filter, error) {
	return parquetFilter{make(parquet.SplitBlockFilter, int(bits*float64(n))/8/parquet.BlockSize)}, nil
}

func (p parquetFilter) add(keys []uint64) {
	var hashes [hashSpan]uint64
	for len(keys) > 0 {
		n := parquet.XXH64{}.MultiSum64Uint64(hashes[:min(len(keys), hashSpan)], keys[:min(len(keys), hashSpan)])
		p.f.InsertBulk(hashes[:n])
		keys = keys[n:]
	}
}

func (p parquetFilter) probe(keys []uint64, sel []uint32) int {
	var hashes [hashSpan]uint64
	found := 0
	for at := 0; at < len(keys); at += hashSpan {
		part := keys[at:min(at+hashSpan, len(keys))]
		parquet.XXH64{}.MultiSum64Uint64(hashes[:len(part)], part)
		for i, h := range hashes[:len(part)] {
			sel[found] = uint32(at + i)
			found += measure.Bit(p.f.Check(h))
		}
	}
	return found
}

func (p parquetFilter) bytes() uint64 { return uint64(len(p.f)) * parquet.BlockSize }

// arrowFilter is the split-block filter of arrow-go with bulk insert. Its size is a
// power of two, at most 128 MiB. Its hash is XXH64 of eight bytes.
type arrowFilter struct {
	build metadata.BloomFilterBuilder
	check metadata.BloomFilter
}

func newArrow(n uint64, bits float64) (filter, error) {
	build := metadata.NewBloomFilter(uint32(bits*float64(n)/8), 128<<20, memory.DefaultAllocator)
	check, ok := build.(metadata.BloomFilter)
	if !ok {
		return nil, errors.New("arrow-go's filter cannot be probed as it is built")
	}
	return arrowFilter{build, check}, nil
}

func (a arrowFilter) add(keys []uint64) {
	var hashes [hashSpan]uint64
	var b [8]byte
	for len(keys) > 0 {
		n := min(len(keys), hashSpan)
		for i, k := range keys[:n] {
			binary.LittleEndian.PutUint64(b[:], k)
			hashes[i] = xxhash.Sum64(b[:])
		}
		a.build.InsertBulk(hashes[:n])
		keys = keys[n:]
	}
}

func (a arrowFilter) probe(keys []uint64, sel []uint32) int {
	found := 0
	var b [8]byte
	for i, k := range keys {
		binary.LittleEndian.PutUint64(b[:], k)
		sel[found] = uint32(i)
		found += measure.Bit(a.check.CheckHash(xxhash.Sum64(b[:])))
	}
	return found
}

func (a arrowFilter) bytes() uint64 { return uint64(a.check.Size()) }

// blobloomFilter is a blocked filter with 512-bit blocks and xxh3, the first hash in
// its documentation.
type blobloomFilter struct{ f *blobloom.Filter }

func newBlobloom(n uint64, bits float64) (filter, error) {
	// With an unattainable rate it chooses the best number of hashes for the size.
	config := blobloom.Config{Capacity: n, FPRate: 1e-6, MaxBits: uint64(bits * float64(n))}
	return blobloomFilter{blobloom.NewOptimized(config)}, nil
}

func (b blobloomFilter) add(keys []uint64) {
	var x [8]byte
	for _, k := range keys {
		binary.LittleEndian.PutUint64(x[:], k)
		b.f.Add(xxh3.Hash(x[:]))
	}
}

func (b blobloomFilter) probe(keys []uint64, sel []uint32) int {
	found := 0
	var x [8]byte
	for i, k := range keys {
		binary.LittleEndian.PutUint64(x[:], k)
		sel[found] = uint32(i)
		found += measure.Bit(b.f.Has(xxh3.Hash(x[:])))
	}
	return found
}

func (b blobloomFilter) bytes() uint64 { return b.f.NumBits() / 8 }

// classicFilter is a Bloom filter without blocks, with its own hash, murmur3, and
// the number of hashes that it suggests for the size.
type classicFilter struct{ f *bitsandblooms.BloomFilter }

func newClassic(n uint64, bits float64) (filter, error) {
	m := uint(bits * float64(n))
	_, k := bitsandblooms.EstimateParameters(uint(n), rateOfClassic(bits))
	return classicFilter{bitsandblooms.New(m, k)}, nil
}

func (c classicFilter) add(keys []uint64) {
	var x [8]byte
	for _, k := range keys {
		binary.LittleEndian.PutUint64(x[:], k)
		c.f.Add(x[:])
	}
}

func (c classicFilter) probe(keys []uint64, sel []uint32) int {
	found := 0
	var x [8]byte
	for i, k := range keys {
		binary.LittleEndian.PutUint64(x[:], k)
		sel[found] = uint32(i)
		found += measure.Bit(c.f.Test(x[:]))
	}
	return found
}

func (c classicFilter) bytes() uint64 { return uint64(c.f.Cap()) / 8 }
