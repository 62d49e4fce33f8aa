package micro

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	bitsandblooms "github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"
	"github.com/greatroar/blobloom"
	parquet "github.com/parquet-go/parquet-go/bloom"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// filter is a measured filter. Keys are integers; both methods include hashing.
type filter interface {
	add(keys []uint64)
	// probe writes the positions of found keys to sel, which has room for one more
	// than keys, and returns their number. Filters that answer one key at a time
	// store their answers without a branch, since half of the branches would be
	// mispredicted.
	probe(keys []uint64, sel []uint32) int
}

// contender is a kind of filter.
type contender struct {
	name string
	make func(b *testing.B, keys uint64) filter
}

func contenders() []contender {
	return []contender{
		{"bloomjoin-256", func(b *testing.B, n uint64) filter { return newOurs(b, bloom.Split256, n) }},
		{"bloomjoin-512", func(b *testing.B, n uint64) filter { return newOurs(b, bloom.Split512, n) }},
		{"parquet-go", newParquet}, {"arrow-go", newArrow}, {"blobloom", newBlobloom}, {"bits-and-blooms", newClassic},
	}
}

// ours is this project's filter.
type ours struct{ f *bloom.Filter }

func newOurs(b *testing.B, g bloom.Geometry, n uint64) filter {
	f, err := bloom.New(bloom.Params{Geometry: g, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: bitsPerKey * n / 8 / g.BlockBytes()})
	if err != nil {
		b.Fatal(err)
	}
	return ours{f}
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

// hashSpan is the number of keys that are hashed at a time for filters that take
// hashes in bulk. Their hashes fit in the first-level cache.
const hashSpan = 1024

// parquetFilter is the split-block filter of parquet-go, with its vectorised XXH64
// and bulk insert, as its writer uses them.
type parquetFilter struct{ f parquet.SplitBlockFilter }

func newParquet(_ *testing.B, n uint64) filter {
	return parquetFilter{make(parquet.SplitBlockFilter, bitsPerKey*n/8/parquet.BlockSize)}
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
			found += bit(p.f.Check(h))
		}
	}
	return found
}

// arrowFilter is the split-block filter of arrow-go with bulk insert. Its size is a
// power of two, at most 128 MiB. Its hash is XXH64 of eight bytes.
type arrowFilter struct {
	build metadata.BloomFilterBuilder
	check metadata.BloomFilter
}

func newArrow(b *testing.B, n uint64) filter {
	build := metadata.NewBloomFilter(uint32(bitsPerKey*n/8), 128<<20, memory.DefaultAllocator)
	check, ok := build.(metadata.BloomFilter)
	if !ok {
		b.Fatal("arrow-go's filter cannot be probed as it is built")
	}
	return arrowFilter{build, check}
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
		found += bit(a.check.CheckHash(xxhash.Sum64(b[:])))
	}
	return found
}

// blobloomFilter is a blocked filter with 512-bit blocks and xxh3, the first hash in
// its documentation.
type blobloomFilter struct{ f *blobloom.Filter }

func newBlobloom(_ *testing.B, n uint64) filter {
	// With an unattainable rate it chooses the best number of hashes for the size.
	config := blobloom.Config{Capacity: n, FPRate: 1e-6, MaxBits: bitsPerKey * n}
	return blobloomFilter{blobloom.NewOptimized(config)}
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
		found += bit(b.f.Has(xxh3.Hash(x[:])))
	}
	return found
}

// classicFilter is a Bloom filter without blocks, with its own hash, murmur3, and
// the number of hashes that it suggests for the size.
type classicFilter struct{ f *bitsandblooms.BloomFilter }

func newClassic(_ *testing.B, n uint64) filter {
	_, k := bitsandblooms.EstimateParameters(uint(n), math.Exp2(-bitsPerKey*math.Ln2))
	return classicFilter{bitsandblooms.New(uint(bitsPerKey*n), k)}
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
		found += bit(c.f.Test(x[:]))
	}
	return found
}
