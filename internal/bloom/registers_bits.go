package bloom

import (
	"iter"
	"math"
	"math/bits"
	"sync"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Compare estimates how the key sets of two filters overlap, from their bits alone.
// Geometry and hash must agree. Filters of different sizes are taken at a common size,
// which costs precision. It copies neither. If a block is full at that size, its
// number of keys is unknown, and the error wraps fault.ErrMismatch.
//
// |A|, |B| and |A∪B| come from [Filter.Count]; the other numbers follow by
// inclusion and exclusion. The errors of those three are correlated where the sets
// are alike. The standard errors of the other numbers are computed as if they were
// independent, and so are upper bounds.
func (f *Filter) Compare(g *Filter) (c Comparison, err error) {
	if f.blank() || g.blank() {
		return c, errBlank()
	}
	n := CommonFold(f.params.Blocks, g.params.Blocks)
	q := g.params
	q.Blocks = f.params.Blocks
	if err := f.params.Match(q); err != nil {
		return c, err
	}
	a, b := folding{f, f.params.Blocks / n}, folding{g, g.params.Blocks / n}
	c.A, c.B, c.Union = a.count(), b.count(), counted(a, b)
	if math.IsInf(c.Union.Keys, 1) {
		return c, faults.Mismatch(fault.At{}, "bits to compare", "clear bits in every block", "a full block")
	}
	for _, d := range []struct {
		of      *Cardinality
		keys    float64
		x, y, z Cardinality
	}{
		{&c.Both, c.A.Keys + c.B.Keys - c.Union.Keys, c.A, c.B, c.Union},
		{&c.OnlyA, c.Union.Keys - c.B.Keys, c.Union, c.B, Cardinality{}},
		{&c.OnlyB, c.Union.Keys - c.A.Keys, c.Union, c.A, Cardinality{}},
	} {
		*d.of = Cardinality{max(0, d.keys), math.Hypot(d.x.StdErr, math.Hypot(d.y.StdErr, d.z.StdErr))}
	}
	return c, nil
}

// Count estimates the number of distinct keys that were added. With s bits in a
// lane and t = -ln(share of clear bits), a block holds about s·t keys, with
// variance s·(e^t-1-t)/8 and a bias of (e^t-1-t)/16, which is subtracted. This is
// linear counting in each block (Whang, Vander-Zanden and Taylor, ACM TODS 15(2),
// 1990). At 1 % the standard error is 0.06 % of a million keys and falls with the
// square root of their number. A full block makes both results +Inf. The first
// call after a change reads all bits.
func (f *Filter) Count() Cardinality {
	if f.blank() {
		return Cardinality{math.Inf(1), math.Inf(1)}
	}
	if e := f.count.Load(); e != nil {
		return *e
	}
	e := counted(folding{f, 1})
	f.count.Store(&e)
	return e
}

// count is Count of the folded filter.
func (g folding) count() Cardinality {
	if g.k == 1 {
		return g.of.Count()
	}
	return counted(g)
}

// counted computes the result of Count for a union.
func counted(union ...folding) (e Cardinality) {
	s := float64(union[0].of.params.Geometry.laneBits())
	var mu sync.Mutex
	var blocks [lanes*wordBits + 1]uint64 // blocks by number of bits set
	eachBlock(union, func(some iter.Seq[[]uint64]) {
		var counts [len(blocks)]uint64
		for b := range some {
			set := 0
			for _, w := range b {
				set += bits.OnesCount64(w)
			}
			counts[set]++
		}
		mu.Lock()
		defer mu.Unlock()
		for set, n := range counts {
			blocks[set] += n
		}
	})
	var variance float64
	for set, n := range blocks {
		if n == 0 {
			continue
		}
		if float64(set) == lanes*s {
			return Cardinality{math.Inf(1), math.Inf(1)}
		}
		clear := 1 - float64(set)/(lanes*s)
		t := -math.Log(clear)
		excess := 1/clear - 1 - t
		// A key increases t by -ln(1-1/s) rather than 1/s.
		e.Keys += float64(n) * (t/-math.Log1p(-1/s) - excess/16)
		variance += float64(n) * s * excess / 8
	}
	e.StdErr = math.Sqrt(variance)
	return e
}
