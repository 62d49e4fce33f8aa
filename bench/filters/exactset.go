package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/exact"
)

// exactSet is a random subset, measured as an exact set, as a Bloom filter with 1 %
// false positives, and as a bitmap of the most common Go library for bitmaps.
type exactSet struct {
	n, ratio         uint64
	shuffled, sorted []uint64
	probes           []uint64
	in               uint64 // number of members among the probes

	set *exact.Set
	bf  *bloom.Filter
	rb  *roaring64.Bitmap

	addSorted, addShuffled, addRoaring, addBloom measure.Samples // ns per key
	probe, probeRoaring, probeBloom              measure.Samples
}

// exactProbes is the number of keys that are probed in a timed run.
const exactProbes = 4 << 20

// newExactSet draws a set of n integers below n·ratio, and keys to probe. Half of
// the probes are members, in random order.
func newExactSet(n, ratio uint64) (*exactSet, error) {
	e := &exactSet{n: n, ratio: ratio}
	e.shuffled, e.sorted = keyset.Subset(1, n, n*ratio)
	e.probes = make([]uint64, exactProbes)
	members := make([]uint64, n*ratio/64+1)
	for _, v := range e.sorted {
		members[v/64] |= 1 << (v % 64)
	}
	for j := range e.probes {
		r := keyset.Mix(uint64(j))
		if r&1 == 1 {
			e.probes[j] = e.shuffled[(r>>1)%n]
			e.in++
			continue
		}
		v := (r >> 1) % (n * ratio)
		for members[v/64]>>(v%64)&1 == 1 {
			r = keyset.Mix(r)
			v = (r >> 1) % (n * ratio)
		}
		e.probes[j] = v
	}
	return e, nil
}

func (e *exactSet) makeExact(values []uint64) {
	e.set = exact.New()
	keyset.Batches(values, func(part []uint64) { e.set.Add(part, false) })
}

func (e *exactSet) makeRoaring() {
	e.rb = roaring64.New()
	keyset.Batches(e.shuffled, e.rb.AddMany)
}

func (e *exactSet) makeBloom() (err error) {
	g := bloom.Split256
	e.bf, err = bloom.New(bloom.Params{Geometry: g, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: g.BlocksFor(e.n, 0.01)})
	if err == nil {
		keyset.Batches(e.shuffled, keyset.Into(e.bf))
	}
	return err
}

// probeAll probes all keys and returns how many were found.
func (e *exactSet) probeAll(probe func(part []uint64, sel []uint32) []uint32) (found uint64) {
	sel := make([]uint32, 0, keyset.Batch+1)
	keyset.Batches(e.probes, func(part []uint64) {
		sel = probe(part, sel[:0])
		found += uint64(len(sel))
	})
	return found
}

func (e *exactSet) probeExact(part []uint64, sel []uint32) []uint32 {
	return e.set.Probe(part, false, sel)
}

func (e *exactSet) probeRoaringBitmap(part []uint64, sel []uint32) []uint32 {
	sel = sel[:len(part)+1]
	found := 0
	for i, v := range part {
		sel[found] = uint32(i)
		found += measure.Bit(e.rb.Contains(v))
	}
	return sel[:found]
}

// round measures all operations once.
func (e *exactSet) round() error {
	perKey := func(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / float64(n) }
	e.addSorted = append(e.addSorted, perKey(measure.Timed(func() { e.makeExact(e.sorted) }), len(e.sorted)))
	e.addShuffled = append(e.addShuffled, perKey(measure.Timed(func() { e.makeExact(e.shuffled) }), len(e.shuffled)))
	e.addRoaring = append(e.addRoaring, perKey(measure.Timed(e.makeRoaring), len(e.shuffled)))
	var err error
	e.addBloom = append(e.addBloom, perKey(measure.Timed(func() { err = e.makeBloom() }), len(e.shuffled)))
	if err != nil {
		return err
	}
	for _, p := range []struct {
		into  *measure.Samples
		probe func([]uint64, []uint32) []uint32
		exact bool
	}{
		{&e.probe, e.probeExact, true},
		{&e.probeRoaring, e.probeRoaringBitmap, true},
		{&e.probeBloom, e.bf.ProbeInts, false},
	} {
		e.probeAll(p.probe) // warms caches, and includes what a set builds at its first probe
		var found uint64
		took := measure.Timed(func() { found = e.probeAll(p.probe) })
		if found < e.in || p.exact && found != e.in {
			return fmt.Errorf("%d keys found, of %d", found, e.in)
		}
		*p.into = append(*p.into, perKey(took, len(e.probes)))
	}
	return nil
}

// entropy returns the information-theoretic minimum in bits per key for a subset of
// n of u integers.
func entropy(n, u float64) float64 { return measure.LogChoose(u, n) / math.Ln2 / n }

// wire returns the bits per key of the encoded set and of its file.
func (e *exactSet) wire() (raw, file float64, err error) {
	_, negative, natural, err := e.set.Marshal()
	if err != nil {
		return 0, 0, err
	}
	f := &codec.Filter{
		Key:        []codec.KeyColumn{{Name: "id", Class: "integer"}},
		NormalForm: "1",
		Params:     bloom.Params{Geometry: bloom.Split256, Hash: bloom.Hash{ID: bloom.XXH3}},
		Keys:       e.n,
		FPRAsked:   0.01,
	}
	f.SetExact(e.set)
	size, err := codec.Encode(io.Discard, f, codec.Options{})
	perKey := 8 / float64(e.n)
	return float64(len(negative)+len(natural)) * perKey, float64(size) * perKey, err
}

// exactTable measures exact sets of several densities.
func exactTable(cfg config) ([]table, error) {
	t := table{name: "exact", head: []string{"universe / keys", "keys", "entropy, bits/key", "marshalled", "file", "Bloom filter at 1 %", "memory",
		"add ascending", "add shuffled", "roaring64", "Bloom", "probe", "roaring64", "Bloom"}}
	rounds := pick(cfg, 5, 3)
	for _, n := range cfg.keys(1e6, 1e7) {
		for _, ratio := range []uint64{4, 16, 64} {
			e, err := newExactSet(n, ratio)
			if err != nil {
				return nil, err
			}
			for range rounds {
				if err := e.round(); err != nil {
					return nil, err
				}
			}
			raw, file, err := e.wire()
			if err != nil {
				return nil, err
			}
			cells := []string{fmt.Sprint(ratio), report.Count(n), fmt.Sprintf("%.2f", entropy(float64(n), float64(n*ratio))),
				fmt.Sprintf("%.2f", raw), fmt.Sprintf("%.2f", file),
				fmt.Sprintf("%.2f", float64(e.bf.Params().Bytes()*8)/float64(n)), fmt.Sprintf("%.2f", float64(e.set.Bytes()*8)/float64(n))}
			for _, s := range []measure.Samples{e.addSorted, e.addShuffled, e.addRoaring, e.addBloom, e.probe, e.probeRoaring, e.probeBloom} {
				cells = append(cells, fmt.Sprintf("%.1f", s.Median()))
			}
			t.row(cells...)
		}
	}
	v, err := report.Version("github.com/RoaringBitmap/roaring/v2")
	if err != nil {
		return nil, err
	}
	t.note("Sizes in bits per key, times in ns per key (medians of %d rounds). The memory is that of a set that has been probed. roaring64 is %s; it and the Bloom filter get the keys shuffled.", rounds, v)
	return []table{t}, nil
}
