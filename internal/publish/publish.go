package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// settled lists the directory once its state is published: it finishes what another process has
// begun.
func (d *Dir) settled(ctx context.Context) (*listing, error) {
	for try := range maxCommitAttempts {
		l, err := d.look(ctx)
		if err != nil {
			return nil, err
		}
		s, err := l.state(ctx)
		if err != nil || !s.pending() {
			return l, err
		}
		if err := d.publish(ctx, l, s); err != nil {
			return nil, err
		}
		// The other process may have written _SUCCESS before this one has removed it.
		if _, err := d.mark(ctx); err != nil {
			return nil, err
		}
		if err := pause(ctx, try); err != nil {
			return nil, err
		}
	}
	return nil, errLost
}

// publish gives the staged files of a state their names, and removes files that it has no place
// for. Several processes may do so at once, and again: a staged file is published only once. One
// that is neither staged nor published has no identity then; a later run makes it again.
func (d *Dir) publish(ctx context.Context, l *listing, s *State) error {
	if err := d.unmark(ctx, l, s); err != nil {
		return err
	}
	// First, so that nobody sees two outputs of an input whose output got another name.
	if err := d.clear(ctx, l, s); err != nil {
		return err
	}
	p := publishing{dir: d, identities: map[string]string{}, settle: map[string]func() error{}}
	p.waiting.SetLimit(cmp.Or(d.AtOnce, requestsAtOnce))
	for i := range s.Files {
		if f := &s.Files[i]; f.Staged != "" {
			if err := l.way(f.Name); err != nil {
				return errors.Join(fmt.Errorf("%s: %w: %w, where an output belongs (remove it)", d.Name, ErrExists, err), p.waiting.Wait())
			}
			p.waiting.Go(func() error { return p.file(ctx, f) })
			if d.AtOnce == 1 {
				_ = p.waiting.Wait() // its error is kept
			}
		}
	}
	if err := p.waiting.Wait(); err != nil {
		return err
	}
	for _, settle := range p.settle {
		if err := settle(); err != nil {
			return err
		}
	}
	done := published{Version: version, Identities: p.identities}
	err := d.writeJSON(ctx, settledName(s.Generation), done, false)
	if errors.Is(err, fs.ErrExist) { // of another process, after which the files may be those of a later state
		return nil
	}
	return err
}

// all calls f with 0 to n-1, several at once, and returns the error of the least that has failed.
// After an error it calls f no more.
func (d *Dir) all(n int, f func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(cmp.Or(d.AtOnce, requestsAtOnce))
	var failed atomic.Bool
	errs := make([]error, n)
	for i := range n {
		group.Go(func() error {
			if !failed.Load() {
				errs[i] = f(i)
				failed.CompareAndSwap(false, errs[i] != nil)
			}
			return nil
		})
	}
	_ = group.Wait() // they are in errs
	return cmp.Or(errs...)
}

// requestsAtOnce is how many requests an object store is asked at the same time.
const requestsAtOnce = 64

// publishing is a state whose files get their names.
type publishing struct {
	dir        *Dir
	waiting    errgroup.Group // for the disk or the store
	mu         sync.Mutex     // for the next two
	identities map[string]string
	settle     map[string]func() error // what makes the names in each directory durable
}

// file publishes one file. If it was published before, its content shows it.
func (p *publishing) file(ctx context.Context, f *File) error {
	d, name := p.dir, p.dir.path(f.Name)
	identity, settle, err := objects.Publish(ctx, d.Store, name, f.Staged)
	if errors.Is(err, fs.ErrNotExist) {
		var now storage.Object
		now, err = d.Store.Stat(ctx, name)
		if err == nil {
			var why string
			why, err = d.trouble(ctx, &listing{dir: d, objects: map[string]storage.Object{f.Name: now}}, f)
			if why == "" {
				identity = now.Identity
			}
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.identities[EscapeName(f.Name)] = identity
	if settle != nil {
		p.settle[path.Dir(f.Name)] = settle
	}
	return nil
}

// unmark removes _SUCCESS from the directory and from the partitions that publishing a state
// changes.
func (d *Dir) unmark(ctx context.Context, l *listing, s *State) error {
	markers := map[string]bool{Success: false}
	for p := range s.changing() {
		markers[path.Join(p, Success)] = false
	}
	for _, names := range inOrder(markers) {
		err := d.all(len(names), func(i int) error {
			if _, ok := l.objects[names[i]]; !ok && names[i] != Success { // which a run may have written since
				return nil
			}
			return d.remove(ctx, names[i])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// changing returns the partitions that publishing a state changes.
func (s *State) changing() map[string]bool {
	partitions := map[string]bool{}
	for _, f := range s.Files {
		if f.Staged != "" {
			partitions[partitionOf(f.Name)] = true
		}
	}
	for _, f := range s.Remove {
		partitions[partitionOf(f.Name)] = true
	}
	return partitions
}

// copyState writes the copy of the state for other programs, and removes what adds the files of an
// earlier one to tables. If another run commits meanwhile, the copy is of its state, once that is
// published.
func (d *Dir) copyState(ctx context.Context, l *listing, s *State) (err error) {
	for range maxCommitAttempts {
		err = d.all(len(l.added), func(i int) error { return d.removeManifest(ctx, l.added[i]) })
		if err == nil {
			err = d.writeState(ctx, copyName, s, true)
		}
		if err == nil {
			l, err = d.lookBeside(ctx)
		}
		if err != nil || l.newest == s.Generation {
			return err
		}
		if l, err = d.settled(ctx); err == nil {
			s, err = l.state(ctx)
		}
		if err != nil {
			return err
		}
	}
	return errLost
}
