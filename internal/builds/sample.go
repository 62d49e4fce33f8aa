package builds

import (
	"context"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Only at the end is it certain whether integers are so dense that an exact set is
// smaller than a Bloom filter. A set of distant keys is slow to fill and takes a
// hundred times the memory of the bits. Therefore a sample is examined first. It
// depends on the inputs alone, so every shard of a build gets the same result.

const (
	sampleFrom  = 1 << 20 // rows; fewer are read quickly anyway
	samplePages = 8
	samplePage  = 1 << 14 // keys, at most
	sampleLeast = 4096    // minimum of distinct keys in a useful sample
	// closeEnough is the average number of keys in a container of 2^16
	// neighbouring values from which an exact set is tried: a quarter of what
	// makes it smaller than a Bloom filter at 1 %.
	closeEnough = 64
)

// sparse reports whether an exact set need not be tried.
func (p *Plan) sparse(ctx context.Context) (bool, error) {
	// With room for more keys, a set competes with bits for the whole capacity.
	if !p.Spec.integer() || p.Spec.Want != filters.KindAuto || p.Spec.Capacity < sampleFrom || p.Spec.Room {
		return false, nil
	}
	var values []uint64
	var page source.Piece
	var taken int
	o := p.keyOptions(1)
	o.FirstPages = samplePages
	pieces, closePieces, err := p.sampled(ctx)
	if err != nil {
		return false, err
	}
	defer closePieces()
	_, _, err = keyscan.Read(ctx, pieces, o, func() (func(*keyscan.Keys) error, error) {
		return func(k *keyscan.Keys) error {
			if k.Piece != page {
				page, taken = k.Piece, 0
			}
			ints, _ := k.Batch.Ints()
			ints = ints[:min(len(ints), samplePage-taken)]
			values, taken = append(values, ints...), taken+len(ints)
			return nil
		}, nil
	})
	if err != nil {
		return false, err
	}
	return farApart(values, p.Spec.Capacity), nil
}

// farApart reports whether, judged by a sample, a set of up to n keys has too
// few of them in each container.
//
// Of d distinct keys in the sample, let q·d share a container with a smaller
// one. If all n keys were spread evenly over K containers, q would be about
// d/2K, so a container has about n/K = 2qn/d keys. Keys that are not spread
// evenly are closer to their neighbours, also in the sample.
func farApart(values []uint64, n uint64) bool {
	slices.Sort(values)
	values = slices.Compact(values)
	d := len(values)
	if d < sampleLeast {
		return false
	}
	shared := 0
	for i, v := range values[1:] {
		if v>>16 == values[i]>>16 {
			shared++
		}
	}
	return 2*float64(shared)*float64(n) < closeEnough*float64(d)*float64(d)
}
