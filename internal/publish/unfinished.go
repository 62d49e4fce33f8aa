package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Unfinished returns why the directory is not complete: workers that are not done, or runs that
// are not committed. It is empty for a complete directory, and for one without manifests. Of
// several runs, it is the first that counts, own before others; own may be nil.
func (d *Dir) Unfinished(ctx context.Context, own *Run) (string, error) {
	l := &listing{dir: d}
	if err := l.manifests(ctx); err != nil || len(l.parts)+len(l.plans) == 0 && l.newest == 0 {
		return "", err
	}
	if own != nil {
		l.parts = append(l.of(own.id[:digits], own.of()), l.parts...)
	}
	why, err := l.unfinished(ctx)
	if why != "" && len(l.parts) > 0 || err != nil { // one that a run was about to write may stand there
		return why, err
	}
	_, err = d.Store.Stat(ctx, d.path(Success))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if why != "" || l.newest == 0 {
		return why, nil
	}
	if err := l.tree(ctx); err != nil { // of a run that has been committed, but for _SUCCESS
		return "", err
	}
	s, err := l.state(ctx)
	if err != nil {
		return "", err
	}
	return d.incomplete(ctx, l, s, map[string]bool{})
}

// Finished reports whether the deepest name=value directory that holds a file of the
// directory is marked as complete, though others may not be.
func (d *Dir) Finished(ctx context.Context, file string) bool {
	l, p, busy := &listing{dir: d}, partitionOf(file), map[string]bool{"": true}
	err := l.manifests(ctx)
	for _, of := range l.parts {
		part, failed := l.load(ctx, of)
		err = cmp.Or(err, failed)
		part.busy(busy)
	}
	if err != nil || busy[p] {
		return false
	}
	_, err = d.Store.Stat(ctx, d.path(p+"/"+Success))
	return err == nil
}

// unfinished returns what the first run that has not been committed waits for.
func (l *listing) unfinished(ctx context.Context) (string, error) {
	for _, p := range l.parts {
		left, err := l.leftOver(ctx, p)
		if err != nil {
			return "", err
		}
		if left {
			continue
		}
		if p.of == 1 && !p.done {
			return "the run that writes it has not ended", nil
		}
		differs, err := l.differs(ctx, p)
		return cmp.Or(missing(l.of(p.run, p.of)), fmt.Sprintf("%d of %d workers are done, and nothing is committed", p.of, p.of)) + differs, err
	}
	begun := func(plan string) bool {
		return slices.ContainsFunc(l.parts, func(p *partName) bool { return p.key() == keyOfPlan(plan) })
	}
	if slices.ContainsFunc(l.plans, func(plan string) bool { return !begun(plan) }) {
		return "no worker is done", nil
	}
	return "", nil
}

// differs says why other workers of as many take no part in the run of p.
func (l *listing) differs(ctx context.Context, p *partName) (string, error) {
	i := slices.IndexFunc(l.parts, func(q *partName) bool { return q.of == p.of && q.run != p.run })
	if i < 0 {
		return "", nil
	}
	other, err := l.load(ctx, l.parts[i])
	if p.part == nil || other == nil || !p.part.Recipe.sameOptions(&other.Recipe) || p.part.Recipe.same(&other.Recipe) {
		return "", err
	}
	return "; the IDs differ from the other shards'", nil
}
