package builds

import (
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// minSketched is the size of the bits, in bytes, from which a sealed filter has
// registers.
const minSketched = 64 << 10

// In memory, an exact set is probed in a separate form (see [exact.Set.SetIndexBudget]). The
// set is chosen only if that form takes at most indexFactor times the size of the
// bits, or at most indexFloor bytes.
const (
	indexFactor = 8
	indexFloor  = 16 << 20
)

// seal returns the finished filter of all keys, with the bits folded as far as
// the rate allows, unless it has a capacity. If both kinds are possible, it is
// exact if that payload takes no more pages in the file than the bits and
// registers, and its index for fast probes is small enough (indexFactor). This
// depends on the keys and the Spec alone.
//
// For IDs from a sequence, exact takes less than the 10 bits per key of a Bloom
// filter at 1 % if one in 280 or more is used, and its index less than eight
// times the memory of the bits if one in 84 or more is.
func (p *partial) seal(id [32]byte) (*filters.Filter, error) {
	if err := p.choose(); err != nil {
		return nil, err
	}
	f, bits := p.header(id), p.bits
	if p.set != nil {
		f.Facts().Params.Blocks = 0
		f.SetExact(p.set)
		return f, nil
	}
	if !p.spec.Room {
		var err error
		if bits, err = bits.Shrink(p.fpr, p.share.of.beside(bits.Params())); err != nil {
			return nil, err
		}
	}
	p.give(f, bits)
	return f, nil
}

// choose makes the final choice between exact and Bloom.
func (p *partial) choose() error {
	if err := p.decide(); err != nil || p.set == nil || p.spec.Want == filters.KindExact {
		return err
	}
	if exactIsBetter(p.set, p.sealedBits(p.set.Len())) {
		return nil
	}
	return p.toBits()
}

// give gives a sealed Bloom filter its bits, the bounds of its keys and, if they are known
// and the bits are large enough, its registers.
func (p *partial) give(f *filters.Filter, bits *bloom.Filter) {
	f.SetBloom(bits)
	if p.registers != nil && f.Facts().Params.Bytes() >= minSketched {
		f.Facts().Registers = p.registers[:]
	}
	setBounds(f, p.bounds)
}

// sealedBits predicts the size in bytes to which the bits fold when they hold the
// given number of distinct keys, from the formula for the rate.
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

// exactIsBetter reports whether the set is better than the given bytes of bits.
// It compares sizes before compression: bits at 1 % do not compress, bits at
// 0.01 % by a tenth, and a set without structure hardly. If both take the same
// number of pages, the set is better.
func exactIsBetter(set *exact.Set, bits uint64) bool {
	file := bits
	if bits >= minSketched {
		file += uint64(len(bloom.Registers{}))
	}
	return pages(set.WireBytes()) <= pages(file) && set.Indexable(max(indexFactor*bits, indexFloor))
}

// pages returns the number of pages that n bytes take.
func pages(n uint64) uint64 { return (n + 4095) / 4096 }
