package builds

import (
	"context"
	"errors"
	"math"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// registersOf returns a copy of a filter's registers, or nil if it has none.
func registersOf(f *filters.Filter) *bloom.Registers {
	r := new(bloom.Registers)
	if copy(r[:], f.Facts().Registers) < len(r) {
		return nil
	}
	return r
}

// Method is how the sizes of two sets were computed.
type Method string

const (
	Counted   Method = "exact"     // from the members
	Sketched  Method = "registers" // from HyperLogLog registers
	Estimated Method = "bits"      // from the bits and, if one filter is exact, its members
)

// Compare compares the key sets of two sealed filter files:
//
//   - exactly, if both are exact filters;
//   - by the members of the exact filter that pass the other one, if one is exact;
//   - by the bits of two Bloom filters, if they have one geometry and a common size
//     at which the bits are more precise than registers;
//   - otherwise by their registers, for which only the headers are read. If a filter
//     is too small to have registers, by the bits; if these are too full, it fails.
func Compare(ctx context.Context, store storage.Source, a, b string, lim filters.Limits) (c bloom.Comparison, by Method, err error) {
	stopped.Needs(ctx, "builds.Compare")
	parts, err := openParts(ctx, store, []string{a, b})
	defer func() { err = errors.Join(err, closeParts(parts)) }()
	if err != nil {
		return c, "", err
	}
	read, err := headers(parts)
	if err != nil {
		return c, "", err
	}
	heads := [2]*filters.Filter{read[0].Filter, read[1].Filter}
	for i, f := range heads {
		if err := sameKeys(ofFilters, heads[0], f, a, parts[i].name); err != nil {
			return c, "", err
		}
	}
	sketched := registersOf(heads[0]) != nil && registersOf(heads[1]) != nil
	if sketched && !bitsAreSharper(heads[0], heads[1]) {
		return registersOf(heads[0]).Compare(registersOf(heads[1])), Sketched, nil
	}
	var f [2]*filters.Filter
	for i, h := range read {
		if f[i], err = h.Load(lim); err != nil {
			return c, "", err
		}
	}
	switch exactA, exactB := f[0].Exact(), f[1].Exact(); {
	case exactA != nil && exactB != nil:
		return compareExact(exactA, exactB), Counted, nil
	case exactA != nil:
		return compareMembers(exactA, f[1], b)
	case exactB != nil:
		c, by, err = compareMembers(exactB, f[0], a)
		c.A, c.B, c.OnlyA, c.OnlyB = c.B, c.A, c.OnlyB, c.OnlyA
		return c, by, err
	}
	if err := combinable(parts, parts); err != nil {
		return c, "", err
	}
	if c, err = f[0].Bloom().Compare(f[1].Bloom()); err == nil {
		return c, Estimated, nil
	}
	if sketched {
		return registersOf(heads[0]).Compare(registersOf(heads[1])), Sketched, nil
	}
	var full *fault.Error
	if errors.As(err, &full) {
		full.At.File = a + ", " + b
		err = full.WithHint("at their common size the filters are too full to compare; compare exact filters, or filters of 64 KiB and more")
	}
	return c, "", err
}

// bitsAreSharper reports whether, judged by the headers, the bits estimate the
// union with a smaller standard error than the registers do.
func bitsAreSharper(a, b *filters.Filter) bool {
	x, y := a.Facts(), b.Facts()
	if a.Kind() != filters.KindBloom || b.Kind() != filters.KindBloom || x.Params.Geometry != y.Params.Geometry {
		return false
	}
	common := bloom.CommonFold(x.Params.Blocks, y.Params.Blocks)
	lanes := float64(common * x.Params.Geometry.BlockBytes()) // bits of one lane, over all blocks
	keys := float64(x.Keys) + float64(y.Keys)
	t := keys / lanes
	if t > 2 {
		return false // full blocks are likely soon
	}
	return math.Sqrt(lanes*(math.Exp(t)-1-t)/8) < 0.0081*keys
}

func compareExact(a, b *exact.Set) bloom.Comparison {
	common := a.Clone()
	common.Intersect(b)
	count := func(n uint64) bloom.Cardinality { return bloom.Cardinality{Keys: float64(n)} }
	na, nb, both := a.Len(), b.Len(), common.Len()
	return bloom.Comparison{
		A: count(na), B: count(nb), Union: count(na + nb - both), Both: count(both),
		OnlyA: count(na - both), OnlyB: count(nb - both),
	}
}

// compareMembers counts the members of a that pass the filter b: all that are
// in both sets, and a share p of the others, b's false-positive rate; their
// number is binomial. If b has a full block, so that its keys cannot be
// counted, it compares registers instead, computing those of a from its
// members.
func compareMembers(a *exact.Set, b *filters.Filter, name string) (c bloom.Comparison, by Method, err error) {
	count := b.Bloom().Count()
	if math.IsInf(count.Keys, 1) {
		r := registersOf(b)
		if r == nil {
			return c, "", faults.Mismatch(fault.At{File: name}, "filter to compare", "a filter with clear bits in every block, or of 64 KiB and more",
				"a small one with a full block").WithHint("build it again with a larger {Expect} or {Expect+Room}")
		}
		return registersOfMembers(a, b.Facts().Params.Hash).Compare(r), Sketched, nil
	}
	var sel []uint32
	var passed float64
	for values := range a.Values {
		sel = b.Bloom().ProbeInts(values, sel[:0])
		passed += float64(len(sel))
	}
	n, p := float64(a.Len()), b.FPR()
	c.A, c.B = bloom.Cardinality{Keys: n}, count
	c.Both.Keys = max(0, (passed-p*n)/(1-p)) // p < 1, as no block is full
	c.OnlyA.Keys = n - c.Both.Keys
	c.Both.StdErr = math.Sqrt(max(c.OnlyA.Keys, 1) * p / (1 - p))
	c.OnlyA.StdErr = c.Both.StdErr
	c.OnlyB = bloom.Cardinality{Keys: max(0, c.B.Keys-c.Both.Keys), StdErr: math.Hypot(c.B.StdErr, c.Both.StdErr)}
	c.Union = bloom.Cardinality{Keys: n + c.OnlyB.Keys, StdErr: c.OnlyB.StdErr}
	return c, Estimated, nil
}

// registersOfMembers returns the sketch of an exact set for a hash.
func registersOfMembers(s *exact.Set, h bloom.Hash) *bloom.Registers {
	r := new(bloom.Registers)
	var hashes []uint64
	for values := range s.Values {
		hashes = h.AppendInts(hashes[:0], values)
		r.Add(hashes)
	}
	return r
}
