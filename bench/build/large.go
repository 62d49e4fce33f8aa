package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
	"github.com/bloomjoin/bloomjoin/bloom"
)

// The budget and the number of shards of the large builds.
const (
	budget      = "3GiB"
	budgetBytes = 3 << 30
	shards      = 10
)

// billion builds a large set in one process and in shards, which must result in the
// same file.
func billion(ctx context.Context, b *bench, c cell) (*cells.Result, error) {
	p, err := b.dataset(ctx, c)
	if err != nil {
		return nil, err
	}
	r, err := b.race(ctx, c, p, []contender{
		b.bloomjoin("ours", "**bloomjoin**, `--memory "+budget+"`", p.ids(), "--memory", budget), b.floor(p.ids()),
	})
	if err != nil {
		return nil, err
	}
	main, goals := r.table(), report.Targets()
	atLeast(&goals, "speed", " M keys/s", r.speed("ours"), 40)
	atLeast(&goals, "time / that of the floor", " ×", r.runs.Ratio("ours", "floor"), 0)
	goals.Row("peak memory", report.MiB(r.runs.Peak("ours"))+" MiB", fmt.Sprintf("≤ %d MiB", budgetBytes>>20),
		report.Met(float64(r.runs.Peak("ours")), budgetBytes))
	split, err := b.divided(ctx, p)
	if err != nil {
		return nil, err
	}
	main.Note("In %d shards, one after the other: %.2f s for all, the slowest %.2f s and %s MiB, partial filters of %.1f MB in all; merging them %.2f s and %s MiB.",
		shards, split.all.Wall, split.slowest, report.MiB(split.all.Peak), float64(split.all.Size)/1e6, split.merge.Wall, report.MiB(split.merge.Peak))
	same := split.whole == split.merged
	goals.Row("filter of the shards", fmt.Sprintf("%x…", split.merged[:6]), fmt.Sprintf("that of one process, %x…", split.whole[:6]), report.Yes(same))
	if !same {
		r.wrong = append(r.wrong, errors.New("the shards' filter is another than that of one process"))
	}
	return r.done(main, goals), nil
}

// division has the figures of a build in shards.
type division struct {
	all, merge    race.Usage
	slowest       float64
	whole, merged [sha256.Size]byte // digests of the files
}

// divided builds in one process, then in shards, and merges the shards.
func (b *bench) divided(ctx context.Context, p paths) (d division, err error) {
	dir, err := os.MkdirTemp(b.Out, "bloomjoin-bench-")
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	whole, merged := filepath.Join(dir, "whole.bjf"), filepath.Join(dir, "merged.bjf")
	race.Say("one process")
	if _, err := race.Execute(ctx, b.build(whole, p.ids(), "--memory", budget)); err != nil {
		return d, err
	}
	if d.whole, err = digest(whole); err != nil {
		return d, err
	}
	if err := os.Remove(whole); err != nil {
		return d, err
	}
	var parts []string
	for i := range shards {
		race.Say("shard %d/%d", i, shards)
		part := filepath.Join(dir, fmt.Sprintf("part-%d.bjf", i))
		u, err := race.Execute(ctx, b.build(part, p.ids(), "--memory", budget, "--shard", fmt.Sprintf("%d/%d", i, shards)))
		if err != nil {
			return d, err
		}
		info, err := os.Stat(part)
		if err != nil {
			return d, err
		}
		u.Size, parts = info.Size(), append(parts, part)
		d.all, d.slowest = d.all.Plus(u), max(d.slowest, u.Wall)
	}
	race.Say("merge")
	if d.merge, err = race.Execute(ctx, b.merge(merged, append([]string{"--memory", budget}, parts...)...)); err != nil {
		return d, err
	}
	d.merged, err = digest(merged)
	return d, err
}

// digest returns the hash of a file.
func digest(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// duplicates measures builds from many rows with few keys, and from the distinct keys.
func duplicates(ctx context.Context, b *bench, c cell) (*cells.Result, error) {
	p, err := b.dataset(ctx, c)
	if err != nil {
		return nil, err
	}
	r, err := b.race(ctx, c, p, []contender{
		b.bloomjoin("ours", "**bloomjoin**", p.ids()), b.floor(p.ids()),
	})
	if err != nil {
		return nil, err
	}
	alone, err := b.alone(ctx, p)
	if err != nil {
		return nil, err
	}
	s, err := foldingOf(r.built["ours"].Geometry, r.keys(), b.Scaled(c.set.distinct))
	if err != nil {
		return nil, err
	}
	main, goals := r.table(), report.Targets()
	got := r.built["ours"].MemoryBytes
	main.Note("A filter of the %s distinct keys alone has %s bytes. One for as many keys as there are rows has %d blocks, which fold by their divisors: by %d to %d bytes (%.2f %% false positives, no more than %.2f %% may be); by the next divisor, %d, it would be %.2f %%.",
		report.Count(b.Scaled(c.set.distinct)), fmt.Sprint(alone.MemoryBytes), s.blocks, s.by, s.bytes, 100*s.rate, 100*bloom.FoldLimit(fpr), s.next, 100*s.nextRate)
	goals.Row("bytes of bits", fmt.Sprintf("%d, %.3f × those of the distinct keys alone", got, float64(got)/float64(alone.MemoryBytes)),
		fmt.Sprintf("≤ %d, to which rows fold", s.bytes), report.Yes(got > 0 && got <= s.bytes))
	atLeast(&goals, "speed", " M rows/s", r.speed("ours"), 0)
	atLeast(&goals, "time / that of the floor", " ×", r.runs.Ratio("ours", "floor"), 0)
	return r.done(main, goals), nil
}

// alone measures the build from the distinct keys.
func (b *bench) alone(ctx context.Context, p paths) (made built, err error) {
	dir, err := os.MkdirTemp(b.Out, "bloomjoin-bench-")
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	_, err = answered(ctx, b.build(filepath.Join(dir, "filter.bjf"), p.distinct()), &made)
	return made, err
}

// folding describes how far an oversized filter can be folded.
type folding struct {
	blocks         uint64 // before folding
	by, next       uint64 // the divisor, and the next one, which is too large
	bytes          int64  // after folding
	rate, nextRate float64
}

// foldingOf computes the folding from the documented formula of the size.
func foldingOf(geometry string, capacity, distinct uint64) (f folding, err error) {
	for _, g := range bloom.Geometries() {
		if g.String() != geometry {
			continue
		}
		f.blocks = g.Blocks(capacity, fpr)
		for k := uint64(1); k <= f.blocks; k++ {
			if f.blocks%k != 0 {
				continue
			}
			rate := g.FPR(f.blocks/k, distinct)
			if rate > bloom.FoldLimit(fpr) {
				f.next, f.nextRate = k, rate
				return f, nil
			}
			f.by, f.rate, f.bytes = k, rate, int64(f.blocks/k*g.BlockBytes())
		}
		return f, nil
	}
	return f, fmt.Errorf("geometry %q is not known", geometry)
}
