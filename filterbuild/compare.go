package filterbuild

import (
	"context"
	"errors"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/partition"
)

// registersOf returns a copy of a filter's registers, or nil.
func registersOf(f *codec.Filter) *bloom.Registers {
	r := new(bloom.Registers)
	if copy(r[:], f.Registers) < len(r) {
		return nil
	}
	return r
}

// Method is how the sizes of two sets were come by.
type Method string

const (
	Counted   Method = "exact"     // from the members
	Sketched  Method = "registers" // from HyperLogLog registers
	Estimated Method = "bits"      // from the bits of the Bloom filters
)

// Compare says how the key sets of two sealed filter files overlap: exactly if
// both are exact filters; else from registers, which those of an exact filter's
// members join; else, where a Bloom filter is too small to have any, from the
// bits, for which Bloom filters must be of one geometry and come to a common
// size at which their bits say something. Of Bloom filters with registers only
// the headers are read.
func Compare(ctx context.Context, store partition.Store, a, b string, lim codec.Limits) (c bloom.Comparison, by Method, err error) {
	parts, err := openParts(ctx, store, []string{a, b})
	defer func() { err = errors.Join(err, closeParts(parts)) }()
	if err != nil {
		return c, "", err
	}
	var filters [2]*codec.Filter
	by = Counted
	for i, p := range parts {
		f := p.head.Filter
		filters[i] = f
		if err := sameKeys(filters[0], f, a, p.name); err != nil {
			return c, "", err
		}
		switch {
		case f.Kind() == codec.KindExact:
		case f.Registers == nil:
			by = Estimated
		case by == Counted:
			by = Sketched
		}
	}
	for i, p := range parts {
		if by == Sketched && filters[i].Kind() == codec.KindBloom {
			continue
		}
		f, err := p.head.Load(lim)
		if err != nil {
			return c, "", err
		}
		filters[i] = f
	}
	c, err = compare(by, filters, [2]string{a, b})
	return c, by, err
}

func compare(by Method, f [2]*codec.Filter, names [2]string) (c bloom.Comparison, err error) {
	switch by {
	case Counted:
		common := f[0].Exact().Clone()
		common.Intersect(f[1].Exact())
		count := func(n uint64) bloom.Estimate { return bloom.Estimate{Keys: float64(n)} }
		a, b, both := f[0].Exact().Len(), f[1].Exact().Len(), common.Len()
		return bloom.Comparison{
			A: count(a), B: count(b), Union: count(a + b - both), Both: count(both),
			OnlyA: count(a - both), OnlyB: count(b - both),
		}, nil
	case Sketched:
		var r [2]*bloom.Registers
		for i := range r {
			if r[i] = registersOf(f[i]); r[i] == nil {
				r[i] = sketchOf(f[i])
			}
		}
		return r[0].Compare(r[1]), nil
	}
	if err := combinable(f[:], names[:]); err != nil {
		return c, err
	}
	params := f[0].Params
	if f[0].Bloom() == nil {
		params = f[1].Params
	}
	var bits [2]*bloom.Filter
	for i := range bits {
		if bits[i] = f[i].Bloom(); bits[i] == nil {
			p, err := atSize(f[i], params)
			if err != nil {
				return c, err
			}
			bits[i] = p.bits
		}
	}
	c, err = bits[0].Compare(bits[1])
	var wrong *fault.Error
	if errors.As(err, &wrong) {
		wrong.At.File = names[0] + ", " + names[1]
		err = wrong.WithHint("the filters are of sizes that share too small a divisor, or too small; filters of 64 KiB and more have registers, and exact ones their members")
	}
	return c, err
}

// sketchOf returns the registers of an exact filter's members.
func sketchOf(f *codec.Filter) *bloom.Registers {
	r := new(bloom.Registers)
	hashes := make([]uint64, 0, 4096)
	for values := range f.Exact().Values {
		hashes = append(hashes[:0], values...)
		f.Params.Hash.Sum64(hashes, values)
		r.Add(hashes)
	}
	return r
}
