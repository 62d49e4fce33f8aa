package builds

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	codecbloom "github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// pair builds two filters with a and b keys of their own and `both` keys in common,
// and stores them as "a" and "b".
func pair(t testing.TB, seed uint64, a, b, both int, optsA, optsB Options) *memStore {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 31))
	ids := numbers(a+b-both, func(int) int64 { return int64(rng.Uint64N(1<<24)) << 8 >> rng.IntN(2) })
	seen := map[int64]bool{}
	for i, v := range ids { // distinct, so that the numbers are those of the sets
		for seen[v] {
			v++
		}
		ids[i], seen[v] = v, true
	}
	s := newStore()
	putColumn(t, s, "ids-a", ids[:a])
	putColumn(t, s, "ids-b", ids[a-both:])
	for name, opts := range map[string]Options{"a": optsA, "b": optsB} {
		opts.Key = "id"
		f, _ := build(t, s, []string{"ids-" + name}, opts)
		if _, err := filters.Save(t.Context(), s, name, f, filters.Options{Replace: true}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Every estimate is within four of its standard errors for each of three pairs of
// sets, exact numbers are exact, and each method is used where it should be.
func TestCompare(t *testing.T) {
	const a, b, both = 40_000, 30_000, 12_000
	const runs = 3
	exact := Options{Kind: codec.KindExact}
	bits := func(fpr float64, capacity uint64, g bloom.Geometry) Options {
		return Options{Kind: codec.KindBloom, FPR: fpr, Expect: capacity, Geometry: codecbloom.Geometry(g)}
	}
	for _, c := range []struct {
		name string
		a, b Options
		by   Method
		// most is the largest standard error of the intersection
		most float64
	}{
		{"exact, exact", exact, exact, Counted, 0},
		{"exact, bloom", exact, bits(0.01, 0, 0), Estimated, 20},
		{"bloom, exact", bits(0.0001, 0, 0), exact, Estimated, 3},
		{"bloom, bloom of one size", bits(1e-4, a, 0), bits(1e-4, a, 0), Estimated, 200},
		{"bloom, bloom of sizes without a common one", bits(5e-6, a, bloom.Split256), bits(2e-6, a, bloom.Split256), Sketched, 400},
		{"bloom, bloom of two geometries", bits(1e-5, a, bloom.Split256), bits(1e-5, a, bloom.Split512), Sketched, 400},
		{"bloom, bloom without registers", bits(0.01, a, 0), bits(0.02, b, 0), Estimated, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(runs) {
				s := pair(t, seed, a, b, both, c.a, c.b)
				got, by, err := Compare(t.Context(), s, "a", "b", filters.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if by != c.by || got.Both.StdErr > c.most {
					t.Errorf("by %s, intersection %+v; want by %s, error at most %v", by, got.Both, c.by, c.most)
				}
				checkComparison(t, got, a, b, both)
				back, _, err := Compare(t.Context(), s, "b", "a", filters.Limits{})
				if err != nil || math.Abs(back.OnlyA.Keys-got.OnlyB.Keys) > 1e-3*got.OnlyB.Keys+1e-9 {
					t.Errorf("the order matters: %+v, %+v, %v", got, back, err)
				}
			}
		})
	}
}

func checkComparison(t *testing.T, got bloom.Comparison, a, b, both float64) {
	t.Helper()
	for _, n := range []struct {
		name string
		got  bloom.Cardinality
		want float64
	}{
		{"|A|", got.A, a}, {"|B|", got.B, b}, {"union", got.Union, a + b - both},
		{"both", got.Both, both}, {"only A", got.OnlyA, a - both}, {"only B", got.OnlyB, b - both},
	} {
		if d := math.Abs(n.got.Keys - n.want); !(d <= 4*n.got.StdErr) {
			t.Errorf("%s: %.1f ± %.1f, want %v", n.name, n.got.Keys, n.got.StdErr, n.want)
		}
	}
}

// Equal sets and disjoint sets: empty parts are estimated as nearly empty.
func TestCompareExtremes(t *testing.T) {
	opts := map[string]Options{
		"exact": {Kind: codec.KindExact}, "registers": {Kind: codec.KindBloom, FPR: 1e-12}, "bits": {Kind: codec.KindBloom, FPR: 0.01},
	}
	for nameA, optsA := range opts {
		for nameB, optsB := range opts {
			for _, sizes := range [][3]int{{8000, 8000, 8000}, {8000, 8000, 0}, {8000, 300, 300}, {8000, 0, 0}} {
				t.Run(fmt.Sprintf("%s,%s,%v", nameA, nameB, sizes), func(t *testing.T) {
					s := pair(t, 7, sizes[0], sizes[1], sizes[2], optsA, optsB)
					got, _, err := Compare(t.Context(), s, "a", "b", filters.Limits{})
					if err != nil && nameA != "exact" && nameB != "exact" && (nameA != nameB || sizes[1] < 1000) {
						return // without registers, different sizes or geometries cannot be compared
					}
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range []*bloom.Cardinality{&got.A, &got.B, &got.Union, &got.Both, &got.OnlyA, &got.OnlyB} {
						if nameA != "exact" || nameB != "exact" {
							e.StdErr += 0.5 // an empty part may be estimated as a fraction of a key
						}
					}
					checkComparison(t, got, float64(sizes[0]), float64(sizes[1]), float64(sizes[2]))
				})
			}
		}
	}
}

func TestCompareRefusals(t *testing.T) {
	s := pair(t, 1, 5000, 5000, 0, Options{Kind: codec.KindBloom, FPR: 0.01}, Options{Kind: codec.KindBloom, FPR: 0.0001})
	put := func(name string, f *filters.Filter) {
		if _, err := filters.Save(t.Context(), s, name, f, filters.Options{Replace: true}); err != nil {
			t.Fatal(err)
		}
	}
	put("strings", filterOf(t, []string{"x"}, Options{}))
	old := filterOf(t, []int64{1}, Options{})
	old.Facts().NormalForm = "0"
	put("old", old)
	seeded := filterOf(t, []int64{1}, Options{})
	seeded.Facts().Params.Hash.Seed = 1
	put("seeded", seeded)
	full, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: 7})
	if err != nil {
		t.Fatal(err)
	}
	full.Add(numbers(20_000, func(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 }))
	f := filterOf(t, span(0, 5), Options{Kind: codec.KindBloom, FPR: 0.01})
	f.SetBloom(full)
	put("full", f)
	putColumn(t, s, "ids", span(0, 9))
	part, _ := build(t, s, []string{"ids"}, Options{Key: "id", Shard: dataset.Shard{Index: 0, Of: 1}})
	put("part", part)
	s.put("text", []byte("1\n"))
	for _, c := range []struct {
		name  string
		kind  error
		words []string
	}{
		{"strings", fault.ErrMismatch, []string{"strings: ", "key class: want integer as in a, got bytes"}},
		{"old", fault.ErrMismatch, []string{"old: ", "normal form: want 1 as in a, got 0"}},
		{"seeded", fault.ErrMismatch, []string{"seeded: ", "hash: want xxh3-64 seed 0 as in a, got xxh3-64 seed 1"}},
		{"part", fault.ErrMismatch, []string{"part: ", "want a finished filter, got a partial one"}},
		{"b", fault.ErrMismatch, []string{"b: ", "geometry: want split-256 as in a, got split-512"}},
		{"full", fault.ErrMismatch, []string{"a, full: ", "want clear bits in every block, got a full block", "too full"}},
		{"text", fault.ErrCorrupt, []string{"text"}},
		{"nowhere", fs.ErrNotExist, []string{"nowhere"}},
	} {
		_, _, err := Compare(t.Context(), s, "a", c.name, filters.Limits{})
		refused(t, c.name, err, c.kind, c.words...)
	}
	_, _, err = Compare(t.Context(), s, "a", "a", filters.Limits{MaxBytes: 100})
	refused(t, "limit", err, filters.ErrLimit, "a: ")
}

// A Bloom filter with a full block cannot estimate its number of keys. Its
// registers can, if it has them.
func TestCompareFull(t *testing.T) {
	const a, b, both = 40_000, 30_000, 12_000
	s := pair(t, 5, a, b, both, Options{Kind: codec.KindExact}, Options{Kind: codec.KindBloom, FPR: 0.9, Expect: 20})
	_, _, err := Compare(t.Context(), s, "a", "b", filters.Limits{})
	refused(t, "a full filter", err, fault.ErrMismatch, "b: ", "clear bits in every block", "a full block")
	f, err := filters.Load(t.Context(), s, "b", filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	exact, err := filters.Load(t.Context(), s, "a", filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	f.Facts().Registers = registersOfMembers(exact.Exact(), f.Facts().Params.Hash)[:]
	if _, err := filters.Save(t.Context(), s, "b", f, filters.Options{Replace: true}); err != nil {
		t.Fatal(err)
	}
	got, by, err := Compare(t.Context(), s, "a", "b", filters.Limits{})
	if err != nil || by != Sketched || math.Abs(got.Both.Keys-a) > 4*got.Both.StdErr {
		t.Errorf("%+v by %s, error %v", got, by, err)
	}
}
