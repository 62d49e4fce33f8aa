package builds

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// payload returns the contents of a filter without its header.
func payload(t testing.TB, f *filters.Filter) []byte {
	t.Helper()
	if f.Bloom() != nil {
		return append(bitsOf(f.Bloom()), f.Facts().Registers...)
	}
	negative, natural := f.Exact().Marshal()
	return slices.Concat(negative, natural)
}

// day returns the IDs of a day, some of which are not new.
func day(i, n int, every int) []int64 {
	return numbers(n, func(k int) int64 { return int64(i*n*9/10+k) * int64(every) })
}

// Every day new IDs are added by a union. The result equals one build of all IDs,
// whatever the kinds in between, and the rate holds until the capacity is reached.
func TestDailyUnions(t *testing.T) {
	kinds := map[filters.Kind]int{}
	for _, c := range []struct {
		every int // one integer in `every` is an ID
		opts  Options
	}{
		{1, Options{FPR: 0.01}}, {200, Options{FPR: 0.01}}, {1 << 30, Options{FPR: 0.01}}, {1 << 30, Options{FPR: 0.0001}},
		{3000, Options{FPR: 0.01, Kind: codec.KindBloom}}, {1 << 20, Options{FPR: 0.01, Kind: codec.KindExact}},
		{1 << 30, Options{MaxSize: 64_000}},
	} {
		const capacity, perDay = 36_000, 4_000
		c.opts.Expect, c.opts.Room = capacity, true
		all := filterOf(t, day(0, perDay, c.every), c.opts)
		want := all.Facts().Capacity
		ids := day(0, perDay, c.every)
		for i := 1; len(ids) < capacity*2; i++ {
			n := perDay
			if i%3 == 0 {
				n = perDay / 100 // very few
			}
			today := day(i, perDay, c.every)[:n]
			ids = append(ids, today...)
			name := fmt.Sprintf("one in %d, %+v, day %d", c.every, c.opts, i)
			f, err := combine(t, Union, []*filters.Filter{all, filterOf(t, today, c.opts)}, []string{"yesterday", "today"})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = again(t, f)
			if all.Facts().Capacity != want || codec.Kind(all.Facts().Want) != c.opts.Kind {
				t.Fatalf("%s: capacity %+v, kind %s wanted", name, all.Facts().Capacity, all.Facts().Want)
			}
			if f := all; f.Kind() == filters.KindBloom && f.Facts().Params.Blocks != want.Blocks {
				t.Fatalf("%s: %d blocks, want %d", name, f.Facts().Params.Blocks, want.Blocks)
			}
			if i%6 != 0 {
				continue
			}
			kinds[all.Kind()]++
			whole := filterOf(t, ids, c.opts)
			if all.Kind() != whole.Kind() || !bytes.Equal(payload(t, all), payload(t, whole)) {
				t.Fatalf("%s: %s filter, not the %s one of all IDs", name, all.Kind(), whole.Kind())
			}
			if len(ids) <= capacity {
				strangers := numbers(100_000, func(i int) int64 { return -int64(i) - 1 })
				if p := float64(passed(t, all, strangers)) / 100_000; p > 1.2*all.Facts().FPRAsked+5e-4 {
					t.Errorf("%s: %g of strangers pass, %g was asked for", name, p, all.Facts().FPRAsked)
				}
			}
			distinct := exact.New()
			distinct.Add(numbers(len(ids), func(i int) uint64 { return uint64(ids[i]) }), true)
			err = Check(all, Count(all))
			switch n := distinct.Len(); {
			case n <= capacity && err != nil:
				t.Errorf("%s: %d keys of %d: %v", name, n, capacity, err)
			case n > capacity*21/20 && !errors.Is(err, ErrFull):
				t.Errorf("%s: %d keys of %d: %v, want an error that is %q", name, n, capacity, err, ErrFull)
			case n > capacity*3/2 && all.Kind() == filters.KindBloom && !errors.Is(err, ErrRate):
				t.Errorf("%s: %d keys of %d: %v, want an error that is %q", name, n, capacity, err, ErrRate)
			}
		}
	}
	if kinds[filters.KindBloom] < 5 || kinds[filters.KindExact] < 5 {
		t.Errorf("not both kinds: %v", kinds)
	}
}

// The union of filters with different capacities, or with none, would have none, so
// it is refused. Exact filters fit any capacity.
func TestUnionKeepsRoom(t *testing.T) {
	of := func(lo, hi int, opts Options) *filters.Filter {
		opts.Room = opts.Expect > 0
		return filterOf(t, span(lo, hi), opts)
	}
	bits := Options{FPR: 0.01, Kind: codec.KindBloom, Expect: 40_000}
	sets := Options{FPR: 0.01, Expect: 40_000}
	smaller, none := bits, bits
	smaller.Expect, none.Expect = 20_000, 0
	a, b := of(0, 3000, bits), of(2000, 9000, bits)
	small, without := of(0, 3000, smaller), of(0, 3000, none)
	few := of(9000, 9100, sets)
	fewNone := of(9000, 9100, Options{FPR: 0.5, Kind: codec.KindExact})
	fewSmaller := of(9000, 9100, Options{FPR: 0.01, Expect: 20_000})
	if few.Kind() != filters.KindExact || fewSmaller.Kind() != filters.KindExact {
		t.Fatal("100 keys are no exact filter")
	}
	for _, c := range []struct {
		name    string
		filters []*filters.Filter
		want    filters.Capacity
		fpr     float64
		words   []string // in the error
	}{
		{"equal", []*filters.Filter{a, b}, a.Facts().Capacity, 0.01, nil},
		{"with an exact one", []*filters.Filter{a, few, b}, a.Facts().Capacity, 0.01, nil},
		{"with an exact one without room", []*filters.Filter{fewNone, b}, a.Facts().Capacity, 0.01, nil},
		{"with an exact one of other room", []*filters.Filter{fewSmaller, b}, a.Facts().Capacity, 0.01, nil},
		{"exact ones", []*filters.Filter{few, fewNone}, a.Facts().Capacity, 0.01, nil},
		{"exact ones without room", []*filters.Filter{fewNone, fewNone}, filters.Capacity{}, 0.5, nil},
		{"smaller", []*filters.Filter{a, small}, filters.Capacity{}, 0, []string{"2: mismatch: room", "want that for 40000 keys", "as in 1", "got that for 20000 keys", "Expect+Room"}},
		{"none", []*filters.Filter{a, without, b}, filters.Capacity{}, 0, []string{"2: mismatch: room", "got none"}},
		{"none, and an exact one with room", []*filters.Filter{without, few}, filters.Capacity{}, 0, []string{"1: mismatch: room", "as in 2, got none"}},
		{"exact ones of different room", []*filters.Filter{few, fewSmaller}, filters.Capacity{}, 0, []string{"2: mismatch: room"}},
	} {
		names := []string{"1", "2", "3"}[:len(c.filters)]
		f, err := combine(t, Union, c.filters, names)
		if c.words != nil {
			refused(t, c.name, err, fault.ErrMismatch, c.words...)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if f.Facts().Capacity != c.want || f.Facts().FPRAsked != c.fpr {
			t.Errorf("%s: capacity %+v, rate %g; want %+v, %g", c.name, f.Facts().Capacity, f.Facts().FPRAsked, c.want, c.fpr)
		}
		slices.Reverse(c.filters)
		if g, err := combine(t, Union, c.filters, names); err != nil || !bytes.Equal(encoded(t, f), encoded(t, g)) {
			t.Errorf("%s: the order matters, %v", c.name, err)
		}
	}
	// A difference keeps the capacity; an intersection has none.
	if f, err := combine(t, Difference, []*filters.Filter{few, fewNone}, []string{"a", "b"}); err != nil || f.Facts().Capacity != few.Facts().Capacity || f.Exact().Len() != 0 {
		t.Errorf("difference: %+v, %v", f.Facts().Capacity, err)
	}
	if f, err := combine(t, Intersect, []*filters.Filter{a, b}, []string{"a", "b"}); err != nil || f.Facts().Capacity != (filters.Capacity{}) {
		t.Errorf("intersection: %+v, %v", f.Facts().Capacity, err)
	}
}

// The result of a difference may have gaps and be larger than the Bloom filter of
// its capacity. It stays exact nevertheless.
func TestDifferenceStaysExact(t *testing.T) {
	opts := Options{MaxSize: 4 << 10, Expect: 100_000, Room: true}
	run := filterOf(t, numbers(100_000, func(i int) int64 { return int64(i) }), opts)
	var gone []int64
	var want uint64
	for i := range int64(100_000) {
		if i*i%7 < 3 {
			gone = append(gone, i)
		} else {
			want++
		}
	}
	away := filterOf(t, gone, Options{Kind: codec.KindExact})
	if run.Kind() != filters.KindExact {
		t.Fatal("a run of IDs is no exact filter")
	}
	f, err := combine(t, Difference, []*filters.Filter{run, away}, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if f.Kind() != filters.KindExact || f.Exact().Len() != want || f.Facts().Keys != want || f.Facts().Capacity != run.Facts().Capacity {
		t.Fatalf("%s, %d keys, room %+v; want an exact filter of %d keys with room %+v", f.Kind(), f.Facts().Keys, f.Facts().Capacity, want, run.Facts().Capacity)
	}
	if n := f.Exact().WireBytes(); n <= uint64(opts.MaxSize) {
		t.Errorf("%d bytes: the bits are not smaller, so that nothing was tried", n)
	}
}

// The memory of a set operation is its result plus one filter, and its fold if it
// must be brought to the size of the result. Many filters take no more than two.
func TestCombineIsBounded(t *testing.T) {
	of := func(lo int, blocks uint64) *filters.Filter {
		f := filterOf(t, span(lo, lo+5000), Options{Kind: codec.KindBloom, FPR: 0.01})
		values := numbers(5000, func(i int) uint64 { return uint64(lo+i) * 7919 })
		bits, err := bloom.New(bloom.Params{Blocks: blocks, Hash: f.Facts().Params.Hash, Geometry: f.Facts().Params.Geometry})
		if err != nil {
			t.Fatal(err)
		}
		addInts(bits, values)
		f.SetBloom(bits)
		return f
	}
	const mib = 1 << 20 / 32 // blocks
	for _, c := range []struct {
		name   string
		op     SetOp
		blocks []uint64
		want   uint64 // MiB
	}{
		{"a union of one size", Union, slices.Repeat([]uint64{mib}, 30), 1},
		{"a union with a larger one", Union, append(slices.Repeat([]uint64{mib}, 20), 4*mib), 6},
		{"a union with larger ones", Union, []uint64{2 * mib, mib, 3 * mib, 2 * mib}, 5},
		{"an intersection", Intersect, slices.Repeat([]uint64{mib}, 20), 2},
		{"an intersection with larger ones", Intersect, []uint64{2 * mib, mib, 3 * mib, 2 * mib}, 5},
	} {
		s := &drowsyStore{memStore: newStore()}
		var names []string
		for i, n := range c.blocks {
			name := fmt.Sprint(i)
			s.put(name, encoded(t, of(i, n)))
			names = append(names, name)
		}
		if f, err := CombineFiles(t.Context(), s, c.op, names, filters.Limits{MaxBytes: c.want << 20}); err != nil || f.Facts().Params.Blocks != mib {
			t.Errorf("%s: %v", c.name, err)
		}
		_, err := CombineFiles(t.Context(), s, c.op, names, filters.Limits{MaxBytes: c.want<<20 - 1})
		refused(t, c.name, err, fault.ErrMemory, c.op.noun(), show.Size(int64(c.want<<20)), "Memory")
		if n := s.most.Load(); n > readsAtOnce {
			t.Errorf("%s: %d files are open at a time", c.name, n)
		}
	}
}
