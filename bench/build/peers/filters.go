package main

import (
	"encoding/binary"
	"errors"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	bitsandblooms "github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"
	"github.com/parquet-go/parquet-go/bloom"
)

// filter is a Bloom filter. It is not safe for concurrent use.
type filter interface {
	add(batch)
	merge(filter) error // of the same kind and size
	count(batch) (found uint64)
	bytes() uint64
}

// kind creates filters that can be merged into one.
type kind struct {
	module string
	maker  func(keys uint64, fpr float64) func() filter
}

var kinds = map[string]kind{
	"none": {"github.com/apache/arrow-go/v18", func(uint64, float64) func() filter {
		return func() filter { return &nothing{} }
	}},
	"parquet-go": {"github.com/parquet-go/parquet-go", func(n uint64, _ float64) func() filter {
		return func() filter { return make(parquetFilter, bloom.NumSplitBlocksOf(int64(n), bitsPerKey)) }
	}},
	"bits-and-blooms": {"github.com/bits-and-blooms/bloom/v3", func(n uint64, fpr float64) func() filter {
		return func() filter { return classic{bitsandblooms.NewWithEstimates(uint(n), fpr)} }
	}},
	"arrow-go": {"github.com/apache/arrow-go/v18", func(n uint64, fpr float64) func() filter {
		one := &arrowFilter{build: metadata.NewBloomFilterFromNDVAndFPP(uint32(n), fpr, mostBytes, memory.DefaultAllocator)}
		return func() filter { return one }
	}},
}

// bitsPerKey is the recommendation of parquet-go's documentation for about 1 %;
// mostBytes is the largest filter of arrow-go.
const (
	bitsPerKey = 10
	mostBytes  = 128 << 20
)

// hashSpan is the number of keys that are hashed at a time for filters that take
// hashes in bulk. Their hashes fit in the first-level cache.
const hashSpan = 1024

// nothing is not a filter: it reads every key and keeps a sum.
type nothing struct{ sum uint64 }

func (s *nothing) add(b batch) {
	for _, v := range b.ints {
		s.sum += uint64(v)
	}
	for _, v := range b.strings {
		s.sum += uint64(len(v))
	}
}

func (s *nothing) merge(other filter) error {
	o, ok := other.(*nothing)
	if !ok {
		return errAlien
	}
	s.sum += o.sum
	return nil
}

func (s *nothing) count(batch) uint64 { return 0 }
func (s *nothing) bytes() uint64      { return 0 }

var errAlien = errors.New("filters of different kinds")

// parquetFilter is the split-block filter of parquet-go, with its vectorised XXH64 and
// bulk insert.
type parquetFilter bloom.SplitBlockFilter

// hashes calls use with the hashes of the keys, in batches.
func (parquetFilter) hashes(b batch, use func([]uint64)) {
	var h [hashSpan]uint64
	for ints := unsigned(b.ints); len(ints) > 0; {
		n := bloom.XXH64{}.MultiSum64Uint64(h[:min(len(ints), hashSpan)], ints[:min(len(ints), hashSpan)])
		use(h[:n])
		ints = ints[n:]
	}
	for strings := b.strings; len(strings) > 0; {
		n := min(len(strings), hashSpan)
		for i, s := range strings[:n] {
			h[i] = bloom.XXH64{}.Sum64(s)
		}
		use(h[:n])
		strings = strings[n:]
	}
}

// unsigned converts integers for the hash function, without copying.
func unsigned(v []int64) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

func (f parquetFilter) add(b batch) { f.hashes(b, bloom.SplitBlockFilter(f).InsertBulk) }

func (f parquetFilter) count(b batch) (found uint64) {
	f.hashes(b, func(hashes []uint64) {
		for _, h := range hashes {
			if bloom.SplitBlockFilter(f).Check(h) {
				found++
			}
		}
	})
	return found
}

func (f parquetFilter) merge(other filter) error {
	o, ok := other.(parquetFilter)
	if !ok || len(o) != len(f) {
		return errAlien
	}
	for i := range f {
		for lane := range f[i] {
			f[i][lane] |= o[i][lane]
		}
	}
	return nil
}

func (f parquetFilter) bytes() uint64 { return uint64(len(f)) * bloom.BlockSize }

// classic is a Bloom filter without blocks.
type classic struct{ f *bitsandblooms.BloomFilter }

func (c classic) add(b batch) {
	var x [8]byte
	for _, v := range b.ints {
		binary.LittleEndian.PutUint64(x[:], uint64(v))
		c.f.Add(x[:])
	}
	for _, v := range b.strings {
		c.f.Add(v)
	}
}

func (c classic) count(b batch) (found uint64) {
	var x [8]byte
	for _, v := range b.ints {
		binary.LittleEndian.PutUint64(x[:], uint64(v))
		if c.f.Test(x[:]) {
			found++
		}
	}
	for _, v := range b.strings {
		if c.f.Test(v) {
			found++
		}
	}
	return found
}

func (c classic) merge(other filter) error {
	o, ok := other.(classic)
	if !ok {
		return errAlien
	}
	return c.f.Merge(o.f)
}

func (c classic) bytes() uint64 { return uint64(c.f.Cap()) / 8 }

// arrowFilter is the split-block filter of arrow-go. Its size is a power of two. It has
// no union, so all threads share one filter and insert their hashes in turn.
type arrowFilter struct {
	mu    sync.Mutex
	build metadata.BloomFilterBuilder
}

func (a *arrowFilter) add(b batch) {
	hashes := arrowHashes(b)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.build.InsertBulk(hashes)
}

// arrowHashes computes the hashes of arrow-go's hasher, without its interface.
func arrowHashes(b batch) []uint64 {
	hashes := make([]uint64, 0, b.len())
	var x [8]byte
	for _, v := range b.ints {
		binary.LittleEndian.PutUint64(x[:], uint64(v))
		hashes = append(hashes, xxhash.Sum64(x[:]))
	}
	for _, v := range b.strings {
		hashes = append(hashes, xxhash.Sum64(v))
	}
	return hashes
}

func (a *arrowFilter) count(b batch) (found uint64) {
	check, ok := a.build.(metadata.BloomFilter)
	if !ok {
		return 0
	}
	for _, h := range arrowHashes(b) {
		if check.CheckHash(h) {
			found++
		}
	}
	return found
}

func (a *arrowFilter) merge(other filter) error {
	if other != filter(a) {
		return errAlien
	}
	return nil
}

func (a *arrowFilter) bytes() uint64 { return uint64(a.build.Size()) }
