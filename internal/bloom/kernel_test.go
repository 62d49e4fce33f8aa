package bloom

import (
	"bytes"
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/hugepage"
)

// The kernels in use and the portable ones set the same bits and find the same
// hashes, whatever the size of the filter and the batch. Filters above farBytes use
// the prefetching loops.
func TestKernels(t *testing.T) {
	levels(t, func(t *testing.T) { each(t, testKernels) })
}

func testKernels(t *testing.T, g Geometry) {
	r := rand.New(rand.NewPCG(1, uint64(g)))
	sizes := []uint64{1, 2, 3, 719, 720, 1<<15 + 1, 1<<17 - 1}
	for _, n := range sizes {
		a, b := make([]uint64, n*g.words()), make([]uint64, n*g.words())
		for _, count := range []int{0, 1, 2, 31, 32, 33, 34, 100, span - 1, span} {
			hashes := randoms(r.Uint64(), count)
			if count > 2 {
				hashes[0], hashes[1], hashes[2] = 0, ^uint64(0), hashes[count-1]
			}
			g.add(a, n, hashes)
			g.addPortable(b, n, hashes)
			if !slices.Equal(a, b) {
				t.Fatalf("%d hashes into %d blocks: other bits than the portable kernel's", count, n)
			}
			probes := append(randoms(r.Uint64(), count), hashes...)
			base := r.Uint32()
			got, want := make([]uint32, len(probes)+1), make([]uint32, len(probes))
			got[len(probes)] = 0xdead // nothing may be written after the room for all positions
			k := g.probe(a, n, probes, base, got)
			if m := g.probePortable(a, n, probes, base, want); k != m || !slices.Equal(got[:k], want[:m]) {
				t.Fatalf("%d probes of %d blocks: %d found, the portable kernel finds %d", len(probes), n, k, m)
			}
			if got[len(probes)] != 0xdead {
				t.Fatalf("%d probes of %d blocks: written behind the end", len(probes), n)
			}
		}
	}
}

// The bits of a hash, computed from the definition in the package comment with big
// integers.
func definition(g Geometry, n, h uint64) (block uint64, lane [lanes]uint) {
	high := new(big.Int).Rsh(new(big.Int).SetUint64(h), 32)
	block = high.Mul(high, new(big.Int).SetUint64(n)).Rsh(high, 32).Uint64()
	for j := range lane {
		x := new(big.Int)
		if g == Split256 {
			x.SetUint64(h & 0xffffffff)
			x.Mul(x, big.NewInt(int64(salts[j])))
			x.And(x, big.NewInt(0xffffffff)).Rsh(x, 27)
		} else {
			x.SetUint64(h)
			x.Mul(x, new(big.Int).SetUint64(0x9e3779b97f4a7c15))
			x.And(x, new(big.Int).SetUint64(^uint64(0)))
			x.Rsh(x, uint(58-6*j)).And(x, big.NewInt(63))
		}
		lane[j] = uint(x.Uint64())
	}
	return block, lane
}

func TestDefinition(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		for _, n := range []uint64{1, 2, 7, 720, 4099} {
			for _, h := range append(randoms(n, 200), 0, ^uint64(0), 1<<32, 1<<32-1) {
				want := make([]byte, n*g.BlockBytes())
				block, lane := definition(g, n, h)
				for j, bit := range lane {
					at := uint(block*g.BlockBytes()*8) + uint(j*g.laneBits()) + bit
					want[at/8] |= 1 << (at % 8)
				}
				if got := bitsOf(g.newFilter(t, n, h)); !bytes.Equal(got, want) {
					t.Fatalf("hash %x in %d blocks: other bits than the definition's", h, n)
				}
			}
		}
	})
}

// The hash of integers is the same at every level and length.
func TestSumInts(t *testing.T) {
	levels(t, func(t *testing.T) {
		for n := range 70 {
			values := randoms(uint64(n), n)
			got, want := make([]uint64, n), make([]uint64, n)
			for _, flip := range []uint64{0, ^uint64(0), 0x0123456789abcdef} {
				sumInts(got, values, flip)
				sumIntsPortable(want, values, flip)
				if !slices.Equal(got, want) {
					t.Fatalf("%d values: other hashes than the portable ones", n)
				}
			}
		}
	})
}

// ProbeInts equals hashing followed by Probe.
func TestInts(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		for _, n := range []int{0, 1, 3, 5, span - 1, span, span + 1, 5*span + 3} {
			values := randoms(uint64(n), n)
			hashes := make([]uint64, n)
			f, err := New(Params{g, Hash{ID: XXH3, Seed: 9}, 300})
			if err != nil {
				t.Fatal(err)
			}
			f.params.Hash.Sum64(hashes, values)
			f.Add(hashes[:n/2])
			if a, b := f.ProbeInts(values, nil), f.Probe(hashes, nil); !slices.Equal(a, b) {
				t.Fatalf("%d integers: %d found, of their hashes %d", n, len(a), len(b))
			}
		}
	})
}

func TestView(t *testing.T) {
	each(t, func(t *testing.T, g Geometry) {
		hashes := randoms(8, 3000)
		f := g.newFilter(t, 400, hashes...)
		bits := hugepage.Words(400 * g.words())
		copy(bits, f.words)
		v, err := View(f.params, (&Filter{params: f.params, words: bits}).AppendBlocks(nil, 0, 400))
		if errors.Is(err, fault.ErrUnsupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Probe(hashes, nil)) != len(hashes) || v.FPR() != f.FPR() {
			t.Error("seen in place it is another filter")
		}
		// A change does not affect the bits given to View.
		seen := &v.words[0]
		before := *seen
		v.Add(randoms(9, 3000))
		if *seen != before || seen == &v.words[0] {
			t.Error("a change went through to the bits")
		}
		if len(v.Probe(hashes, nil)) != len(hashes) {
			t.Error("a change lost keys")
		}
		if _, err := View(f.params, make([]byte, 399*g.BlockBytes())); !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("too few bits: %v", err)
		}
		if _, err := View(f.params, make([]byte, 400*g.BlockBytes()+1)[1:]); err == nil {
			t.Error("bits at an odd address")
		}
		if _, err := View(Params{}, nil); err == nil {
			t.Error("no parameters")
		}
	})
}

// Reading methods may run concurrently, and so may OrBlocks for different blocks
// (more conclusive with -race).
func TestConcurrency(t *testing.T) {
	hashes := randoms(1, 4*span)
	f := Split512.newFilter(t, 800, hashes...)
	g := Split512.newFilter(t, 800)
	var wg sync.WaitGroup
	for i := range uint64(4) {
		wg.Go(func() {
			if len(f.Probe(hashes, nil)) != len(hashes) {
				t.Error("keys lost")
			}
			if err := g.OrBlocks(i*200, f.AppendBlocks(nil, i*200, i*200+200)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if !bytes.Equal(bitsOf(f), bitsOf(g)) {
		t.Error("another filter")
	}
}

func FuzzKernels(f *testing.F) {
	f.Add(uint64(1), uint64(1), uint16(5), true)
	f.Add(uint64(2), uint64(1<<16), uint16(span), false)
	f.Fuzz(func(t *testing.T, seed, n uint64, count uint16, wide bool) {
		g := Split256
		if wide {
			g = Split512
		}
		n = n%(1<<16) + 1
		hashes := randoms(seed, int(count))
		a, b := g.newFilter(t, n, hashes...), make([]uint64, n*g.words())
		g.addPortable(b, n, hashes)
		if !slices.Equal(a.words, b) {
			t.Fatal("other bits than the portable kernel's")
		}
		if len(a.Probe(hashes, nil)) != len(hashes) {
			t.Fatal("keys lost")
		}
	})
}
