// Package filterbuild turns an ID set into a filter.
//
// The way is
//
//	ID files ── Split(shard) ──► workers, each filling a private partial filter
//	partial filters ── OR-merge ──► one ── Seal: fold, choose the kind ──► codec.Filter
//
// inside one process, and across processes: a worker with a shard writes its
// partial filter to a file, and [Merge] reads them. [Spec] holds everything
// that all of them must agree on; each computes it from the same inputs alone.
// What comes out depends on the union of the keys and on the Spec, never on
// how the keys were divided.
package filterbuild

import (
	"crypto/sha256"
	"fmt"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/exact"
	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Spec is what all workers of a build agree on.
type Spec struct {
	Names    []string   // of the key columns
	Classes  []string   // of the key columns
	Hash     bloom.Hash //
	Capacity uint64     // upper bound on the keys, from which the size follows
	FPR      float64    // wished; 0: by [bloom.DefaultFPR] of Capacity
	MaxSize  uint64     // most bytes of the bits; 0: no limit
	Want     codec.Want // kind of filter
}

// size returns the number of blocks and the rate that the capacity asks for.
func (s Spec) size() (blocks uint64, fpr float64, err error) {
	fpr = s.FPR
	if fpr == 0 {
		fpr = bloom.DefaultFPR(s.Capacity)
	}
	g := bloom.Split256
	blocks = g.Blocks(max(s.Capacity, 1), fpr)
	if s.MaxSize == 0 || blocks*g.BlockBytes() <= s.MaxSize {
		return blocks, fpr, nil
	}
	if blocks = g.BlocksWithin(s.MaxSize); blocks == 0 {
		return 0, 0, fmt.Errorf("a filter of at most %d bytes: want at least %d", s.MaxSize, g.BlockBytes())
	}
	// A filter so small that it passes nearly everything is still a filter.
	return blocks, min(g.FPR(blocks, max(s.Capacity, 1)), 0.999999), nil
}

// integer reports whether the key can be held exactly.
func (s Spec) integer() bool {
	return len(s.Classes) == 1 && keys.Class(s.Classes[0]) == keys.Integer
}

// check refuses what no filter can be.
func (s Spec) check() error {
	if s.Want == codec.WantExact && !s.integer() {
		return fault.Unsupported(fault.At{}, "an exact filter over a key of class %v", s.Classes).
			WithHint("exact filters hold integers; use --kind bloom")
	}
	if s.FPR != 0 && !(s.FPR > 0 && s.FPR < 1) { // as worded, NaN is refused too
		return fmt.Errorf("false-positive rate %v: want more than 0 and less than 1", s.FPR)
	}
	return nil
}

// id digests the spec together with the identity of the inputs.
func (s Spec) id(inputs [32]byte) [32]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d %v %d %d %q ", s.Names, s.Classes, s.Hash, s.Capacity, s.FPR, s.MaxSize, s.Want, keys.NormalForm)
	h.Write(inputs[:])
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

// partial is the filter of some of the keys. It starts exact where that is
// possible and wanted, and turns into a Bloom filter when that is cheaper.
type partial struct {
	spec   Spec
	params bloom.Params
	fpr    float64
	keys   uint64 // added, duplicates counted

	set     *exact.Set    // nil once, or if never, exact
	checkAt uint64        // number of keys at which the set's cost is looked at again
	bits    *bloom.Filter // nil while exact
	hashes  []uint64
}

func newPartial(s Spec) (*partial, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	blocks, fpr, err := s.size()
	if err != nil {
		return nil, err
	}
	p := &partial{spec: s, fpr: fpr, params: bloom.Params{Geometry: bloom.Split256, Hash: s.Hash, Blocks: blocks}}
	if s.integer() && s.Want != codec.WantBloom {
		p.set = exact.New()
		return p, nil
	}
	p.bits, err = bloom.New(p.params)
	return p, err
}

// add puts in the keys of a batch.
func (p *partial) add(b *keys.Batch) error {
	p.keys += uint64(len(b.Rows))
	if p.set != nil {
		if values, signed, ok := b.Ints(); ok {
			p.set.Add(values, signed)
		}
		return p.settle()
	}
	p.hashes = b.Hash(p.params.Hash, p.hashes)
	p.bits.Add(p.hashes)
	return nil
}

// settle gives up the exact form if it costs more than the Bloom filter. The
// cost takes a walk over the set, so that it is taken again only after as many
// keys as could change the answer.
func (p *partial) settle() error {
	if p.set == nil || p.spec.Want == codec.WantExact || p.keys < p.checkAt {
		return nil
	}
	cost, limit := p.set.Cost(), p.params.Bytes()
	if cost > limit {
		return p.blur()
	}
	p.checkAt = p.keys + max((limit-cost)/exact.MaxCostPerKey, 1<<12)
	return nil
}

// decide looks at the cost of the exact form without regard to when it was
// looked at last: what is decided for a set is the same however it was filled.
func (p *partial) decide() error {
	p.checkAt = 0
	return p.settle()
}

// blur turns the exact set into a Bloom filter.
func (p *partial) blur() error {
	bits, err := bloom.New(p.params)
	if err != nil {
		return err
	}
	for values := range p.set.Values {
		p.hashes = append(p.hashes[:0], values...)
		p.params.Hash.Sum64(p.hashes, values)
		bits.Add(p.hashes)
	}
	p.set, p.bits = nil, bits
	return nil
}

// merge takes in the keys of q, which is used up.
func (p *partial) merge(q *partial) error {
	if p.params != q.params {
		return p.params.Match(q.params)
	}
	p.keys += q.keys
	if p.set != nil && q.set != nil {
		p.set.Union(q.set)
		return p.decide()
	}
	for _, x := range []*partial{p, q} {
		if x.set != nil {
			if err := x.blur(); err != nil {
				return err
			}
		}
	}
	return p.bits.Union(q.bits)
}

// header returns a filter without its keys.
func (p *partial) header(id [32]byte) *codec.Filter {
	f := &codec.Filter{
		NormalForm: keys.NormalForm, Params: p.params, Keys: p.keys,
		FPRAsked: p.fpr, Want: p.spec.Want, BuildID: id,
	}
	for i, name := range p.spec.Names {
		f.Key = append(f.Key, codec.KeyColumn{Name: name, Class: p.spec.Classes[i]})
	}
	return f
}

// open returns the filter as a partial one, which holds the given shards.
func (p *partial) open(id [32]byte, part codec.Partial) *codec.Filter {
	f := p.header(id)
	f.Partial = &part
	if p.set != nil {
		f.SetExact(p.set)
	} else {
		f.SetBloom(p.bits)
	}
	return f
}

// seal returns the finished filter of all keys: the smaller of the folded
// Bloom filter and the exact set, where there is a choice.
func (p *partial) seal(id [32]byte) (*codec.Filter, error) {
	if err := p.decide(); err != nil {
		return nil, err
	}
	f := p.header(id)
	set := p.set
	if set != nil && p.spec.Want == codec.WantExact {
		f.Params.Blocks = 0
		f.SetExact(set)
		return f, nil
	}
	if set != nil {
		if err := p.blur(); err != nil {
			return nil, err
		}
	}
	bits, err := p.bits.Shrink(p.fpr)
	if err != nil {
		return nil, err
	}
	if set != nil {
		negative, natural, err := set.Marshal()
		if err != nil {
			return nil, err
		}
		if pages(uint64(len(negative)+len(natural))) <= pages(bits.Params().Bytes()) {
			f.Params.Blocks = 0
			f.SetExact(set)
			return f, nil
		}
	}
	f.Params = bits.Params()
	f.SetBloom(bits)
	return f, nil
}

// pages rounds a size up to the pages that it takes in a file: among sets of a
// few hundred keys an exact one costs nothing more.
func pages(bytes uint64) uint64 { return (bytes + 4095) / 4096 }
