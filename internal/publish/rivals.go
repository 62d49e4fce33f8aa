package publish

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// rival is a run that has begun and is not committed.
type rival struct {
	key   string
	parts []*Part
	reads []string // inputs, as far as it says
	goes  []string // inputs that are gone, whose outputs it removes
}

// rivals returns the runs that have begun and are not committed.
func (l *listing) rivals(ctx context.Context) (rivals []*rival, err error) {
	at := map[string]*rival{}
	of := func(key string) *rival {
		if at[key] == nil {
			at[key] = &rival{key: key}
			rivals = append(rivals, at[key])
		}
		return at[key]
	}
	for _, p := range l.parts {
		part, err := l.load(ctx, p)
		if err != nil {
			return nil, err
		}
		if part == nil {
			continue
		}
		v := of(p.key())
		v.parts = append(v.parts, part)
		v.goes = append(v.goes, part.Task.Remove...)
		for _, e := range part.Inputs {
			v.reads = append(v.reads, e.Input)
		}
		for _, f := range part.Files {
			v.reads = append(v.reads, f.Inputs...)
		}
	}
	for _, name := range l.plans {
		p := plan{}
		_, err := l.dir.readJSON(ctx, l.dir.manifest(name), &p, func() int { return p.Version })
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		task := p.Task.named(UnescapeName)
		names, err := unpackNames(p.Names)
		if err != nil {
			return nil, faults.Corrupt(fault.At{File: l.dir.manifest(name)}, "the names of its inputs: %v", err).WithHint(hint)
		}
		v := of(keyOfPlan(name))
		v.reads = slices.Concat(v.reads, names, task.Only)
		v.goes = append(v.goes, task.Remove...)
	}
	slices.SortFunc(rivals, func(a, b *rival) int { return strings.Compare(a.key, b.key) })
	return rivals, nil
}

// within reports whether the functions return true for all that a run does.
func (v *rival) within(recipe func(*Recipe) bool, reads, goes func(string) bool) bool {
	return !slices.ContainsFunc(v.parts, func(p *Part) bool { return !recipe(&p.Recipe) }) &&
		!slices.ContainsFunc(v.reads, func(input string) bool { return input != "" && !reads(input) }) &&
		!slices.ContainsFunc(v.goes, func(input string) bool { return !goes(input) })
}

// others finds uncommitted runs with the same options whose inputs are all this run's, or are
// gone: this run takes their place.
func (c *comparison) others(ctx context.Context) error {
	rivals, err := c.listing.rivals(ctx)
	recipe := func(r *Recipe) bool { return c.dir.Force || r.sameOptions(&c.dir.Recipe) }
	ours := func(input string) bool { return c.named[input] || c.covered(input) }
	for _, v := range rivals {
		if v.within(recipe, ours, ours) {
			c.abandon = append(c.abandon, v.key)
		}
	}
	return err
}

// outdone returns the keys of runs that have nothing left to do: the state has all of their
// inputs, by the same recipe, and nothing that they remove. Such runs were given up, force the same
// outputs, or will notice. own is the key of this run; gone are inputs whose outputs it keeps.
func (l *listing) outdone(ctx context.Context, own string, recipe *Recipe, s *State, done map[string]bool, gone []string) (map[string]bool, error) {
	rivals, err := l.rivals(ctx)
	keys := map[string]bool{}
	reads := func(input string) bool { return done[input] }
	goes := func(input string) bool { return done[input] || slices.Contains(gone, input) || s.entry(input) == nil }
	for _, v := range rivals {
		keys[v.key] = v.key != own && v.within(recipe.same, reads, goes) && len(v.reads)+len(v.goes) > 0
	}
	return keys, err
}

// retire removes what runs have begun that do nothing but what is done.
func (c *comparison) retire(ctx context.Context, r *Run) error {
	keys, err := c.listing.outdone(ctx, r.key(), &c.dir.Recipe, c.state, c.named, c.gone)
	if err != nil {
		return err
	}
	if err := c.listing.dropPlans(ctx, func(key string) bool { return keys[key] }); err != nil {
		return err
	}
	return c.listing.takeOver(ctx, r.has, func(p *partName, _ *File) bool { return keys[p.key()] }, nil, nil)
}

// packNames returns the names of inputs as plans have them.
func packNames(names []string) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(w, strings.Join(names, "\x00"))
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// unpackNames is the inverse of packNames.
func unpackNames(b []byte) ([]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	all, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(all) > maxManifest {
		return nil, errors.New("too long")
	}
	return strings.Split(string(all), "\x00"), nil
}
