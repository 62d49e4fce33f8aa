// Package bloom is a Bloom filter for joins: built in parts, OR-merged into
// one, broadcast, and probed with every row of a log.
//
// It knows 64-bit hashes and nothing else. What a key is and how it becomes
// bytes is decided elsewhere; [Hash] turns those bytes into the 64 bits that
// [Filter.Add] and [Filter.Probe] take, a batch at a time.
//
// # Geometry
//
// A filter is an array of N blocks of eight lanes. A hash sets one bit in each
// lane of one block, so that a key costs one cache line:
//
//	block = (h>>32)·N >> 32                // fastrange on the high half
//	bit j = (uint32(h)·salt[j]) >> 27      // Split256: lanes of 32 bits
//	bit j = (h·spread) >> (58-6j) mod 64   // Split512: lanes of 64 bits
//
// [Split256] is the split-block Bloom filter of the Parquet format
// (https://github.com/apache/parquet-format/blob/master/BloomFilter.md);
// [Split512] is smaller where few false positives are wanted.
//
// The block number is floor(x·N) for an x in [0,1) that the hash alone
// determines. Hence block floor(b/f) of a filter with N/f blocks takes exactly
// the keys of block b here: OR-ing f neighbours folds a filter without knowing
// its keys ([Filter.Fold]), and filters of equal [Params] OR-merge
// ([Filter.Union]).
//
// # Speed
//
// Add and Probe take batches, because a batch lets the memory work on many
// blocks at a time. On amd64 they run in assembly for AVX2 and, where that
// pays, for AVX-512 (written by the program in avo), elsewhere or with the
// build tag purego in portable Go; all give the same bits and answers. A
// filter of 1 MiB or more lies in huge pages where the system has them.
//
// # Concurrency
//
// Reading methods may run at the same time as each other. Methods that change
// a filter (Add, Union, Intersect, OrBlocks) need it for themselves.
package bloom

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/hugepage"
)

// Params is all that must agree before two filters may be merged or a filter
// probed. The zero value is not valid.
type Params struct {
	Geometry Geometry
	Hash     Hash
	Blocks   uint64 // N, from 1 to MaxBlocks
}

// Bytes returns the size of the filter's bits.
func (p Params) Bytes() uint64 { return p.Blocks * p.Geometry.BlockBytes() }

// Check returns an error for a geometry, hash or block count that this
// package cannot work with.
func (p Params) Check() error {
	if !p.Geometry.valid() {
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

// Filter is a Bloom filter in memory. Make one with [New], or with [View] of
// bits that stand elsewhere.
type Filter struct {
	params Params
	words  []uint64 // of all blocks, in order
	fixed  bool     // the words belong to somebody else, who gave them to View

	// What the bits say, each computed when it is first asked for. A method
	// that changes the bits drops both.
	fpr   atomic.Pointer[float64]
	count atomic.Pointer[Estimate]
}

// New returns an empty filter. It allocates p.Bytes() bytes: a caller that
// takes p from a file compares that with its limit first.
func New(p Params) (*Filter, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if p.Bytes() > mostBytes {
		return nil, fault.Unsupported(fault.At{}, "filter of %d bytes, more than there are addresses on this machine", p.Bytes())
	}
	return &Filter{params: p, words: hugepage.Words(p.Blocks * p.Geometry.words())}, nil
}

// mostBytes is the most that a slice can have beside its alignment.
const mostBytes = math.MaxInt - 2*hugepage.Bytes

// Params returns what the filter was made with.
func (f *Filter) Params() Params { return f.params }

// Clone returns a copy that shares nothing with f.
func (f *Filter) Clone() *Filter {
	g := &Filter{params: f.params, words: hugepage.Words(uint64(len(f.words)))}
	copy(g.words, f.words)
	return g
}

// span is how many hashes go to a kernel at a time: it keeps what was computed
// of them in the first-level cache, and a goroutine in assembly, which the
// scheduler cannot stop, from holding up a garbage collection.
const span = 1024

// Add sets the bits of every hash.
func (f *Filter) Add(hashes []uint64) {
	f.changes()
	g, n := f.params.Geometry, f.params.Blocks
	for len(hashes) > span {
		g.add(f.words, n, hashes[:span])
		hashes = hashes[span:]
	}
	g.add(f.words, n, hashes)
}

// AddInts adds the hashes of integers: what Hash.Sum64 and Add do in two
// passes.
func (f *Filter) AddInts(values []uint64) {
	f.changes()
	var hashes [span]uint64
	g, n := f.params.Geometry, f.params.Blocks
	for len(values) > 0 {
		k := min(len(values), span)
		f.params.Hash.Sum64(hashes[:k], values[:k])
		g.add(f.words, n, hashes[:k])
		values = values[k:]
	}
}

// Probe appends to sel the positions in hashes of those that may have been
// added, in ascending order, and returns it. A position that is not returned
// was surely not added. There may be up to 2^32 hashes. It allocates only if
// sel has no room for a position of every hash.
func (f *Filter) Probe(hashes []uint64, sel []uint32) []uint32 {
	g, n := f.params.Geometry, f.params.Blocks
	sel = slices.Grow(sel, len(hashes))
	for lo := 0; lo < len(hashes); lo += span {
		hi := min(lo+span, len(hashes))
		sel = sel[:uint64(len(sel))+g.probe(f.words, n, hashes[lo:hi], uint32(lo), sel[len(sel):cap(sel)])]
	}
	return sel
}

// ProbeInts probes the hashes of integers straight from a column of values:
// what Hash.Sum64 and Probe do in two passes.
func (f *Filter) ProbeInts(values []uint64, sel []uint32) []uint32 {
	var hashes [span]uint64
	g, n := f.params.Geometry, f.params.Blocks
	sel = slices.Grow(sel, len(values))
	for lo := 0; lo < len(values); lo += span {
		k := min(span, len(values)-lo)
		f.params.Hash.Sum64(hashes[:k], values[lo:lo+k])
		sel = sel[:uint64(len(sel))+g.probe(f.words, n, hashes[:k], uint32(lo), sel[len(sel):cap(sel)])]
	}
	return sel
}

// Contains reports whether hash h may have been added.
func (f *Filter) Contains(h uint64) bool {
	b := f.params.Geometry.words() * index(h, f.params.Blocks)
	if f.params.Geometry == Split512 {
		return has512((*block512)(f.words[b:]), h) != 0
	}
	return has256((*block256)(f.words[b:]), h) != 0
}
