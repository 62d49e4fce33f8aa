package bloom

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/fault"
)

// Every key that was added is found, at every size and density.
func TestNoFalseNegatives(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		r := rand.New(rand.NewPCG(1, 1))
		for range 60 {
			hashes := randoms(r.Uint64(), 1+r.IntN(4000))
			f := g.newFilter(t, 1+r.Uint64N(2000), hashes...)
			sel := f.Probe(hashes, nil)
			if len(sel) != len(hashes) {
				t.Fatalf("%d of %d keys found", len(sel), len(hashes))
			}
			for i, s := range sel {
				if s != uint32(i) || !f.Contains(hashes[i]) {
					t.Fatalf("position %d of the selection is %d", i, s)
				}
			}
		}
	})
}

func TestProbeAppends(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		hashes := randoms(1, 1000)
		f := g.newFilter(t, 500, hashes[:500]...)
		got := f.Probe(hashes, []uint32{7, 7})
		if !slices.Equal(got[:2], []uint32{7, 7}) || !slices.Equal(got[2:], f.Probe(hashes, nil)) {
			t.Error("Probe changed what was there, or found others")
		}
		if len(g.newFilter(t, 500).Probe(hashes, nil)) != 0 {
			t.Error("an empty filter finds keys")
		}
		sel := make([]uint32, 0, len(hashes))
		if n := testing.AllocsPerRun(10, func() { sel = f.Probe(hashes, sel[:0]) }); n != 0 {
			t.Errorf("Probe allocates %v times", n)
		}
		if n := testing.AllocsPerRun(10, func() { f.Add(hashes) }); n != 0 {
			t.Errorf("Add allocates %v times", n)
		}
		if n := testing.AllocsPerRun(10, func() { Hash{ID: XXH3}.Sum64(hashes, hashes) }); n != 0 {
			t.Errorf("Sum64 allocates %v times", n)
		}
	})
}

func union(t testing.TB, a, b *Filter) *Filter {
	t.Helper()
	c := a.Clone()
	if err := c.Union(b); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestUnionLaws(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		x, y, z := randoms(1, 900), randoms(2, 300), randoms(3, 40)
		a, b, c := g.newFilter(t, 200, x...), g.newFilter(t, 200, y...), g.newFilter(t, 200, z...)
		same := func(law string, f, g *Filter) {
			if !bytes.Equal(bitsOf(f), bitsOf(g)) {
				t.Errorf("union is not %s", law)
			}
		}
		same("commutative", union(t, a, b), union(t, b, a))
		same("associative", union(t, union(t, a, b), c), union(t, a, union(t, b, c)))
		same("idempotent", union(t, a, a), a)
		same("neutral to the empty filter", union(t, a, g.newFilter(t, 200)), a)
		same("the filter of both sets", union(t, a, b), g.newFilter(t, 200, append(slices.Clone(x), y...)...))
	})
}

func TestIntersect(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		x, y, both := randoms(1, 900), randoms(2, 300), randoms(3, 100)
		a := g.newFilter(t, 400, append(x, both...)...)
		b := g.newFilter(t, 400, append(y, both...)...)
		c := a.Clone()
		if err := c.Intersect(b); err != nil {
			t.Fatal(err)
		}
		if n := len(c.Probe(both, nil)); n != len(both) {
			t.Errorf("%d of %d common keys found", n, len(both))
		}
		if c.FPR() > min(a.FPR(), b.FPR()) {
			t.Errorf("FPR %g, of the operands %g and %g", c.FPR(), a.FPR(), b.FPR())
		}
		d := b.Clone()
		if err := d.Intersect(a); err != nil || !bytes.Equal(bitsOf(c), bitsOf(d)) {
			t.Errorf("not commutative, error %v", err)
		}
	})
}

func TestMismatch(t *testing.T) {
	p := Params{Geometry: Split256, Hash: Hash{ID: XXH3}, Blocks: 10}
	f := Split256.newFilter(t, 10, 1, 2, 3)
	for name, change := range map[string]func(q *Params){
		"blocks": func(q *Params) { q.Blocks = 11 },
		"seed":   func(q *Params) { q.Hash.Seed = 1 },
		"hash":   func(q *Params) { q.Hash.ID = XXH64 },
	} {
		q := p
		change(&q)
		g, err := New(q)
		if err != nil {
			t.Fatal(err)
		}
		g.Add(randoms(1, 10))
		before := bitsOf(f)
		for _, err := range []error{f.Union(g), f.Intersect(g), p.Match(q)} {
			if !errors.Is(err, fault.ErrMismatch) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !bytes.Equal(before, bitsOf(f)) {
			t.Errorf("%s: a refused operation changed the filter", name)
		}
	}
	q := p
	q.Geometry = Split512
	if err := p.Match(q); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("geometry: %v", err)
	}
	for _, bad := range []Params{
		{}, {Geometry: 3, Hash: p.Hash, Blocks: 1}, {Split256, p.Hash, 0}, {Split256, p.Hash, MaxBlocks + 1}, {Split256, p.Hash, 1 << 60},
		{Split256, Hash{}, 1}, {Split256, Hash{Keyed, 0}, 1}, {Split256, Hash{XXH64, 1}, 1},
	} {
		if g, err := New(bad); err == nil || g != nil {
			t.Errorf("New accepts %+v", bad)
		}
	}
}

// A folded filter equals the one that would have been built at that size.
func TestFold(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		hashes := randoms(5, 3000)
		const n = 1440
		f := g.newFilter(t, n, hashes...)
		for k := uint64(1); k <= n; k++ {
			folded, err := f.Fold(k)
			if n%k != 0 {
				if !errors.Is(err, fault.ErrMismatch) {
					t.Errorf("fold by %d: %v", k, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := g.newFilter(t, n/k, hashes...); !bytes.Equal(bitsOf(folded), bitsOf(want)) || folded.params != want.params {
				t.Errorf("folded by %d: not the filter of %d blocks", k, n/k)
			}
			if got := f.foldedFPR(k); got != folded.FPR() {
				t.Errorf("folded by %d: FPR %g announced, is %g", k, got, folded.FPR())
			}
		}
		if _, err := f.Fold(0); err == nil {
			t.Error("folded by 0")
		}
	})
}

func TestBlocksAsBytes(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		f := g.newFilter(t, 77, randoms(1, 500)...)
		back := g.newFilter(t, 77)
		for lo := uint64(0); lo < 77; lo += 10 {
			if err := back.OrBlocks(lo, f.AppendBlocks(nil, lo, min(77, lo+10))); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(bitsOf(f), bitsOf(back)) {
			t.Error("written and read, it is another filter")
		}
		size := int(g.BlockBytes())
		for _, bad := range []struct {
			lo uint64
			n  int
		}{{77, size}, {76, 2 * size}, {0, size - 1}, {0, 78 * size}, {^uint64(0), size}, {1 << 63, 0}} {
			if err := back.OrBlocks(bad.lo, make([]byte, bad.n)); !errors.Is(err, fault.ErrCorrupt) {
				t.Errorf("%d bytes at block %d: %v", bad.n, bad.lo, err)
			}
		}
	})
}

// Shrink gives the same filter for a union, however its keys were divided.
func TestShrink(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		for _, c := range []struct {
			keys, expected int
			p              float64
		}{{2000, 2000, 1e-3}, {2000, 100_000, 0.01}, {0, 1000, 0.01}, {1, 5000, 1e-6}, {5000, 1000, 0.01}} {
			hashes := randoms(uint64(c.keys), c.keys)
			n := g.Blocks(uint64(c.expected), c.p)
			whole, err := g.newFilter(t, n, hashes...).Shrink(c.p, math.MaxUint64)
			if err != nil {
				t.Fatal(err)
			}
			for _, parts := range []int{2, 3, 16} {
				all := g.newFilter(t, n)
				for i := range parts {
					part := g.newFilter(t, n)
					for j := i; j < len(hashes); j += parts {
						part.Add(hashes[j : j+1])
					}
					all = union(t, part, all)
				}
				got, err := all.Shrink(c.p, math.MaxUint64)
				if err != nil || got.params != whole.params || !bytes.Equal(bitsOf(got), bitsOf(whole)) {
					t.Errorf("%+v: %d parts shrink to another filter, error %v", c, parts, err)
				}
			}
			full := g.newFilter(t, n, hashes...)
			for name, f := range map[string]*Filter{"in place": g.newFilter(t, n, hashes...), "of a view": viewOf(t, full)} {
				got, err := f.Shrink(c.p, 0)
				if err != nil || got.params != whole.params || !bytes.Equal(bitsOf(got), bitsOf(whole)) {
					t.Errorf("%+v: %s: another filter, error %v", c, name, err)
				}
				if got.FPR() != whole.FPR() || got.Count() != whole.Count() {
					t.Errorf("%+v: %s: another rate or count", c, name)
				}
			}
			if !bytes.Equal(bitsOf(full), bitsOf(g.newFilter(t, n, hashes...))) {
				t.Errorf("%+v: the bits of a view are changed", c)
			}
			if whole.params.Blocks < n && whole.FPR() > FoldLimit(c.p) {
				t.Errorf("%+v: shrunk to an FPR of %g", c, whole.FPR())
			}
			// A larger fold would exceed the limit.
			for _, k := range divisors(n) {
				if n/k < whole.params.Blocks && full.foldedFPR(k) <= FoldLimit(c.p) {
					t.Errorf("%+v: shrunk to %d blocks where %d do", c, whole.params.Blocks, n/k)
				}
			}
		}
	})
}

// viewOf returns a view of the filter's bits, which it must not change.
func viewOf(t *testing.T, f *Filter) *Filter {
	t.Helper()
	v, err := View(f.params, unsafe.Slice((*byte)(unsafe.Pointer(&f.words[0])), 8*len(f.words)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A filter that rejects few keys still rejects nearly as many after folding.
func TestFoldLimit(t *testing.T) {
	for _, p := range []float64{1e-6, 0.01, 0.5, 0.9, 0.984, 0.999999} {
		if l := FoldLimit(p); !(l > p && l < 1 && l <= FoldSlack*p && 1-l >= (1-p)/FoldSlack*(1-1e-9)) {
			t.Errorf("%g: %g", p, l)
		}
	}
	f := Split256.newFilter(t, 720, randoms(3, 80_000)...)
	g, err := f.Shrink(f.FPR(), math.MaxUint64)
	if err != nil || g.FPR() > 1-(1-f.FPR())/FoldSlack {
		t.Errorf("from a rate of %g to %g, error %v", f.FPR(), g.FPR(), err)
	}
}

func TestCommonFold(t *testing.T) {
	for _, c := range [][3]uint64{{1440, 720, 720}, {720, 1440, 720}, {45, 64, 1}, {0, 9, 9}, {9, 0, 9}, {48, 36, 12}} {
		if got := CommonFold(c[0], c[1]); got != c[2] {
			t.Errorf("CommonFold(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

func TestCount(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		if c := g.newFilter(t, 10).Count().Keys; c != 0 {
			t.Errorf("of nothing: %g", c)
		}
		for _, c := range []struct {
			n, blocks int
			within    float64
		}{{1000, 40, 0.03}, {1000, 400, 0.03}, {20_000, 720, 0.015}, {200_000, 7200, 0.005}} {
			// Repeated keys count once.
			f := g.newFilter(t, uint64(c.blocks), randoms(4, c.n)...)
			f.Add(randoms(4, c.n/2))
			if got := f.Count().Keys; math.Abs(got/float64(c.n)-1) > c.within {
				t.Errorf("%d keys in %d blocks: %g", c.n, c.blocks, got)
			}
		}
		full := g.newFilter(t, 1)
		if err := full.OrBlocks(0, bytes.Repeat([]byte{0xff}, int(g.BlockBytes()))); err != nil {
			t.Fatal(err)
		}
		if c := full.Count().Keys; !math.IsInf(c, 1) {
			t.Errorf("of a full block: %g", c)
		}
		if p := full.FPR(); p != 1 {
			t.Errorf("FPR of a full block: %g", p)
		}
	})
}
