// Package filterbuild turns an ID set into a filter.
//
// The way is
//
//	ID files ── Split(shard) ──► pages ──► keys ──► hashes ──► workers, which fill bits
//	private filters ── OR-merge ──► one ── Seal: fold, choose the kind ──► codec.Filter
//	        or one filter that all fill, each a range of blocks at a time ──►
//
// inside one process, and across processes: a worker with a shard writes its
// partial filter to a file, and [Merge] reads them. [Spec] holds everything
// that all of them must agree on; each computes it from the same inputs alone.
// What comes out depends on the union of the keys and on the Spec, never on
// how the keys were divided; but for large sets of integers, whether an exact
// form is tried at all depends on a sample of the ID files (sample.go), which is
// the same for every shard.
//
// # Room
//
// A sealed filter is folded to the size that its keys need, so that those of
// two sets seldom have one size, and their union is too large for either. Where
// sets are to grow by unions, [Options] has Room: every filter keeps the size
// for the Capacity, at which the rate holds until so many distinct keys are in,
// and filters of one capacity and rate are of one size. An exact set needs no
// room; it is chosen while it is better than the bits of that size, also by a
// union ([Combine]), which turns it into those bits once it is not. So what is added
// day by day stays small, and comes to what one build of all IDs comes to.
// [Check] tells when the room is used up.
//
// # Registers
//
// Where bits are filled, so is a HyperLogLog sketch of the keys
// ([bloom.Registers]), for [Compare]. It stands in every partial Bloom filter,
// since it cannot be had afterwards, and in a sealed one if its bits take 64
// KiB or more: below, the sketch would make up more than a fifth of the file,
// and the bits tell the sizes well. An exact filter has none, as its members
// can be counted.
package filterbuild

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/key"
)

// Spec is what all workers of a build agree on.
type Spec struct {
	Names    []string       // of the key columns
	Classes  []string       // of the key columns, under the rule
	Rule     key.Rule       // by which strings are made alike
	Hash     bloom.Hash     //
	Geometry bloom.Geometry // 0: by the rate, see [bloom.GeometryFor]
	Capacity uint64         // upper bound on the keys, from which the size follows
	FPR      float64        // wished; 0: by [bloom.DefaultFPR] of Capacity
	MaxSize  uint64         // most bytes of the bits; 0: no limit
	Room     bool           // the sealed filter keeps its size, and says the Capacity
	Want     codec.Want     // kind of filter
	SkipBad  bool           // bad lines of text IDs are left out
	NoRange  bool           // the filter does not tell the least and the greatest of its keys

	reading []string // what makes other keys of the same files: casts, and of text the format and the key's types
	sparse  bool     // the keys lie so far apart that no exact set is tried; follows from the inputs
}

// Header returns a filter over the key without a payload, about whose keys
// nothing is known.
func (s Spec) Header() *codec.Filter {
	f := &codec.Filter{NormalForm: key.NormalForm, Rule: s.Rule.String()}
	for i, class := range s.Classes {
		f.Key = append(f.Key, codec.KeyColumn{Name: s.Names[i], Class: class})
	}
	return f
}

// size returns the parameters of the bits before they are folded, and the rate
// that they are for: the wished one, or, where MaxSize does not allow that, the
// one that the capacity gives. A geometry that is not given is the one that
// [bloom.GeometryFor] names for that rate.
func (s Spec) size() (params bloom.Params, fpr float64, err error) {
	keys := max(s.Capacity, 1)
	fpr = s.FPR
	if fpr == 0 {
		fpr = bloom.DefaultFPR(s.Capacity)
	}
	params = bloom.Params{Geometry: s.Geometry, Hash: s.Hash}
	if s.Geometry == 0 {
		params.Geometry = bloom.GeometryFor(fpr)
	}
	params.Blocks = params.Geometry.Blocks(keys, fpr)
	if got := params.Geometry.FPR(params.Blocks, keys); s.MaxSize == 0 && got > bloom.FoldLimit(fpr) {
		return params, 0, fault.Unsupported(fault.At{}, "a false-positive rate of %.2g for %d keys; the largest filter has %.2g", fpr, keys, got).
			WithHint("lower {Capacity}, raise {FPR}, or set the size with {MaxSize}")
	}
	if s.MaxSize == 0 || params.Bytes() <= s.MaxSize {
		return params, fpr, nil
	}
	if s.Geometry == 0 {
		// What Split512 comes to at that size decides whether it is its turn.
		if params.Geometry = bloom.Split512; bloom.GeometryFor(s.within(bloom.Split512)) != bloom.Split512 {
			params.Geometry = bloom.Split256
		}
	}
	g := params.Geometry
	if params.Blocks = g.BlocksWithin(s.MaxSize); params.Blocks == 0 {
		return params, 0, fmt.Errorf("a filter of at most %d bytes: want at least %d", s.MaxSize, g.BlockBytes())
	}
	// A filter so small that it passes nearly everything is still a filter.
	return params, min(s.within(g), 0.999999), nil
}

// within returns the rate that MaxSize and Capacity give.
func (s Spec) within(g bloom.Geometry) float64 {
	blocks := g.BlocksWithin(s.MaxSize)
	if blocks == 0 {
		return 1
	}
	return g.FPR(blocks, max(s.Capacity, 1))
}

// integer reports whether the key can be held exactly.
func (s Spec) integer() bool {
	return len(s.Classes) == 1 && key.Class(s.Classes[0]) == key.Integer
}

// exact reports whether the keys are held exactly as long as that is cheap.
func (s Spec) exact() bool {
	return s.integer() && s.Want != codec.WantBloom && (s.Want == codec.WantExact || !s.sparse)
}

// check refuses what no filter can be.
func (s Spec) check() error {
	if s.Want == codec.WantExact && !s.integer() {
		return fault.Unsupported(fault.At{}, "an exact filter over keys of class %s", strings.Join(s.Classes, ", ")).
			WithHint("exact filters hold one column of integers; give text a {Types int64}, or use {Kind bloom}")
	}
	if s.FPR != 0 && !(s.FPR > 0 && s.FPR < 1) { // as worded, NaN is refused too
		return fmt.Errorf("false-positive rate %v: want more than 0 and less than 1", s.FPR)
	}
	if s.Room && s.Capacity == 0 {
		return errors.New("room for further keys: want a capacity, the number of keys in the end")
	}
	if s.Geometry != 0 && !slices.Contains(bloom.Geometries(), s.Geometry) {
		return fault.Unsupported(fault.At{}, "%s", s.Geometry).WithHint("want one of %v", bloom.Geometries())
	}
	return nil
}

// id digests the spec together with the identity of the inputs.
func (s Spec) id(inputs [32]byte) [32]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d %d %v %d %d %q ",
		s.Names, s.Classes, s.Hash, s.Geometry, s.Capacity, s.FPR, s.MaxSize, s.Want, key.NormalForm)
	if s.SkipBad { // as with the range
		h.Write([]byte("without bad lines"))
	}
	if s.NoRange { // else the id is what it was before there was a choice
		h.Write([]byte("no key range"))
	}
	if s.Rule != 0 { // likewise
		fmt.Fprintf(h, "normalize %s ", s.Rule)
	}
	if s.Room {
		h.Write([]byte("room"))
	}
	for _, as := range s.reading {
		fmt.Fprintf(h, "text as %q ", as) // or cast; the words stay, so that the ids do
	}
	h.Write(inputs[:])
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}
