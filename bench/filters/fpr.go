package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
	"github.com/bloomjoin/bloomjoin/bloom"
)

// rate is a configuration to measure: geometry, number of keys, and rate asked for.
type rate struct {
	geometry bloom.Geometry
	keys     uint64
	p        float64
}

func (r rate) blocks() uint64 { return r.geometry.BlocksFor(r.keys, r.p) }

// formula returns the theoretical rate for the number of blocks.
func (r rate) formula() float64 { return r.geometry.FPR(r.blocks(), r.keys) }

func (r rate) bitsPerKey() float64 {
	return float64(r.blocks()*r.geometry.BlockBytes()*8) / float64(r.keys)
}

// setSpace is the number of integers per seed: sets are consecutive integers from
// seed·2^40, and probes are above 2^62.
const (
	setSpace   = 1 << 40
	probeSpace = 1 << 62
)

// fill returns a filter with the set of the seed.
func (r rate) fill(seed uint64) (*bloom.Filter, error) {
	f, err := bloom.New(bloom.Params{Geometry: r.geometry, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: r.blocks()})
	if err != nil {
		return nil, err
	}
	keyset.Sequence(seed*setSpace, seed*setSpace+r.keys, keyset.Into(f))
	return f, nil
}

// falsePositives probes count non-members and returns the hits.
func falsePositives(f *bloom.Filter, count uint64) (found uint64) {
	sel := make([]uint32, 0, keyset.Batch)
	keyset.Sequence(probeSpace, probeSpace+count, func(keys []uint64) {
		sel = f.ProbeInts(keys, sel[:0])
		found += uint64(len(sel))
	})
	return found
}

// rates returns the configurations, by geometry, keys and rate.
func rates(cfg config) (all []rate) {
	for _, g := range bloom.Geometries() {
		for _, n := range cfg.keys(1e3, 1e4, 1e5, 1e6, 1e7, 1e8) {
			for e := range 7 {
				// "1e-1" to "1e-7" as a decimal is read, not as a product of 0.1
				p, _ := strconv.ParseFloat(fmt.Sprintf("1e-%d", e+1), 64)
				all = append(all, rate{g, n, p})
			}
		}
	}
	return all
}

// probesFor returns the number of probes at rate p: enough for a hundred expected
// false positives, and at least 10^7.
func probesFor(cfg config, p float64) uint64 {
	want := max(uint64(math.Ceil(100/p)), 1e7)
	return min(want, pick(cfg, uint64(1e9), 1e7))
}

// forEach calls fn for every configuration on all processors, the largest first,
// since no time is measured. Results are in the order of the configurations.
func forEach[R any](all []rate, fn func(rate) (R, error)) ([]R, error) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		cost := func(r rate) float64 { return float64(r.keys) + 10/r.p }
		return int(math.Copysign(1, cost(all[b])-cost(all[a])))
	})
	results := make([]R, len(all))
	var group errgroup.Group
	group.SetLimit(processors())
	for _, i := range order {
		group.Go(func() (err error) {
			results[i], err = fn(all[i])
			return err
		})
	}
	return results, group.Wait()
}

// fprTable compares the rates from the formula, from the filter's bits, and from
// probing, with one filter per configuration.
func fprTable(cfg config) ([]table, error) {
	type result struct {
		bits          float64
		probes, found uint64
	}
	all := rates(cfg)
	results, err := forEach(all, func(r rate) (result, error) {
		f, err := r.fill(0)
		if err != nil {
			return result{}, err
		}
		probes := probesFor(cfg, r.p)
		return result{f.FPR(), probes, falsePositives(f, probes)}, nil
	})
	if err != nil {
		return nil, err
	}
	t := table{name: "fpr", head: []string{"geometry", "keys", "asked", "bits/key", "formula", "by the bits", "measured", "probes", "false positives", "within the bound"}}
	outside := 0
	for i, r := range all {
		got := results[i]
		within := measure.Plausible(got.found, got.probes, got.bits)
		if !within {
			outside++
		}
		t.row(r.geometry.String(), report.Count(r.keys), fmt.Sprintf("%.0e", r.p), fmt.Sprintf("%.2f", r.bitsPerKey()),
			fmt.Sprintf("%.4g", r.formula()), fmt.Sprintf("%.4g", got.bits),
			fmt.Sprintf("%.4g", float64(got.found)/float64(got.probes)), fmt.Sprintf("%.0e", float64(got.probes)),
			fmt.Sprint(got.found), report.Yes(within))
	}
	t.note("%d of %d filters are outside their bound; %.1g are expected to be by chance.", outside, len(all), float64(len(all))*(1-measure.Confidence))
	return []table{t}, nil
}

// seedsFor returns the number of sets for the mean.
func seedsFor(cfg config, n uint64) int {
	switch {
	case n >= 1e8:
		return pick(cfg, 8, 2)
	case n >= 1e6:
		return pick(cfg, 100, 4)
	}
	return pick(cfg, 400, 20)
}

// formulaTable compares the formula with the mean rate from the bits of many sets,
// which has far less noise than probing.
func formulaTable(cfg config) ([]table, error) {
	type result struct{ mean, se float64 }
	all := rates(cfg)
	results, err := forEach(all, func(r rate) (result, error) {
		var s measure.Samples
		for seed := range seedsFor(cfg, r.keys) {
			f, err := r.fill(uint64(seed) + 1)
			if err != nil {
				return result{}, err
			}
			s = append(s, f.FPR())
		}
		mean, se := s.Mean()
		return result{mean, se}, nil
	})
	if err != nil {
		return nil, err
	}
	t := table{name: "formula", head: []string{"geometry", "keys", "asked", "formula", "mean by the bits", "standard error", "seeds", "difference", "in standard errors"}}
	var worst float64
	for i, r := range all {
		want, got := r.formula(), results[i]
		z := (got.mean - want) / got.se
		worst = max(worst, math.Abs(z))
		t.row(r.geometry.String(), report.Count(r.keys), fmt.Sprintf("%.0e", r.p), fmt.Sprintf("%.5g", want), fmt.Sprintf("%.5g", got.mean),
			fmt.Sprintf("%.1g", got.se), fmt.Sprint(seedsFor(cfg, r.keys)), fmt.Sprintf("%+.3f %%", (got.mean/want-1)*100), fmt.Sprintf("%+.1f", z))
	}
	t.note("The greatest difference of the %d is %.1f standard errors.", len(all), worst)
	return []table{t}, nil
}
