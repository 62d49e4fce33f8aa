package builds

import (
	"math/rand/v2"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// fileSize returns the size of the filter's file with default options.
func fileSize(t testing.TB, f *filters.Filter) int64 {
	t.Helper()
	n, err := filters.Encode(new(discard), f, filters.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

type discard struct{}

func (*discard) Write(b []byte) (int, error) { return len(b), nil }

// The kind with the smaller file is built; if they are within a tenth (and a page),
// either one; and a Bloom filter if hardly any IDs are close to each other, because
// building the exact set would take too much memory.
func TestSealTakesTheSmallerFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	kinds := map[filters.Kind]int{}
	for _, oneIn := range []int{1, 2, 12, 64, 200, 300, 1 << 20} {
		for _, n := range []int{300, 20_000} {
			ids := numbers(n, func(i int) int64 { return int64(i*oneIn + rng.IntN(oneIn)) })
			for _, fpr := range []float64{0.3, 0.01, 0.0001} {
				s := newStore()
				putColumn(t, s, "ids", ids)
				var size [3]int64
				var got filters.Kind
				for kind := range codec.Kind(3) {
					f, _ := build(t, s, []string{"ids"}, Options{Key: "id", Kind: kind, FPR: fpr})
					size[kind] = fileSize(t, f)
					if kind == codec.KindAuto {
						got = f.Kind()
					}
				}
				kinds[got]++
				best := min(size[codec.KindBloom], size[codec.KindExact])
				if oneIn == 1<<20 && n == 20_000 {
					best = size[codec.KindBloom]
				}
				if size[codec.KindAuto] > best+best/10+2*4096 {
					t.Errorf("%d IDs, one in %d, rate %g: %s of %d bytes; Bloom has %d, exact %d",
						n, oneIn, fpr, got, size[codec.KindAuto], size[codec.KindBloom], size[codec.KindExact])
				}
			}
		}
	}
	if kinds[filters.KindBloom] < 10 || kinds[filters.KindExact] < 10 {
		t.Errorf("the sets do not lie on both sides: %v", kinds)
	}
}

// One ID in 64 takes 7.5 bits, fewer than a Bloom filter at 1 %. One in 200 takes
// 9.2 bits, but 25 times that in memory for fast probes.
func TestSealKnowsMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for oneIn, want := range map[int]filters.Kind{64: filters.KindExact, 200: filters.KindBloom} {
		ids := numbers(1_000_000, func(i int) int64 { return int64(i*oneIn + rng.IntN(oneIn)) })
		f := filterOf(t, ids, Options{FPR: 0.01})
		if f.Kind() != want {
			g := filterOf(t, ids, Options{FPR: 0.01, Kind: codec.KindExact})
			t.Errorf("one in %d: %s filter of %d bytes, exact %d", oneIn, f.Kind(), fileSize(t, f), fileSize(t, g))
		}
	}
}

// A budget below the Bloom filter's size matters only if a Bloom filter is needed.
func TestMemoryOfExactFilters(t *testing.T) {
	s := newStore()
	rng := rand.New(rand.NewPCG(25, 26))
	putColumn(t, s, "dense", numbers(20_000, func(i int) int64 { return int64(3 * i) }))
	putColumn(t, s, "sparse", numbers(20_000, func(int) int64 { return int64(rng.Uint64()) }))
	for _, c := range []struct {
		name, ids string
		opts      Options
		words     []string // in the error; nil: none
	}{
		{"exact", "dense", Options{Kind: codec.KindExact, Expect: 1e9, Memory: 1 << 20}, nil},
		{"auto, and the set is small", "dense", Options{Expect: 1e9, Memory: 1 << 20}, nil},
		{"exact, and the set is too large", "sparse", Options{Kind: codec.KindExact, Expect: 1e9, Memory: 1 << 20},
			[]string{"budget of 1 MiB", "exact set takes more", "Memory"}},
		{"auto, and the keys are counted first", "sparse", Options{Expect: 1e7, FPR: 0.01, Memory: 1 << 20}, nil},
		{"auto, and the set turns into bits", "sparse", Options{Expect: 1e5, FPR: 0.01, Memory: 100_000}, nil},
		{"auto, bits, and too many keys", "sparse", Options{Expect: 1e5, FPR: 0.01, Memory: 20_000},
			[]string{"budget of 19.53 KiB", "the filter takes", "MaxSize"}},
		{"auto, with room for one", "sparse", Options{Expect: 1e5, FPR: 0.01, Memory: 200_000}, nil},
		{"bits", "dense", Options{Kind: codec.KindBloom, Expect: 1e7, Memory: 1 << 20}, nil},
		{"bits, and too many keys", "dense", Options{Kind: codec.KindBloom, Expect: 1e7, FPR: 0.01, Memory: 10_000}, []string{"the filter takes"}},
	} {
		for _, threads := range []int{1, 4} {
			c.opts.Key, c.opts.Threads = "id", threads
			p, err := plan(t, s, []string{c.ids}, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := p.Build(t.Context())
			if c.words != nil {
				refused(t, c.name, err, fault.ErrMemory, c.words...)
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			c.opts.Memory, c.opts.Threads = 0, 1
			want, _ := build(t, s, []string{c.ids}, c.opts)
			if string(encoded(t, got)) != string(encoded(t, want)) {
				t.Errorf("%s: the budget changes the filter", c.name)
			}
		}
	}
}

// If bits would not fit, sets are built by the requested number of workers;
// otherwise by as many as bits fit for, using sets where they can stay sets.
func TestWorkersOfExactFilters(t *testing.T) {
	s := newStore()
	putColumn(t, s, "ids", span(0, 1000))
	for _, c := range []struct {
		kind   codec.Kind
		memory int64
		want   int
	}{{codec.KindExact, 1 << 20, 8}, {codec.KindAuto, 1 << 20, 8}, {codec.KindAuto, 15 << 20, 1}, {codec.KindAuto, 30 << 20, 1}, {codec.KindAuto, 60 << 20, 2}, {codec.KindBloom, 30 << 20, 8}, {codec.KindBloom, 13 << 20, 1}} {
		p, err := plan(t, s, []string{"ids"}, Options{Key: "id", FPR: 0.01, Expect: 1e7, Threads: 8, Kind: c.kind, Memory: c.memory})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := p.NewBuilder(t.Context()); err != nil || b.Workers() != c.want {
			t.Errorf("%s, %d bytes: %v workers, %v; want %d", c.kind, c.memory, b.Workers(), err, c.want)
		}
	}
}

func TestBudget(t *testing.T) {
	b := &budget{most: 100, workers: 2}
	x, y := share{of: b}, share{of: b}
	for i, c := range []struct {
		who  *share
		n    uint64
		room uint64
		ok   bool
	}{{&x, 40, 30, true}, {&y, 40, 10, true}, {&x, 60, 0, true}, {&y, 41, 0, false}, {&y, 0, 20, true}, {&x, 10, 45, true}} {
		if room, ok := c.who.hold(c.n); room != c.room || ok != c.ok {
			t.Errorf("step %d: room for %d, %v; want %d, %v", i, room, ok, c.room, c.ok)
		}
	}
	if got := b.held.Load(); got != 10 {
		t.Errorf("%d bytes are held, want 10", got)
	}
}
