package builds

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// fuzzSets divides the input into two to four sets of integers. Each has a header:
// a byte for the kind, geometry and size of the filter, and one for the number of
// members. Members take two bytes each and start at -2^15. They are close together,
// so that sets overlap and a map is a fast oracle.
func fuzzSets(data []byte) (filters []*filters.Filter, sets []map[int64]bool) {
	for len(filters) < 4 && len(data) >= 2 {
		how, n := data[0], int(data[1])
		data = data[2:]
		set := map[int64]bool{}
		for ; n > 0 && len(data) >= 2; n-- {
			set[int64(int16(binary.LittleEndian.Uint16(data)))] = true
			data = data[2:]
		}
		filters, sets = append(filters, fuzzFilter(how, set)), append(sets, set)
	}
	return filters, sets
}

func fuzzFilter(how byte, set map[int64]bool) *filters.Filter {
	f := filters.New(filters.Facts{
		Key: []filters.KeyColumn{{Name: "id", Class: "integer"}}, NormalForm: keys.NormalForm,
		Keys: uint64(len(set)), FPRAsked: 0.9, Params: bloom.Params{Geometry: bloom.Geometry(1 + how>>1&1), Hash: bloom.Hash{ID: bloom.XXH3}},
	})
	var values []uint64
	members := exact.New()
	for v := range set {
		values = append(values, uint64(v))
		members.Add([]uint64{uint64(v)}, true)
	}
	if how&1 == 0 {
		f.SetExact(members)
		return f
	}
	f.Facts().Params.Blocks = []uint64{1, 2, 3, 8, 12, 720, 1440, 2160}[how>>2&7]
	bits, err := bloom.New(f.Facts().Params)
	if err != nil {
		panic(err)
	}
	addInts(bits, values)
	f.SetBloom(bits)
	if how&32 != 0 {
		var r bloom.Registers
		f.Facts().Params.Hash.Sum64(values, values)
		r.Add(values)
		f.Facts().Registers = r[:]
	}
	return f
}

func passes(f *filters.Filter, v int64) bool {
	if s := f.Exact(); s != nil {
		return len(s.Probe([]uint64{uint64(v)}, true, nil)) == 1
	}
	return len(f.Bloom().ProbeInts([]uint64{uint64(v)}, nil)) == 1
}

// fuzzCombine checks an operation against maps. want reports whether a key must
// pass, given the number of sets it is in and whether it is in the first.
func fuzzCombine(f *testing.F, op SetOp, want func(in, all int, first bool) bool) {
	f.Add([]byte{})
	// exact and exact, overlapping, with a negative member
	f.Add([]byte{0, 3, 1, 0, 2, 0, 0xff, 0xff, 0, 2, 2, 0, 3, 0})
	// bits of 720 and of 1440 blocks
	f.Add([]byte{1 | 5<<2, 3, 1, 0, 2, 0, 3, 0, 1 | 6<<2, 2, 2, 0, 0xff, 0xff})
	// bits of 2 blocks of 512 bits and exact
	f.Add([]byte{3 | 1<<2, 3, 1, 0, 2, 0, 3, 0, 2, 3, 1, 0, 3, 0, 4, 0})
	// bits of 8 and of 3 blocks: a common size of one
	f.Add([]byte{1 | 3<<2, 4, 1, 0, 2, 0, 3, 0, 4, 0, 1 | 2<<2, 1, 9, 0})
	// two geometries
	f.Add([]byte{1 | 4<<2, 1, 1, 0, 3 | 4<<2, 1, 1, 0})
	// registers in both, and an empty set
	f.Add([]byte{33 | 6<<2, 2, 1, 0, 2, 0, 33 | 6<<2, 0})
	// four sets of all kinds
	f.Add([]byte{0, 1, 1, 0, 1 | 4<<2, 1, 1, 0, 2, 2, 1, 0, 5, 0, 33 | 3<<2, 1, 7, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		filters, sets := fuzzSets(data)
		var names []string
		sketched, bits, some, keyed := true, false, false, 0 // some have bits, perhaps without a key
		for i, f := range filters {
			some = some || f.Bloom() != nil
			names = append(names, fmt.Sprint("filter ", i))
			if len(sets[i]) > 0 {
				keyed, bits = keyed+1, bits || f.Bloom() != nil
			}
			sketched = sketched && (len(sets[i]) == 0 || f.Exact() != nil || f.Facts().Registers != nil)
		}
		got, err := combine(t, op, filters, names)
		if err != nil {
			if errors.Is(err, fault.ErrMismatch) && some || len(filters) < 2 {
				return
			}
			t.Fatal(err)
		}
		if bits && op == Difference && len(sets[0]) > 0 && keyed > 1 {
			t.Fatal("a difference with bits")
		}
		got = again(t, got)
		in := map[int64]int{} // number of sets with the key
		for v := int64(-1 << 15); v < 1<<15; v += 97 {
			in[v] = 0
		}
		for _, s := range sets {
			for v := range s {
				in[v]++
			}
		}
		for v, in := range in {
			must, pass := want(in, len(sets), sets[0][v]), passes(got, v)
			if must && !pass || !bits && pass && !must {
				t.Fatalf("%s: %d is in %d of %d sets (in the first: %v), passes: %v", op, v, in, len(sets), sets[0][v], pass)
			}
			for i, f := range filters { // each filter at the common size is an upper bound
				if op == Intersect && pass && f.Exact() == nil && f.Facts().Params == got.Facts().Params && !passes(f, v) {
					t.Fatalf("%d passes the intersection, but not filter %d", v, i)
				}
			}
		}
		if op == Union && bits && got.Facts().Registers != nil && !sketched {
			t.Fatal("registers of some of the keys")
		}
	})
}

func FuzzUnion(f *testing.F) {
	fuzzCombine(f, Union, func(in, _ int, _ bool) bool { return in > 0 })
}

func FuzzIntersect(f *testing.F) {
	fuzzCombine(f, Intersect, func(in, all int, _ bool) bool { return in == all })
}

func FuzzDifference(f *testing.F) {
	fuzzCombine(f, Difference, func(in, _ int, first bool) bool { return in == 1 && first })
}
