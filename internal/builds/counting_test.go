package builds

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	codecbloom "github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// countingOptions are for a counting filter of up to 30,000 keys at 1 %.
func countingOptions(multiset bool) Options {
	return Options{Key: "id", Kind: codec.KindCounting, Multiset: multiset, Expect: 30_000, FPR: 0.01}
}

// plainBits returns the bits of a Bloom filter that is built from the keys in one go.
func plainBits(t *testing.T, s *memStore, name string, values []int64, o Options) []byte {
	t.Helper()
	putParquet(t, s, name, 1000, record(t, column{"id", values}))
	o.Kind, o.Multiset, o.Geometry = codec.KindBloom, false, codecbloom.Split256
	f, _ := build(t, s, []string{name}, o)
	return payloadOf(f)
}

func payloadOf(f *filters.Filter) []byte {
	b := f.Bloom()
	return b.AppendBlocks(nil, 0, b.Params().Blocks)
}

func plainOf(t *testing.T, f *filters.Filter) []byte {
	t.Helper()
	g, err := Plain(f)
	if err != nil {
		t.Fatal(err)
	}
	if g.Kind() != filters.KindBloom || g.Facts().Registers != nil || g.Facts().Counting != nil {
		t.Errorf("a plain filter of kind %s", g.Kind())
	}
	return payloadOf(decodedAgain(t, g))
}

// decodedAgain returns the filter that is in the file of f.
func decodedAgain(t *testing.T, f *filters.Filter) *filters.Filter {
	t.Helper()
	b := encoded(t, f)
	g, err := filters.Decode(bytes.NewReader(b), int64(len(b)), "again", filters.Limits{Counters: true})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The file depends on the keys and the options alone: not on threads, memory, the order of the
// keys, or, in a set, on how often each comes. Its bits are those of a Bloom filter.
func TestCountingBuild(t *testing.T) {
	s := newStore()
	rng := rand.New(rand.NewPCG(1, 2))
	distinct := numbers(20_000, func(i int) int64 { return int64(i) * 7 })
	twice := append(append([]int64{}, distinct...), distinct[:9_000]...)
	rng.Shuffle(len(twice), func(i, j int) { twice[i], twice[j] = twice[j], twice[i] })
	putParquet(t, s, "once", 1000, record(t, column{"id", distinct}))
	putParquet(t, s, "twice", 700, record(t, column{"id", twice}))
	for _, multiset := range []bool{false, true} {
		for _, expect := range []uint64{0, 30_000} {
			o := countingOptions(multiset)
			o.Expect, o.Threads = expect, 1
			want, rep := build(t, s, []string{"twice"}, o)
			in := uint64(len(distinct))
			if multiset {
				in = uint64(len(twice))
			}
			if facts := want.Facts(); facts.Keys != in || facts.Counting.Multiset != multiset || facts.Counting.Saturated != 0 || rep.Estimated == !multiset ||
				rep.Keys != uint64(len(twice)) || facts.Registers != nil || facts.Key[0].Min != nil {
				t.Fatalf("multiset %v: %+v, %+v", multiset, facts, rep)
			}
			for _, change := range []func(*Options){
				func(o *Options) { o.Threads = 4 },
				func(o *Options) { o.Memory, o.Threads = 400_000, 2 },
				func(o *Options) { o.Memory = 1 << 30 },
			} {
				o := o
				change(&o)
				got, rep := build(t, s, []string{"twice"}, o)
				if !bytes.Equal(encoded(t, got), encoded(t, want)) || (rep.Spilled > 0) != (o.Memory == 400_000) {
					t.Errorf("multiset %v, expect %d, %d threads, memory %d: another file, %d bytes spilled", multiset, expect, o.Threads, o.Memory, rep.Spilled)
				}
			}
			if !multiset {
				once, _ := build(t, s, []string{"once"}, o)
				if !bytes.Equal(once.Counters().Counters(), want.Counters().Counters()) {
					t.Error("a set counts a key twice")
				}
			}
			if expect > 0 && !bytes.Equal(plainOf(t, want), plainBits(t, s, "plain", distinct, o)) {
				t.Error("the plain filter has other bits than one built from the keys")
			}
		}
	}
	o := countingOptions(false)
	o.Memory = 100_000
	p, err := plan(t, s, []string{"once"}, o)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = p.Build(t.Context())
	refused(t, "too little memory", err, fault.ErrMemory, "Memory")
	_, err = p.NewBuilder(t.Context())
	refused(t, "too little memory, before the keys are read", err, fault.ErrMemory, "Memory")
}

// Partial multisets merge, in any order, into the file of one build.
func TestCountingShards(t *testing.T) {
	s := newStore()
	rng := rand.New(rand.NewPCG(3, 4))
	putParquet(t, s, "a", 500, record(t, column{"id", numbers(9000, func(int) int64 { return rng.Int64N(5000) })}))
	putArrow(t, s, "b", 300, record(t, column{"id", numbers(4000, func(int) int64 { return rng.Int64N(5000) })}))
	for _, room := range []bool{false, true} {
		o := countingOptions(true)
		o.Room = room
		names := buildShards(t, s, "c", []string{"a", "b"}, o, 7)
		want, _ := build(t, s, []string{"a", "b"}, o)
		if got := mergeTree(t, s, names, rng); !bytes.Equal(encoded(t, got), encoded(t, want)) {
			t.Error("merged shards differ from one build")
		}
		var loaded []*filters.Filter
		for _, name := range names {
			f, err := filters.Load(t.Context(), s, name, filters.Limits{Counters: true})
			if err != nil {
				t.Fatal(err)
			}
			loaded = append(loaded, f)
		}
		if got, err := Merge(t.Context(), loaded, false); err != nil || !bytes.Equal(encoded(t, got), encoded(t, want)) {
			t.Errorf("merged in memory: %v", err)
		}
		_, err := Plain(loaded[0])
		refused(t, "a partial filter made plain", err, fault.ErrMismatch, "a finished filter")
	}
}

// updated returns the filter after the files remove and add, which may be empty, changed it.
func updated(t *testing.T, s *memStore, f *filters.Filter, remove, add []string, o Options, ignore bool) (*filters.Filter, Updated, error) {
	t.Helper()
	f = decodedAgain(t, f)
	var plans [2]*Plan
	for i, names := range [][]string{remove, add} {
		if len(names) > 0 {
			var err error
			if plans[i], err = plan(t, s, names, o); err != nil {
				t.Fatal(err)
			}
			if err := plans[i].Changes(f, "base.bjf"); err != nil {
				return nil, Updated{}, err
			}
		}
	}
	u, err := Update(t.Context(), f, plans[0], plans[1], ignore)
	return f, u, err
}

// After any updates, the file is that of updates in another order, and the plain filter that of
// a build from the keys of a map.
func TestUpdate(t *testing.T) {
	for _, multiset := range []bool{false, true} {
		s := newStore()
		rng := rand.New(rand.NewPCG(5, 6))
		o := countingOptions(multiset)
		o.FPR = 1e-6 // so low that no key is taken for another
		in := map[int64]int{}
		first := numbers(10_000, func(int) int64 { return rng.Int64N(20_000) })
		put := func(name string, values []int64) []string {
			putParquet(t, s, name, 100, record(t, column{"id", values}))
			return []string{name}
		}
		count := func(values []int64, by int) {
			for _, v := range values {
				if in[v] += by; !multiset {
					in[v] = min(in[v], 1)
				}
			}
		}
		f, _ := build(t, s, put("base", first), o)
		count(first, 1)
		for round := range 5 {
			var gone []int64
			for v, n := range in {
				if n > 0 && rng.IntN(3) == 0 {
					gone = append(gone, v)
				}
			}
			fresh := numbers(3000, func(int) int64 { return rng.Int64N(20_000) })
			count(gone, -1)
			present := map[int64]bool{}
			for _, v := range fresh {
				if in[v] > 0 && !multiset {
					present[v] = true
				}
			}
			count(fresh, 1)
			next, u, err := updated(t, s, f, put("gone", gone), put("fresh", fresh), o, false)
			if err != nil || u.Removed != uint64(len(gone)) || u.Missing != 0 || u.Present != uint64(len(present)) {
				t.Fatalf("round %d: %+v, %v, want %d removed, %d present", round, u, err, len(gone), len(present))
			}
			remaining := uint64(0)
			var left []int64
			for v, n := range in {
				if remaining += uint64(n); n > 0 {
					left = append(left, v)
				}
			}
			if next.Facts().Keys != remaining {
				t.Fatalf("%d keys, want %d", next.Facts().Keys, remaining)
			}
			if !bytes.Equal(plainOf(t, next), plainBits(t, s, "left", left, o)) {
				t.Fatal("the plain filter is not that of the remaining keys")
			}
			// The same by values, and with the files divided and in another order.
			byValues, err := UpdateValues(t.Context(), f, keys.Int64s(gone), keys.Int64s(fresh))
			if err != nil || !bytes.Equal(encoded(t, byValues), encoded(t, next)) {
				t.Fatalf("updated by values: another file, %v", err)
			}
			half := len(fresh) / 2
			o.Threads, o.Memory = 3, 400_000
			again, _, err := updated(t, s, f, put("gone", gone), append(put("late", fresh[half:]), put("early", fresh[:half])...), o, false)
			o.Threads, o.Memory = 0, 0
			if err != nil || !bytes.Equal(encoded(t, again), encoded(t, next)) {
				t.Fatalf("updated in another order: another file, %v", err)
			}
			f = next
		}
		if _, err := UpdateValues(t.Context(), f, keys.Values{}, keys.Values{}); err != nil {
			t.Error(err)
		}
	}
}

// What is removed without being in is refused or, if asked, left out.
func TestUpdateMissing(t *testing.T) {
	s := newStore()
	base, few := numbers(20_000, func(i int) int64 { return int64(i) }), numbers(10_000, func(i int) int64 { return int64(i) - 5000 })
	putParquet(t, s, "base", 1000, record(t, column{"id", base}))
	putParquet(t, s, "few", 1000, record(t, column{"id", few}))
	o := countingOptions(false)
	f, _ := build(t, s, []string{"base"}, o)
	_, u, err := updated(t, s, f, []string{"few"}, nil, o, false)
	refused(t, "keys that are not in", err, ErrMissing, fmt.Sprintf("%d of 10000", u.Missing))
	if u.Missing < 4900 || u.Missing > 5000 {
		t.Errorf("%d missing, want nearly 5000", u.Missing)
	}
	g, u, err := updated(t, s, f, []string{"few"}, nil, o, true)
	if err == nil {
		if u.Removed != 10_000-u.Missing || g.Facts().Keys != 20_000-u.Removed || u.Unnoticed < 0.2*(5000-float64(u.Missing)) {
			t.Errorf("%+v, %d keys", u, g.Facts().Keys)
		}
	} else {
		refused(t, "keys that only seem to be in", err, ErrMissing, "only seem to be in")
	}
	// A full filter seems to have all keys.
	full := countingOptions(false)
	full.Expect, full.FPR, full.MaxSize = 0, 0, 128
	f, _ = build(t, s, []string{"base"}, full)
	_, u, err = updated(t, s, f, []string{"few"}, []string{"few"}, full, false)
	if err != nil || u.Removed != 10_000 || u.Unnoticed != 10_000 || u.Present != 10_000 || u.Mistaken != 10_000 || u.Rows != 20_000 {
		t.Errorf("a full filter: %+v, %v", u, err)
	}
	// The same key too often.
	o = countingOptions(true)
	f, _ = build(t, s, []string{"base"}, o)
	none, err := UpdateValues(t.Context(), f, keys.Int64s(make([]int64, 3)), keys.Values{})
	if none != nil {
		t.Error("a filter beside an error")
	}
	refused(t, "more removals than additions", err, ErrMissing, "below 0")
	// A saturated counter never falls.
	many, err := UpdateValues(t.Context(), f, keys.Values{}, keys.Int64s(make([]int64, 20)))
	if err != nil || many.Facts().Counting.Saturated != 8 || many.Facts().Keys != 20_020 {
		t.Fatalf("%+v, %v", many.Facts().Counting, err)
	}
	fewer, err := UpdateValues(t.Context(), many, keys.Int64s(make([]int64, 21)), keys.Values{})
	if err != nil || fewer.Facts().Counting.Saturated != 8 || fewer.Facts().Keys != 19_999 {
		t.Fatalf("%+v, %v", fewer.Facts().Counting, err)
	}
	if rows, err := fewer.Probe(keys.Int64s([]int64{0}), nil); err != nil || len(rows) != 1 {
		t.Errorf("the key of saturated counters: %v, %v", rows, err)
	}
}

// A filter minus one of some of its keys is that of a build without them; plus it, the first again.
func TestSubtract(t *testing.T) {
	for _, multiset := range []bool{false, true} {
		s := newStore()
		rng := rand.New(rand.NewPCG(7, 8))
		all := numbers(15_000, func(int) int64 { return rng.Int64() })
		o := countingOptions(multiset)
		for name, values := range map[string][]int64{"all": all, "some": all[:4000], "more": all[4000:6000], "rest": all[6000:], "none": {}} {
			putParquet(t, s, name, 1000, record(t, column{"id", values}))
			f, _ := build(t, s, []string{name}, o)
			if _, err := filters.Save(t.Context(), s, name+".bjf", f, filters.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := CombineFiles(t.Context(), s, Subtract, []string{"all.bjf", "some.bjf", "more.bjf"}, filters.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		want, _ := build(t, s, []string{"rest"}, o)
		if got.Facts().Keys != 9000 || !bytes.Equal(got.Counters().Counters(), want.Counters().Counters()) {
			t.Error("the counters are not those of a build without the keys")
		}
		if !bytes.Equal(plainOf(t, got), plainBits(t, s, "plain", all[6000:], o)) {
			t.Error("the plain filter is not that of the remaining keys")
		}
		_, err = CombineFiles(t.Context(), s, Subtract, []string{"some.bjf", "all.bjf"}, filters.Limits{})
		refused(t, "more keys than are in", err, fault.ErrMismatch, "all.bjf", "at most the 4000")
		_, err = CombineFiles(t.Context(), s, Subtract, []string{"none.bjf", "some.bjf"}, filters.Limits{})
		refused(t, "keys where none is in", err, fault.ErrMismatch, "some.bjf", "at most the 0")
		_, err = CombineFiles(t.Context(), s, Subtract, []string{"some.bjf", "more.bjf"}, filters.Limits{})
		refused(t, "other keys than are in", err, fault.ErrMismatch, "more.bjf", "counters")
		union, err := CombineFiles(t.Context(), s, Union, []string{"rest.bjf", "some.bjf", "more.bjf"}, filters.Limits{})
		if !multiset {
			refused(t, "a union of sets", err, fault.ErrMismatch, "some.bjf", "Multiset")
			continue
		}
		whole, _ := build(t, s, []string{"all"}, o)
		if err != nil || !bytes.Equal(union.Counters().Counters(), whole.Counters().Counters()) || union.Facts().Keys != 15_000 {
			t.Errorf("the union: %v", err)
		}
	}
}

// Filters that cannot be combined or updated are errors that name want and got.
func TestCountingRefusals(t *testing.T) {
	s := newStore()
	putParquet(t, s, "ids", 100, record(t, column{"id", numbers(1000, func(i int) int64 { return int64(i) })}))
	putParquet(t, s, "names", 100, record(t, column{"id", numbers(1000, func(i int) string { return fmt.Sprint(i) })}))
	save := func(name, ids string, o Options) {
		f, _ := build(t, s, []string{ids}, o)
		if _, err := filters.Save(t.Context(), s, name, f, filters.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	set, multi := countingOptions(false), countingOptions(true)
	save("set", "ids", set)
	save("multi", "ids", multi)
	save("text", "names", multi)
	larger := multi
	larger.Expect = 50_000
	save("larger", "ids", larger)
	save("bloom", "ids", Options{Key: "id", Kind: codec.KindBloom})
	save("exact", "ids", Options{Key: "id", Kind: codec.KindExact})
	whole, _ := s.get("multi")
	s.put("cut", whole[:len(whole)/2])
	for _, c := range []struct {
		op    SetOp
		names string
		kind  error
		words string
	}{
		{Subtract, "multi set", fault.ErrMismatch, "set: mismatch: counting filter: want a multiset as in multi, got a set"},
		{Subtract, "multi larger", fault.ErrMismatch, "larger: mismatch: size of the filter: want 1440 blocks as in multi, got 2160"},
		{Subtract, "multi text", fault.ErrMismatch, "text: mismatch: key class: want integer as in multi, got bytes"},
		{Subtract, "multi bloom", fault.ErrMismatch, "bloom: mismatch: filter to combine with a counting one: want kind counting, got bloom"},
		{Subtract, "exact multi", fault.ErrMismatch, "want kind counting, got exact"},
		{Subtract, "bloom bloom", fault.ErrMismatch, "want kind counting, got bloom"},
		{Union, "multi exact", fault.ErrMismatch, "want kind counting, got exact"},
		{Intersect, "multi multi", fault.ErrUnsupported, "multi: unsupported: the intersection"},
		{Difference, "exact multi", fault.ErrUnsupported, "multi: unsupported: the difference"},
		{Subtract, "multi cut", fault.ErrCorrupt, "cut: corrupt: "},
	} {
		_, err := CombineFiles(t.Context(), s, c.op, strings.Fields(c.names), filters.Limits{})
		refused(t, string(c.op)+" "+c.names, err, c.kind, c.words)
	}
	f, err := filters.Load(t.Context(), s, "multi", filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = UpdateValues(t.Context(), f, keys.Values{}, keys.Int64s([]int64{1}))
	refused(t, "an update without counters", err, fault.ErrMismatch, "with its counters")
	_, err = Combine(t.Context(), Union, f, f)
	refused(t, "a union without counters", err, filters.ErrInvalid, "without its counters")
	if f, err = filters.Load(t.Context(), s, "multi", filters.Limits{Counters: true}); err != nil {
		t.Fatal(err)
	}
	_, _, err = updated(t, s, f, nil, []string{"names"}, multi, false)
	refused(t, "keys of another class", err, fault.ErrMismatch, "key class: want integer as in base.bjf, got bytes", "Types")
	_, err = UpdateValues(t.Context(), f, keys.Values{}, keys.Strings([]string{"1"}))
	refused(t, "values of another class", err, fault.ErrMismatch, "want integer")
	_, err = CombineFiles(t.Context(), s, Union, []string{"multi", "multi"}, filters.Limits{MaxBytes: 1000})
	refused(t, "little memory", err, fault.ErrMemory, "Memory")
	for what, o := range map[string]Options{
		"needs Multiset": {Key: "id", Kind: codec.KindCounting, Shard: dataset.Shard{Of: 2}, Expect: 9}, "Multiset needs": {Key: "id", Multiset: true},
		"split-256": {Key: "id", Kind: codec.KindCounting, Geometry: codecbloom.Split512}, "MaxSize of": {Key: "id", Kind: codec.KindCounting, MaxSize: 127},
	} {
		if _, err := plan(t, s, []string{"ids"}, o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
