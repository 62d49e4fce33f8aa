package publish

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
)

// dropParts removes the parts of this run.
func (r *Run) dropParts(ctx context.Context, l *listing) error {
	for _, p := range l.parts {
		if !r.has(p) {
			continue
		}
		if err := r.dir.removeManifest(ctx, p.name); err != nil {
			return err
		}
	}
	l.parts = slices.DeleteFunc(l.parts, r.has)
	return nil
}

// current reports whether the plan of the run need not be compared with the state: there
// was no commit since, or workers have begun that have not yielded to another run.
func (r *Run) current(ctx context.Context, l *listing) (bool, error) {
	if l.newest == r.task.Generation {
		return true, nil
	}
	for _, p := range l.parts {
		if !r.has(p) {
			continue
		}
		if part, err := l.load(ctx, p); err != nil || part != nil && !part.Yielded {
			return true, err
		}
	}
	return false, nil
}

// renew keeps a plan that is not current, if the state asks for the same.
// Otherwise it removes the plan, and the error is errLost.
func (r *Run) renew(ctx context.Context, l *listing, in Inputs) error {
	d := r.dir
	s, err := l.state(ctx)
	if err != nil {
		return err
	}
	name := planName(r.id, d.Of)
	if !slices.Contains(l.plans, name) {
		return errLost
	}
	c := newComparison(d, l, s, in)
	if err := c.compare(ctx); err != nil {
		return err
	}
	now := c.task()
	now.Generation = r.task.Generation
	if now.brief().Digest == r.task.brief().Digest {
		return nil
	}
	return cmp.Or(d.removeManifest(ctx, name), errLost)
}

// plan returns what the other workers read.
func (r *Run) plan(in Inputs) (p plan, err error) {
	p = plan{Version: version, Task: r.task.named(EscapeName)}
	if !r.task.All {
		return p, nil
	}
	each := in.Names
	if each == nil {
		each = func(yield func(string, error) bool) {
			for one, err := range in.Each {
				if !yield(one.Input, err) {
					return
				}
			}
		}
	}
	names := make([]string, 0, in.Len)
	for name, err := range each {
		if err != nil {
			return p, err
		}
		names = append(names, name)
	}
	p.Names, err = packNames(names)
	return p, err
}

// finishCommit removes the parts that an interrupted commit of this run has left. Otherwise
// they would be committed again, with the parts of another task.
func (r *Run) finishCommit(ctx context.Context, l *listing) error {
	var kept []*partName
	for _, p := range l.parts {
		left := false
		if r.has(p) {
			var err error
			if left, err = l.leftOver(ctx, p); err != nil {
				return err
			}
		}
		if !left {
			kept = append(kept, p)
		} else if err := r.dir.removeManifest(ctx, p.name); err != nil {
			return err
		}
	}
	l.parts = kept
	return nil
}

// readPlan reads what the first worker has decided, if there is one.
func (r *Run) readPlan(ctx context.Context) (found bool, err error) {
	p := plan{}
	name := r.dir.manifest(planName(r.id, r.dir.Of))
	_, err = r.dir.readJSON(ctx, name, &p, func() int { return p.Version })
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	r.task = p.Task.named(UnescapeName)
	return err == nil, err
}
