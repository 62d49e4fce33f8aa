package builds

import (
	"errors"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// partial is a filter of some of the keys. It starts exact if that is possible
// and wanted, and turns into a Bloom filter when that is cheaper.
type partial struct {
	spec   Spec
	full   bloom.Params // of the bits for the whole capacity
	params bloom.Params // of the bits: full, or what it is certain to be folded to
	fpr    float64
	keys   uint64 // number added, with duplicates

	set       *exact.Set       // nil if not exact
	first     *scout           // the first keys, before they are added to the set; nil afterwards
	flat      *exact.Dense     // keys before they are added to the set; nil: they are added at once
	flatBytes uint64           // its part of the share
	checkAt   uint64           // number of keys at which the set's cost is computed again
	bits      *bloom.Filter    // nil while exact, and if there is a pool
	pool      *pool            // the bits that several workers fill; nil: bits are its own
	adder     *bloom.Adder     // to the pool's bits; nil while exact
	registers *bloom.Registers // of the keys in the bits; nil if not known
	bounds    *keys.Bounds     // of all keys; nil if not known or not wanted
	hashes    []uint64
	share     share // of the memory budget
}

// newPartial returns an empty partial filter whose memory is held within the
// budget. Call begin before adding keys.
func newPartial(s Spec, b *budget) (*partial, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	params, fpr, err := s.size()
	if err != nil {
		return nil, err
	}
	return &partial{spec: s, fpr: fpr, full: params, params: params, bounds: s.newBounds(), share: share{of: b}}, nil
}

// begin allocates what the first keys need.
func (p *partial) begin() error {
	if p.spec.exact() {
		p.set, p.first = exact.New(), newScout()
		return nil
	}
	return p.fill()
}

// fill allocates bits, or gets an adder to the pool's bits.
func (p *partial) fill() (err error) {
	p.registers = new(bloom.Registers)
	if p.pool != nil {
		if _, ok := p.share.hold(p.pool.buffer); !ok {
			return overBudget(p.share.of.most, p.params.Bytes())
		}
		p.adder, err = p.pool.adder()
		return err
	}
	if err := p.share.bits(p.params); err != nil {
		return err
	}
	p.bits, err = bloom.New(p.params)
	return err
}

// flush adds all keys to the pool's bits.
func (p *partial) flush() error {
	if p.set != nil {
		if err := p.toBits(); err != nil {
			return err
		}
	}
	p.adder.Flush()
	p.adder = nil
	return nil
}

// add adds the keys of a batch.
func (p *partial) add(b *keys.Batch) error {
	if p.bounds != nil {
		p.bounds.Add(b)
	}
	if _, ok := b.Ints(); ok {
		return b.BySign(func(values []uint64, signed bool, _ []uint32) error { return p.addInts(values, signed) })
	}
	p.keys += uint64(len(b.Rows))
	p.hashes = b.Hash(p.params.Hash, p.hashes)
	p.addHashes(p.hashes)
	return nil
}

// addWaiting adds integers, or hashes of keys of other classes.
func (p *partial) addWaiting(values []uint64, signed bool) error {
	if p.spec.integer() {
		return p.addInts(values, signed)
	}
	p.keys += uint64(len(values))
	p.addHashes(values)
	return nil
}

// addInts adds integer keys.
func (p *partial) addInts(values []uint64, signed bool) error {
	p.keys += uint64(len(values))
	switch {
	case p.first != nil:
		p.first.add(values, signed)
		return p.chooseForm()
	case p.flat != nil && p.flat.Add(values, signed):
		// The flat bitmap is held in the budget, or packed if it does not fit.
		if n := p.flat.Bytes(); n != p.flatBytes {
			_, ok := p.share.hold(p.share.held - p.flatBytes + n)
			if p.flatBytes = n; !ok {
				p.pack()
				return p.maybeConvertToBloom()
			}
		}
		return nil
	case p.set != nil:
		p.pack()
		p.set.Add(values, signed)
		return p.maybeConvertToBloom()
	}
	p.hash(values)
	return nil
}

// flatten collects further keys of a set in a flat bitmap, if they are so dense
// that it takes about as much as the bits would, and the budget allows it.
func (p *partial) flatten() {
	const least, most = 16 << 20, 32 // bytes, and multiples of the size of the bits
	size := p.full.Bytes()
	size = min(max(size, least), most*size) // that many containers cost less than the bits
	room, ok := p.share.hold(p.share.held)
	if ok && p.set != nil {
		p.flat = exact.NewDense(min(size, room))
	}
}

// pack moves the keys of the flat bitmap into the set.
func (p *partial) pack() {
	if p.flat == nil {
		return
	}
	p.flat.Into(p.set)
	p.share.hold(p.share.held - p.flatBytes)
	p.flat, p.flatBytes, p.checkAt = nil, 0, 0
}

// chooseForm decides whether the first keys become bits, go into the set, or wait for
// more.
func (p *partial) chooseForm() error {
	if p.tooSparse() {
		return p.toBits()
	}
	if p.first.dense() {
		err := p.decide()
		p.flatten()
		return err
	}
	_, err := p.share.set(p.first.bytes())
	return err
}

// tooSparse reports whether the first keys alone cost more than the bits.
func (p *partial) tooSparse() bool {
	return p.spec.Want != filters.KindExact && p.first.cost() > p.full.Bytes()
}

// gather moves all keys into the set, if the budget allows it.
func (p *partial) gather() error {
	p.pack()
	if p.first == nil {
		return nil
	}
	if _, err := p.share.set(p.first.bytes() + p.first.cost()); err != nil {
		return err
	}
	p.first.into(p.set)
	p.first = nil
	return nil
}

// hashStep is the number of integers that are hashed at a time: few enough for
// their hashes to stay in the first-level cache until they are added.
const hashStep = 1 << 11

// hash adds integers to the bits.
func (p *partial) hash(values []uint64) {
	p.hashes = slices.Grow(p.hashes[:0], hashStep)
	for step := range slices.Chunk(values, hashStep) {
		hashes := p.hashes[:len(step)]
		p.params.Hash.Sum64(hashes, step)
		p.addHashes(hashes)
	}
}

func (p *partial) addHashes(hashes []uint64) {
	if p.registers != nil {
		p.registers.Add(hashes)
	}
	if p.adder != nil {
		p.adder.Add(hashes)
	} else {
		p.bits.Add(hashes)
	}
}

// maybeConvertToBloom gives up the exact form if it costs more than the Bloom filter.
// Computing the cost takes a walk over the set, so it is done again only after
// as many keys as could change the result.
func (p *partial) maybeConvertToBloom() error {
	if p.set == nil || p.keys < p.checkAt {
		return nil
	}
	cost := p.set.Cost()
	room, err := p.share.set(cost + p.set.Bytes())
	if p.spec.Want != filters.KindExact {
		if cost > p.full.Bytes() {
			return p.toBits()
		}
		room = min(room, p.full.Bytes()-cost)
	}
	p.checkAt = p.keys + max(room/exact.MaxCostPerKey, 1<<12)
	return err
}

// decide computes the cost of the exact form now, so that the decision about a
// set does not depend on how it was filled.
func (p *partial) decide() error {
	if p.first != nil && p.tooSparse() {
		return p.toBits()
	}
	if err := p.gather(); err != nil {
		return err
	}
	p.checkAt = 0
	return p.maybeConvertToBloom()
}

// toBits turns the exact set into a Bloom filter.
func (p *partial) toBits() error {
	p.pack()
	if err := p.fill(); err != nil {
		return err
	}
	if p.first != nil {
		for _, values := range p.first.keys {
			p.hash(values)
		}
	}
	p.hashAll(p.set) // empty if there are first keys
	p.set, p.first = nil, nil
	return nil
}

// merge adds the keys of q, which must not be used afterwards.
func (p *partial) merge(q *partial) error {
	if p.params != q.params {
		return p.params.Match(q.params)
	}
	p.keys += q.keys
	p.widen(q.bounds)
	if p.first != nil && q.first != nil {
		p.first.add(q.first.keys[0], false)
		p.first.add(q.first.keys[1], true)
		q.share.release()
		return p.chooseForm()
	}
	if p.set != nil && q.set != nil {
		if err := errors.Join(p.gather(), q.gather()); err != nil {
			return err
		}
		p.set.Union(q.set)
		q.share.release()
		return p.decide()
	}
	for _, x := range []*partial{p, q} {
		if x.set != nil {
			if err := x.toBits(); err != nil {
				return err
			}
		}
	}
	p.sketch(q.registers)
	q.share.release()
	return p.bits.Union(q.bits)
}

// sketch merges registers of further keys. nil means unknown, and makes all
// registers unknown.
func (p *partial) sketch(r *bloom.Registers) {
	if r == nil || p.registers == nil {
		p.registers = nil
		return
	}
	p.registers.Merge(r)
}

// header returns a filter without its keys.
func (p *partial) header(id [32]byte) *filters.Filter {
	f := p.spec.Header()
	facts := f.Facts()
	facts.Params, facts.Keys, facts.FPRAsked, facts.Want, facts.BuildID = p.params, p.keys, p.fpr, p.spec.Want, id
	if p.spec.Room {
		facts.Capacity = filters.Capacity{Keys: p.spec.Capacity, Blocks: p.params.Blocks}
	}
	return f
}

// open returns the filter as a partial one with the given shards.
func (p *partial) open(id [32]byte, part *filters.Partial) *filters.Filter {
	f := p.header(id)
	setBounds(f, p.bounds)
	f.Facts().Partial = part
	if p.set != nil {
		f.SetExact(p.set)
		return f
	}
	f.SetBloom(p.bits)
	if p.registers != nil {
		f.Facts().Registers = p.registers[:]
	}
	return f
}
