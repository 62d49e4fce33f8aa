package builds

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// ErrMissing means that keys to remove are not in the filter.
var ErrMissing = cause.New(cause.NotIn, "keys to remove are not in the filter")

// Updated has the figures of an update; a multiset counts copies of keys.
type Updated struct {
	Rows      int64   `json:"-"` // that were read, and of them those without a key
	Null      int64   `json:"-"`
	Removed   uint64  `json:"removed"`
	Missing   uint64  `json:"missing"`            // keys to remove that are certainly not in
	Unnoticed float64 `json:"unnoticed_expected"` // removed keys that were not in
	Added     uint64  `json:"added"`
	Present   uint64  `json:"present"`           // keys to add that seem to be in already, of a set
	Mistaken  float64 `json:"mistaken_expected"` // present keys that only seem to be in
}

// Update removes the keys of one plan from a counting filter, and then adds those of another.
// Either may be nil. After an error f must not be used. Keys that are certainly not in are an
// error that wraps [ErrMissing], unless ignoreMissing is set.
func Update(ctx context.Context, f *filters.Filter, remove, add *Plan, ignoreMissing bool) (Updated, error) {
	stopped.Needs(ctx, "builds.Update")
	c, err := countersOf(f)
	if err != nil {
		return Updated{}, err
	}
	p := f.FPR()
	f.SetBloom(nil) // the bits are made anew
	return update(ctx, f, c, p, ignoreMissing, remove.reader(ctx), add.reader(ctx))
}

// UpdateValues is [Update] of values, which leaves f as it is.
func UpdateValues(ctx context.Context, f *filters.Filter, remove, add keys.Values) (*filters.Filter, error) {
	stopped.Needs(ctx, "filterbuild.Update")
	c, err := countersOf(f)
	if err != nil {
		return nil, err
	}
	g := f.Header()
	of := func(v keys.Values) reader {
		if v.Len() == 0 {
			return reader{}
		}
		return reader{read: func(b *Builder) error {
			w, err := b.Worker()
			if err != nil {
				return err
			}
			return w.Add(v)
		}}
	}
	if _, err := update(ctx, g, c.Clone(), f.FPR(), false, of(remove), of(add)); err != nil {
		return nil, err
	}
	return g, nil
}

// reader reads the keys of a step into a builder's list. The zero reader has none.
type reader struct {
	opts Options
	read func(*Builder) error
}

func (p *Plan) reader(ctx context.Context) reader {
	if p == nil {
		return reader{}
	}
	return reader{p.opts, func(b *Builder) error {
		err := p.each(ctx, b.Workers(), func() (func(*keys.Batch) error, error) {
			w, err := b.Worker()
			if err != nil {
				return nil, err
			}
			return w.AddBatch, nil
		})
		return cmp.Or(err, source.Unchanged(p.pieces))
	}}
}

// Changes returns an error unless the plan's keys can be added to a filter, or removed. A column of
// NULLs only takes the plan's class.
func (p *Plan) Changes(f *filters.Filter, name string) error {
	want := f.KeyClasses()
	for i, got := range p.Spec.Classes {
		if len(p.Spec.Classes) == len(want) && keys.Class(want[i]) == keys.Null {
			f.Facts().Key[i].Class, want[i] = got, got
		}
		if len(p.Spec.Classes) != len(want) || got != want[i] && keys.Class(got) != keys.Null {
			return faults.Of(cause.KeyTypes, faults.Mismatch(fault.At{File: p.files[0].Name()}, "key class", strings.Join(want, ",")+" as in "+name, strings.Join(p.Spec.Classes, ","))).
				WithHint("read text as the filter's type with {Types}, or cast the key with COL::TYPE")
		}
	}
	return nil
}

// countersOf returns the counters of a filter that can be updated.
func countersOf(f *filters.Filter) (*counting.Filter, error) {
	if err := f.Usable(fault.At{}); err != nil {
		return nil, err
	}
	c := f.Counters()
	if c == nil {
		return nil, faults.Mismatch(fault.At{}, "filter to update", "a counting filter with its counters, see codec.Limits", f.Kind())
	}
	return c, nil
}

// update changes the counters, whose bits have the rate p, and gives them to f.
func update(ctx context.Context, f *filters.Filter, c *counting.Filter, p float64, ignoreMissing bool, remove, add reader) (u Updated, err error) {
	facts := f.Facts()
	multiset := facts.Counting.Multiset
	facts.BuildID, facts.Parents = [32]byte{}, nil // equal counters are equal files
	change := c.Change(counting.Remove)
	short, err := u.step(ctx, f, change, remove)
	if err != nil {
		return u, err
	}
	u.Removed, u.Missing, u.Unnoticed = change.Done, change.Left, mistaken(change.Left, p, change.Done)
	if u.Missing > 0 && !ignoreMissing {
		return u, faults.Errorf("%w: %d of %d", ErrMissing, u.Missing, u.Missing+u.Removed)
	}
	if short || u.Removed > facts.Keys {
		return u, faults.Errorf("%w: counters would fall below 0, so some only seem to be in, or are removed more often than added (remove only keys that were added)", ErrMissing)
	}
	if u.Removed > 0 {
		if err := f.SetCounters(c, multiset); err != nil {
			return u, err
		}
		p = f.FPR()
		f.SetBloom(nil)
	}
	way := counting.AddToSet
	if multiset {
		way = counting.AddAll
	}
	change = c.Change(way)
	if _, err = u.step(ctx, f, change, add); err != nil {
		return u, err
	}
	u.Added, u.Present, u.Mistaken = change.Done, change.Left, mistaken(change.Done, p, change.Left)
	facts.Keys += u.Added - u.Removed
	return u, f.SetCounters(c, multiset)
}

// mistaken returns the expected number of false positives among most keys that pass a filter
// of rate p, if n other keys do not pass. All numbers are equally likely beforehand, so n = 0
// does not prove that there are none.
func mistaken(n uint64, p float64, most uint64) float64 {
	return min(float64(n+1)*p/(1-p), float64(most))
}

// step changes the counters of a filter by the keys of a reader. short reports that one would
// fall below 0.
func (u *Updated) step(ctx context.Context, f *filters.Filter, change *counting.Change, r reader) (short bool, err error) {
	if r.read == nil {
		return false, nil
	}
	p := &Plan{opts: r.opts, unsized: true}
	p.opts.Kind, p.opts.Mem = codec.KindCounting, memory.DefaultAllocator
	if p.Spec, err = specOf(f); err != nil {
		return false, err
	}
	p.Spec.Want = filters.KindCounting
	b := p.builder()
	defer faults.Join(&err, b.Close)
	if err := r.read(b); err != nil {
		return false, err
	}
	for _, w := range b.workers {
		u.Rows, u.Null = u.Rows+w.rows, u.Null+w.null
	}
	if _, _, err := b.sortList(ctx); err != nil {
		return false, err
	}
	err = b.list.Each(ctx, func(run counting.Run) error {
		err := change.Add(run)
		if errors.Is(err, counting.ErrShort) { // go on, to count what is missing
			short, err = true, nil
		}
		return err
	})
	return short, err
}
