package builds

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// passed returns how many of the values in column "id" pass the filter, as in a
// scan.
func passed(t testing.TB, f *filters.Filter, values any) int {
	t.Helper()
	rec := record(t, column{"id", values})
	defer rec.Release()
	o, err := f.KeyOptions()
	if err != nil {
		t.Fatal(err)
	}
	enc, err := keys.NewEncoder(rec.Schema(), []keys.Column{{Path: keys.Path{"id"}}}, o)
	if err != nil {
		t.Fatal(err)
	}
	var b keys.Batch
	if err := enc.EncodeKeys("test", rec, &b); err != nil {
		t.Fatal(err)
	}
	hits, err := f.ProbeBatch(&b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(hits)
}

func putColumn(t testing.TB, s *memStore, name string, values any) {
	t.Helper()
	rec := record(t, column{"id", values})
	defer rec.Release()
	putParquet(t, s, name, 1000, rec)
}

// Whatever the set, the kind, the rate and the capacity, every member passes, and
// an exact filter passes nothing else.
func TestMembersPass(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for round := range 60 {
		opts := Options{Key: "id", Kind: anyKind[rng.IntN(3)]}
		switch rng.IntN(3) {
		case 0:
			opts.FPR = math.Pow(10, -6*rng.Float64())
		case 1:
			opts.MaxSize = uint64(32 << rng.IntN(12))
		}
		n := 1 + rng.IntN(3000)
		if rng.IntN(2) == 0 { // more keys than expected, or fewer
			opts.Expect = uint64(1 + rng.IntN(2*n))
		}
		width := 1 + rng.IntN(63)
		ints := numbers(n, func(int) int64 { return int64(rng.Uint64()) >> width })
		strs := numbers(n, func(i int) string { return fmt.Sprint(ints[i] % 999) })
		s := newStore()
		putColumn(t, s, "ints", ints)
		putColumn(t, s, "strs", strs)
		name := fmt.Sprintf("round %d: %d keys, %+v", round, n, opts)
		f, _ := build(t, s, []string{"ints"}, opts)
		if got := passed(t, f, ints); got != n {
			t.Errorf("%s: %s filter: %d members pass", name, f.Kind(), got)
		}
		checkStrangers(t, f, ints, rng, name)
		if opts.Kind == codec.KindExact {
			continue
		}
		if f, _ = build(t, s, []string{"strs"}, opts); passed(t, f, strs) != n {
			t.Errorf("%s: %d strings pass", name, passed(t, f, strs))
		}
	}
}

func checkStrangers(t *testing.T, f *filters.Filter, members []int64, rng *rand.Rand, name string) {
	t.Helper()
	if f.Kind() != filters.KindExact {
		return
	}
	sorted := slices.Sorted(slices.Values(members))
	strangers := numbers(2000, func(int) int64 { return members[rng.IntN(len(members))] + int64(rng.IntN(5)) - 2 })
	strangers = slices.DeleteFunc(strangers, func(v int64) bool {
		_, ok := slices.BinarySearch(sorted, v)
		return ok
	})
	if len(strangers) > 0 && passed(t, f, strangers) != 0 {
		t.Errorf("%s: an exact filter lets strangers through", name)
	}
}

// Integers are members by value, whatever the widths on both sides.
func TestMembersPassInEveryWidth(t *testing.T) {
	s := newStore()
	putColumn(t, s, "a", []int32{5, -1})
	putColumn(t, s, "b", []uint64{math.MaxUint64 - 5})
	for _, kind := range []codec.Kind{codec.KindExact, codec.KindBloom} {
		f, _ := build(t, s, []string{"a", "b"}, Options{Key: "id", Kind: kind, FPR: 1e-6})
		for _, c := range []struct {
			values any
			want   int
		}{
			{[]int32{5, -1, 7}, 2},
			{[]int64{5, -1, 7}, 2},
			{[]uint64{5, math.MaxUint64 - 5, 7}, 2},
			{[]any{int64(5), nil, int64(-1)}, 2},
			// 2^64-6 is a member; -6, which has the same 64 bits, is not. An exact
			// set distinguishes them, hashes do not.
			{[]int64{-6}, map[codec.Kind]int{codec.KindExact: 0, codec.KindBloom: 1}[kind]},
		} {
			if got := passed(t, f, c.values); got != c.want {
				t.Errorf("%s: of %v pass %d, want %d", kind, c.values, got, c.want)
			}
		}
	}
}

// The filter follows its definition: the hashes of all keys at the size that
// capacity and rate require, then shrunk.
func TestSealedBitsAreTheDefinition(t *testing.T) {
	const n, fpr = 50_000, 0.01
	hash := bloom.Hash{ID: bloom.XXH3}
	ints := numbers(n, func(i int) int64 { return int64(i) * 1_000_003 })
	hashes := make([]uint64, n)
	hash.Sum64(hashes, numbers(n, func(i int) uint64 { return uint64(ints[i]) }))
	strs := numbers(n, func(i int) string { return fmt.Sprint("s", i) })
	stringHashes := numbers(n, func(i int) uint64 { return hash.Sum([]byte(strs[i])) })
	for _, c := range []struct {
		name   string
		values any
		hashes []uint64
		opts   Options
	}{
		{"integers", ints, hashes, Options{Expect: n}},
		{"integers, much less than expected", ints, hashes, Options{Expect: 64 * n}},
		{"integers, more than expected", ints, hashes, Options{Expect: n / 3}},
		{"strings", strs, stringHashes, Options{Expect: n}},
	} {
		c.opts.Key, c.opts.FPR, c.opts.Kind = "id", fpr, codec.KindBloom
		s := newStore()
		putColumn(t, s, "ids", c.values)
		got, _ := build(t, s, []string{"ids"}, c.opts)
		model, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: hash, Blocks: bloom.Split256.Blocks(c.opts.Expect, fpr)})
		if err != nil {
			t.Fatal(err)
		}
		model.Add(c.hashes)
		want, err := model.Shrink(fpr, math.MaxUint64)
		if err != nil {
			t.Fatal(err)
		}
		if got.Bloom().Params() != want.Params() || !bytes.Equal(bitsOf(got.Bloom()), bitsOf(want)) {
			t.Errorf("%s: %+v with other bits than %+v", c.name, got.Bloom().Params(), want.Params())
		}
	}
}

func bitsOf(f *bloom.Filter) []byte { return f.AppendBlocks(nil, 0, f.Params().Blocks) }

// The actual rate is the requested one, and the one that the filter predicts. The
// bound is five standard deviations of a binomial count.
func TestRateIsAsAsked(t *testing.T) {
	const n, probes = 300_000, 400_000
	rng := rand.New(rand.NewPCG(9, 10))
	s := newStore()
	putColumn(t, s, "ids", numbers(n, func(int) uint64 { return rng.Uint64() | 1 }))
	strangers := numbers(probes, func(int) uint64 { return rng.Uint64() &^ 1 })
	for _, asked := range []float64{0.1, 0.01, 0.001} {
		for _, capacity := range []uint64{0, 2 * n, 7 * n} {
			f, rep := build(t, s, []string{"ids"}, Options{Key: "id", FPR: asked, Expect: capacity, Kind: codec.KindBloom})
			predicted := f.FPR()
			if predicted > 1.03*asked || capacity == 0 && predicted < 0.7*asked {
				t.Errorf("asked for %v with capacity %d, predicted %v", asked, capacity, predicted)
			}
			got, want := float64(passed(t, f, strangers)), probes*predicted
			if math.Abs(got-want) > 5*math.Sqrt(want) {
				t.Errorf("asked for %v with capacity %d: %v of %d strangers pass, predicted %v", asked, capacity, got, probes, want)
			}
			if math.Abs(float64(rep.Distinct)-n) > 0.01*n || !rep.Estimated {
				t.Errorf("%d distinct keys, estimated %v, want about %d", rep.Distinct, rep.Estimated, n)
			}
		}
	}
}
