package builds

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	codecbloom "github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// filterOf builds a filter from the values, writes it and reads it again.
func filterOf(t testing.TB, values any, opts Options) *filters.Filter {
	t.Helper()
	s := newStore()
	putColumn(t, s, "ids", values)
	opts.Key = "id"
	f, _ := build(t, s, []string{"ids"}, opts)
	return again(t, f)
}

// again writes and reads the filter.
func again(t testing.TB, f *filters.Filter) *filters.Filter {
	t.Helper()
	b := encoded(t, f)
	g, err := filters.Decode(bytes.NewReader(b), int64(len(b)), "again", filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func span(lo, hi int) []int64 {
	return numbers(hi-lo, func(i int) int64 { return int64(lo+i) * 7919 })
}

// combine is Combine for filters in memory, which it writes to files first.
func combine(t testing.TB, op SetOp, operands []*filters.Filter, names []string) (*filters.Filter, error) {
	t.Helper()
	s := newStore()
	var files []string
	for i, f := range operands {
		s.put(names[i], encoded(t, f))
		files = append(files, names[i])
	}
	return CombineFiles(t.Context(), s, op, files, filters.Limits{})
}

func TestCombine(t *testing.T) {
	exact := func(lo, hi int) *filters.Filter { return filterOf(t, span(lo, hi), Options{Kind: codec.KindExact}) }
	bits := func(lo, hi int, fpr float64) *filters.Filter {
		return filterOf(t, span(lo, hi), Options{Kind: codec.KindBloom, FPR: fpr})
	}
	// Sets from 0 to 30,000 and from 20,000 to 50,000, times a constant, in every
	// pair of kinds and sizes.
	for _, c := range []struct {
		name   string
		a, b   *filters.Filter
		kind   filters.Kind
		blocks uint64
	}{
		{"exact, exact", exact(0, 30_000), exact(20_000, 50_000), filters.KindExact, 0},
		{"bloom, bloom of one size", bits(0, 30_000, 0.01), bits(20_000, 50_000, 0.01), filters.KindBloom, 1440},
		{"bloom, bloom of half the size", bits(0, 30_000, 0.01), bits(20_000, 50_000, 0.2), filters.KindBloom, 720},
		{"bloom, exact", bits(0, 30_000, 0.03), exact(20_000, 50_000), filters.KindBloom, 1440},
		{"exact, bloom", exact(0, 30_000), bits(20_000, 50_000, 0.03), filters.KindBloom, 1440},
		{"bloom, bloom in blocks of 512 bits", bits(0, 30_000, 0.0005), bits(20_000, 50_000, 0.0005), filters.KindBloom, 1440},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := [][]byte{encoded(t, c.a), encoded(t, c.b)}
			union, err := combine(t, Union, []*filters.Filter{c.a, c.b}, []string{"a", "b"})
			if err != nil {
				t.Fatal(err)
			}
			common, err := combine(t, Intersect, []*filters.Filter{c.a, c.b}, []string{"a", "b"})
			if err != nil {
				t.Fatal(err)
			}
			union, common = again(t, union), again(t, common)
			if union.Kind() != c.kind || common.Kind() != c.kind || union.Facts().Params.Blocks != c.blocks || common.Facts().Params.Blocks != c.blocks {
				t.Errorf("%s of %d blocks and %s of %d, want %s of %d", union.Kind(), union.Facts().Params.Blocks, common.Kind(), common.Facts().Params.Blocks, c.kind, c.blocks)
			}
			if got := passed(t, union, span(0, 50_000)); got != 50_000 {
				t.Errorf("of the union's 50,000 members pass %d", got)
			}
			if got := passed(t, common, span(20_000, 30_000)); got != 10_000 {
				t.Errorf("of the intersection's 10,000 members pass %d", got)
			}
			if c.kind == filters.KindExact {
				if union.Exact().Len() != 50_000 || common.Exact().Len() != 10_000 || union.Facts().Keys != 50_000 || common.Facts().Keys != 10_000 {
					t.Errorf("%d and %d members", union.Exact().Len(), common.Exact().Len())
				}
			} else {
				checkUnionBits(t, union)
				if common.Facts().Registers != nil {
					t.Error("an intersection with registers")
				}
				strangers := span(100_000, 200_000)
				each := min(passed(t, c.a, strangers), passed(t, c.b, strangers))
				if got := passed(t, common, strangers); c.a.Facts().Params.Blocks == c.b.Facts().Params.Blocks && got > each {
					t.Errorf("%d strangers pass the intersection, %d one of its parts", got, each)
				}
			}
			if !bytes.Equal(encoded(t, c.a), before[0]) || !bytes.Equal(encoded(t, c.b), before[1]) {
				t.Error("combining changed a filter that it was given")
			}
			if len(union.Facts().Parents) != 2 || union.Facts().BuildID == common.Facts().BuildID || union.Facts().BuildID == c.a.Facts().BuildID {
				t.Error("the result does not say what it was made from")
			}
			swapped, err := combine(t, Union, []*filters.Filter{c.b, c.a}, []string{"b", "a"})
			if err != nil || !bytes.Equal(encoded(t, swapped), encoded(t, union)) {
				t.Errorf("the order matters: %v", err)
			}
		})
	}
}

// checkUnionBits compares with a filter that all keys were added to.
func checkUnionBits(t *testing.T, union *filters.Filter) {
	t.Helper()
	model, err := bloom.New(union.Facts().Params)
	if err != nil {
		t.Fatal(err)
	}
	hashes := numbers(50_000, func(i int) uint64 { return uint64(i) * 7919 })
	union.Facts().Params.Hash.Sum64(hashes, slices.Clone(hashes))
	model.Add(hashes)
	if !bytes.Equal(bitsOf(model), bitsOf(union.Bloom())) {
		t.Error("the union's bits are not those of a filter of all keys")
	}
	var registers bloom.Registers
	registers.Add(hashes)
	if r := registersOf(union); r != nil && *r != registers || r == nil && union.Facts().Params.Bytes() >= 90_000 {
		t.Error("the union's registers are not those of all keys")
	}
}

func TestCombineRefusals(t *testing.T) {
	ints := filterOf(t, span(0, 5000), Options{Kind: codec.KindBloom, FPR: 0.01})
	many := filterOf(t, span(5000, 45_000), Options{Kind: codec.KindBloom, FPR: 0.01})
	strs := filterOf(t, []string{"a", "b"}, Options{FPR: 0.01})
	other := again(t, ints)
	other.Facts().Params.Hash = bloom.Hash{ID: bloom.XXH3, Seed: 1}
	empty, err := bloom.New(other.Facts().Params)
	if err != nil {
		t.Fatal(err)
	}
	other.SetBloom(empty)
	old := again(t, ints)
	old.Facts().NormalForm = "0"
	s := newStore()
	putColumn(t, s, "ids", span(0, 5000))
	partial, _ := build(t, s, []string{"ids"}, Options{Key: "id", Shard: dataset.Shard{Index: 0, Of: 2}})
	for _, c := range []struct {
		name  string
		b     *filters.Filter
		words []string
	}{
		{"another class", strs, []string{"b: ", "key class", "integer as in a", "bytes"}},
		{"another hash", other, []string{"b: ", "hash", "seed 0 as in a", "seed 1"}},
		{"another normal form", old, []string{"b: ", "normal form", "1 as in a", "got 0"}},
		{"a partial one", partial, []string{"b: ", "a finished filter", "a partial one", "merge the partial filters of its build"}},
	} {
		for _, op := range []SetOp{Union, Intersect} {
			_, err := combine(t, op, []*filters.Filter{ints, c.b}, []string{"a", "b"})
			refused(t, string(op)+" with "+c.name, err, fault.ErrMismatch, c.words...)
		}
	}
	_, err = combine(t, Union, []*filters.Filter{partial, ints}, []string{"a", "b"})
	refused(t, "a partial one first", err, fault.ErrMismatch, "a: ", "a partial one")
	// A union that would have to be folded until its rate is far higher than
	// requested.
	_, err = combine(t, Union, []*filters.Filter{ints, many}, []string{"small.bjf", "large.bjf"})
	refused(t, "union of unlike sizes", err, fault.ErrMismatch, "small.bjf", "large.bjf", "at most 0.02", "from all ID sets")
	if _, err = combine(t, Intersect, []*filters.Filter{ints, many}, []string{"small.bjf", "large.bjf"}); err != nil {
		t.Errorf("intersection of unlike sizes: %v", err)
	}
	if _, err := combine(t, Difference, []*filters.Filter{ints}, []string{"a"}); err == nil || !strings.Contains(err.Error(), "two filters or more") {
		t.Errorf("one filter: %v", err)
	}
}

// A union or intersection of one filter is that filter, with whatever it records; so is
// one of a filter and its copy.
func TestCombineOne(t *testing.T) {
	room := filterOf(t, span(0, 900), Options{Kind: codec.KindBloom, FPR: 0.01, Expect: 5000, Room: true})
	union, err := combine(t, Union, []*filters.Filter{room, filterOf(t, span(900, 1000), Options{Kind: codec.KindBloom, FPR: 0.01, Expect: 5000, Room: true})}, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range []*filters.Filter{filterOf(t, span(0, 900), Options{}), filterOf(t, numbers(900, func(i int) int64 { return int64(i) }), Options{}), room, union} {
		want := encoded(t, f)
		for _, op := range []SetOp{Union, Intersect} {
			for _, all := range [][]*filters.Filter{{f}, {f, again(t, f)}, {f, f, f}} {
				names := []string{"a", "b", "c"}[:len(all)]
				got, err := combine(t, op, all, names)
				if err != nil || !bytes.Equal(encoded(t, got), want) {
					t.Errorf("filter %d, %s of %d: it is another, error %v", i, op, len(all), err)
				}
				got, err = Combine(t.Context(), op, all...)
				if err != nil || !bytes.Equal(encoded(t, got), want) {
					t.Errorf("filter %d, %s of %d in memory: it is another, error %v", i, op, len(all), err)
				}
			}
		}
	}
}

// An intersection has no more keys than the smallest set, in any order.
func TestIntersectWithAnEmptySet(t *testing.T) {
	some := filterOf(t, span(0, 900), Options{Kind: codec.KindBloom, FPR: 0.01})
	none := filterOf(t, []int64{}, Options{Kind: codec.KindBloom, FPR: 0.01})
	for _, pair := range [][]*filters.Filter{{some, none}, {none, some}} {
		f, err := combine(t, Intersect, pair, []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		if f.Facts().Keys != 0 || passed(t, f, span(0, 900)) != 0 {
			t.Errorf("the intersection with an empty set has %d keys and lets through %d", f.Facts().Keys, passed(t, f, span(0, 900)))
		}
	}
}

// Sizes that have almost no divisor in common leave a filter that passes
// everything, which is refused. Filters of one size are not folded and may exceed
// the requested rate.
func TestCombineFoldsNoFurtherThanUseful(t *testing.T) {
	of := func(blocks uint64) *filters.Filter {
		f := filterOf(t, span(0, 5000), Options{Kind: codec.KindBloom, FPR: 0.01})
		bits, err := bloom.New(bloom.Params{Blocks: blocks, Hash: f.Facts().Params.Hash, Geometry: f.Facts().Params.Geometry})
		if err != nil {
			t.Fatal(err)
		}
		values := numbers(5000, func(i int) uint64 { return uint64(i) * 7919 })
		hashes := slices.Clone(values)
		f.Facts().Params.Hash.Sum64(hashes, values)
		bits.Add(hashes)
		f.SetBloom(bits)
		return f
	}
	for _, op := range []SetOp{Union, Intersect} {
		_, err := combine(t, op, []*filters.Filter{of(241), of(251)}, []string{"a.bjf", "b.bjf"})
		refused(t, string(op), err, fault.ErrMismatch, "a.bjf, b.bjf", "folded to a common size", "at most 0.02", "size")
		if _, err := combine(t, op, []*filters.Filter{of(50), of(50)}, []string{"a.bjf", "b.bjf"}); err != nil {
			t.Errorf("%s of one size: %v", op, err)
		}
	}
}

// An exact filter that would fill up the Bloom filter it is added to is refused; so
// is one with keys that the Bloom filter was not made for.
func TestCombineWithALargeExactSet(t *testing.T) {
	bits := filterOf(t, span(0, 5000), Options{Kind: codec.KindBloom, FPR: 0.01})
	few := filterOf(t, span(5000, 5050), Options{Kind: codec.KindExact})
	many := filterOf(t, span(5000, 45_000), Options{Kind: codec.KindExact, FPR: 0.5})
	for _, order := range [][]*filters.Filter{{bits, many}, {many, bits}, {bits, few, many}} {
		_, err := combine(t, Union, order, []string{"a.bjf", "b.bjf", "c.bjf"}[:len(order)])
		refused(t, "union", err, fault.ErrMismatch, "a.bjf, b.bjf", "false-positive rate of the union", "at most 0.02", "Kind exact")
		f, err := combine(t, Intersect, order[:2], []string{"a.bjf", "b.bjf"})
		if err != nil || passed(t, f, span(5000, 45_000)) > 2000 {
			t.Errorf("intersection: %v", err)
		}
	}
	f, err := combine(t, Union, []*filters.Filter{bits, few}, []string{"a.bjf", "b.bjf"})
	if err != nil || passed(t, f, span(0, 5050)) != 5050 || f.FPR() > 0.02 {
		t.Errorf("union with few: %v", err)
	}
}

// The geometry that an exact filter would have had does not matter.
func TestCombineGeometries(t *testing.T) {
	small := filterOf(t, span(0, 3000), Options{Kind: codec.KindExact, FPR: 0.0001})
	large := filterOf(t, span(2000, 9000), Options{Kind: codec.KindExact, FPR: 0.01})
	if small.Facts().Params.Geometry == large.Facts().Params.Geometry {
		t.Fatal("one geometry")
	}
	var want []byte
	for _, order := range [][]*filters.Filter{{small, large}, {large, small}} {
		f, err := combine(t, Union, order, []string{"a", "b"})
		if err != nil || f.Exact().Len() != 9000 {
			t.Fatalf("%v", err)
		}
		if got := encoded(t, f); want != nil && !bytes.Equal(got, want) {
			t.Error("the order matters")
		} else {
			want = got
		}
	}
	bits := filterOf(t, span(0, 9000), Options{Kind: codec.KindBloom, FPR: 0.01})
	if f, err := combine(t, Intersect, []*filters.Filter{small, bits}, []string{"a", "b"}); err != nil || passed(t, f, span(0, 3000)) != 3000 {
		t.Errorf("exact and another geometry's bits: %v", err)
	}
	other := filterOf(t, span(0, 9000), Options{Kind: codec.KindBloom, FPR: 0.0001})
	for _, op := range []SetOp{Union, Intersect} {
		_, err := combine(t, op, []*filters.Filter{small, bits, other}, []string{"a", "b", "c"})
		refused(t, string(op), err, fault.ErrMismatch, "c: ", "want split-256 as in b, got split-512", "Geometry")
	}
}

func TestDifference(t *testing.T) {
	exact := func(lo, hi int) *filters.Filter { return filterOf(t, span(lo, hi), Options{Kind: codec.KindExact}) }
	a, b, c := exact(0, 9000), exact(1000, 3000), exact(2000, 4000)
	before := encoded(t, a)
	f, err := combine(t, Difference, []*filters.Filter{a, b, c}, []string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	f = again(t, f)
	if f.Exact().Len() != 6000 || f.Facts().Keys != 6000 || passed(t, f, span(0, 1000)) != 1000 || passed(t, f, span(4000, 9000)) != 5000 || passed(t, f, span(1000, 4000)) != 0 {
		t.Errorf("%d members", f.Exact().Len())
	}
	if !bytes.Equal(before, encoded(t, a)) {
		t.Error("the first filter has changed")
	}
	swapped, err := combine(t, Difference, []*filters.Filter{a, c, b}, []string{"a", "c", "b"})
	if err != nil || !bytes.Equal(encoded(t, swapped), encoded(t, f)) {
		t.Errorf("the order of what is taken away matters: %v", err)
	}
	back, err := combine(t, Difference, []*filters.Filter{b, a, c}, []string{"b", "a", "c"})
	if err != nil || back.Facts().BuildID == f.Facts().BuildID || back.Exact().Len() != 0 {
		t.Errorf("the first filter's place does not matter: %v", err)
	}
	none, err := combine(t, Difference, []*filters.Filter{a, a}, []string{"a", "a"})
	if err != nil || again(t, none).Exact().Len() != 0 || len(none.Facts().Parents) != 2 {
		t.Errorf("a set without itself: %v", err)
	}
	bits := filterOf(t, span(0, 10), Options{Kind: codec.KindBloom, FPR: 0.01})
	for i, order := range [][]*filters.Filter{{bits, a}, {a, bits}, {a, b, bits}} {
		names := []string{"x", "y", "z"}[:len(order)]
		_, err := combine(t, Difference, order, names)
		refused(t, "difference with bits", err, fault.ErrMismatch, names[i]+": ", "want an exact one, got a Bloom filter", "rows would be lost", "Kind exact", "NoMatch")
	}
	for _, order := range [][]*filters.Filter{{a, b}, {bits, bits}} {
		if _, err := combine(t, "sum", order, []string{"a", "b"}); err == nil || !strings.Contains(err.Error(), `"sum": want union`) {
			t.Errorf("no set operation: %v", err)
		}
	}
}

// A union has the registers of all keys, including an exact filter's members, or
// none.
func TestUnionRegisters(t *testing.T) {
	with := filterOf(t, span(0, 30_000), Options{Kind: codec.KindBloom, FPR: 0.0005})
	few := filterOf(t, span(30_000, 30_500), Options{Kind: codec.KindExact})
	hashes := numbers(30_500, func(i int) uint64 { return uint64(i) * 7919 })
	with.Facts().Params.Hash.Sum64(hashes, hashes)
	var want bloom.Registers
	want.Add(hashes)
	for _, order := range [][]*filters.Filter{{with, few}, {few, with}} {
		f, err := combine(t, Union, order, []string{"a", "b"})
		if err != nil || string(f.Facts().Registers) != string(want[:]) {
			t.Errorf("others than the registers of all keys, or %v", err)
		}
	}
	without := again(t, with)
	without.Facts().Registers = nil
	for _, order := range [][]*filters.Filter{{with, without}, {without, with}, {with, few, without}} {
		f, err := combine(t, Union, order, []string{"a", "b", "c"}[:len(order)])
		if err != nil || f.Facts().Registers != nil {
			t.Errorf("registers of some of the keys, or %v", err)
		}
	}
}

// Sets that grow from day to day combine without loss if their filters have the
// same size, as the same MaxSize and Geometry ensure. Otherwise their sizes have
// little in common.
func TestUnionOfOneSize(t *testing.T) {
	opts := Options{Kind: codec.KindBloom, MaxSize: 24_000, Geometry: codecbloom.Geometry(bloom.Split256)}
	yesterday, today := filterOf(t, span(0, 10_000), opts), filterOf(t, span(1000, 14_000), opts)
	f, err := combine(t, Union, []*filters.Filter{yesterday, today}, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if f.Facts().Params != today.Facts().Params || f.FPR() > 0.01 || passed(t, f, span(0, 14_000)) != 14_000 {
		t.Errorf("%+v, rate %g", f.Facts().Params, f.FPR())
	}
}

// An intersection's keys are counted, and both rates hold for keys that were not in its sets.
func TestIntersectionIsCounted(t *testing.T) {
	const common, alone, outside = 50_000, 50_000, 400_000
	for _, c := range []struct {
		name string
		of   []Options
	}{
		{"two filters", []Options{{FPR: 0.01}, {FPR: 0.01}}},
		{"of two rates", []Options{{FPR: 0.03}, {FPR: 0.001, Geometry: codecbloom.Split256}}},
		{"of low rates", []Options{{FPR: 1e-3}, {FPR: 1e-3}}},
		{"three filters", []Options{{FPR: 0.01}, {FPR: 0.01}, {FPR: 0.01}}},
		{"a filter and a set", []Options{{FPR: 0.01}, {Kind: codec.KindExact}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore()
			var names []string
			for i, opts := range c.of { // all have the first keys, and others of their own
				if opts.Kind == 0 {
					opts.Kind = codec.KindBloom
				}
				own := common + i*alone
				f := filterOf(t, append(span(0, common), span(own, own+alone)...), opts)
				names = append(names, string(rune('a'+i)))
				s.put(names[i], encoded(t, f))
			}
			f, rep, err := CombineCounted(t.Context(), s, Intersect, names, filters.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if off := math.Abs(float64(rep.Distinct)/common - 1); off > 0.02 {
				t.Errorf("%d keys, want %d", rep.Distinct, common)
			}
			first := common + len(names)*alone
			none := float64(passed(t, f, span(first, first+outside))) / outside
			if want := f.FPR(); math.Abs(none-want) > 5*math.Sqrt(want/outside)+want/20 {
				t.Errorf("keys in none of the sets pass at %g, predicted %g", none, want)
			}
			for i := range names {
				own := common + i*alone
				if in := float64(passed(t, f, span(own, own+alone))) / alone; in > rep.InOne+5*math.Sqrt(rep.InOne/alone) {
					t.Errorf("keys in %s alone pass at %g, predicted at most %g", names[i], in, rep.InOne)
				}
			}
			if rep.InOne < f.FPR() || rep.InOne > 0.1 {
				t.Errorf("predicted rates %g and %g", f.FPR(), rep.InOne)
			}
		})
	}
}
