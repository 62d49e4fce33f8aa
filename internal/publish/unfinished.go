package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// cutShort says that a commit has ended between the state and its last file.
const cutShort = "its commit was cut short (run bloomjoin commit, or the run again)"

// Unfinished returns why the directory cannot be read: no run is committed, or a commit was cut
// short, or a file is not as the state says. It is empty for a directory without manifests.
func (d *Dir) Unfinished(ctx context.Context) (string, error) {
	l, err := d.lookBeside(ctx)
	if err != nil {
		return "", err
	}
	if l.newest == 0 {
		return l.unfinished(ctx, &State{})
	}
	s, err := l.state(ctx)
	if err != nil {
		return "", err
	}
	if s.pending() {
		return cutShort, nil
	}
	if _, err = d.Store.Stat(ctx, d.path(Success)); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := l.tree(ctx); err != nil {
		return "", err
	}
	return d.incomplete(ctx, l, s, map[string]bool{})
}

// Finished reports whether the deepest name=value directory that holds a file of the
// directory is marked as complete, though others may not be.
func (d *Dir) Finished(ctx context.Context, file string) bool {
	l, p := &listing{dir: d}, partitionOf(file)
	if p == "" || l.manifests(ctx) != nil {
		return false
	}
	s, err := l.state(ctx)
	if err != nil || s.changing()[p] {
		return false
	}
	_, err = d.Store.Stat(ctx, d.path(p+"/"+Success))
	return err == nil
}

// unfinished returns what the first run that has not been committed waits for.
func (l *listing) unfinished(ctx context.Context, s *State) (string, error) {
	for _, p := range l.parts {
		part, err := l.load(ctx, p)
		if err != nil {
			return "", err
		}
		if part != nil && !l.dir.dead(s, part) {
			return l.waits(ctx, p)
		}
	}
	if slices.ContainsFunc(l.plans, func(string) bool { return len(l.parts) == 0 }) {
		return "no worker is done", nil
	}
	return "", nil
}

// waits returns what the run of a part waits for.
func (l *listing) waits(ctx context.Context, p *partName) (string, error) {
	differs, err := l.differs(ctx, p)
	return cmp.Or(missing(l.of(p.run, p.of)), fmt.Sprintf("%d of %d workers are done, and nothing is committed", p.of, p.of)) + differs, err
}

// differs says why other workers of as many take no part in the run of p.
func (l *listing) differs(ctx context.Context, p *partName) (string, error) {
	i := slices.IndexFunc(l.parts, func(q *partName) bool { return q.of == p.of && q.run != p.run })
	if i < 0 {
		return "", nil
	}
	own, err := l.load(ctx, p)
	if err != nil {
		return "", err
	}
	other, err := l.load(ctx, l.parts[i])
	if own == nil || other == nil || !own.Recipe.sameOptions(&other.Recipe) || own.Recipe.same(&other.Recipe) {
		return "", err
	}
	return "; the IDs differ from the other shards'", nil
}

// waits returns what the run waits for; empty: it is committed.
func (r *Run) waits(ctx context.Context) (string, error) {
	l, err := r.dir.lookBeside(ctx)
	own := l.of(r.id[:digits], r.of())
	if err == nil && len(own) == 0 {
		err = r.counts(ctx)
	}
	if err != nil || len(own) == 0 {
		return "", err
	}
	return l.waits(ctx, own[0])
}
