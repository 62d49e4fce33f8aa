package filterbuild

import (
	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/exact"
)

// minSketched is the minimum size of the bits, in bytes, of a sealed filter with
// registers.
const minSketched = 64 << 10

// In memory, an exact set is probed in a separate form (see [exact.Set.Index]). The
// set is chosen only if that form takes at most indexFactor times the size of the
// bits, or at most indexFloor bytes.
const (
	indexFactor = 8
	indexFloor  = 16 << 20
)

// seal returns the finished filter of all keys, with the bits folded as far as the
// rate allows, unless Room is set. If there is still a choice (see sample.go), the
// filter is exact if that payload takes no more pages in the file than the bits (or
// registers and bits) and its form for fast probing is not out of proportion. The
// choice depends on the keys and the Spec alone.
//
// For IDs from a sequence, exact is smaller than 10 bits per key at 1 % if at least
// one in 280 is used; its index takes at most eight times the memory of the bits if
// at least one in 84 is.
func (p *partial) seal(id [32]byte) (*codec.Filter, error) {
	if err := p.choose(); err != nil {
		return nil, err
	}
	f, bits := p.header(id), p.bits
	if p.set != nil {
		f.Params.Blocks = 0
		f.SetExact(p.set)
		return f, nil
	}
	if !p.spec.Room {
		var err error
		if bits, err = bits.Shrink(p.fpr); err != nil {
			return nil, err
		}
	}
	f.SetBloom(bits)
	attach(f, p.registers)
	setBounds(f, p.bounds)
	return f, nil
}

// choose makes the final choice between exact and Bloom.
func (p *partial) choose() error {
	if err := p.decide(); err != nil || p.set == nil || p.spec.Want == codec.WantExact {
		return err
	}
	if exactIsBetter(p.set, p.sealedBits(p.set.Len())) {
		return nil
	}
	return p.toBits()
}

// attach adds the registers, if known, to a sealed Bloom filter whose bits are
// large enough for them.
func attach(f *codec.Filter, r *bloom.Registers) {
	if r != nil && f.Params.Bytes() >= minSketched {
		f.Registers = r[:]
	}
}

// sealedBits returns the size in bytes of the bits for a number of distinct keys,
// after folding, computed from the formula for the rate, without a filter in
// memory.
func (p *partial) sealedBits(distinct uint64) uint64 {
	all := p.full.Blocks
	if p.spec.Room {
		return p.full.Bytes()
	}
	need := p.full.Geometry.BlocksFor(max(distinct, 1), bloom.FoldLimit(p.fpr))
	k := max(all/need, 1)
	for all%k != 0 {
		k--
	}
	return all / k * p.full.Geometry.BlockBytes()
}

// exactIsBetter reports whether a set should be the filter rather than the given
// number of bytes of bits. It compares sizes before compression: bits at 1 % do not
// compress, bits at 0.01 % shrink by a tenth, and a set without structure by
// little. The exact set wins a tie, which is frequent among small sets, as all
// within one page are equal.
func exactIsBetter(set *exact.Set, bits uint64) bool {
	file := bits
	if bits >= minSketched {
		file += uint64(len(bloom.Registers{}))
	}
	return pages(set.WireBytes()) <= pages(file) && set.Indexable(max(indexFactor*bits, indexFloor))
}

// pages returns how many pages n bytes take.
func pages(n uint64) uint64 { return (n + 4095) / 4096 }
