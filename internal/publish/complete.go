package publish

import (
	"cmp"
	"context"
	"fmt"
	"path"

	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Committed is what a commit has come to.
type Committed struct {
	Runs    int // runs that were committed
	Workers int // of these
	State   *State
}

// Complete commits the runs whose workers are all done, as the last worker does by itself
// unless NoCommit is set. names are full names of workers' manifests; empty: all in the
// directory of manifests. The error wraps ErrDone if there is nothing to commit and the directory
// is complete.
func (d *Dir) Complete(ctx context.Context, names []string) (c Committed, err error) {
	l, err := d.settled(ctx) // what was cut short is finished
	if err != nil {
		return c, err
	}
	if len(names) > 0 {
		if err := l.named(ctx, names); err != nil {
			return c, err
		}
	}
	if err := d.commitRuns(ctx, l, &c); err != nil {
		return c, err
	}
	noSuccessReason, err := d.mark(ctx)
	if err != nil {
		return c, err
	}
	if l, err = d.look(ctx); err != nil {
		return c, err
	}
	if c.State, err = l.state(ctx); err != nil {
		return c, err
	}
	switch {
	case noSuccessReason != "":
		return c, cause.Mark(cause.NotCommitted, fmt.Errorf("%s: there is no %s: %s", d.Name, Success, noSuccessReason))
	case c.Runs == 0 && l.newest == 0:
		return c, cause.Mark(cause.NotCommitted, faults.Errorf("%s: no worker has written a manifest to %s (name the manifests, if they stand elsewhere)", d.Name, d.Manifests))
	case c.Runs == 0:
		return c, ErrDone
	}
	return c, nil
}

// commitRuns commits the runs whose workers are all done. If there are others only, it returns
// which workers are missing.
func (d *Dir) commitRuns(ctx context.Context, l *listing, c *Committed) error {
	s, err := l.state(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	waits := ""
	for _, p := range l.parts {
		if seen[p.key()] {
			continue
		}
		seen[p.key()] = true
		group := l.of(p.run, p.of)
		parts, err := l.loadAll(ctx, group)
		switch why := missing(group); {
		case err != nil:
			return err
		case parts == nil, !l.elsewhere && s.committed(parts[0]):
			continue // another process has committed it, or mark removes what is left of it
		case why != "":
			waits = cmp.Or(waits, why)
			continue
		}
		if err := d.commit(ctx, parts, nil); err != nil {
			return err
		}
		c.Runs, c.Workers = c.Runs+1, c.Workers+len(parts)
	}
	if waits != "" && c.Runs == 0 {
		return cause.Mark(cause.NotCommitted, fmt.Errorf("%s: not committed: %s (run these first, or name their manifests, if they stand elsewhere)", d.Name, waits))
	}
	return nil
}

// named reads parts that stand elsewhere, in place of those beside the directory.
func (l *listing) named(ctx context.Context, names []string) error {
	l.parts, l.elsewhere = make([]*partName, len(names)), true
	return l.dir.all(len(names), func(i int) (err error) {
		name := names[i]
		p := parsePartName(path.Base(name))
		if p == nil {
			return cause.Mark(cause.NotCommitted, faults.Errorf("%s: not the name of a worker's manifest (want one as shard-RUN-00003-of-00016.json)", name))
		}
		if p.part, err = l.dir.readPart(ctx, name); err != nil {
			return err
		}
		p.part.elsewhere = true
		l.parts[i] = p
		return nil
	})
}
