package meta

import (
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// Leaves under one repeated group, such as the keys and values of a map or the
// fields of structs in a list, each store how often the group repeats in each row.
// Nothing in the format makes them agree, and a reader that applies one leaf's
// counts to another shifts values between rows. A Shape summarises the counts of
// one leaf, so that leaves that are read separately can be compared.

// Shape summarises how often each repeated group that contains a leaf repeats in
// the rows read so far: a hash for each group that contains other leaves too. It is
// nil for leaves without such a group.
type Shape []uint64

// shared is a repeated group with several leaves: lo up to hi (exclusive).
type shared struct {
	lo, hi   int
	rep, def uint8 // levels of an element of the group
}

// shareGroups finds the groups whose leaves can be compared. A group with the same
// leaves as one nested in it is omitted.
func (s *Schema) shareGroups() {
	var walk func(n *Node, rep, def uint8) (lo, hi int)
	walk = func(n *Node, rep, def uint8) (lo, hi int) {
		if n.Leaf >= 0 {
			return n.Leaf, n.Leaf + 1
		}
		below := len(s.shared)
		lo = len(s.Leaves)
		for _, c := range n.Children {
			r, d := levelsOf(c, rep, def)
			l, h := walk(c, r, d)
			lo, hi = min(lo, l), max(hi, h)
		}
		if n.Repetition != format.Repeated || hi-lo < 2 {
			return lo, hi
		}
		for _, g := range s.shared[below:] {
			if g.lo == lo && g.hi == hi {
				return lo, hi
			}
		}
		s.shared = append(s.shared, shared{lo, hi, rep, def})
		return lo, hi
	}
	for _, c := range s.Root.Children {
		r, d := levelsOf(c, 0, 0)
		walk(c, r, d)
	}
	for i, g := range s.shared {
		for l := g.lo; l < g.hi; l++ {
			s.Leaves[l].shared = append(s.Leaves[l].shared, i)
		}
	}
}

// levelsOf returns the levels of node n, given those of its parent.
func levelsOf(n *Node, rep, def uint8) (uint8, uint8) {
	switch n.Repetition {
	case format.Repeated:
		return rep + 1, def + 1
	case format.Optional:
		return rep, def + 1
	}
	return rep, def
}

// NewShape returns the shape of no rows, nil if the leaf is in no such group.
func (s *Schema) NewShape(leaf int) Shape {
	if n := len(s.Leaves[leaf].shared); n > 0 {
		return make(Shape, n)
	}
	return nil
}

// AddShape returns the shape of a leaf with entries of the given levels added. The
// shape of no rows may be nil.
func (s *Schema) AddShape(of Shape, leaf int, reps, defs []uint8) Shape {
	if of == nil {
		of = s.NewShape(leaf)
	}
	for i, g := range s.Leaves[leaf].shared {
		g := &s.shared[g]
		sum := of[i]
		def := defs[:len(reps)]
		for e, rep := range reps {
			if rep <= g.rep {
				sum = (sum ^ (uint64(rep)<<8 | uint64(min(def[e], g.def)) + 1)) * 0x9e3779b97f4a7c15
				sum ^= sum >> 29
			}
		}
		of[i] = sum
	}
	return of
}

// OtherShape compares the shapes of leaves that were read for the same rows. shapes is
// keyed by leaf and need not have all leaves; a nil shape is ignored. It returns the
// first leaf that differs from an earlier one, and that earlier leaf; ok if none does.
func (s *Schema) OtherShape(shapes map[int]Shape) (leaf, before int, ok bool) {
	for i, g := range s.shared {
		first, sum := -1, uint64(0)
		for l := g.lo; l < g.hi; l++ {
			shape := shapes[l]
			if shape == nil {
				continue
			}
			if own := shape[slices.Index(s.Leaves[l].shared, i)]; first < 0 {
				first, sum = l, own
			} else if own != sum {
				return l, first, false
			}
		}
	}
	return 0, 0, true
}
