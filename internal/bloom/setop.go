package bloom

import (
	"fmt"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// errBlank returns the error of a call with a filter without bits.
func errBlank() error {
	return faults.Mismatch(fault.At{}, "Bloom filter", "one from New", "nil or the zero value")
}

// Union makes f the filter of both key sets. It is exact: the bits are those of a
// filter to which all keys of both were added. The parameters must be equal;
// otherwise f is unchanged and the error wraps fault.ErrMismatch.
func (f *Filter) Union(g *Filter) error {
	if f.blank() || g.blank() {
		return errBlank()
	}
	if err := f.params.Match(g.params); err != nil {
		return err
	}
	f.changes()
	orWords(f.words, g.words)
	return nil
}

// Intersect keeps in f only the bits that both filters have. Every key in both sets
// is still found; others pass at no higher rate than in either filter. The
// parameters must be equal; otherwise f is unchanged and the error wraps
// fault.ErrMismatch.
func (f *Filter) Intersect(g *Filter) error {
	if f.blank() || g.blank() {
		return errBlank()
	}
	if err := f.params.Match(g.params); err != nil {
		return err
	}
	f.changes()
	for i, w := range g.words {
		f.words[i] &= w
	}
	return nil
}

// Fold returns a filter with 1/k of the blocks and the same keys, bit for bit the
// filter that would have been built at that size. k must divide the number of
// blocks.
func (f *Filter) Fold(k uint64) (*Filter, error) {
	if f.blank() {
		return nil, errBlank()
	}
	n := f.params.Blocks
	if k == 0 || n%k != 0 {
		return nil, faults.Mismatch(fault.At{}, "fold factor", fmt.Sprintf("a divisor of %d", n), k)
	}
	p := f.params
	p.Blocks = n / k
	g, err := New(p)
	if err != nil {
		return nil, err
	}
	f.foldInto(g, k)
	return g, nil
}

// foldInto sets the bits of g, which has 1/k of f's blocks and may share f's memory: a block
// is written after the blocks that it is made of were read.
func (f *Filter) foldInto(g *Filter, k uint64) {
	w := f.params.Geometry.words()
	var sum block512
	for i := range g.params.Blocks {
		from := f.words[i*k*w : (i+1)*k*w]
		copy(sum[:w], from)
		for from = from[w:]; len(from) > 0; from = from[w:] {
			orWords(sum[:w], from[:w])
		}
		copy(g.words[i*w:], sum[:w])
	}
}

// FoldLimit returns the highest rate that a filter of the requested rate may have
// after folding: FoldSlack times fpr, or, at rates near 1, less than that, so that
// the share of rows that the filter removes falls by at most the same factor.
func FoldLimit(fpr float64) float64 { return min(FoldSlack*fpr, 1-(1-fpr)/FoldSlack) }

// FoldSlack is how far a folded filter may exceed the requested rate. Without it,
// noise in the bits of an exactly full filter would keep it at twice its size.
const FoldSlack = 1.02

// Shrink returns the smallest fold of f whose rate is at most FoldLimit(fpr), or f
// itself if no fold qualifies. The result depends on the bits and fpr alone, so
// every process with the union of the partial filters gets the same one. If it takes more
// than room bytes, it is made in f's memory, and f must not be used any more.
func (f *Filter) Shrink(fpr float64, room uint64) (*Filter, error) {
	if f.blank() {
		return nil, errBlank()
	}
	limit := FoldLimit(fpr)
	keys := f.Count().Keys
	g := f.params.Geometry
	for _, k := range divisors(f.params.Blocks) {
		// The formula rules out hopeless folds without a pass over the bits.
		if k == 1 || g.FPR(f.params.Blocks/k, uint64(min(keys, 1<<62))) > 2*limit {
			continue
		}
		if fpr := f.foldedFPR(k); fpr <= limit {
			p := f.params
			p.Blocks /= k
			folded := &Filter{params: p, words: f.words[:p.Blocks*g.words()]}
			if p.Bytes() <= room || f.fixed {
				var err error
				if folded, err = New(p); err != nil {
					return nil, err
				}
			}
			f.foldInto(folded, k)
			folded.fpr.Store(&fpr)
			return folded, nil
		}
	}
	return f, nil
}

// Folds returns candidates for the factor by which Shrink will fold a filter of p
// that holds the given number of distinct keys, give or take five standard errors.
// One of them is that factor. The list is in descending order, short and never
// empty. A filter that is made smaller in advance by a common divisor of the list
// ends up the same after Shrink; so does one made smaller by the first factor in
// the list at which its rate is within FoldLimit.
func (p Params) Folds(keys Cardinality, fpr float64) []uint64 {
	if p.Check() != nil {
		return []uint64{1}
	}
	limit := FoldLimit(fpr)
	least, most := max(keys.Keys-5*keys.StdErr, 0), keys.Keys+5*keys.StdErr+1
	var ks []uint64
	for _, k := range divisors(p.Blocks) {
		blocks := p.Blocks / k
		// A block's rate varies by about its own size; the mean over all blocks
		// varies by that over the square root of their number.
		stray := 1.002 + 6/math.Sqrt(float64(blocks))
		if len(ks) == 0 && k > 1 && p.Geometry.FPR(blocks, uint64(least)) > limit*stray {
			continue // too far, whatever the bits
		}
		ks = append(ks, k)
		if p.Geometry.FPR(blocks, uint64(most)) <= limit/stray {
			break // close enough, whatever the bits
		}
	}
	return ks
}

// SureFold returns the greatest common divisor of the factors that [Params.Folds]
// returns.
func (p Params) SureFold(keys Cardinality, fpr float64) uint64 {
	sure := uint64(0)
	for _, k := range p.Folds(keys, fpr) {
		sure = CommonFold(k, sure)
	}
	return sure
}

// FoldWithin returns the smallest factor that folds the blocks to at most size
// bytes, or 0 if not even one block fits.
func (p Params) FoldWithin(size uint64) uint64 {
	if p.Check() != nil {
		return 0
	}
	for _, k := range slices.Backward(divisors(p.Blocks)) {
		if p.Blocks/k*p.Geometry.BlockBytes() <= size {
			return k
		}
	}
	return 0
}

// orWords ORs b into a; b is at least as long.
func orWords(a, b []uint64) {
	b = b[:len(a)]
	for i := range a {
		a[i] |= b[i]
	}
}

// CommonFold returns the largest number of blocks to which filters of n and of m
// blocks can both be folded.
func CommonFold(n, m uint64) uint64 {
	for m != 0 {
		n, m = m, n%m
	}
	return n
}
