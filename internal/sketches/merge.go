package sketches

import (
	"context"
	"errors"
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/storage"
)

// noun names sketches in errors.
var noun = builds.Noun{One: "sketch", Many: "sketches", By: "{Union}", Typed: "its key cast, as COL::TYPE"}

// Merge adds up sketches, which do not change. It merges partial ones of one build, in any order,
// into the finished one or, with open, into a larger partial one, like builds.Merge. With union it
// adds up finished ones that count alike. names are for errors.
func Merge(names []string, of []*Sketch, open, union bool) (*Sketch, error) {
	sum, err := sumFor(names, headersOf(names, of), open, union)
	for i := 0; i < len(of) && err == nil; i++ {
		err = sum.merge(of[i])
	}
	return sum, err
}

// headersOf returns what the files of sketches would say.
func headersOf(names []string, of []*Sketch) (about []*Header) {
	for i, s := range of {
		about = append(about, &Header{Header: &filters.Header{Filter: filters.New(s.facts)}, said: s.said(), name: names[i]})
	}
	return about
}

// MergeFiles is [Merge] for files. Memory holds two sketches, of at most budget bytes together;
// 0: no limit.
func MergeFiles(ctx context.Context, store storage.Source, names []string, open, union bool, budget int64) (*Sketch, error) {
	var about []*Header
	var failed []error
	for _, name := range names {
		failed = append(failed, Open(ctx, store, name, func(h *Header) error {
			about = append(about, h)
			return nil
		}))
	}
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	if err := memoryNeeded(fault.At{File: names[0]}, about[0].Spec, 2, budget); err != nil {
		return nil, err
	}
	sum, err := sumFor(names, about, open, union)
	for i := 0; i < len(names) && err == nil; i++ {
		err = Open(ctx, store, names[i], func(h *Header) error {
			if h.Digest() != about[i].Digest() {
				return fmt.Errorf("%s: %w", names[i], storage.ErrChanged)
			}
			s, err := h.Load(ctx, budget)
			if err != nil {
				return err
			}
			return sum.merge(s)
		})
	}
	return sum, err
}

// sumFor returns an empty sketch to which the others can be added.
func sumFor(names []string, about []*Header, open, union bool) (*Sketch, error) {
	if len(names) == 0 {
		return nil, errors.New("no sketch to merge: want one or more")
	}
	of := filtersOf(about)
	facts := *of[0].Facts()
	if union {
		if len(names) > 1 { // else it is a copy
			facts.BuildID = [32]byte{}
		}
		if err := alike(names, about, true); err != nil {
			return nil, err
		}
		return newSketch(about[0].Spec, facts), nil
	}
	held, err := builds.Agree(noun, names, of, open)
	if err != nil {
		return nil, err
	}
	for i, h := range about {
		if h.Spec != about[0].Spec { // although the build is the same
			return nil, faults.Corrupt(fault.At{File: names[i]}, "it counts otherwise than the other sketches of its build").WithHint("build it again")
		}
	}
	if facts.Partial = nil; open {
		p := *of[0].Facts().Partial
		p.Held, facts.Partial = held, &p
	}
	return newSketch(about[0].Spec, facts), nil
}

// filtersOf returns what is common to sketches and filters.
func filtersOf(about []*Header) []*filters.Filter {
	return each.Slice(about, func(h *Header) *filters.Filter { return h.Filter })
}

// alike returns an error unless sketches are finished, and count keys made by the same rules in
// tables of the same size. With union, all or none must have weights, and all or none ranges.
func alike(names []string, about []*Header, union bool) error {
	if err := builds.SameKeys(noun, names, filtersOf(about)); err != nil {
		return err
	}
	for i, h := range about {
		if want, got := about[0].Spec.form(union), h.Spec.form(union); want != got {
			options := fault.Text("{Weight} and {Range}")
			if h.Spec.Params != about[0].Spec.Params {
				options = "{Epsilon} and {Delta}"
			}
			return faults.Of(cause.Unlike, faults.Mismatch(fault.At{File: names[i]}, "counters", want+", as in "+names[0], got)).
				WithHint("build one of them again, with the %s of the other", options)
		}
	}
	return nil
}

// form describes the counters and, with all, what they count.
func (s Spec) form(all bool) string {
	form := fmt.Sprintf("%d rows of %d", s.Params.Depth, s.Params.Width)
	if all && s.Weight != "" {
		form += " of weights"
	}
	if all && s.Ranges {
		form += ", and ranges"
	}
	return form
}
