package bloom

import (
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
)

// The estimates for two sets are within five of their standard errors, and the root
// mean square over 20 pairs of sets is within 1.5 standard errors: in both
// geometries, at fills from sparse to twice that of 1 %, at equal and at different
// sizes.
func TestCompareBits(t *testing.T) {
	const a, b, both = 20_000, 12_000, 5_000
	truth := []float64{a, b, a + b - both, both, a - both, b - both}
	for _, g := range Geometries() {
		for _, size := range [][2]uint64{{720, 720}, {720, 360}, {5760, 5760}, {1440, 720}} {
			if g == Split512 {
				size[0], size[1] = size[0]/2, size[1]/2
			}
			var squares [6]float64
			const runs = 20
			for run := range uint64(runs) {
				common := randoms(run*3+1, both)
				x := filterAt(t, g, size[0], append(randoms(run*3+2, a-both), common...))
				y := filterAt(t, g, size[1], append(randoms(run*3+3, b-both), common...))
				c, err := x.Compare(y)
				if err != nil {
					t.Fatal(err)
				}
				for i, e := range []Cardinality{c.A, c.B, c.Union, c.Both, c.OnlyA, c.OnlyB} {
					d := (e.Keys - truth[i]) / e.StdErr
					squares[i] += d * d / runs
					if math.Abs(d) > 5 {
						t.Errorf("%s, %v blocks, run %d: %v of %d: %+v, want %v", g, size, run, d, i, e, truth[i])
					}
				}
			}
			for i, s := range squares {
				if math.Sqrt(s) > 1.5 {
					t.Errorf("%s, %v blocks: number %d is off by %.2f standard errors in the mean", g, size, i, math.Sqrt(s))
				}
			}
			t.Logf("%s, %v blocks: %.2f", g, size, squares)
		}
	}
}

// Filters are compared where they are: they may be as large as memory allows.
func TestCompareCopiesNothing(t *testing.T) {
	for _, size := range [][2]uint64{{720 << 10, 720 << 10}, {720 << 10, 240 << 10}} {
		x, y := filterAt(t, Split512, size[0], randoms(1, 1000)), filterAt(t, Split512, size[1], randoms(2, 1000))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := x.Compare(y); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%v blocks: %d bytes were allocated", size, n)
		}
	}
}

func filterAt(t testing.TB, g Geometry, blocks uint64, hashes []uint64) *Filter {
	t.Helper()
	f, err := New(Params{Geometry: g, Hash: Hash{ID: XXH3}, Blocks: blocks})
	if err != nil {
		t.Fatal(err)
	}
	f.Add(hashes)
	return f
}

func TestCompareBitsRefuses(t *testing.T) {
	few := randoms(1, 100)
	f := filterAt(t, Split256, 100, few)
	for name, g := range map[string]*Filter{
		"another geometry": filterAt(t, Split512, 100, few),
		"full blocks":      filterAt(t, Split256, 100, randoms(2, 100_000)),
		"a common size of one block, which is full": filterAt(t, Split256, 101, randoms(2, 2000)),
	} {
		if _, err := f.Compare(g); !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := bitsOf(f)
	c, err := f.Compare(f)
	if err != nil || string(bitsOf(f)) != string(before) {
		t.Errorf("comparing changed the filter, or %v", err)
	}
	if c.OnlyA.Keys != 0 || c.A != c.B || c.A.Keys != c.Both.Keys {
		t.Errorf("a filter differs from itself: %+v", c)
	}
	if c, err := filterAt(t, Split256, 10, nil).Compare(filterAt(t, Split256, 20, nil)); err != nil || c != (Comparison{}) {
		t.Errorf("empty filters: %+v, %v", c, err)
	}
}
