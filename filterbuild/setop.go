package filterbuild

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/exact"
	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// SetOp combines sealed filters.
type SetOp string

const (
	// Union lets through every key of any of the sets: none is lost. Its bits
	// are those of a filter of the common size that all the sets together were
	// put into, so that the rate at which others pass is that of so many keys
	// at that size, higher than that of each filter; FPR of the result says it.
	Union SetOp = "union"
	// Intersect lets through every key that is in all of the sets. A key that
	// is missing from one passes no more often than that set's filter, at the
	// common size, lets strangers through: at most at the smallest rate among
	// the filters whose sets lack it. FPR of the result is the rate for keys
	// that are in none of the sets, which is lower.
	Intersect SetOp = "intersect"
	// Difference holds the keys of the first set that are in none of the
	// others, without error. It is for exact filters alone: to take a Bloom
	// filter away would take its false positives away, too, which are keys of
	// the difference, and nothing can be taken away from bits that keys share.
	Difference SetOp = "difference"
)

// foldLimit is how far above the wish the rate of a result may get where
// filters were brought to a size that was not made for them.
const foldLimit = 2

// Combine applies op to sealed filters over the same kind of key. Exact
// filters stay exact among themselves; with a Bloom filter the result is one.
//
// Bloom filters must be of one geometry. Those of different sizes are folded to
// the greatest size that divides the sizes of all, which may be far smaller
// than each, and exact ones are put into that size. Where either happened, a
// result that lets through more than twice what was asked of any Bloom filter is
// refused: sealed filters are as small as their own keys allow, so that the union
// of two Bloom filters is nearly always better built from the ID sets. The
// result's FPR may exceed what was asked of the filters; compare the two.
func Combine(op SetOp, filters []*codec.Filter, names []string) (*codec.Filter, error) {
	if len(filters) < 2 {
		return nil, fmt.Errorf("%s: want two filters or more, got %d", op, len(filters))
	}
	if err := combinable(filters, names); err != nil {
		return nil, err
	}
	bits := slices.IndexFunc(filters, func(f *codec.Filter) bool { return f.Exact() == nil })
	if op == Difference && bits >= 0 {
		return nil, fault.Mismatch(fault.At{File: names[bits]}, "filter to take a difference of", "an exact one",
			"a Bloom filter, whose false positives would be taken away as well: their rows would be lost").
			WithHint("build all with --kind exact; or, where the first is a Bloom filter, scan with --filter for it and --exclude for exact ones")
	}
	out, err := descend(op, filters)
	if err != nil {
		return nil, err
	}
	if bits < 0 {
		set, err := combineExact(op, filters)
		if err != nil {
			return nil, err
		}
		out.Params.Blocks, out.Keys = 0, set.Len()
		out.SetExact(set)
		return out, nil
	}
	if err := combineBits(op, out, filters); err != nil {
		return nil, err
	}
	combineRanges(op, out, filters)
	return out, checkRate(op, out, filters, names)
}

// checkRate refuses a result that was brought to a size at which it says next
// to nothing.
func checkRate(op SetOp, out *codec.Filter, filters []*codec.Filter, names []string) error {
	resized := func(f *codec.Filter) bool { return f.Params.Blocks != out.Params.Blocks }
	limit, fpr := foldLimit*out.FPRAsked, out.FPR()
	if fpr <= limit || !slices.ContainsFunc(filters, resized) {
		return nil
	}
	how := "folded to a common size"
	hint := "build one filter from all ID sets"
	if slices.ContainsFunc(filters, func(f *codec.Filter) bool { return f.Exact() != nil }) {
		how = "exact ones put into the size of the others"
		hint = "build one filter from all ID sets, or all with --kind exact"
	}
	if op == Intersect {
		hint = "scan with --filter and --match, which needs no common size"
	}
	return fault.Mismatch(fault.At{File: strings.Join(names, ", ")}, "false-positive rate of the "+op.noun()+", "+how,
		fmt.Sprintf("at most %.2g", limit), fmt.Sprintf("%.2g", fpr)).WithHint("%s", hint)
}

func (op SetOp) noun() string {
	if op == Intersect {
		return "intersection"
	}
	return string(op)
}

// combinable refuses filters that are not sealed or not over the same keys,
// and Bloom filters whose bits mean different things.
func combinable(filters []*codec.Filter, names []string) error {
	first := -1 // Bloom filter
	for i, f := range filters {
		if err := sameKeys(filters[0], f, names[0], names[i]); err != nil {
			return err
		}
		if f.Exact() != nil {
			continue
		}
		if first < 0 {
			first = i
		}
		if want, got := filters[first].Params.Geometry, f.Params.Geometry; want != got {
			return fault.Mismatch(fault.At{File: names[i]}, "filter geometry", want.String()+" as in "+names[first], got.String()).
				WithHint("build one of them again with --geometry")
		}
	}
	return nil
}

// sameKeys refuses a partial filter, and filters over different kinds of key.
func sameKeys(a, b *codec.Filter, first, name string) error {
	at := fault.At{File: name}
	switch {
	case !b.Sealed():
		return fault.Mismatch(at, "filter", "a sealed filter", "a partial one").WithHint("merge the parts of its build first")
	case a.Normal() != b.Normal():
		return fault.Mismatch(at, "normal form", a.Normal()+" as in "+first, b.Normal())
	case !slices.Equal(a.KeyClasses(), b.KeyClasses()):
		return fault.Mismatch(at, "key class", strings.Join(a.KeyClasses(), ",")+" as in "+first, strings.Join(b.KeyClasses(), ","))
	case a.Params.Hash != b.Params.Hash:
		return fault.Mismatch(at, "filter hash", a.Params.Hash.String()+" as in "+first, b.Params.Hash.String())
	}
	return nil
}

// descend returns the header of a filter made from others. But for a
// difference, it does not depend on their order: the key's names are those of
// the filter with the least digest.
func descend(op SetOp, filters []*codec.Filter) (*codec.Filter, error) {
	out := &codec.Filter{
		NormalForm: filters[0].NormalForm, Params: filters[0].Params, Want: codec.WantAuto,
	}
	named := 0
	bits := slices.DeleteFunc(slices.Clone(filters), func(f *codec.Filter) bool { return f.Bloom() == nil })
	for i, f := range filters {
		d, err := f.Digest()
		if err != nil {
			return nil, err
		}
		out.Parents = append(out.Parents, d)
		if op != Difference && slices.Compare(d[:], out.Parents[named][:]) < 0 {
			named = i
		}
		if len(bits) == 0 || f.Bloom() != nil { // of an exact one a rate was asked in vain
			out.FPRAsked = max(out.FPRAsked, f.FPRAsked)
		}
		out.Params.Geometry = min(out.Params.Geometry, f.Params.Geometry)
		if op == Union {
			out.Keys += f.Keys
		} else if i == 0 || f.Keys < out.Keys {
			out.Keys = f.Keys
		}
	}
	for _, k := range filters[named].Key {
		out.Key = append(out.Key, codec.KeyColumn{Name: k.Name, Class: k.Class})
	}
	sorted := out.Parents
	if op == Difference {
		sorted = sorted[1:] // what is taken away, after what it is taken from
	}
	slices.SortFunc(sorted, func(a, b [32]byte) int { return slices.Compare(a[:], b[:]) })
	out.Parents = append(out.Parents[:len(out.Parents)-len(sorted)], slices.Compact(sorted)...)
	h := sha256.New()
	h.Write([]byte(op))
	for _, d := range out.Parents {
		h.Write(d[:])
	}
	h.Sum(out.BuildID[:0])
	return out, nil
}

// combineExact applies op to exact filters.
func combineExact(op SetOp, filters []*codec.Filter) (*exact.Set, error) {
	set := filters[0].Exact().Clone()
	for _, f := range filters[1:] {
		switch op {
		case Union:
			set.Union(f.Exact())
		case Intersect:
			set.Intersect(f.Exact())
		case Difference:
			set.Difference(f.Exact())
		default:
			return nil, fmt.Errorf("set operation %q: want union, intersect or difference", op)
		}
	}
	return set, nil
}

// combineBits brings all filters to a common size and combines them in out.
// Exact ones take the size of the others.
func combineBits(op SetOp, out *codec.Filter, filters []*codec.Filter) error {
	var common uint64
	var params bloom.Params
	for _, f := range filters {
		if f.Bloom() != nil {
			params = f.Params
			common = bloom.CommonFold(f.Params.Blocks, common)
		}
	}
	params.Blocks = common
	var all *partial
	for _, f := range filters {
		p, err := atSize(f, params)
		if err != nil {
			return err
		}
		switch {
		case all == nil:
			all = p
		case op == Union:
			err = all.merge(p)
		case op == Intersect: // of the registers nothing is known
			all.registers = nil
			err = all.bits.Intersect(p.bits)
		default:
			err = fmt.Errorf("set operation %q: want union, intersect or difference", op)
		}
		if err != nil {
			return err
		}
	}
	out.SetBloom(all.bits)
	attach(out, all.registers)
	return nil
}

// atSize returns the filter's bits at the given size, as a copy, and its
// registers, if they are known.
func atSize(f *codec.Filter, params bloom.Params) (*partial, error) {
	p := &partial{params: params, set: f.Exact(), registers: registersOf(f)}
	if p.set != nil {
		return p, p.blur()
	}
	var err error
	p.bits, err = f.Bloom().Fold(f.Params.Blocks / params.Blocks)
	return p, err
}
