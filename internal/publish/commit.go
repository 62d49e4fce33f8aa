package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// errLost means that another run has committed at the same time.
var errLost = cause.New(cause.Changed, "another run has committed meanwhile")

// wait waits, unless the context ends before.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return stopped.Err(ctx)
	case <-time.After(d):
		return nil
	}
}

// maxCommitAttempts is how often a commit is tried against others.
const maxCommitAttempts = 1000

// commitIfComplete commits the run if all of its workers are done, and then sees to the markers.
// noSuccessReason says why there is no _SUCCESS, unless that is because this run waits for other
// workers.
func (r *Run) commitIfComplete(ctx context.Context) (noSuccessReason string, err error) {
	d := r.dir
	for try := range maxCommitAttempts {
		l := &listing{dir: d}
		if err := l.manifests(ctx); err != nil {
			return "", err
		}
		names := l.of(r.id[:digits], r.of())
		pending := false
		if len(names) > 0 {
			left, err := l.leftOver(ctx, names[0])
			if err != nil {
				return "", err
			}
			pending = !left
		}
		if pending && (d.NoCommit || missing(names) != "") {
			return "", nil // all but the last worker need not list the outputs
		}
		l.known = nil // it is read again, after the outputs are listed
		if err := l.tree(ctx); err != nil {
			return "", err
		}
		if pending {
			if dropped, err := r.dropOutdated(ctx, l, names); err != nil {
				return "", err
			} else if dropped {
				continue
			}
			err := d.commitAll(ctx, l, names, r)
			switch {
			case err == nil, errors.Is(err, errLost):
			case errors.Is(err, errMissing) && try < 20: // another run may be taking its place: files go first, then parts
				if err := wait(ctx, 10*time.Millisecond); err != nil {
					return "", err
				}
			default:
				_, now := d.Store.Stat(ctx, d.manifest(names[0].name))
				switch {
				case errors.Is(now, fs.ErrNotExist): // it has
				case errors.Is(err, errMissing):
					return "", fmt.Errorf("%w (%w)", r.disputed(), err)
				default:
					return "", err
				}
			}
			continue
		}
		noSuccessReason, settled, err := d.mark(ctx, l)
		if err != nil || settled {
			return noSuccessReason, err
		}
	}
	return "other runs keep changing the directory", nil
}

// dropOutdated removes the parts of an earlier task of this run, which its workers have to
// do again.
func (r *Run) dropOutdated(ctx context.Context, l *listing, names []*partName) (dropped bool, err error) {
	now := &Run{dir: r.dir, id: r.id}
	if found, err := now.readPlan(ctx); !found || err != nil {
		return false, err
	}
	want := now.task.brief().Digest
	for _, p := range names {
		part, err := l.load(ctx, p)
		if err != nil {
			return false, err
		}
		if part == nil || part.Task.Digest == want {
			continue
		}
		dropped = true
		if err := r.dir.removeManifest(ctx, p.name); err != nil {
			return false, err
		}
	}
	return dropped, nil
}

// commitAll reads the parts and commits them.
func (d *Dir) commitAll(ctx context.Context, l *listing, names []*partName, run *Run) error {
	var parts []*Part
	for _, p := range names {
		part, err := l.load(ctx, p)
		if err != nil {
			return err
		}
		if part == nil {
			return errLost // another worker has committed the run
		}
		part.name = p.name
		parts = append(parts, part)
	}
	return d.commit(ctx, l, parts, run)
}

// of returns the parts of a run. Of a worker that is done and has begun again, as its
// outputs were damaged, that is the part that has begun.
func (l *listing) of(run string, of uint32) (parts []*partName) {
	for _, p := range l.parts {
		if p.run != run || p.of != of {
			continue
		}
		i := slices.IndexFunc(parts, func(q *partName) bool { return q.shard == p.shard })
		switch {
		case i < 0:
			parts = append(parts, p)
		case p.done: // its removal was cut short
			parts[i] = p
		}
	}
	return parts
}

// missing returns which workers of a run are not done, or "".
func missing(parts []*partName) string {
	if len(parts) == 0 {
		return "no worker has begun"
	}
	done := map[uint32]bool{}
	for _, p := range parts {
		if p.done {
			done[p.shard] = true
		}
	}
	of := parts[0].of
	if uint32(len(done)) == of {
		return ""
	}
	var few []string
	for i := uint32(0); i < of && len(few) < 10; i++ {
		if !done[i] {
			few = append(few, fmt.Sprint(i))
		}
	}
	if int(of)-len(done) > len(few) {
		few = append(few, "…")
	}
	return fmt.Sprintf("%d of %d workers are done, without %s", len(done), of, strings.Join(few, ", "))
}

// leftOver reports whether a part's run is committed already: the run has no plan any more,
// and its inputs are in the state. A commit that was cut short leaves such parts, as do a second
// attempt that ended after the commit, and a part that yielded to another run while its own
// was being committed.
func (l *listing) leftOver(ctx context.Context, p *partName) (bool, error) {
	part, err := l.load(ctx, p)
	if err != nil || part == nil {
		return part == nil, err
	}
	if !part.Yielded && (p.of <= 1 || slices.Contains(l.plans, planName(p.run, p.of))) {
		return false, nil
	}
	s, err := l.state(ctx)
	if err != nil {
		return false, err
	}
	other := func(input, sum string) bool {
		has := s.entry(input)
		return has == nil || sum != "" && has.Print != sum || !s.recipe(has).same(&part.Recipe)
	}
	return !slices.ContainsFunc(part.Inputs, func(e Entry) bool { return other(e.Input, e.Print) }) &&
		!slices.ContainsFunc(part.Files, func(f File) bool {
			return slices.ContainsFunc(f.Inputs, func(input string) bool { return other(input, "") })
		}), nil
}

// complete returns an error unless every input of the run is in the state or is being
// committed. Another run that no longer found an input may have removed its outputs since this
// run was planned.
func (r *Run) complete(ctx context.Context, s *State, u *mergedParts) error {
	if r == nil || s.Generation == r.task.Generation {
		return nil
	}
	now := map[string]bool{}
	for _, e := range u.entries {
		now[e.Input] = true
	}
	for in, err := range r.in.Each {
		if err != nil {
			return err
		}
		if now[in.Input] || s.entry(in.Input) != nil {
			continue
		}
		err := cause.Mark(cause.Workers, fmt.Errorf("%s: %w: another run has removed the outputs of %s in the meantime, as the input was gone (run all workers again)%w", r.dir.Name, ErrExists, in.Input, quiet.Error{Err: storage.ErrAgain}))
		if r.dir.Of > 1 {
			err = errors.Join(err, r.dir.removeManifest(ctx, planName(r.id, r.dir.Of)))
		}
		return err
	}
	return nil
}

// commit writes the state that includes the outputs of all workers of a run. run is the last
// worker's; if nil, the rows of each file are compared with what the file itself says. The error
// is errLost if another run committed first.
func (d *Dir) commit(ctx context.Context, l *listing, parts []*Part, run *Run) error {
	r, err := d.merged(parts)
	if err != nil {
		return err
	}
	s, err := l.state(ctx) // before what is listed counts
	if err != nil {
		return err
	}
	if err := d.present(ctx, l, r.files, run == nil); err != nil {
		return err
	}
	if err := r.required(s); err != nil {
		return err
	}
	if err := run.complete(ctx, s, r); err != nil {
		return err
	}
	next, err := d.next(l, s, r, run)
	if err != nil {
		return err
	}
	if err := d.sparing(ctx, l, next); err != nil {
		return err
	}
	if err := d.writeState(ctx, stateName(next.Generation), next, false); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return errLost
		}
		return err
	}
	if err := d.newest(ctx, next.Generation); err != nil {
		return err
	}
	return d.settle(ctx, l, next, parts, run)
}
