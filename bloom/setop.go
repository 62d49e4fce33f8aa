package bloom

import (
	"fmt"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
)

// Union makes f the filter of both key sets. It is exact: the bits are those
// of a filter to which all keys of both were added. The parameters must be
// equal, else f is left as it is and the error wraps fault.ErrMismatch.
func (f *Filter) Union(g *Filter) error {
	if err := f.params.Match(g.params); err != nil {
		return err
	}
	f.changes()
	orWords(f.words, g.words)
	return nil
}

// Intersect leaves in f the bits that both filters have. Every key of both
// sets is still found; so are others, at a rate no higher than that of either
// filter. The parameters must be equal.
func (f *Filter) Intersect(g *Filter) error {
	if err := f.params.Match(g.params); err != nil {
		return err
	}
	f.changes()
	for i, w := range g.words {
		f.words[i] &= w
	}
	return nil
}

// Fold returns the filter with 1/k of the blocks that holds the same keys:
// bit for bit the one that would have come out had it been built at that
// size. k must divide the number of blocks.
func (f *Filter) Fold(k uint64) (*Filter, error) {
	n := f.params.Blocks
	if k == 0 || n%k != 0 {
		return nil, fault.Mismatch(fault.At{}, "fold factor", fmt.Sprintf("a divisor of %d", n), fmt.Sprint(k))
	}
	p := f.params
	p.Blocks = n / k
	g, err := New(p)
	if err != nil {
		return nil, err
	}
	w := p.Geometry.words()
	for i := range g.params.Blocks {
		to := g.words[i*w : (i+1)*w]
		for from := f.words[i*k*w : (i+1)*k*w]; len(from) > 0; from = from[w:] {
			orWords(to, from[:w])
		}
	}
	return g, nil
}

// FoldLimit returns the rate up to which a filter of the wished rate may fold:
// FoldSlack times that, and, where nearly everything passes, no more of what is
// dropped may be lost either.
func FoldLimit(fpr float64) float64 { return min(FoldSlack*fpr, 1-(1-fpr)/FoldSlack) }

// FoldSlack is how far above the wished rate a fold may end: without it, a
// filter that is exactly full would be kept at twice its size for the noise in
// its bits.
const FoldSlack = 1.02

// Shrink folds f as far as its rate stays at most FoldLimit of fpr, and
// returns f itself where no fold does. The result depends on the bits and fpr
// alone: whoever holds the union of the partial filters gets the same.
func (f *Filter) Shrink(fpr float64) (*Filter, error) {
	limit := FoldLimit(fpr)
	keys := f.Count().Keys
	g := f.params.Geometry
	for _, k := range divisors(f.params.Blocks) {
		// The formula rules out the hopeless folds without touching the bits.
		if k == 1 || g.FPR(f.params.Blocks/k, uint64(min(keys, 1<<62))) > 2*limit {
			continue
		}
		if fpr := f.foldedFPR(k); fpr <= limit {
			folded, err := f.Fold(k)
			if err == nil {
				folded.fpr.Store(&fpr)
			}
			return folded, err
		}
	}
	return f, nil
}

// Folds returns the factors of which one is that by which Shrink will fold a
// filter of p, once it holds so many distinct keys, give or take five standard
// errors: in descending order, few, and at least one. A filter that is smaller
// beforehand by a factor that divides them all comes out the same; so does one
// that is smaller by the first of them at which its rate is within FoldLimit.
func (p Params) Folds(keys Estimate, fpr float64) []uint64 {
	limit := FoldLimit(fpr)
	least, most := max(keys.Keys-5*keys.StdErr, 0), keys.Keys+5*keys.StdErr+1
	var ks []uint64
	for _, k := range divisors(p.Blocks) {
		blocks := p.Blocks / k
		// The rate of a block varies by about as much as it is, that of all by
		// so much less.
		stray := 1.002 + 6/math.Sqrt(float64(blocks))
		if len(ks) == 0 && k > 1 && p.Geometry.FPR(blocks, uint64(least)) > limit*stray {
			continue // too far, whatever the bits are
		}
		ks = append(ks, k)
		if p.Geometry.FPR(blocks, uint64(most)) <= limit/stray {
			break // near enough, whatever they are
		}
	}
	return ks
}

// SureFold returns the greatest factor that divides all that [Params.Folds]
// returns.
func (p Params) SureFold(keys Estimate, fpr float64) uint64 {
	sure := uint64(0)
	for _, k := range p.Folds(keys, fpr) {
		sure = CommonFold(k, sure)
	}
	return sure
}

// FoldWithin returns the smallest factor by which the blocks can be folded to
// so many bytes, 0 if not even one block fits.
func (p Params) FoldWithin(size uint64) uint64 {
	for _, k := range slices.Backward(divisors(p.Blocks)) {
		if p.Blocks/k*p.Geometry.BlockBytes() <= size {
			return k
		}
	}
	return 0
}

// orWords ORs b into a, which is as long.
func orWords(a, b []uint64) {
	b = b[:len(a)]
	for i := range a {
		a[i] |= b[i]
	}
}

// CommonFold returns the largest number of blocks to which filters of n and m
// blocks can both be folded.
func CommonFold(n, m uint64) uint64 {
	for m != 0 {
		n, m = m, n%m
	}
	return n
}
