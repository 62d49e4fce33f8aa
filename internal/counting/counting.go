// Package counting is a Bloom filter from which keys can be removed: each bit of a block
// is a counter of the keys that set it (Fan, Cao, Almeida, Broder: "Summary Cache: A
// Scalable Wide-Area Web Cache Sharing Protocol", 2000).
//
// It handles hashes only: lists of them ([List]) and counters from files change counters, and
// a [bloom.Filter] has the bits of those above 0. A block of [bloom.Split256] has 256 counters
// of four bits. One that has reached [Most] is saturated: how often it was raised is no longer
// known, so it never falls again. Keys that share it may stay in the filter after they were
// removed; none is lost.
//
// Methods that only read may run concurrently; a [Change] needs exclusive access, and Combine
// exclusive access to its blocks.
package counting

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hugepage"
)

const (
	// BlockBytes is the size of a block: 256 counters, two in a byte.
	BlockBytes = 128
	// Most is the value of a saturated counter.
	Most = 15
	// MaxBlocks is the largest number of blocks, 256 GiB.
	MaxBlocks = 1 << 31

	blockWords = BlockBytes / 8
	ones       = 0x1111_1111_1111_1111 // the lowest bit of each counter in a word
	evens      = 0x0f0f_0f0f_0f0f_0f0f // every other counter
	lows       = 0x0101_0101_0101_0101
)

// ErrShort means that a counter would fall below 0: not all keys to remove are in the filter.
var ErrShort = errors.New("counters would fall below 0")

// Filter is counters in memory.
type Filter struct {
	params bloom.Params
	words  []uint64 // all blocks, in order; 16 counters in a word, the first in its lowest bits
}

// Bytes returns the size of the counters beside the bits of p.
func Bytes(p bloom.Params) uint64 { return p.Blocks * BlockBytes }

// Check returns an error if there are no counting filters of p.
func Check(p bloom.Params) error {
	if p.Geometry != bloom.Split256 {
		return faults.Unsupported(fault.At{}, "a counting filter in %s", p.Geometry).WithHint("use {Geometry split-256}")
	}
	if p.Blocks > MaxBlocks {
		return faults.Unsupported(fault.At{}, "a counting filter of %d blocks, more than %d", p.Blocks, uint64(MaxBlocks)).
			WithHint("lower {Expect} or {MaxSize}, or raise {FPR}")
	}
	return p.Check()
}

// New returns an empty filter. If p comes from a file, compare Bytes with a limit before
// the call.
func New(p bloom.Params) (*Filter, error) {
	if err := Check(p); err != nil {
		return nil, err
	}
	if uint64(int(Bytes(p))) != Bytes(p) {
		return nil, faults.Unsupported(fault.At{}, "counters of %d bytes, more than there are addresses on this machine", Bytes(p))
	}
	return &Filter{params: p, words: hugepage.Words(p.Blocks * blockWords)}, nil
}

// Params returns the parameters of the bits.
func (f *Filter) Params() bloom.Params { return f.params }

// Clone returns a copy that shares no memory with f.
func (f *Filter) Clone() *Filter {
	g := &Filter{params: f.params, words: hugepage.Words(uint64(len(f.words)))}
	copy(g.words, f.words)
	return g
}

// Counters returns the counters as bytes, which must not be changed: counter i of all is
// in the lower half of byte i/2 if i is even, else in the upper half.
func (f *Filter) Counters() []byte {
	// All supported machines are little-endian, so words in memory have the file's bytes.
	return unsafe.Slice((*byte)(unsafe.Pointer(&f.words[0])), len(f.words)*8)
}

// Bits returns the Bloom filter of the keys.
func (f *Filter) Bits() (*bloom.Filter, error) {
	b, err := bloom.New(f.params)
	if err != nil {
		return nil, err
	}
	const step = 1 << 20
	var set []byte
	for rest := f.Counters(); len(rest) > 0; rest = rest[min(step, len(rest)):] {
		set = AppendBits(set[:0], rest[:min(step, len(rest))])
		if err := b.OrBlocks((Bytes(f.params)-uint64(len(rest)))/BlockBytes, set); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// AppendBits appends a bit for each counter of whole blocks: whether it is above 0.
func AppendBits(dst, counters []byte) []byte {
	for ; len(counters) >= 8; counters = counters[8:] {
		w := binary.LittleEndian.Uint64(counters)
		w = (w | w>>1 | w>>2 | w>>3) & ones
		w = (w | w>>3) & 0x0303_0303_0303_0303
		w = (w | w>>6) & 0x000f_000f_000f_000f
		w = (w | w>>12) & 0x0000_00ff_0000_00ff
		dst = binary.LittleEndian.AppendUint16(dst, uint16(w|w>>24))
	}
	return dst
}

// Saturated returns how many of the counters of whole blocks are saturated.
func Saturated(counters []byte) (n uint64) {
	for ; len(counters) >= 8; counters = counters[8:] {
		w := binary.LittleEndian.Uint64(counters)
		n += uint64(bits.OnesCount64(w & (w >> 1) & (w >> 2) & (w >> 3) & ones))
	}
	return n
}

// Combine adds counters of another filter with the same parameters, from block lo on, or
// subtracts them. ErrShort means that one to subtract is larger than f's, whose content is
// then undefined. Calls for different blocks may run concurrently.
func (f *Filter) Combine(lo uint64, counters []byte, subtract bool) error {
	words := f.words[lo*blockWords:][:len(counters)/8]
	short := uint64(0)
	for i, a := range words {
		b := binary.LittleEndian.Uint64(counters[8*i:])
		if !subtract {
			words[i] = sum(a&evens, b&evens) | sum(a>>4&evens, b>>4&evens)<<4
			continue
		}
		// A saturated counter stays; no other is larger.
		even, s := difference(a&evens, b&evens)
		odd, t := difference(a>>4&evens, b>>4&evens)
		words[i] = even | odd<<4
		short |= s | t
	}
	if short != 0 {
		return ErrShort
	}
	return nil
}

// sum adds eight counters to eight others.
func sum(a, b uint64) uint64 {
	n := a + b
	over := n >> 4 & lows
	return n&evens | over*Most
}

// difference subtracts eight counters from eight others. short is not 0 if one is too large.
func difference(a, b uint64) (d, short uint64) {
	full := (a + lows) >> 4 & lows * Most // of those that are saturated
	d = (a | lows<<4) - b&^full
	return d & evens, ^d & (lows << 4)
}

// Way is how a [Change] changes counters.
type Way int

const (
	AddToSet Way = iota // raise the counters of each key that does not seem to be in
	AddAll              // raise the counters of each key, for each of its copies
	Remove              // lower the counters of each key that seems to be in
)

// Change changes the counters of many keys, in ascending order of their hashes. Whether a
// key is in is judged by the counters before the change.
type Change struct {
	Done uint64 // keys added or removed, with their copies
	Left uint64 // keys left out: those of AddToSet that seem to be in, those of Remove that are not in

	of     *Filter
	way    Way
	block  uint64
	now    *[blockWords]uint64 // the block; nil before the first
	before [blockWords]uint64
}

// Change begins a change.
func (f *Filter) Change(way Way) *Change { return &Change{of: f, way: way} }

// Add takes the next keys. ErrShort means that the content of the filter is now undefined.
func (c *Change) Add(keys Run) (err error) {
	for i, h := range keys.Hashes {
		block, at := bloom.Place(h, c.of.params.Blocks)
		if c.now == nil || block != c.block {
			c.block, c.now = block, (*[blockWords]uint64)(c.of.words[block*blockWords:])
			c.before = *c.now
		}
		copies := keys.copies(i)
		if c.way != AddAll && contains(&c.before, &at) != (c.way == Remove) {
			c.Left += copies
			continue
		}
		c.Done += copies
		for _, k := range at {
			w, shift := &c.now[k/16], k%16*4
			switch n := *w >> shift & Most; {
			case c.way != Remove:
				*w += min(copies, Most-n) << shift
			case n == Most:
			case n < copies:
				err = ErrShort
			default:
				*w -= copies << shift
			}
		}
	}
	return err
}

// contains reports whether no counter at the given places is 0.
func contains(block *[blockWords]uint64, at *[bloom.BitsPerKey]uint8) bool {
	for _, c := range at {
		if block[c/16]>>(c%16*4)&Most == 0 {
			return false
		}
	}
	return true
}
