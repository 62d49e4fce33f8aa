package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Run is what a worker has to do in a directory.
type Run struct {
	dir            *Dir
	id             string
	task           Task
	selectedInputs map[string]bool // of task.Only
	replacedInputs map[string]bool // inputs of the state whose outputs are replaced or removed
	notes          []string        // for the user
	gone           []string        // inputs that are gone, and whose outputs are kept
	in             Inputs
	found          *listing // by Begin
	swapped        bool     // a state with the run was sent to the store
	own            *Part    // of this worker, once it is there
}

// Does reports whether an input is to be read.
func (r *Run) Does(rel string) bool { return r.task.All || r.selectedInputs[rel] }

// Heals reports whether the inputs to be read are unchanged, and only their outputs are
// damaged: they are to be divided as before, see Cuts.
func (r *Run) Heals() bool { return r.task.Heal }

// Cuts returns the first row groups, without 0, of the pieces into which an input was
// divided when its outputs were written.
func (r *Run) Cuts(rel string) []int {
	i := slices.IndexFunc(r.task.Cuts, func(c Cut) bool { return c.Input == rel })
	if i < 0 {
		return nil
	}
	return r.task.Cuts[i].Cuts
}

// All reports whether all inputs are to be read.
func (r *Run) All() bool { return r.task.All }

// Gone returns the inputs that are gone and whose outputs are kept. Only the worker that
// has decided what the run does knows them.
func (r *Run) Gone() []string { return r.gone }

// SetRequire sets the conditions that are checked at the commit.
func (r *Run) SetRequire(q Require) { r.dir.Require = q }

// runID identifies the run among those that write to the directory.
func (d *Dir) runID(in Inputs) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %t %t %s ", d.Recipe.Options, d.Recipe.IDs, d.Force, d.Prune, d.IDsChanged)
	h.Write(in.Digest[:])
	if in.Names != nil {
		fmt.Fprintf(h, "%q", in.Roots)
		return hex.EncodeToString(h.Sum(nil))
	}
	for one, err := range in.Each { // what was named tells which outputs go
		if fmt.Fprintf(h, "%t %q ", one.Found, one.Root); err != nil {
			break
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Begin decides what the run has to do: the inputs that are new or have changed since
// their outputs were made, or whose outputs are damaged. All workers of a run get the
// same answer. The error wraps ErrDone if this worker has nothing left to do, and
// ErrExists if something in the directory is in the way.
func (d *Dir) Begin(ctx context.Context, in Inputs) (*Run, error) {
	if d.Manifests == "" {
		return nil, NoManifests(d.Name)
	}
	if err := d.sweep(ctx); err != nil {
		return nil, err
	}
	d.in = in
	r := &Run{dir: d, id: d.runID(in), in: in}
	l, nothing, err := r.start(ctx)
	if err != nil {
		return nil, err
	}
	r.found = l
	r.selectedInputs, r.replacedInputs = map[string]bool{}, map[string]bool{}
	for _, rel := range r.task.Only {
		r.selectedInputs[rel] = true
	}
	for _, rel := range slices.Concat(r.task.Again, r.task.Remove) {
		r.replacedInputs[rel] = true
	}
	if nothing {
		return nil, r.done(ctx)
	}
	return r, nil
}

// sweep removes what killed processes have left in the directory and beside it.
func (d *Dir) sweep(ctx context.Context) error {
	err := objects.SweepStaged(ctx, d.Store, d.Name, objects.Resolve(d.Store, d.Manifests), func() (map[string]bool, error) {
		l, err := d.lookBeside(ctx)
		if err != nil {
			return nil, err
		}
		return l.tokens(ctx, nil)
	})
	if err != nil {
		return err
	}
	return objects.Sweep(ctx, d.Store, strings.TrimRight(d.Manifests, "/")+"/")
}

// NoManifests returns the error of a directory without a place for its manifests.
func NoManifests(dir string) error {
	return faults.Errorf("%s: its manifests cannot stand beside it (name a directory for them with {ManifestDir})", dir)
}

// start sets the task of the run. nothing is true if there is none, or if this worker's part of
// it is there.
func (r *Run) start(ctx context.Context) (l *listing, nothing bool, err error) {
	for try := range maxCommitAttempts {
		if l, err = r.dir.settled(ctx); err != nil {
			return nil, false, err
		}
		nothing, err = r.decide(ctx, l)
		if !errors.Is(err, errLost) {
			return l, nothing, err
		}
		if err := pause(ctx, try); err != nil {
			return nil, false, err
		}
	}
	return nil, false, errLost
}

// decide sets the task of the run. The error is errLost if other workers have changed what was
// listed.
func (r *Run) decide(ctx context.Context, l *listing) (nothing bool, err error) {
	d := r.dir
	s, err := l.state(ctx)
	if err == nil {
		err = d.alone(ctx, l, s)
	}
	if err == nil {
		_, err = l.runs(ctx, keyOf(r.id, r.of()))
	}
	if err != nil {
		return false, err
	}
	c := newComparison(d, l, s, r.in)
	if err := c.compare(ctx); err != nil {
		return false, err
	}
	r.task, r.notes, r.gone = c.task(), c.notes, c.gone
	own, err := r.earlier(ctx, l, s)
	if own || err != nil {
		return own, err
	}
	if r.task.Inputs == 0 && len(r.task.Remove) == 0 && (len(s.Inputs) > 0 || r.in.Len == 0 && r.finished(l)) {
		u := &mergedParts{first: r.part(), matched: d.Recipe.IDsMatched}
		return true, u.required(s)
	}
	if d.Of > 1 {
		if err := r.agree(ctx, l); err != nil {
			return false, err
		}
	}
	return false, d.sparing(ctx, l, &State{Remove: s.removes(r.task.Remove)})
}

// earlier looks for what workers of this run have done before. It reports whether this worker's
// part is among it; the task is that of the run's plan. What can no longer be committed is removed,
// and the error is errLost.
func (r *Run) earlier(ctx context.Context, l *listing, s *State) (own bool, err error) {
	planned := ""
	r.own = nil
	if r.of() > 1 && slices.Contains(l.plans, planName(r.id, r.of())) {
		task, found, err := r.readPlan(ctx)
		if err != nil || !found {
			return false, cmp.Or(err, errLost)
		}
		now := r.task // what this run would do besides was made since by another one
		now.Generation = task.Generation
		one, err := r.planned(s, task)
		if err != nil {
			return false, err
		}
		other, err := r.planned(s, now)
		if err != nil {
			return false, err
		}
		if r.dir.dead(s, one) || s.Generation > now.Generation && r.dir.dead(s, other) {
			return false, cmp.Or(r.dir.removeManifest(ctx, planName(r.id, r.of())), errLost)
		}
		r.task, planned = task, task.brief().Digest
	}
	// Parts of another plan were removed before this one was written. Unless another run has committed
	// since, the others can be committed, and each worker looks after its own.
	others := planned == "" || s.Generation != r.task.Generation
	for _, p := range l.parts {
		if !r.has(p) || !others && p.shard != r.dir.Shard {
			continue
		}
		part, err := l.load(ctx, p)
		switch {
		case err != nil:
			return false, err
		case part == nil:
			return false, errLost
		case p.shard == r.dir.Shard:
			own, r.own, err = true, part, r.dir.present(ctx, l, s, part.Files)
		}
		if errors.Is(err, errLost) {
			return false, err
		}
		if r.of() == 1 {
			now := r.task
			now.Generation = part.Task.Generation
			planned = now.brief().Digest
		}
		switch gone := errors.Is(err, fault.ErrMismatch); { // what it has staged
		case gone || r.dir.dead(s, part):
			return false, cmp.Or(l.dropPart(ctx, p), errLost)
		case err != nil:
			return false, err
		case part.Task.Digest != planned: // another process may be about to commit it
			return false, cmp.Or(r.dir.removeObject(ctx, r.dir.listed(p)), errLost)
		}
	}
	return own, nil
}

// dead reports whether a part is of a run that is committed, or can no longer be, as those of version 4.
func (d *Dir) dead(s *State, p *Part) bool {
	_, late := s.outdated(p)
	return late || s.committed(p) || p.Version == version-1
}

// drop removes the plan of this run and its parts, with what they have staged, but not the parts of
// an attempt that began later.
func (r *Run) drop(ctx context.Context, l *listing) error {
	for _, p := range l.parts {
		if !r.has(p) {
			continue
		}
		part, err := l.load(ctx, p)
		if err == nil && part != nil && r.dir.agree(r.part(), part) == nil {
			err = l.dropPart(ctx, p)
		}
		if err != nil {
			return err
		}
	}
	return r.dir.removeManifest(ctx, planName(r.id, r.of()))
}

// dropPart removes a part that will not be committed, and what it has staged.
func (l *listing) dropPart(ctx context.Context, p *partName) error {
	part, err := l.load(ctx, p)
	if err != nil || part == nil {
		return err
	}
	err = l.dir.Store.Delete(ctx, l.dir.listed(p))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, storage.ErrChanged) {
		return nil // another process has done so, and there may be another part
	}
	if err != nil {
		return err
	}
	return l.dir.discard(ctx, part.Files)
}

// discard drops staged files.
func (d *Dir) discard(ctx context.Context, files []File) error {
	return d.all(len(files), func(i int) error {
		if files[i].Staged == "" { // of version 4, or not staged yet
			return nil
		}
		return objects.Discard(ctx, d.Store, d.path(files[i].Name), files[i].Staged)
	})
}

// finished reports whether a run without inputs has finished before.
func (r *Run) finished(l *listing) bool {
	_, ok := l.objects[Success]
	return ok && l.newest > 0
}

// done returns the error of a worker that has nothing left to do. A worker that was
// stopped at the very end may have left the run without a commit, or the directory without
// _SUCCESS, so done sees to both.
func (r *Run) done(ctx context.Context) error {
	noSuccessReason, err := r.commitIfComplete(ctx)
	if err != nil {
		return err
	}
	done := ErrDone
	if noSuccessReason != "" {
		done = fmt.Errorf("%w, but there is no %s: %s", done, Success, noSuccessReason)
	}
	for _, n := range r.notes {
		done = fmt.Errorf("%w; %s", done, n)
	}
	if n := len(r.gone); n > 0 {
		done = faults.Errorf("%w; outputs without their input are kept: of %s, first %s ({Prune} removes them)", done, things(n, "input"), r.gone[0])
	}
	return done
}

// alone returns an error that wraps ErrExists if the directory has data that no manifest
// lists. With Force such data is kept, unless it is in the way.
func (d *Dir) alone(ctx context.Context, l *listing, s *State) error {
	if _, ok := l.objects[Success]; ok && l.newest == 0 {
		return faults.Errorf("%s: %w: %s was written by another program, or %s was removed (write to another directory)", d.Name, ErrExists, Success, d.Manifests)
	}
	if d.Force {
		return nil
	}
	for _, name := range l.data() {
		if s.file(name) != nil {
			continue
		}
		marker := ""
		if l.objects[name].Type == 0 {
			var err error
			if marker, _, err = d.Marker(ctx, d.path(name)); err != nil {
				return err
			}
		}
		switch {
		case marker == "" && l.newest > 0: // it stood beside the outputs before, or is in the way of none
		case marker == "":
			return faults.Errorf("%s: %w: %s is not an output of bloomjoin (write to an empty directory; {Force} keeps such files)", d.Name, ErrExists, name)
		case !d.Known() || marker != d.Mark():
			return d.foreign(name)
		}
	}
	return nil
}

// foreign returns the error of a file of another run.
func (d *Dir) foreign(name string) error {
	return faults.Errorf("%s: %w: %s does not come from these inputs and options ({Force} replaces the outputs of the inputs named, and keeps the others)", d.Name, ErrExists, name)
}

// Check returns an error if one of the files that this worker will write cannot be
// written: its place, or a directory on the way, is taken by something that may not be
// replaced.
func (r *Run) Check(ctx context.Context, targets []Target) error {
	p := placement{run: r, listing: r.found}
	for _, t := range targets {
		if err := p.target(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// Target is a file that a worker may write.
type Target struct {
	Name  string // path below the directory
	Input string // Rel of the (first) input that its rows come from
}

// placement decides which targets may be written.
type placement struct {
	run     *Run
	listing *listing
	state   *State // nil: not needed yet
}

// target returns an error if the target may not be written.
func (p *placement) target(ctx context.Context, t Target) error {
	d := p.run.dir
	if !localName(t.Name) {
		return fmt.Errorf("%s: the output of %s would be %q, outside the directory (name the input by a path without ..)", d.Name, t.Input, t.Name)
	}
	if err := p.listing.way(t.Name); err != nil {
		return fmt.Errorf("%s: %w: %w, where the output of %s belongs (remove it, or write to another directory)", d.Name, ErrExists, err, t.Input)
	}
	if _, ok := p.listing.objects[t.Name]; !ok {
		return nil
	}
	var err error
	if p.state, err = p.listing.state(ctx); err != nil {
		return err
	}
	marker, table, err := d.Marker(ctx, d.path(t.Name))
	if err != nil {
		return err
	}
	other := p.otherInput(t)
	switch {
	case other != "" && p.state.Generation != p.run.task.Generation && p.run.Does(other):
		return p.run.dir.rival(" of " + other)
	case other != "":
		return faults.Errorf("%s: %w: %s is the output of %s, which is not read by this run (write to another directory, or set {Base} so that the names differ)", d.Name, ErrExists, t.Name, other)
	case !d.Force && p.foreign(t):
		return d.foreign(t.Name)
	case d.Known() && marker == d.Mark():
		return nil
	case p.state.file(t.Name) == nil:
		return faults.Errorf("%s: %w: %s is not listed in a manifest of this directory, so {Force} keeps it (remove it, or write to another directory)", d.Name, ErrExists, t.Name)
	case !table || d.Force || marker != "":
		return nil
	}
	// a table of another program
	return faults.Errorf("%s: %w: %s has changed since this run wrote it ({Force} replaces it)", d.Name, ErrExists, t.Name)
}

// foreign reports whether a target is in the state with other options, or with other IDs
// since the run began.
func (p *placement) foreign(t Target) bool {
	f := p.state.file(t.Name)
	return f != nil && slices.ContainsFunc(f.Inputs, func(input string) bool {
		r := p.state.recipe(p.state.entry(input))
		return !r.sameOptions(&p.run.dir.Recipe) || !r.same(&p.run.dir.Recipe) && !p.run.replacedInputs[input]
	})
}

// otherInput returns an input whose output is in the place of a target and stays there, or
// "".
func (p *placement) otherInput(t Target) string {
	f := p.state.file(t.Name)
	if f == nil {
		return ""
	}
	for _, input := range f.Inputs {
		switch {
		case p.run.replacedInputs[input], input == t.Input && p.run.Does(input):
		case input == "":
			return "other inputs"
		default:
			return input
		}
	}
	return ""
}
