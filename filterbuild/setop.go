package filterbuild

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// SetOp combines sealed filters.
type SetOp string

const (
	// Union holds the keys of all: its bits are those of a filter of the common
	// size that all ID sets together were put into.
	Union SetOp = "union"
	// Intersect lets through every key that is in all of the sets. Others pass
	// at a rate no higher than that of each filter at the common size.
	Intersect SetOp = "intersect"
)

// foldLimit is how far above the wish the rate of a result may get where
// filters of different sizes have to be folded to a common one.
const foldLimit = 2

// Combine applies op to sealed filters over the same kind of key. Exact
// filters stay exact among themselves; with a Bloom filter the result is one.
// Filters of different sizes are folded to the greatest size that divides the
// sizes of all, which may be far smaller than each: a result that lets through
// more than twice what was asked of any filter is refused then. The result's
// FPR may exceed what was asked of the filters; compare the two.
func Combine(op SetOp, filters []*codec.Filter, names []string) (*codec.Filter, error) {
	if len(filters) < 2 {
		return nil, fmt.Errorf("%s: want two filters or more, got %d", op, len(filters))
	}
	for i, f := range filters {
		if err := combinable(filters[0], f, names[0], names[i]); err != nil {
			return nil, err
		}
	}
	out, err := descend(op, filters)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(filters, func(f *codec.Filter) bool { return f.Exact() == nil }) {
		set := filters[0].Exact().Clone()
		for _, f := range filters[1:] {
			if op == Union {
				set.Union(f.Exact())
			} else {
				set.Intersect(f.Exact())
			}
		}
		out.Keys = set.Len()
		out.SetExact(set)
		return out, nil
	}
	bits, err := combineBits(op, filters)
	if err != nil {
		return nil, err
	}
	out.SetBloom(bits)
	if err := checkFold(op, out, filters, names); err != nil {
		return nil, err
	}
	return out, nil
}

// checkFold refuses a result that was folded until it says next to nothing.
func checkFold(op SetOp, out *codec.Filter, filters []*codec.Filter, names []string) error {
	folded := func(f *codec.Filter) bool { return f.Bloom() != nil && f.Params.Blocks > out.Params.Blocks }
	limit, fpr := foldLimit*out.FPRAsked, out.FPR()
	if fpr <= limit || !slices.ContainsFunc(filters, folded) {
		return nil
	}
	hint := "build one filter from all ID sets, or build them with one --expect and --fpr"
	if op == Intersect {
		hint = "build the filters with one --expect and --fpr, or scan with --filter and --match, which needs no common size"
	}
	return fault.Mismatch(fault.At{File: strings.Join(names, ", ")}, "false-positive rate of the "+op.noun()+", folded to a common size",
		fmt.Sprintf("at most %.2g", limit), fmt.Sprintf("%.2g", fpr)).WithHint("%s", hint)
}

func (op SetOp) noun() string {
	if op == Intersect {
		return "intersection"
	}
	return string(op)
}

func combinable(a, b *codec.Filter, first, name string) error {
	at := fault.At{File: name}
	switch {
	case !b.Sealed():
		return fault.Mismatch(at, "filter", "a sealed filter", "a partial one").WithHint("merge its build first, without --union and --intersect")
	case a.Normal() != b.Normal():
		return fault.Mismatch(at, "normal form", a.Normal()+" as in "+first, b.Normal())
	case !slices.Equal(a.KeyClasses(), b.KeyClasses()):
		return fault.Mismatch(at, "key class", strings.Join(a.KeyClasses(), ",")+" as in "+first, strings.Join(b.KeyClasses(), ","))
	case a.Params.Hash != b.Params.Hash:
		return fault.Mismatch(at, "filter hash", a.Params.Hash.String()+" as in "+first, b.Params.Hash.String())
	case a.Params.Geometry != b.Params.Geometry:
		return fault.Mismatch(at, "filter geometry", a.Params.Geometry.String()+" as in "+first, b.Params.Geometry.String())
	}
	return nil
}

// descend returns the header of a filter made from others.
func descend(op SetOp, filters []*codec.Filter) (*codec.Filter, error) {
	out := &codec.Filter{
		NormalForm: filters[0].NormalForm, Params: filters[0].Params, Want: codec.WantAuto,
	}
	for _, k := range filters[0].Key {
		out.Key = append(out.Key, codec.KeyColumn{Name: k.Name, Class: k.Class})
	}
	for i, f := range filters {
		d, err := f.Digest()
		if err != nil {
			return nil, err
		}
		out.Parents = append(out.Parents, d)
		out.FPRAsked = max(out.FPRAsked, f.FPRAsked)
		if op == Union {
			out.Keys += f.Keys
		} else if i == 0 || f.Keys < out.Keys {
			out.Keys = f.Keys
		}
	}
	slices.SortFunc(out.Parents, func(a, b [32]byte) int { return slices.Compare(a[:], b[:]) })
	out.Parents = slices.Compact(out.Parents)
	h := sha256.New()
	h.Write([]byte(op))
	for _, d := range out.Parents {
		h.Write(d[:])
	}
	h.Sum(out.BuildID[:0])
	return out, nil
}

// combineBits folds all filters to a common size and combines them. Exact
// ones take the size of the others.
func combineBits(op SetOp, filters []*codec.Filter) (*bloom.Filter, error) {
	var common uint64
	var params bloom.Params
	for _, f := range filters {
		if f.Bloom() != nil {
			params = f.Params
			common = bloom.CommonFold(f.Params.Blocks, common)
		}
	}
	params.Blocks = common
	var out *bloom.Filter
	for _, f := range filters {
		bits, err := atSize(f, params)
		if err != nil {
			return nil, err
		}
		switch {
		case out == nil:
			out = bits
		case op == Union:
			err = out.Union(bits)
		default:
			err = out.Intersect(bits)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// atSize returns the filter's bits at the given size, as a copy.
func atSize(f *codec.Filter, params bloom.Params) (*bloom.Filter, error) {
	if f.Bloom() != nil {
		return f.Bloom().Fold(f.Params.Blocks / params.Blocks)
	}
	p := &partial{params: params, set: f.Exact()}
	if err := p.blur(); err != nil {
		return nil, err
	}
	return p.bits, nil
}
