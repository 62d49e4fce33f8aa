package builds

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	codecbloom "github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

func sparse(seed uint64, n int) []int64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	return numbers(n, func(int) int64 { return int64(rng.Uint64()) })
}

// The size of a filter with room depends on the capacity and the rate, not on the
// keys. Without room it is as small as the keys allow.
func TestRoom(t *testing.T) {
	opts := Options{FPR: 0.01, Expect: 50_000, Room: true, Kind: codec.KindBloom}
	blocks := bloom.Split256.Blocks(50_000, 0.01)
	for _, n := range []int{0, 1, 700, 50_000, 80_000} {
		f := filterOf(t, sparse(1, n), opts)
		if f.Facts().Params.Blocks != blocks || f.Facts().Capacity != (filters.Capacity{Keys: 50_000, Blocks: blocks}) || f.Facts().FPRAsked != 0.01 {
			t.Errorf("%d keys: %d blocks, capacity %+v, rate %g; want %d blocks", n, f.Facts().Params.Blocks, f.Facts().Capacity, f.Facts().FPRAsked, blocks)
		}
		if n <= 50_000 && f.FPR() > 0.0102 {
			t.Errorf("%d keys: rate %g", n, f.FPR())
		}
	}
	opts.Room = false
	if f := filterOf(t, sparse(1, 700), opts); f.Facts().Params.Blocks >= blocks/20 || f.Facts().Capacity != (filters.Capacity{}) {
		t.Errorf("without room: %d blocks, capacity %+v", f.Facts().Params.Blocks, f.Facts().Capacity)
	}
	// By size: the rate is that of the capacity in this size.
	opts = Options{MaxSize: 32_000, Geometry: codecbloom.Geometry(bloom.Split256), Expect: 50_000, Room: true, Kind: codec.KindBloom}
	f := filterOf(t, sparse(1, 700), opts)
	if got := bloom.Split256.FPR(f.Facts().Params.Blocks, 50_000); f.Facts().Params.Bytes() > 32_000 || f.Facts().Params.Bytes() < 20_000 || math.Abs(got-f.Facts().FPRAsked) > 1e-9 {
		t.Errorf("by size: %d bytes, rate %g, want %g", f.Facts().Params.Bytes(), f.Facts().FPRAsked, got)
	}
	s := newStore()
	putColumn(t, s, "ids", sparse(1, 10))
	if _, err := plan(t, s, []string{"ids"}, Options{Key: "id", Room: true}); err == nil {
		t.Error("room for an unknown number of keys")
	}
}

// Auto: exact as long as that is smaller than the Bloom filter of the capacity.
func TestRoomOfExactFilters(t *testing.T) {
	for n, want := range map[int]filters.Kind{200: filters.KindExact, 20_000: filters.KindBloom} {
		f := filterOf(t, sparse(2, n), Options{FPR: 0.01, Expect: 50_000, Room: true})
		if f.Kind() != want || f.Facts().Capacity != (filters.Capacity{Keys: 50_000, Blocks: bloom.Split256.Blocks(50_000, 0.01)}) {
			t.Errorf("%d keys of 50,000: %s, capacity %+v; want %s", n, f.Kind(), f.Facts().Capacity, want)
		}
	}
}

// Builds with and without room are different builds.
func TestRoomIsInTheBuildID(t *testing.T) {
	s := newStore()
	putColumn(t, s, "ids", sparse(1, 100))
	ids := map[[32]byte]bool{}
	for _, opts := range []Options{{Expect: 1000}, {Expect: 1000, Room: true}, {Expect: 1001, Room: true}} {
		opts.Key = "id"
		p, err := plan(t, s, []string{"ids"}, opts)
		if err != nil {
			t.Fatal(err)
		}
		ids[p.BuildID] = true
	}
	if len(ids) != 3 {
		t.Errorf("%d build ids, want 3", len(ids))
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		opts Options
		want []error
	}{
		{"as many as expected", 20_000, Options{Expect: 20_000, Kind: codec.KindBloom}, nil},
		{"more than expected", 45_000, Options{Expect: 20_000, Kind: codec.KindBloom}, []error{ErrRate}},
		{"more than expected, exact", 30_000, Options{Expect: 20_000, Kind: codec.KindExact}, nil},
		{"room is left", 100, Options{Expect: 20_000, Room: true, Kind: codec.KindBloom}, nil},
		{"just full", 20_000, Options{Expect: 20_000, Room: true, Kind: codec.KindBloom}, nil},
		{"over the capacity", 45_000, Options{Expect: 20_000, Room: true, Kind: codec.KindBloom}, []error{ErrRate, ErrFull}},
		{"hardly over the capacity", 20_700, Options{Expect: 20_000, Room: true, Kind: codec.KindBloom}, []error{ErrFull}},
		{"over the capacity, exact", 20_001, Options{Expect: 20_000, Room: true, Kind: codec.KindExact}, []error{ErrFull}},
		{"full blocks", 60_000, Options{Expect: 9_000, Room: true, Kind: codec.KindBloom, FPR: 0.5}, []error{ErrRate, ErrFull}},
		{"full blocks and registers", 900_000, Options{Expect: 150_000, Room: true, Kind: codec.KindBloom, FPR: 0.5}, []error{ErrRate, ErrFull}},
	} {
		if c.opts.FPR == 0 {
			c.opts.FPR = 0.01
		}
		f := filterOf(t, sparse(3, c.n), c.opts)
		err := Check(f, Count(f))
		for _, e := range []error{ErrRate, ErrFull} {
			want := false
			for _, w := range c.want {
				want = want || w == e
			}
			if errors.Is(err, e) != want {
				t.Errorf("%s: %v; %v: want %v", c.name, err, e, want)
			}
		}
	}
	s := newStore()
	putColumn(t, s, "ids", sparse(3, 30_000))
	f, rep := build(t, s, []string{"ids"}, Options{Key: "id", FPR: 0.01, Expect: 20_000, Shard: dataset.Shard{Index: 0, Of: 1}})
	if err := Check(f, rep); err != nil {
		t.Errorf("a partial filter: %v", err)
	}
}
