package parquet

import (
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
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
func (f *File) shareGroups() {
	var walk func(n *Node, rep, def uint8) (lo, hi int)
	walk = func(n *Node, rep, def uint8) (lo, hi int) {
		if n.Leaf >= 0 {
			return n.Leaf, n.Leaf + 1
		}
		below := len(f.shared)
		lo = len(f.Leaves)
		for _, c := range n.Children {
			r, d := levelsOf(c, rep, def)
			l, h := walk(c, r, d)
			lo, hi = min(lo, l), max(hi, h)
		}
		if n.Repetition != format.Repeated || hi-lo < 2 {
			return lo, hi
		}
		for _, s := range f.shared[below:] {
			if s.lo == lo && s.hi == hi {
				return lo, hi
			}
		}
		f.shared = append(f.shared, shared{lo, hi, rep, def})
		return lo, hi
	}
	for _, c := range f.Root.Children {
		r, d := levelsOf(c, 0, 0)
		walk(c, r, d)
	}
	for i, s := range f.shared {
		for l := s.lo; l < s.hi; l++ {
			f.Leaves[l].shared = append(f.Leaves[l].shared, i)
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

// addShape adds the page's entries to the chunk's shape.
func (c *Chunk) addShape() { c.shape = c.f.AddShape(c.shape, c.leaf.Index, &c.page) }

// AddShape returns the shape of a leaf with the entries of a page added. The shape of
// no rows is nil.
func (f *File) AddShape(of Shape, leaf int, p *Page) Shape {
	groups := f.Leaves[leaf].shared
	if of == nil && len(groups) > 0 {
		of = make(Shape, len(groups))
	}
	for i, g := range groups {
		s := &f.shared[g]
		sum := of[i]
		def := p.Def[:len(p.Rep)]
		for e, rep := range p.Rep {
			if rep <= s.rep {
				sum = (sum ^ (uint64(rep)<<8 | uint64(min(def[e], s.def)) + 1)) * 0x9e3779b97f4a7c15
				sum ^= sum >> 29
			}
		}
		of[i] = sum
	}
	return of
}

// Shape returns the shape of the rows read so far, nil if some of them were not
// decoded.
func (c *Chunk) Shape() Shape { return c.shape }

// CheckShapes compares the shapes of leaves that were read for the same rows of a
// row group, counted from 0. shapes is keyed by leaf and need not have all leaves;
// a nil shape is ignored.
func (f *File) CheckShapes(rowGroup int, shapes map[int]Shape) error {
	for i, s := range f.shared {
		first, sum := -1, uint64(0)
		for l := s.lo; l < s.hi; l++ {
			shape, ok := shapes[l]
			if !ok || shape == nil {
				continue
			}
			for k, g := range f.Leaves[l].shared {
				if g != i {
					continue
				}
				if first < 0 {
					first, sum = l, shape[k]
				} else if shape[k] != sum {
					return fault.Corrupt(f.at(rowGroup, l), "the column repeats otherwise than column %s, which is in the same repeated group", f.Leaves[first].Dotted)
				}
			}
		}
	}
	return nil
}
