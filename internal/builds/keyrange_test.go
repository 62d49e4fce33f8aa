package builds

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// ranges renders the key range of a filter that is written and read again.
func ranges(t testing.TB, f *filters.Filter) string {
	t.Helper()
	f = again(t, f)
	var out []string
	for i, c := range f.KeyClasses() {
		lo, hi, ok := f.KeyRange(i)
		show := func(part []byte) string {
			if n, ok := keys.Number(keys.Class(c), part); ok {
				return n.RatString()
			}
			return string(part)
		}
		if !ok {
			out = append(out, "unknown")
		} else {
			out = append(out, show(lo)+" to "+show(hi))
		}
	}
	return strings.Join(out, ", ")
}

func TestKeyRange(t *testing.T) {
	long := strings.Repeat("x", 70)
	for _, c := range []struct {
		name   string
		values any
		opts   Options
		want   string
	}{
		{"integers", []int64{5, -7, 3}, Options{Kind: codec.KindBloom}, "-7 to 5"},
		{"beyond int64", []uint64{math.MaxUint64, 9}, Options{Kind: codec.KindBloom}, "9 to 18446744073709551615"},
		{"NULLs", []any{nil, int64(4), nil}, Options{Kind: codec.KindBloom}, "4 to 4"},
		{"NULLs only", []any{nil, nil}, Options{Kind: codec.KindBloom}, "unknown"},
		{"no rows", []int64{}, Options{Kind: codec.KindBloom}, "unknown"},
		{"strings", []string{"b", "", "ab"}, Options{}, " to b"},
		{"long strings", []string{long, long + "y"}, Options{}, long[:64] + " to " + long[:63] + "y"},
		{"no bound above", []string{"a", strings.Repeat("\xff", 65)}, Options{}, "unknown"},
		{"left out", []int64{5, -7, 3}, Options{Kind: codec.KindBloom, NoKeyRange: true}, "unknown"},
		{"an exact filter's members", []int64{5, -7, 3}, Options{Kind: codec.KindExact}, "-7 to 5"},
	} {
		if got := ranges(t, filterOf(t, c.values, c.opts)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if f := again(t, filterOf(t, []int64{5, -7, 3}, Options{Kind: codec.KindExact})); f.Facts().Key[0].Min != nil {
		t.Errorf("the file of an exact filter has a key range beside the members: %x", f.Facts().Key[0].Min)
	}
}

// A composite key has a range for each column.
func TestKeyRangeComposite(t *testing.T) {
	s := newStore()
	rec := record(t, column{"n", []any{int64(4), nil, int64(-4)}}, column{"s", []string{"m", "z", "n"}})
	defer rec.Release()
	putParquet(t, s, "ids", 1, rec)
	f, _ := build(t, s, []string{"ids"}, Options{Key: "s,n"})
	if got := ranges(t, f); got != "m to n, -4 to 4" {
		t.Errorf("the row with a NULL is no key: %s", got)
	}
}

// The keys of standard input wait until their number is known, and so does the
// range.
func TestKeyRangeUnsized(t *testing.T) {
	s := newStore()
	s.put("ids.txt", []byte("m\nq\nb\n"))
	for threads := range 3 {
		f, _ := build(t, s, []string{"ids.txt"}, Options{Key: "id", Threads: threads + 1})
		if got := ranges(t, f); got != "b to q" {
			t.Errorf("%d threads: %s", threads+1, got)
		}
	}
}

// A part without a range, as earlier versions wrote it, makes the whole range
// unknown, whichever part it is. A part without keys does not.
func TestKeyRangeOfParts(t *testing.T) {
	s := newStore()
	for _, c := range []struct {
		name  string
		ids   []int64
		group int64
		mute  int // which of three parts has no range; 3: none
		want  string
	}{
		{"all tell", numbers(900, func(i int) int64 { return int64(i) * 7919 }), 300, 3, "0 to 7119181"},
		{"the first is mute", numbers(900, func(i int) int64 { return int64(i) * 7919 }), 300, 0, "unknown"},
		{"the last is mute", numbers(900, func(i int) int64 { return int64(i) * 7919 }), 300, 2, "unknown"},
		{"parts without keys", []int64{12, 9}, 300, 3, "9 to 12"},
	} {
		for _, kind := range []codec.Kind{codec.KindBloom, codec.KindAuto} {
			rec := record(t, column{"id", c.ids})
			putParquet(t, s, "ids", c.group, rec)
			rec.Release()
			var names []string
			for i := range uint32(3) {
				f, _ := build(t, s, []string{"ids"}, Options{Key: "id", Kind: kind, FPR: 0.1, Shard: dataset.Shard{Index: i, Of: 3}})
				if int(i) == c.mute {
					f.Facts().Key[0].Min, f.Facts().Key[0].Max = nil, nil
				}
				names = append(names, fmt.Sprint("part-", i))
				if _, err := filters.Save(t.Context(), s, names[i], f, filters.Options{Replace: true}); err != nil {
					t.Fatal(err)
				}
			}
			f, err := MergeFiles(t.Context(), s, names, false, filters.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := ranges(t, f); f.Kind() == filters.KindBloom && got != c.want {
				t.Errorf("%s, kind %s: %s, want %s", c.name, kind, got, c.want)
			}
		}
	}
}

// Builds with and without a range are different builds. The ID of those with one is
// unchanged.
func TestKeyRangeBuildID(t *testing.T) {
	spec := Spec{Names: []string{"id"}, Classes: []string{"integer"}, Capacity: 7}
	mute := spec
	mute.NoRange = true
	if spec.id([32]byte{1}) == mute.id([32]byte{1}) {
		t.Error("one id for both")
	}
	if got := fmt.Sprintf("%x", spec.id([32]byte{1})); got != "f92e61c04d6e98f1bc178dc901ba1dfaa00bdaf9a7cc85caf3cbaf12d8858105" {
		t.Errorf("the id of a build changed: %s", got)
	}
}

func TestKeyRangeOfCombinations(t *testing.T) {
	bits := func(lo, hi int, opts Options) *filters.Filter {
		opts.Kind, opts.FPR = codec.KindBloom, 0.03
		return filterOf(t, span(lo, hi), opts)
	}
	mute := Options{NoKeyRange: true}
	exact := func(lo, hi int) *filters.Filter { return filterOf(t, span(lo, hi), Options{Kind: codec.KindExact}) }
	at := func(lo, hi int) string { return fmt.Sprintf("%d to %d", lo*7919, (hi-1)*7919) }
	for _, c := range []struct {
		name          string
		a, b          *filters.Filter
		union, common string
	}{
		{"two Bloom filters", bits(0, 3000, Options{}), bits(2000, 5000, Options{}), at(0, 5000), at(2000, 3000)},
		{"one mute", bits(0, 3000, Options{}), bits(2000, 5000, mute), "unknown", at(0, 3000)},
		{"both mute", bits(0, 3000, mute), bits(2000, 5000, mute), "unknown", "unknown"},
		{"with an exact one", bits(0, 3000, Options{}), exact(2000, 3200), at(0, 3200), at(2000, 3000)},
		{"apart", bits(0, 3000, Options{}), bits(4000, 7000, Options{}), at(0, 7000), "unknown"},
	} {
		for _, pair := range [][]*filters.Filter{{c.a, c.b}, {c.b, c.a}} {
			for op, want := range map[SetOp]string{Union: c.union, Intersect: c.common} {
				f, err := combine(t, op, pair, []string{"a", "b"})
				if err != nil {
					t.Fatalf("%s: %s: %v", c.name, op, err)
				}
				if got := ranges(t, f); got != want {
					t.Errorf("%s: %s: %s, want %s", c.name, op, got, want)
				}
			}
		}
	}
}
