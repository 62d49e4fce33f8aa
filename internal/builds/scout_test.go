package builds

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// A scout's cost equals that of the set that its keys will be added to, whatever
// the keys.
func TestScoutCost(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for round := range 100 {
		s, want := newScout(), exact.New()
		width := rng.IntN(64)
		for range 1 + rng.IntN(5) {
			signed := rng.IntN(2) == 0
			values := numbers(rng.IntN(300), func(int) uint64 {
				if v := rng.Uint64(); signed {
					return uint64(int64(v) >> width)
				} else {
					return v >> width
				}
			})
			s.add(values, signed)
			want.Add(values, signed)
		}
		cost, got := s.cost(), exact.New()
		s.into(got)
		if cost != want.Cost() || got.Len() != want.Len() || got.Cost() != cost {
			t.Fatalf("round %d: cost %d, want %d; %d members, want %d", round, cost, want.Cost(), got.Len(), want.Len())
		}
	}
}

// Distant keys become bits without a set, even if the Bloom filter is large: a set
// with a container for nearly each of them would take minutes.
func TestSparseKeysOfALargeBuild(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	s := newStore()
	putColumn(t, s, "ids", numbers(300_000, func(int) int64 { return int64(rng.Uint64()) }))
	for _, threads := range []int{1, 2} {
		f, _ := build(t, s, []string{"ids"}, Options{Key: "id", FPR: 0.01, Expect: 40_000_000, Threads: threads})
		if f.Kind() != filters.KindBloom || f.FPR() > 0.0102 {
			t.Errorf("%s filter, rate %g", f.Kind(), f.FPR())
		}
	}
}

// If the first keys need a set that exceeds the budget, they are refused before it
// is built.
func TestFirstKeysOverBudget(t *testing.T) {
	rng := rand.New(rand.NewPCG(45, 46))
	spec := Spec{Names: []string{"id"}, Classes: []string{"integer"}, Hash: bloom.Hash{ID: bloom.XXH3}, Capacity: 1e6, FPR: 0.01, Want: filters.Kind(codec.KindExact)}
	p, err := newPartial(spec, &budget{most: 8 << 20, workers: 1})
	if err = errors.Join(err, p.begin()); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := p.addInts(numbers(10_000, func(int) uint64 { return rng.Uint64() }), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.decide(); !errors.Is(err, fault.ErrMemory) || p.set.Len() > 0 {
		t.Errorf("error %v, %d keys in the set", err, p.set.Len())
	}
}
