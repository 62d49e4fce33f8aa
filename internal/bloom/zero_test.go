package bloom

import (
	"errors"
	"math"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
)

// A filter without bits lets every key pass, as it cannot record any, and is refused
// where it would be combined.
func TestNoBits(t *testing.T) {
	real, err := New(Params{Geometry: Split256, Hash: Hash{ID: XXH3}, Blocks: 10})
	if err != nil {
		t.Fatal(err)
	}
	real.Add([]uint64{1})
	for name, f := range map[string]*Filter{"nil": nil, "zero": {}, "clone": new(Filter).Clone()} {
		f.Add([]uint64{1, 2, 3})
		a := NewShared(f, 1<<10).Adder()
		a.Add([]uint64{5})
		a.Flush()
		if sel := f.Probe([]uint64{7, 8}, []uint32{9}); len(sel) != 3 || sel[1] != 0 || sel[2] != 1 {
			t.Errorf("%s: probe %v", name, sel)
		}
		if sel := f.ProbeInts([]uint64{7, 8}, nil); len(sel) != 2 || !f.Contains(4) {
			t.Errorf("%s: probe %v", name, sel)
		}
		if f.FPR() != 1 || !math.IsInf(f.Count().Keys, 1) || f.Params() != (Params{}) || len(f.AppendBlocks(nil, 0, 1)) != 0 {
			t.Errorf("%s: rate %v, count %v", name, f.FPR(), f.Count())
		}
		for call, do := range map[string]func() error{
			"Union of it": func() error { return f.Union(real) }, "Union with it": func() error { return real.Union(f) },
			"Intersect of it": func() error { return f.Intersect(real) }, "Intersect with it": func() error { return real.Intersect(f) },
			"Compare of it":   func() error { _, err := f.Compare(real); return err },
			"Compare with it": func() error { _, err := real.Compare(f); return err },
			"Compare both":    func() error { _, err := f.Compare(f); return err },
			"Fold":            func() error { _, err := f.Fold(1); return err },
			"Shrink":          func() error { _, err := f.Shrink(0.1, math.MaxUint64); return err },
			"OrBlocks":        func() error { return f.OrBlocks(0, nil) },
		} {
			if err := do(); !errors.Is(err, fault.ErrMismatch) {
				t.Errorf("%s: %s: %v", name, call, err)
			}
		}
	}
	if !real.Contains(1) || len(real.AppendBlocks(nil, 8, 99)) != 2*32 || len(real.AppendBlocks(nil, 99, 100)) != 0 {
		t.Error("blocks beyond the end")
	}
	new(Adder).Add([]uint64{1})
	(*Adder)(nil).Flush()
	(*Shared)(nil).Adder().Flush()
}

// Parameters that no filter has give answers, not panics or endless loops.
func TestNoParams(t *testing.T) {
	var p Params
	if p.Check() == nil || p.Folds(Cardinality{Keys: 5}, 0.1)[0] != 1 || p.SureFold(Cardinality{}, 0.1) != 1 || p.FoldWithin(5) != 0 {
		t.Error("the zero Params are valid")
	}
	for _, g := range []Geometry{0, 9} {
		if !math.IsNaN(g.FPR(10, 5)) || g.BlocksFor(5, 0.1) != MaxBlocks {
			t.Errorf("%s: rate %v, %d blocks", g, g.FPR(10, 5), g.BlocksFor(5, 0.1))
		}
	}
	if Split256.BlocksFor(5, math.NaN()) != MaxBlocks || Split256.BlocksFor(5, -1) != MaxBlocks {
		t.Error("blocks for no rate")
	}
}
