package filterbuild

import (
	"errors"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
)

// minSketched is from how many bytes of bits on a sealed filter has registers.
const minSketched = 64 << 10

// seal returns the finished filter of all keys: exact or Bloom, whichever has
// the smaller file, where there is a choice; the bits folded as far as the rate
// allows.
//
// The file counts, because it is what is sent to every worker. In memory an
// exact set may be the larger one: it takes up to two bytes a key, and what
// speeds up its probes a multiple of that (see [exact.Set.Index]). So it is not
// chosen either where its bytes before compression are fourfold those of the
// Bloom filter. The choice depends on the keys and the Spec alone.
func (p *partial) seal(id [32]byte) (*codec.Filter, error) {
	if err := p.decide(); err != nil {
		return nil, err
	}
	if p.set != nil {
		f := p.header(id)
		f.Params.Blocks = 0
		f.SetExact(p.set)
		if p.spec.Want == codec.WantExact {
			return f, nil
		}
		if ok, err := exactIsSmaller(f, p.sealedBits(p.set.Len())); err != nil || ok {
			return f, err
		}
		if err := p.blur(); err != nil {
			return nil, err
		}
	}
	f := p.header(id)
	bits, err := p.bits.Shrink(p.fpr)
	if err != nil {
		return nil, err
	}
	f.SetBloom(bits)
	attach(f, p.registers)
	return f, nil
}

// attach gives a sealed Bloom filter its registers, if they are known, where
// the bits are large enough to deserve them.
func attach(f *codec.Filter, r *bloom.Registers) {
	if r != nil && f.Params.Bytes() >= minSketched {
		f.Registers = r[:]
	}
}

// sealedBits returns the size in bytes that the bits of so many distinct keys
// fold to, by the formula for the rate: without a filter in memory.
func (p *partial) sealedBits(distinct uint64) uint64 {
	all := p.params.Blocks
	need := p.params.Geometry.BlocksFor(max(distinct, 1), min(bloom.FoldSlack*p.fpr, 0.999999))
	k := max(all/need, 1)
	for all%k != 0 {
		k--
	}
	return all / k * p.params.Geometry.BlockBytes()
}

// exactIsSmaller reports whether the file of an exact filter takes no more
// pages than that of a Bloom filter of so many bytes of bits: among sets of a
// few hundred keys, and where it is a tie, exact ones are better. Bits count as
// stored without compression: those of a well-sized filter at 1 % do not
// compress, at 0.01 % zstd saves a tenth.
func exactIsSmaller(f *codec.Filter, bits uint64) (bool, error) {
	negative, natural, err := f.Exact().Marshal()
	if err != nil {
		return false, err
	}
	if uint64(len(negative)+len(natural)) >= 4*max(bits, pageBytes) {
		return false, nil
	}
	bloomFile := uint64(pageBytes) + bits // a header, and the bits from the next page on
	if bits >= minSketched {
		bloomFile += uint64(len(bloom.Registers{}))
	}
	room := counter{left: (bloomFile + pageBytes - 1) / pageBytes * pageBytes}
	_, err = codec.Encode(&room, f, codec.Options{})
	if errors.Is(err, errFull) {
		return false, nil
	}
	return err == nil, err
}

const pageBytes = 4096

// counter is a writer that has room for so many bytes.
type counter struct{ left uint64 }

var errFull = errors.New("no room left")

func (c *counter) Write(b []byte) (int, error) {
	if uint64(len(b)) > c.left {
		return 0, errFull
	}
	c.left -= uint64(len(b))
	return len(b), nil
}
