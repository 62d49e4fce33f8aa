package sketches

import (
	"context"
	"errors"
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/storage"
)

// noun names sketches in errors.
var noun = builds.Noun{One: "sketch", Many: "sketches", By: "{Union}"}

// Merge adds up sketches, which do not change: partial ones of one build, in any order, to the
// finished one or, with open, to a larger partial one, as builds.Merge does with filters; or, with
// union, finished ones that count alike. names are for errors.
func Merge(names []string, of []*Sketch, open, union bool) (*Sketch, error) {
	about := make([]*Header, len(of))
	for i, s := range of {
		about[i] = &Header{Header: &filters.Header{Filter: filters.New(s.facts)}, said: s.said(), name: names[i]}
	}
	sum, err := sumFor(names, about, open, union)
	if err != nil {
		return nil, err
	}
	for i, s := range of {
		if err := sum.merge(s); err != nil {
			return nil, fmt.Errorf("%s: %w", names[i], err)
		}
	}
	return sum, nil
}

// MergeFiles is [Merge] for files. Memory holds two sketches, of at most budget bytes together;
// 0: no limit.
func MergeFiles(ctx context.Context, store storage.Source, names []string, open, union bool, budget int64) (*Sketch, error) {
	var about []*Header
	var failed []error
	for _, name := range names {
		failed = append(failed, Open(ctx, store, name, func(h *Header) error {
			h.name = name
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
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		err := Open(ctx, store, name, func(h *Header) error {
			if h.Digest() != about[i].Digest() {
				return faults.Mismatch(fault.At{File: name}, "file", "as it was when it was opened", "another")
			}
			s, err := h.Load(ctx, budget)
			if err != nil {
				return err
			}
			if err := sum.merge(s); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// sumFor returns an empty sketch to which the others can be added.
func sumFor(names []string, about []*Header, open, union bool) (*Sketch, error) {
	if len(names) == 0 {
		return nil, errors.New("no sketch to merge: want one or more")
	}
	of := make([]*filters.Filter, len(about))
	for i, h := range about {
		of[i] = h.Filter
	}
	facts := *of[0].Facts()
	if union {
		facts.BuildID = [32]byte{}
		if err := alike(names, about); err != nil {
			return nil, err
		}
		return newSketch(about[0].Spec, facts), sameUnit(names, about)
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

// sameUnit returns an error if sketches with and without weights or ranges are among them.
func sameUnit(names []string, about []*Header) error {
	with := func(has bool, what string) string {
		if has {
			return "with " + what
		}
		return "without " + what
	}
	for i, h := range about {
		for _, c := range []struct {
			what, option string
			want, got    bool
		}{
			{"weights", "{Weight}", about[0].Spec.Weight != "", h.Spec.Weight != ""},
			{"ranges", "{Range}", about[0].Spec.Ranges, h.Spec.Ranges},
		} {
			if c.want != c.got {
				return faults.Mismatch(fault.At{File: names[i]}, "sketch", with(c.want, c.what)+" as "+names[0], with(c.got, c.what)).
					WithHint("build one of them again, both with or both without %s", fault.Text(c.option))
			}
		}
	}
	return nil
}

// Alike returns an error unless sketches are finished, and count keys made by the same rules in
// tables of the same size.
func Alike(names []string, of []*Sketch) error {
	about := make([]*Header, len(of))
	for i, s := range of {
		about[i] = &Header{Header: &filters.Header{Filter: filters.New(s.facts)}, said: s.said()}
	}
	return alike(names, about)
}

func alike(names []string, about []*Header) error {
	of := make([]*filters.Filter, len(about))
	for i, h := range about {
		of[i] = h.Filter
	}
	if err := builds.SameKeys(noun, names, of); err != nil {
		return err
	}
	for i, h := range about {
		if want, got := about[0].Spec, h.Spec; want.Params != got.Params {
			return faults.Mismatch(fault.At{File: names[i]}, "size of the sketch", fmt.Sprintf("%d rows of %d counters as in %s", want.Params.Depth, want.Params.Width, names[0]),
				fmt.Sprintf("%d of %d", got.Params.Depth, got.Params.Width)).WithHint("build one of them again, with the other's {Epsilon} and {Delta}")
		}
	}
	return nil
}
