package bloom

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// Many goroutines set the same bits as one, whatever the size of the filter and of
// their buffers.
func TestShared(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	hashes := make([]uint64, 400_000)
	for i := range hashes {
		hashes[i] = rng.Uint64()
	}
	hashes[0], hashes[1] = 0, ^uint64(0)
	for i, g := range Geometries() {
		for k, blocks := range []uint64{1, 7, 720, 719, 720 * 1024, 720*1024 + 720, 46080 * 33, 99991} {
			if (i+k)%2 != 0 && !cases.All() { // each size in one geometry
				continue
			}
			p := Params{Geometry: g, Hash: Hash{ID: XXH3}, Blocks: blocks}
			want := mustNew(t, p)
			want.Add(hashes)
			bits := string(want.AppendBlocks(nil, 0, blocks))
			for _, buffer := range []uint64{0, 64 << 10, 4 << 20} {
				f := mustNew(t, p)
				s := NewShared(f, buffer)
				var wg sync.WaitGroup
				for i := range 5 {
					part := hashes[i*len(hashes)/5 : (i+1)*len(hashes)/5]
					wg.Go(func() {
						a := s.Adder()
						for len(part) > 0 {
							n := min(len(part), 1+len(part)/3)
							a.Add(part[:n])
							part = part[n:]
						}
						a.Flush()
					})
				}
				wg.Wait()
				if string(f.AppendBlocks(nil, 0, blocks)) != bits {
					t.Errorf("%s, %d blocks, buffers of %d: other bits", g, blocks, buffer)
				}
			}
		}
	}
}

// The ranges of a filter are disjoint.
func TestRanges(t *testing.T) {
	for _, g := range Geometries() {
		for _, keys := range []uint64{1e4, 1e6, 1e7, 123456789, 1e9} {
			p := Params{Geometry: g, Hash: Hash{ID: XXH3}, Blocks: g.Blocks(keys, 0.01)}
			n := p.ranges()
			if bytes := p.Bytes() / n; bytes > rangeBytes && n < maxRanges {
				t.Errorf("%s, %d keys: ranges of %d bytes", g, keys, bytes)
			}
			for r := uint64(1); r < n; r++ {
				first := r * (1 << 32 / n) << 32
				if last := first - 1; index(last, p.Blocks)+1 != index(first, p.Blocks) || index(first, p.Blocks) != r*(p.Blocks/n) {
					t.Fatalf("%s, %d keys: range %d of %d begins in block %d, the one before ends in %d", g, keys, r, n, index(first, p.Blocks), index(last, p.Blocks))
				}
			}
		}
	}
}

func BenchmarkShared(b *testing.B) {
	hashes := make([]uint64, 1<<20)
	for i := range hashes {
		hashes[i] = rand.Uint64()
	}
	for _, keys := range []uint64{1e7, 1e8, 1e9} {
		p := Params{Geometry: Split256, Hash: Hash{ID: XXH3}, Blocks: Split256.Blocks(keys, 0.01)}
		for _, buffer := range []uint64{256 << 10, 1 << 20, 4 << 20, 16 << 20} {
			b.Run(fmt.Sprintf("keys=%d/buffer=%dKiB", keys, buffer>>10), func(b *testing.B) {
				f, err := New(p)
				if err != nil {
					b.Fatal(err)
				}
				a := NewShared(f, buffer).Adder()
				for i := 0; b.Loop(); i++ {
					step := hashes[i<<12&(1<<20-1):][:1<<12]
					for j := range step {
						step[j] *= 0x9e3779b97f4a7c15 // different hashes each time
					}
					a.Add(step)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(1<<12), "ns/key")
			})
		}
	}
}

func mustNew(t testing.TB, p Params) *Filter {
	t.Helper()
	f, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
