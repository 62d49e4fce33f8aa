package filterbuild

import (
	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/exact"
)

// minSketched is from how many bytes of bits on a sealed filter has registers.
const minSketched = 64 << 10

// An exact set is probed in memory in a form of its own (see [exact.Set.Index]),
// which may be larger than the bits by a factor of so many, or may take so many
// bytes, to be chosen.
const (
	indexFactor = 8
	indexFloor  = 16 << 20
)

// seal returns the finished filter of all keys, the bits folded as far as the
// rate allows, unless there is to be room. It is exact, where there is still a
// choice (see sample.go), if that payload takes no more pages in the file than
// the bits (or registers and bits), and can be probed fast in memory that is in
// proportion: which depends on the keys and the Spec alone.
//
// Where IDs come from a sequence, exact is smaller than 10 bits a key at 1 %
// if one in 280 or more is in use, and indexed in eight times the memory of the
// bits if one in 84 or more is.
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
	tell(f, p.bounds)
	return f, nil
}

// choose makes the final choice of the kind.
func (p *partial) choose() error {
	if err := p.decide(); err != nil || p.set == nil || p.spec.Want == codec.WantExact {
		return err
	}
	if exactIsBetter(p.set, p.sealedBits(p.set.Len())) {
		return nil
	}
	return p.blur()
}

// attach gives a sealed Bloom filter its registers, if they are known, where
// the bits are large enough to deserve them.
func attach(f *codec.Filter, r *bloom.Registers) {
	if r != nil && f.Params.Bytes() >= minSketched {
		f.Registers = r[:]
	}
}

// sealedBits returns the size in bytes that the bits of so many distinct keys
// have, or fold to, by the formula for the rate: without a filter in memory.
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

// exactIsBetter reports whether a set rather than so many bytes of bits should
// be the filter. Sizes count before compression: bits at 1 % do not compress,
// those at 0.01 % by a tenth, and a set without structure by little. Of a tie
// among small sets, as of all within one page, the exact one is better.
func exactIsBetter(set *exact.Set, bits uint64) bool {
	file := bits
	if bits >= minSketched {
		file += uint64(len(bloom.Registers{}))
	}
	return pages(set.WireBytes()) <= pages(file) && set.Indexable(max(indexFactor*bits, indexFloor))
}

// pages returns how many pages so many bytes take.
func pages(n uint64) uint64 { return (n + 4095) / 4096 }
