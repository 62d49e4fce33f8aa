package publish

import (
	"cmp"
	"context"
	"errors"
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
// directory of manifests. It also compares the rows of each file with what the file itself says.
// The error wraps ErrDone if there is nothing to commit and the directory is complete.
func (d *Dir) Complete(ctx context.Context, names []string) (c Committed, err error) {
	var noSuccessReason string
	for range maxCommitAttempts {
		l, err := d.look(ctx)
		if err != nil {
			return c, err
		}
		if c.Runs == 0 || len(names) == 0 {
			n, workers, err := d.commitRuns(ctx, l, names)
			c.Runs, c.Workers = c.Runs+n, c.Workers+workers
			if n > 0 || errors.Is(err, errLost) {
				continue
			}
			if err != nil {
				return c, err
			}
		}
		if c.State, err = l.state(ctx); err != nil {
			return c, err
		}
		var settled bool
		if noSuccessReason, settled, err = d.mark(ctx, l); err != nil {
			return c, err
		}
		if !settled {
			continue
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
	return c, errLost
}

// commitRuns commits the runs whose workers are all done. If there are others only, it
// returns which workers are missing.
func (d *Dir) commitRuns(ctx context.Context, l *listing, names []string) (runs, workers int, err error) {
	if len(names) > 0 {
		if err := l.named(ctx, names); err != nil {
			return 0, 0, err
		}
	}
	seen := map[string]bool{}
	noSuccessReason := ""
	for _, p := range l.parts {
		key := p.key()
		if seen[key] {
			continue
		}
		seen[key] = true
		group := l.of(p.run, p.of)
		if left, err := l.leftOver(ctx, group[0]); err != nil {
			return runs, workers, err
		} else if left && len(names) == 0 {
			continue
		}
		if why := missing(group); why != "" {
			noSuccessReason = cmp.Or(noSuccessReason, why)
			continue
		}
		if err := d.commitAll(ctx, l, group, nil); err != nil {
			return runs, workers, err
		}
		return 1, len(group), nil // the state is another one now
	}
	if noSuccessReason != "" {
		return 0, 0, cause.Mark(cause.NotCommitted, fmt.Errorf("%s: not committed: %s (run these first, or name their manifests, if they stand elsewhere)", d.Name, noSuccessReason))
	}
	return 0, 0, nil
}

// named reads parts that stand elsewhere, in place of those beside the directory.
func (l *listing) named(ctx context.Context, names []string) error {
	l.parts, l.elsewhere = nil, true
	for _, name := range names {
		p := parsePartName(path.Base(name))
		if p == nil {
			return cause.Mark(cause.NotCommitted, faults.Errorf("%s: not the name of a worker's manifest (want one as shard-RUN-00003-of-00016.json)", name))
		}
		var err error
		if p.part, err = l.dir.readPart(ctx, name); err != nil {
			return err
		}
		l.parts = append(l.parts, p)
	}
	return nil
}
