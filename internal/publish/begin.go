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
	for _, dir := range []string{d.Name, strings.TrimRight(d.Manifests, "/") + "/"} {
		if err := objects.Sweep(ctx, d.Store, dir); err != nil {
			return nil, err
		}
	}
	r := &Run{dir: d, id: d.runID(in), in: in}
	l, err := r.start(ctx, in)
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
	if p, err := l.done(ctx, r); err != nil {
		return nil, err
	} else if p != nil && !d.Force && !d.All {
		damaged, err := d.damaged(ctx, l, p.Files)
		if err != nil {
			return nil, err
		}
		if damaged == "" {
			return nil, d.done(ctx, r)
		}
		r.notes = append(r.notes, damaged+"; it was written again")
	}
	return r, nil
}

// NoManifests returns the error of a directory without a place for its manifests.
func NoManifests(dir string) error {
	return faults.Errorf("%s: its manifests cannot stand beside it (name a directory for them with {ManifestDir})", dir)
}

// start lists the directory and sets the task of the run.
func (r *Run) start(ctx context.Context, in Inputs) (*listing, error) {
	for range maxCommitAttempts {
		l, err := r.dir.look(ctx)
		if err != nil {
			return nil, err
		}
		err = r.decide(ctx, l, in)
		if err == nil {
			err = r.spare(ctx, l)
		}
		if !errors.Is(err, errLost) {
			return l, err
		}
	}
	return nil, errLost
}

// spare returns an error if the run would remove a file that this output has not written.
func (r *Run) spare(ctx context.Context, l *listing) error {
	if len(r.task.Remove) == 0 {
		return nil
	}
	s, err := l.state(ctx)
	if err != nil {
		return err
	}
	return r.dir.sparing(ctx, l, s.losing(r.task.Remove))
}

// decide sets the task of the run. The error is errLost if another run has committed
// meanwhile.
func (r *Run) decide(ctx context.Context, l *listing, in Inputs) error {
	d := r.dir
	shared := d.Of > 1
	if shared {
		found, err := r.readPlan(ctx)
		if err != nil {
			return err
		}
		if found {
			if current, err := r.current(ctx, l); current || err != nil {
				return err
			}
			return r.renew(ctx, l, in)
		}
		if _, err := l.state(ctx); err != nil { // before what is listed counts
			return err
		}
		if slices.Contains(l.plans, planName(r.id, d.Of)) { // the run is being committed
			return errLost
		}
		if err := r.finishCommit(ctx, l); err != nil {
			return err
		}
	}
	s, err := l.state(ctx)
	if err == nil {
		err = d.alone(ctx, l, s)
	}
	if err != nil {
		return err
	}
	c := newComparison(d, l, s, in)
	if err := c.compare(ctx); err != nil {
		return err
	}
	r.task, r.notes, r.gone = c.task(), c.notes, c.gone
	nothing := r.task.Inputs == 0 && len(r.task.Remove) == 0 && (len(s.Inputs) > 0 || in.Len == 0 && r.finished(l))
	if nothing && !shared { // what there is of this run is what a commit that was cut short has left
		if err := r.dropParts(ctx, l); err != nil {
			return err
		}
	}
	if nothing && !slices.ContainsFunc(l.parts, r.has) {
		u := &mergedParts{first: r.part(), matched: d.Recipe.IDsMatched}
		if err := u.required(s); err != nil {
			return err
		}
		if err := c.retire(ctx, r); err != nil {
			return err
		}
		return d.done(ctx, r)
	}
	if !shared {
		return nil
	}
	p, err := r.plan(in)
	if err != nil {
		return err
	}
	name := planName(r.id, d.Of)
	err = d.writeJSON(ctx, name, p, false)
	if errors.Is(err, fs.ErrExist) { // another worker was faster
		found, err := r.readPlan(ctx)
		if err == nil && !found {
			err = errLost // and its run is committed
		}
		return err
	}
	if err != nil {
		return err
	}
	now := &listing{dir: d}
	if err := now.manifests(ctx); err != nil {
		return err
	}
	if now.newest != s.Generation { // this may be a run that has just been committed
		return cmp.Or(d.removeManifest(ctx, name), errLost)
	}
	return nil
}

// finished reports whether a run without inputs has finished before.
func (r *Run) finished(l *listing) bool {
	_, ok := l.objects[Success]
	return ok && l.newest > 0
}

// done returns this worker's part of the run if it is done, or nil.
func (l *listing) done(ctx context.Context, r *Run) (*Part, error) {
	for _, p := range l.parts {
		if !r.has(p) || p.shard != r.dir.Shard || !p.done {
			continue
		}
		part, err := l.load(ctx, p)
		if part != nil && part.Task.Digest != r.task.brief().Digest {
			return nil, err // of an earlier task of this run
		}
		return part, err
	}
	return nil, nil
}

// done returns the error of a worker that has nothing left to do. A worker that was
// stopped at the very end may have left the run without a commit, or the directory without
// _SUCCESS, so done sees to both.
func (d *Dir) done(ctx context.Context, r *Run) error {
	if err := objects.Sweep(ctx, d.Store, d.Name); err != nil { // an attempt to write _SUCCESS, too
		return err
	}
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

// damaged returns what is wrong with the first of some files that is not whole, or "".
func (d *Dir) damaged(ctx context.Context, l *listing, files []File) (string, error) {
	for i := range files {
		trouble, err := d.trouble(ctx, l, &files[i])
		if err != nil || trouble != "" {
			return files[i].Name + " is " + trouble, err
		}
	}
	return "", nil
}

// alone returns an error that wraps ErrExists if the directory has data that no manifest
// lists. With Force such data is kept, unless it is in the way.
func (d *Dir) alone(ctx context.Context, l *listing, s *State) error {
	if _, ok := l.objects[Success]; ok && l.newest == 0 && len(l.parts) == 0 && len(s.Files) == 0 {
		return faults.Errorf("%s: %w: %s was written by another program, or %s was removed (write to another directory)", d.Name, ErrExists, Success, d.Manifests)
	}
	if d.Force {
		return nil
	}
	var planned map[string]bool
	for _, name := range l.data() {
		if s.file(name) != nil || slices.Contains(s.Remove, name) {
			continue
		}
		if planned == nil {
			var err error
			if planned, err = l.planned(ctx, func(p *Part) bool { return p.Recipe.sameOptions(&d.Recipe) }); err != nil {
				return err
			}
		}
		if planned[name] {
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
	_, err := r.place(ctx, r.found, targets)
	return err
}

// Target is a file that a worker may write.
type Target struct {
	Name  string // path below the directory
	Input string // Rel of the (first) input that its rows come from
}

// place returns the files that will be replaced, or an error if a target may not be written.
func (r *Run) place(ctx context.Context, l *listing, targets []Target) (seen map[string]storage.Object, err error) {
	p := placement{run: r, listing: l}
	seen = map[string]storage.Object{}
	for _, t := range targets {
		if err := p.target(ctx, t); err != nil {
			return nil, err
		}
		if o, ok := l.objects[t.Name]; ok {
			seen[t.Name] = o
		}
	}
	return seen, nil
}

// placement decides which targets may be written.
type placement struct {
	run     *Run
	listing *listing
	state   *State          // nil: not needed yet
	planned map[string]bool // by runs that are not committed and may be replaced
}

// read reads what is needed to decide about a target that exists.
func (p *placement) read(ctx context.Context) (err error) {
	if p.state != nil {
		return nil
	}
	if p.state, err = p.listing.state(ctx); err != nil {
		return err
	}
	d := p.run.dir
	p.planned, err = p.listing.planned(ctx, func(part *Part) bool { return d.Force || part.Recipe.sameOptions(&d.Recipe) })
	return err
}

// planned returns the files of the parts for which is returns true.
func (l *listing) planned(ctx context.Context, is func(*Part) bool) (map[string]bool, error) {
	names := map[string]bool{}
	for _, p := range l.parts {
		part, err := l.load(ctx, p)
		if err != nil {
			return nil, err
		}
		if part == nil || !is(part) {
			continue
		}
		for _, f := range part.Files {
			names[f.Name] = true
		}
	}
	return names, nil
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
	if err := p.read(ctx); err != nil {
		return err
	}
	marker, table, err := d.Marker(ctx, d.path(t.Name))
	if err != nil {
		return err
	}
	other := p.otherInput(t)
	switch {
	case other != "" && p.state.Generation != p.run.task.Generation && p.run.Does(other):
		return p.run.disputed() // another run has committed since
	case other != "":
		return faults.Errorf("%s: %w: %s is the output of %s, which is not read by this run (write to another directory, or set {Base} so that the names differ)", d.Name, ErrExists, t.Name, other)
	case !d.Force && p.foreign(t):
		return d.foreign(t.Name)
	case d.Known() && marker == d.Mark():
		return nil
	case p.state.file(t.Name) == nil && !p.planned[t.Name] && !p.listing.unsettled(p.state, t.Name):
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
