package partition

import (
	"errors"
	"runtime/debug"
	"slices"

	"github.com/bloomjoin/bloomjoin/exact"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/key"
)

// prober asks a filter about batches of keys. It keeps its memory between
// batches; one goroutine uses it.
type prober struct {
	filter Filter // nil: everything may be a member
	hashes []uint64
	hits   []uint32
}

// probe returns the positions of the keys that may be members, ascending. The
// slice is valid until the next call.
func (p *prober) probe(b *key.Batch) ([]uint32, error) {
	p.hits = p.hits[:0]
	if p.filter == nil || p.filter.Bloom() == nil && p.filter.Exact() == nil {
		for i := range b.Rows {
			p.hits = append(p.hits, uint32(i))
		}
		return p.hits, nil
	}
	bits := p.filter.Bloom()
	if bits == nil {
		return p.probeSet(b, p.filter.Exact())
	}
	values, integer := b.Ints()
	if !integer {
		p.hashes = b.Hash(bits.Params().Hash, p.hashes)
	}
	err := p.guard(func() {
		if integer {
			p.hits = bits.ProbeInts(values, p.hits)
		} else {
			p.hits = bits.Probe(p.hashes, p.hits)
		}
	})
	return p.hits, err
}

// probeSet is probe of an exact set.
func (p *prober) probeSet(b *key.Batch, set *exact.Set) ([]uint32, error) {
	err := b.BySign(func(values []uint64, signed bool, positions []uint32) error {
		n := len(p.hits)
		p.hits = set.Probe(values, signed, p.hits)
		for i, h := range p.hits[n:] {
			if positions != nil {
				p.hits[n+i] = positions[h]
			}
		}
		if n > 0 {
			slices.Sort(p.hits)
		}
		return nil
	})
	return p.hits, err
}

// guard calls probe. If the file of a mapped filter was cut short, its bits can
// no longer be read: that is an error, not the end of the process.
func (p *prober) guard(probe func()) (err error) {
	if m, ok := p.filter.(interface{ Mapped() bool }); !ok || !m.Mapped() {
		probe()
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if fault.Gone(r) {
			err = errFilterGone
		} else if r != nil {
			panic(r)
		}
	}()
	probe()
	return nil
}

// errFilterGone says that the file of a mapped filter was changed while in use.
var errFilterGone = errors.New("the mapped filter file cannot be read any more: it was cut short meanwhile, or its disk fails (copy it to a place where nobody changes it)")
