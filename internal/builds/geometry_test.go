package builds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	codecbloom "github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// The geometry follows from the effective rate alone, whichever option sets it.
func TestGeometry(t *testing.T) {
	const split256, split512 = bloom.Split256, bloom.Split512
	for _, c := range []struct {
		name string
		spec Spec
		want bloom.Geometry
	}{
		{"1 %", Spec{Capacity: 1e6, FPR: 0.01}, split256},
		{"just above 0.1 %", Spec{Capacity: 1e6, FPR: 0.00101}, split256},
		{"0.1 %", Spec{Capacity: 1e6, FPR: 0.001}, split512},
		{"the default of a million", Spec{Capacity: 1e6}, split512},
		{"the default of ten million", Spec{Capacity: 1e7}, split256},
		{"the default of none", Spec{}, split512},
		{"forced at 1 %", Spec{Capacity: 1e6, FPR: 0.01, Geometry: split512}, split512},
		{"forced at 0.01 %", Spec{Capacity: 1e6, FPR: 0.0001, Geometry: split256}, split256},
		{"a size that the default fits in", Spec{Capacity: 1e6, MaxSize: 1 << 30}, split512},
		{"a size for 1 %", Spec{Capacity: 1e6, MaxSize: 1_300_000}, split256},
		{"a size for 0.07 %", Spec{Capacity: 1e6, MaxSize: 2_050_000}, split512},
		{"a size of a block of 256 bits", Spec{Capacity: 1e6, MaxSize: 40}, split256},
	} {
		c.spec.Hash = bloom.Hash{ID: bloom.XXH3}
		params, fpr, err := c.spec.size()
		if err != nil || params.Geometry != c.want {
			t.Errorf("%s: %s at %g, %v; want %s", c.name, params.Geometry, fpr, err, c.want)
		}
		if m := c.spec.MaxSize; m > 0 && params.Bytes() > m {
			t.Errorf("%s: %d bytes", c.name, params.Bytes())
		}
	}
	_, _, err := Spec{Capacity: 1, MaxSize: 63, Geometry: split512}.size()
	if err == nil || !strings.Contains(err.Error(), "at most 63 bytes: want at least 64") {
		t.Errorf("less than a block: %v", err)
	}
}

// As the size grows, the rate falls, and the geometry changes once, at 0.1 %. Below
// that, the smaller one is always chosen.
func TestGeometryBySize(t *testing.T) {
	last := bloom.Split256
	for size := uint64(1 << 20); size < 4<<20; size += 10_000 {
		s := Spec{Capacity: 1e6, MaxSize: size}
		params, fpr, err := s.size()
		if err != nil {
			t.Fatal(err)
		}
		if params.Geometry < last {
			t.Fatalf("%s at %d bytes, after %s", params.Geometry, size, last)
		}
		last = params.Geometry
		if params.Geometry != bloom.GeometryFor(fpr) && fpr < 0.99e-3 {
			t.Errorf("%s at a rate of %g", params.Geometry, fpr)
		}
		if params.Geometry == bloom.Split256 && s.within(bloom.Split512) <= 1e-3 {
			t.Errorf("%d bytes: %g with %s, but %g with %s", size, fpr, params.Geometry, s.within(bloom.Split512), bloom.Split512)
		}
	}
	if last != bloom.Split512 {
		t.Error("Split512 never came")
	}
}

func TestGeometryOfBuilds(t *testing.T) {
	ids := span(0, 3000)
	for _, g := range append(bloom.Geometries(), 0) {
		for _, fpr := range []float64{0.01, 0.0001} {
			f := filterOf(t, ids, Options{Kind: codec.KindBloom, FPR: fpr, Geometry: codecbloom.Geometry(g)})
			want := g
			if g == 0 {
				want = bloom.GeometryFor(fpr)
			}
			if f.Facts().Params.Geometry != want || passed(t, f, ids) != len(ids) || f.FPR() > 1.02*fpr {
				t.Errorf("asked for %v at %g: %s at %g, %d members pass", g, fpr, f.Facts().Params.Geometry, f.FPR(), passed(t, f, ids))
			}
		}
	}
	s := newStore()
	putColumn(t, s, "ids", ids)
	seen := map[[32]byte]bool{}
	for _, g := range append(bloom.Geometries(), 0) {
		p, err := plan(t, s, []string{"ids"}, Options{Key: "id", Geometry: codecbloom.Geometry(g)})
		if err != nil || seen[p.BuildID] {
			t.Errorf("%v: the build id of another geometry, or %v", g, err)
		}
		seen[p.BuildID] = true
	}
	_, err := plan(t, s, []string{"ids"}, Options{Key: "id", Geometry: 7})
	refused(t, "geometry 7", err, fault.ErrUnsupported, "geometry 7", "split-256")
}

// Registers are those of the keys, in every partial Bloom filter and in sealed ones
// from 64 KiB.
func TestRegisters(t *testing.T) {
	ids := span(0, 4000)
	hashes := numbers(len(ids), func(i int) uint64 { return uint64(ids[i]) })
	hash := bloom.Hash{ID: bloom.XXH3}
	hash.Sum64(hashes, hashes)
	var want bloom.Registers
	want.Add(hashes)
	s := newStore()
	putColumn(t, s, "ids", ids)
	for _, c := range []struct {
		opts Options
		has  bool
	}{
		{Options{FPR: 0.01}, false},
		{Options{MaxSize: minSketched - 1}, false},
		{Options{FPR: 1e-12}, true},
		{Options{FPR: 1e-12, Geometry: codecbloom.Geometry(bloom.Split256)}, true},
		{Options{FPR: 1e-12, Kind: codec.KindExact}, false},
	} {
		c.opts.Key = "id"
		if c.opts.Kind == 0 {
			c.opts.Kind = codec.KindBloom
		}
		name := fmt.Sprintf("%+v", c.opts)
		f, _ := build(t, s, []string{"ids"}, c.opts)
		if got := f.Facts().Registers != nil; got != c.has || got && string(f.Facts().Registers) != string(want[:]) {
			t.Errorf("%s: registers: %v, or others than the keys'", name, got)
		}
		var all bloom.Registers
		for _, part := range buildShards(t, s, "p", []string{"ids"}, c.opts, 3) {
			f, err := filters.Load(t.Context(), s, part, filters.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if r := registersOf(f); (r != nil) != (c.opts.Kind == codec.KindBloom) {
				t.Errorf("%s: a partial filter with registers: %v", name, r != nil)
			} else if r != nil {
				all.Merge(r)
			}
		}
		if c.opts.Kind == codec.KindBloom && all != want {
			t.Errorf("%s: the parts' registers are not the keys'", name)
		}
	}
}

// If a part has no registers, as another program may write it, the whole has none.
func TestRegistersThatAreMissing(t *testing.T) {
	s := newStore()
	putColumn(t, s, "ids", span(0, 4000))
	names := buildShards(t, s, "p", []string{"ids"}, Options{Key: "id", Kind: codec.KindBloom, FPR: 1e-12}, 3)
	for _, without := range names {
		whole, _ := s.get(without)
		f, err := filters.Load(t.Context(), s, without, filters.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		f.Facts().Registers = nil
		if _, err := filters.Save(t.Context(), s, without, f, filters.Options{Replace: true}); err != nil {
			t.Fatal(err)
		}
		if f, err = MergeFiles(t.Context(), s, names, false, filters.Limits{}); err != nil || f.Facts().Registers != nil {
			t.Errorf("%s: registers of some of the keys, or %v", without, err)
		}
		s.put(without, whole)
	}
	if f, err := MergeFiles(t.Context(), s, names, false, filters.Limits{}); err != nil || f.Facts().Registers == nil {
		t.Errorf("no registers, or %v", err)
	}
}
