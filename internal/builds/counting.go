package builds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/show"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// A counting filter is made from a sorted list of hashes, so that a set counts each once. Its
// file has no history, so that equal counters are equal files; only a build sets a build ID.

// bytes returns the memory that a filter of these parameters takes while it is filled.
func (s Spec) bytes(p bloom.Params) uint64 {
	if s.Want == filters.KindCounting {
		return filters.CountingBytes(p)
	}
	return p.Bytes()
}

// sizeWithin is size. It returns an error if the filter takes more than most bytes (0: no
// limit), or is a counting one and too large for a file.
func (s Spec) sizeWithin(most uint64) (p bloom.Params, fpr float64, err error) {
	if p, fpr, err = s.size(); err == nil && s.Want == filters.KindCounting {
		err = counting.Check(p)
	}
	if need := s.bytes(p); err == nil && most > 0 && need > most {
		err = overBudget(most, need)
	}
	return p, fpr, err
}

// newList returns the list of a counting filter's hashes.
func (b *Builder) newList() *counting.List {
	b.spill = spill.New(b.plan.opts.TempDir, "hashes of keys, which are sorted on disk (raise {Memory}, or name a directory with room by {TempDir})")
	return counting.NewList(b.spec.Multiset, b.spill, b.memory.most/backlogPart)
}

// sized reports whether the size of a counting filter is known before its keys are read.
func (b *Builder) sized() bool {
	return !b.plan.unsized && (b.spec.Multiset || b.plan.opts.Expect > 0)
}

// checkCounters returns an error if counters whose size is known are too large.
func (b *Builder) checkCounters() (err error) {
	if b.list != nil && b.sized() {
		_, _, err = b.spec.sizeWithin(b.memory.most)
	}
	return err
}

// count makes a counting filter of the list. Without Expect, a set is sized for the number
// of keys in the list.
func (b *Builder) count(ctx context.Context, rep *Report) (*filters.Filter, error) {
	added, distinct, err := b.sortList(ctx)
	if err != nil {
		return nil, err
	}
	way, n, spec := counting.AddToSet, distinct, &b.spec
	if spec.Multiset {
		way, n = counting.AddAll, added
	}
	if !b.sized() {
		spec.Capacity = max(n, 1)
	}
	params, fpr, err := spec.sizeWithin(b.memory.most)
	if err != nil {
		return nil, err
	}
	if most := b.memory.most; most > 0 && spec.bytes(params) > most-min(most, b.list.Held()) {
		if err := b.list.Unload(); err != nil {
			return nil, err
		}
	}
	c, err := counting.New(params)
	if err != nil {
		return nil, err
	}
	change := c.Change(way)
	if err := b.list.Each(ctx, change.Add); err != nil {
		return nil, err
	}
	f := (&partial{spec: *spec, params: params, fpr: fpr, keys: change.Done}).header(b.plan.BuildID)
	f.Facts().Partial = b.plan.partial()
	if err := f.SetCounters(c, spec.Multiset); err != nil {
		return nil, err
	}
	counted := Count(f)
	rep.Distinct, rep.Estimated = counted.Distinct, counted.Estimated
	rep.Sharing, rep.Workers, rep.Passes, rep.Spilled = b.sharing, len(b.workers), 1, b.spill.Written()
	return f, nil
}

// sortList sorts the list of all workers' hashes.
func (b *Builder) sortList(ctx context.Context) (added, distinct uint64, err error) {
	for _, w := range b.workers {
		if err := w.counted.Flush(); err != nil {
			return 0, 0, err
		}
	}
	return b.list.Sort(ctx, b.threads)
}

// Plain returns the Bloom filter that a build of the counting filter's keys with the same
// capacity and rate would make, without registers and key range.
func Plain(f *filters.Filter) (*filters.Filter, error) {
	err := f.Usable(fault.At{})
	if err != nil {
		return nil, err
	}
	bits, g := f.Bloom(), f.Header()
	if f.Kind() != filters.KindCounting || bits == nil {
		return nil, faults.Mismatch(fault.At{}, "filter to make a plain one of", "a counting filter", f.Kind()).
			WithHint("name one that was built with {Kind counting}")
	}
	facts := g.Facts()
	facts.Want, facts.Counting, facts.BuildID = filters.KindBloom, nil, [32]byte{}
	if facts.Capacity == (filters.Capacity{}) {
		bits, err = bits.Shrink(facts.FPRAsked, bits.Params().Bytes())
	}
	g.SetBloom(bits)
	return g, err
}

// mergeCounts adds up the partial counting filters of a build.
func mergeCounts(ctx context.Context, parts []part, lim filters.Limits) (*filters.Filter, error) {
	c, err := combineCounts(ctx, parts, false, lim)
	if err != nil {
		return nil, err
	}
	f := parts[0].about.Header()
	f.Facts().Partial, f.Facts().Keys = nil, 0
	for i := range parts {
		f.Facts().Keys += parts[i].facts().Keys
	}
	return f, f.SetCounters(c, true)
}

// combineCounts adds the counters of all parts to those of the first, or subtracts them.
func combineCounts(ctx context.Context, parts []part, subtract bool, lim filters.Limits) (*counting.Filter, error) {
	params := parts[0].facts().Params
	if need, most := filters.CountingBytes(params), cmp.Or(lim.MaxBits, limitOf(lim)); need > most {
		return nil, faults.Errorf("%w of %s: the counters take %s (raise {Memory})", fault.ErrMemory, show.Size(int64(most)), show.Size(int64(need)))
	}
	c, err := counting.New(params)
	if err != nil {
		return nil, err
	}
	for i := range parts {
		if err := stopped.Err(ctx); err != nil {
			return nil, err
		}
		err := parts[i].countInto(ctx, c, subtract && i > 0)
		if errors.Is(err, counting.ErrShort) {
			err = faults.Of(cause.NotIn, faults.Mismatch(fault.At{File: parts[i].name}, "counters to subtract", "none above those of "+parts[0].name, "some: it has keys that are not in")).
				WithHint("name only filters whose keys were added, each as often")
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (p *part) countInto(ctx context.Context, c *counting.Filter, subtract bool) error {
	if p.filter != nil {
		if p.filter.Counters() == nil {
			return fmt.Errorf("%s: %w: it was loaded without its counters (see codec.Limits)", p.name, filters.ErrInvalid)
		}
		return c.Combine(0, p.filter.Counters().Counters(), subtract)
	}
	h, err := p.header()
	if err != nil {
		return err
	}
	return errors.Join(filters.CountInto(ctx, c, h, subtract), p.rest())
}

func counts(p part) bool { return p.about.Kind() == filters.KindCounting }

// combineCounting is combineParts for counting filters.
func combineCounting(ctx context.Context, op SetOp, parts []part, lim filters.Limits) (*filters.Filter, error) {
	if op == Intersect || op == Difference {
		i := slices.IndexFunc(parts, counts)
		return nil, faults.Unsupported(fault.At{File: parts[i].name}, "the %s of a counting filter", op.noun()).
			WithHint("make it plain with {Plain}; {Subtract} removes keys that were added")
	}
	first := parts[0].facts()
	var errs []error
	for i := range parts {
		if err := countsAlike(&parts[0], &parts[i], op); err != nil {
			errs = append(errs, err)
		}
	}
	if err := several(errs); err != nil {
		return nil, err
	}
	f := filters.New(filters.Facts{
		NormalForm: first.NormalForm, Rule: first.Rule, Key: keyOf(first), Capacity: first.Capacity, FPRAsked: first.FPRAsked, Keys: first.Keys,
	})
	facts := f.Facts()
	for i := range parts[1:] {
		p := parts[i+1].facts()
		switch {
		case op == Union:
			facts.Keys, facts.FPRAsked = facts.Keys+p.Keys, max(facts.FPRAsked, p.FPRAsked)
		case p.Keys > facts.Keys:
			return nil, faults.Of(cause.NotIn, faults.Mismatch(fault.At{File: parts[i+1].name}, "keys to subtract", fmt.Sprintf("at most the %d that are in", facts.Keys), p.Keys)).
				WithHint("name only filters whose keys were added, each as often")
		default:
			facts.Keys -= p.Keys
		}
	}
	c, err := combineCounts(ctx, parts, op == Subtract, lim)
	if err != nil {
		return nil, err
	}
	return f, f.SetCounters(c, first.Counting.Multiset)
}

// countsAlike returns an error unless the counters of p can be combined with those of first.
func countsAlike(first, p *part, op SetOp) error {
	at := fault.At{File: p.name}
	a, b := first.facts(), p.facts()
	if !counts(*p) {
		return faults.Of(cause.Unlike, faults.Mismatch(at, "filter to combine with a counting one", "kind counting", p.about.Kind())).
			WithHint("make the counting one plain with {Plain}, or build this one with {Kind counting}")
	}
	if !counts(*first) {
		return nil // reported of the first
	}
	switch {
	case op == Union && !b.Counting.Multiset && p != first:
		return faults.Of(cause.Unlike, faults.Mismatch(at, "counting filter to unite", "a multiset", "a set: a key in both would be counted twice")).
			WithHint("build one filter from all ID sets, or build each with {Multiset}")
	case a.Counting.Multiset != b.Counting.Multiset:
		return faults.Of(cause.Unlike, faults.Mismatch(at, "counting filter", a.Counting.Mode()+" as in "+first.name, b.Counting.Mode())).WithHint("build both with {Multiset}, or none")
	case a.Params != b.Params || op == Union && a.Capacity != b.Capacity:
		return faults.Of(cause.Unlike, faults.Mismatch(at, "size of the filter", fmt.Sprintf("%s as in %s", sizeOf(a), first.name), sizeOf(b))).
			WithHint("build both with the same {Expect} or {Expect+Room} and the same {FPR}")
	}
	return nil
}

func sizeOf(f *filters.Facts) string {
	if f.Capacity.Keys > 0 {
		return fmt.Sprintf("%d blocks for %d keys", f.Params.Blocks, f.Capacity.Keys)
	}
	return fmt.Sprintf("%d blocks", f.Params.Blocks)
}
