// Package builds makes filters, sealed or partial, from ID files, lists of them or keys of a
// program, and combines them; package filterbuild is its door. The result depends on the union
// of the keys and on the [Spec], never on how the keys were divided. The command and joins use
// it.
//
//	ID files ── Split(shard) ──► pages ──► keys ──► hashes ──► workers, which set bits
//	private filters ── OR-merge ──► one ── Seal: fold, choose the kind ──► filters.Filter
//	        or one shared filter, locked a range of blocks at a time ──►
//
// [NewPlan] and [Plan.Build] read ID files; with [NewBuilder] a program adds keys itself.
// [Spec] holds everything that all workers must agree on, and each computes it from the same
// inputs. One exception: for large sets of integers from files, a sample of the files (the
// same for all shards) decides whether an exact set is tried at all. [Check] reports when the
// room of a filter is used up.
//
// # Registers
//
// Together with the bits, a HyperLogLog sketch of the keys is filled
// ([bloom.Registers]), for [Compare]. Every partial Bloom filter has it,
// because it cannot be computed later, and every sealed one whose bits take 64
// KiB or more. In smaller filters the sketch would be more than a fifth of the
// file, and the bits give the sizes well. Exact filters have none, since their
// members can be counted.
package builds

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Spec holds what all workers of a build agree on.
type Spec struct {
	Names    []string  // of the key columns
	Classes  []string  // of the key columns, under the rule
	Rule     keys.Rule // normalizes strings
	Hash     bloom.Hash
	Geometry bloom.Geometry // 0: depends on the rate, see [bloom.GeometryFor]
	Capacity uint64         // upper bound on the number of keys; determines the size
	FPR      float64        // wanted rate; 0: [bloom.DefaultFPR] of Capacity
	MaxSize  uint64         // maximum size of the bits in bytes; 0: no limit
	Room     bool           // the sealed filter keeps its size and records the Capacity
	Want     filters.Kind   // kind of filter
	SkipBad  bool           // bad lines of text IDs are skipped
	NoRange  bool           // the filter does not record its smallest and largest key
	Multiset bool           // a counting filter counts a key each time it is added

	reading []string // whatever else changes the keys that are read from the same files: casts, conditions and, for text, the format, the encoding and the key's types
	sparse  bool     // the keys are so far apart that no exact set is tried; depends on the inputs alone
}

// Header returns the header of a filter over the key, without a payload.
func (s Spec) Header() *filters.Filter {
	f := filters.New(filters.Facts{NormalForm: keys.NormalForm, Rule: s.Rule.String()})
	for i, name := range s.Names[:min(len(s.Names), len(s.Classes))] {
		f.Facts().Key = append(f.Facts().Key, filters.KeyColumn{Name: name, Class: s.Classes[i]})
	}
	return f
}

// size returns the parameters of the bits before folding and the rate they are
// made for: the requested one or, if MaxSize does not allow it, the one that
// results from the capacity. If no geometry is given, the rate decides
// ([bloom.GeometryFor]).
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
		return params, 0, faults.Unsupported(fault.At{}, "a false-positive rate of %.2g for %d keys; the largest filter has %.2g", fpr, keys, got).
			WithHint("lower {Expect}, raise {FPR}, or set the size with {MaxSize}")
	}
	if s.MaxSize == 0 || params.Bytes() <= s.MaxSize {
		return params, fpr, nil
	}
	if s.Geometry == 0 {
		// Use Split512 if the rate that it gets at that size calls for it.
		if params.Geometry = bloom.Split512; bloom.GeometryFor(s.within(bloom.Split512)) != bloom.Split512 {
			params.Geometry = bloom.Split256
		}
	}
	g := params.Geometry
	if params.Blocks = g.BlocksWithin(s.MaxSize); params.Blocks == 0 {
		return params, 0, fmt.Errorf("a filter of at most %d bytes: want at least %d", s.MaxSize, g.BlockBytes())
	}
	// A filter so small that it passes nearly everything is still valid.
	return params, min(s.within(g), 0.999999), nil
}

// within returns the rate that results from MaxSize and Capacity.
func (s Spec) within(g bloom.Geometry) float64 {
	blocks := g.BlocksWithin(s.MaxSize)
	if blocks == 0 {
		return 1
	}
	return g.FPR(blocks, max(s.Capacity, 1))
}

// integer reports whether the key can be stored exactly.
func (s Spec) integer() bool {
	return len(s.Classes) == 1 && keys.Class(s.Classes[0]) == keys.Integer
}

// exact reports whether the keys are stored exactly as long as that is cheap.
func (s Spec) exact() bool {
	return s.integer() && s.Want != filters.KindBloom && s.Want != filters.KindCounting && (s.Want == filters.KindExact || !s.sparse)
}

// check returns an error if no filter can fulfil the spec.
func (s Spec) check() error {
	if s.Want == filters.KindExact && !s.integer() {
		return faults.Of(cause.KeyColumn, faults.Unsupported(fault.At{}, "an exact filter over keys of class %s", strings.Join(s.Classes, ", "))).
			WithHint("exact filters hold one column of integers; give text a {Types int64}, or use {Kind bloom}")
	}
	if s.Want == filters.KindCounting && s.Geometry != bloom.Split256 {
		return faults.Unsupported(fault.At{}, "a counting filter in %s", s.Geometry).WithHint("use {Geometry split-256}")
	}
	if s.FPR != 0 && !(s.FPR > 0 && s.FPR < 1) { // written so that it rejects NaN, too
		return fmt.Errorf("false-positive rate %v: want more than 0 and less than 1", s.FPR)
	}
	if s.Room && s.Capacity == 0 {
		return errors.New("room for further keys: want a capacity, the number of keys in the end")
	}
	if s.Geometry != 0 && !slices.Contains(bloom.Geometries(), s.Geometry) {
		return faults.Unsupported(fault.At{}, "%s", s.Geometry).WithHint("want one of %v", bloom.Geometries())
	}
	return nil
}

// id digests the spec and the identity of the inputs.
func (s Spec) id(inputs [32]byte) [32]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d %d %v %d %d %q ",
		s.Names, s.Classes, s.Hash, s.Geometry, s.Capacity, s.FPR, s.MaxSize, s.Want, keys.NormalForm)
	if s.SkipBad { // written only if set, as for the range
		h.Write([]byte("without bad lines"))
	}
	if s.NoRange { // written only if set, so that older ids stay valid
		h.Write([]byte("no key range"))
	}
	if s.Rule != 0 { // same
		fmt.Fprintf(h, "normalize %s ", s.Rule.Stored())
	}
	if s.Room {
		h.Write([]byte("room"))
	}
	if s.Multiset {
		h.Write([]byte("multiset"))
	}
	for _, as := range s.reading {
		fmt.Fprintf(h, "text as %q ", as) // also casts and conditions; the words stay the same to keep the ids
	}
	h.Write(inputs[:])
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}
