package parquet

import (
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/parquet-go/parquet-go/format"
)

// Columns below one repeated group, as the keys and values of a map or the
// fields of structs in a list, each store how often the group repeats in each
// row. Nothing in the format makes them agree, and a reader that takes one's word
// for the other's shifts values from row to row. A Shape sums up what a column
// says, so that columns can be compared that were read apart.

// Shape sums up how often each repeated group above a leaf repeats, over the
// rows that were read: a hash for each group that other leaves share. It is nil
// for leaves that share none.
type Shape []uint64

// shared is a repeated group with several leaves below: lo up to hi.
type shared struct {
	lo, hi   int
	rep, def uint8 // of an element of the group
}

// shareGroups finds the groups whose leaves can be compared. One that has the
// leaves of a group below it is compared with that.
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

// levelsOf returns the levels of a child of a node with the given ones.
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
func (c *Chunk) addShape() {
	for i, g := range c.leaf.shared {
		s := &c.f.shared[g]
		sum := c.shape[i]
		def := c.page.Def[:len(c.page.Rep)]
		for e, rep := range c.page.Rep {
			if rep <= s.rep {
				sum = (sum ^ (uint64(rep)<<8 | uint64(min(def[e], s.def)) + 1)) * 0x9e3779b97f4a7c15
				sum ^= sum >> 29
			}
		}
		c.shape[i] = sum
	}
}

// Shape returns the shape of what was read so far.
func (c *Chunk) Shape() Shape { return c.shape }

// CheckShapes compares the shapes of leaves that were read of the same rows of a
// row group, counted from 0. shapes has those of some leaves, by number.
func (f *File) CheckShapes(rowGroup int, shapes map[int]Shape) error {
	for i, s := range f.shared {
		first, sum := -1, uint64(0)
		for l := s.lo; l < s.hi; l++ {
			shape, ok := shapes[l]
			if !ok {
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
