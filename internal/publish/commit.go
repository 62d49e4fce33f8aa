package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// errLost means that another run has committed at the same time.
var errLost = cause.New(cause.Changed, "another run has committed meanwhile")

// maxCommitAttempts is how often a commit is tried against others.
const maxCommitAttempts = 1000

// pause waits a little before the next attempt, unless the context ends before.
func pause(ctx context.Context, try int) error {
	select {
	case <-ctx.Done():
		return stopped.Err(ctx)
	case <-time.After(time.Duration(min(try, 20)) * time.Millisecond):
		return nil
	}
}

// commitIfComplete commits the run if the parts of all of its workers are there, and then sees to
// the markers. noSuccessReason says why there is no _SUCCESS, unless that is because this run waits
// for other workers. An output of this run that is damaged is an error.
func (r *Run) commitIfComplete(ctx context.Context) (noSuccessReason string, err error) {
	d := r.dir
	l, err := d.lookBeside(ctx)
	if err != nil {
		return "", err
	}
	if names := l.of(r.id[:digits], r.of()); len(names) > 0 {
		if l.newest == r.task.Generation && (d.NoCommit || missing(names) != "") {
			return "", nil // all but the last worker need not list the outputs
		}
		waits, err := r.commitParts(ctx, l, names)
		if waits || err != nil {
			return "", err
		}
	} else if err := r.counts(ctx); err != nil {
		return "", err
	}
	other := func(plan string) bool { return plan != planName(r.id, r.of()) }
	if slices.ContainsFunc(l.plans, other) || slices.ContainsFunc(l.parts, func(p *partName) bool { return !r.has(p) }) {
		if err := r.retire(ctx); err != nil {
			return "", err
		}
	}
	noSuccessReason, err = d.mark(ctx)
	if err != nil || len(d.damaged) == 0 {
		return noSuccessReason, err
	}
	for input, err := range r.in.names() {
		if err != nil {
			return "", err
		}
		if what := cmp.Or(d.damaged[input], d.damaged[""]); what != "" {
			return "", cause.Mark(cause.Workers, fmt.Errorf("%s: %s (run again, which writes it anew)%w", d.Name, what, quiet.Error{Err: storage.ErrAgain}))
		}
	}
	return noSuccessReason, nil
}

// commitParts commits the run, unless another worker has done so since the parts were listed.
// waits is true if there are too few, or others are to commit them.
func (r *Run) commitParts(ctx context.Context, l *listing, names []*partName) (waits bool, err error) {
	s, err := l.state(ctx)
	if err != nil {
		return false, err
	}
	parts, err := l.loadAll(ctx, names)
	if err == nil && parts == nil {
		return false, r.counts(ctx)
	}
	if err != nil || s.committed(parts[0]) {
		return false, err
	}
	if r.dir.NoCommit || missing(names) != "" {
		return true, nil
	}
	return false, r.dir.commit(ctx, parts, r)
}

// counts returns an error if this worker's part has gone, but not because the run was committed:
// then another run has taken its place.
func (r *Run) counts(ctx context.Context) error {
	if r.own == nil {
		return nil
	}
	s, err := r.dir.state(ctx)
	if err != nil || s.committed(r.own) {
		return err
	}
	return r.dir.rival("")
}

// retire drops the parts and plans of other runs of the same recipe that do nothing but what is in
// the state. These were given up, or force the same outputs. So that none of them is committed
// meanwhile, their inputs get the generation of a new state.
func (r *Run) retire(ctx context.Context) error {
	d := r.dir
	l, err := d.settled(ctx)
	if err != nil {
		return err
	}
	runs, err := l.runs(ctx, keyOf(r.id, r.of()))
	if err != nil {
		return err
	}
	maps.DeleteFunc(runs, func(_ string, run *Part) bool {
		return run.Of > 0 && !run.Recipe.same(&d.Recipe) || run.list != "" && run.list != d.in.list()
	})
	if len(runs) == 0 {
		return nil
	}
	named := map[string]bool{}
	for input, err := range r.in.names() {
		if err != nil {
			return err
		}
		named[input] = true
	}
	outdone := map[string]bool{} // inputs
	for _, run := range runs {
		inputs := slices.Clone(run.Task.Remove)
		for _, e := range run.Inputs {
			inputs = append(inputs, e.Input)
		}
		if slices.ContainsFunc(inputs, func(input string) bool { return input != "" && !named[input] }) {
			continue
		}
		if run.list != "" {
			inputs = slices.AppendSeq(inputs, maps.Keys(named))
		}
		for _, input := range inputs {
			outdone[input] = true
		}
	}
	return d.fence(ctx, l, outdone)
}

// fence writes a state in which runs over the inputs are outdated. If another run commits at the
// same time, they stay.
func (d *Dir) fence(ctx context.Context, l *listing, inputs map[string]bool) error {
	s, err := l.state(ctx)
	if err != nil || len(inputs) == 0 {
		return err
	}
	next := s.without(nil)
	next.arrange()
	for i := range next.Inputs {
		if e := &next.Inputs[i]; inputs[e.Input] {
			e.Generation = next.Generation
		}
	}
	if err := d.writeState(ctx, stateName(next.Generation), next, false); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// preload reads parts, as far as they are still there.
func (l *listing) preload(ctx context.Context, names []*partName) error {
	return l.dir.all(len(names), func(i int) error {
		_, err := l.load(ctx, names[i])
		return err
	})
}

// loadAll reads parts; nil if one has gone meanwhile.
func (l *listing) loadAll(ctx context.Context, names []*partName) (parts []*Part, err error) {
	if err := l.preload(ctx, names); err != nil {
		return nil, err
	}
	for _, p := range names {
		if p.part == nil {
			return nil, nil
		}
		p.part.name = p.name
		parts = append(parts, p.part)
	}
	return parts, nil
}

// of returns the parts of a run.
func (l *listing) of(run string, of uint32) (parts []*partName) {
	for _, p := range l.parts {
		if p.run == run && p.of == of {
			parts = append(parts, p)
		}
	}
	return parts
}

// missing returns which workers of a run are not done, or "".
func missing(parts []*partName) string {
	if len(parts) == 0 {
		return "no worker is done"
	}
	done := map[uint32]bool{}
	for _, p := range parts {
		done[p.shard] = true
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

// commit makes the parts of all workers of a run part of the state, and publishes their files. run
// is that of a worker; nil: of [Dir.Complete].
func (d *Dir) commit(ctx context.Context, parts []*Part, run *Run) error {
	u, err := d.merged(parts)
	if err != nil {
		return err
	}
	for try := range maxCommitAttempts {
		l, err := d.settled(ctx)
		if err != nil {
			return err
		}
		if err = d.swap(ctx, l, u, run); err == nil {
			err = d.forget(ctx, parts)
		}
		if !errors.Is(err, errLost) {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
	return errLost
}

// swap writes the state that includes a run, and publishes it. The error is errLost if another run
// has committed since the state was listed.
func (d *Dir) swap(ctx context.Context, l *listing, u *mergedParts, run *Run) error {
	s, err := l.state(ctx)
	if err != nil || s.committed(u.first) {
		return err
	}
	if err := d.current(s, u); err != nil {
		return err
	}
	if err := d.present(ctx, l, s, u.files); err != nil {
		return err
	}
	if err := u.required(s); err != nil {
		return err
	}
	if err := run.complete(ctx, s, u); err != nil {
		return err
	}
	next, err := d.next(l, s, u, run)
	if err != nil {
		return err
	}
	if err := d.sparing(ctx, l, next); err != nil {
		return err
	}
	if err := d.room(ctx, l, s, u.files, u.first.Task.Force); err != nil {
		return err
	}
	if run != nil {
		run.swapped = true
	}
	switch err := d.writeState(ctx, stateName(next.Generation), next, false); {
	case errors.Is(err, fs.ErrExist):
		return errLost
	case err != nil:
		return err
	}
	if err := d.newest(ctx, next, u.first); err != nil {
		return err
	}
	l.known, l.newest, l.settled = next, next.Generation, false
	return d.publish(ctx, l, next)
}

// current returns an error if another run has committed outputs of the same inputs since this one
// began.
func (d *Dir) current(s *State, u *mergedParts) error {
	p := *u.first
	p.Inputs = u.entries
	input, late := s.outdated(&p)
	if !late || p.elsewhere && p.Task.Force {
		return nil
	}
	of := ""
	if input != "" {
		of = " of " + input
	}
	if p.elsewhere {
		return faults.Errorf("%s: %w: it has outputs%s (run all workers with {Force}, and what they write replaces them)", d.Name, ErrExists, of)
	}
	return d.rival(of)
}

// rival returns the error of a run that another one was faster than.
func (d *Dir) rival(of string) error {
	return cause.Mark(cause.Workers, fmt.Errorf("%s: %w: another run has committed outputs%s since this one began (run again; let only one run write the outputs of an input)%w", d.Name, ErrExists, of, quiet.Error{Err: storage.ErrAgain}))
}

// complete returns an error unless every input of the run is being committed, or in the state as the
// run has seen it. Another run may have removed or replaced outputs since this run was planned.
func (r *Run) complete(ctx context.Context, s *State, u *mergedParts) error {
	if r == nil || s.Generation == u.first.Task.Generation {
		return nil
	}
	now := map[string]bool{}
	for _, e := range u.entries {
		now[e.Input] = true
	}
	newer := false
	for input, err := range r.in.names() {
		e := s.entry(input)
		switch {
		case err != nil:
			return err
		case now[input]:
		case e == nil:
			err := cause.Mark(cause.Workers, fmt.Errorf("%s: %w: another run has removed the outputs of %s in the meantime, as the input was gone (run all workers again)%w", r.dir.Name, ErrExists, input, quiet.Error{Err: storage.ErrAgain}))
			return r.overtaken(ctx, err)
		default:
			newer = newer || e.Generation > u.first.Task.Generation
		}
	}
	if !newer {
		return nil
	}
	for in, err := range r.in.Each {
		if err != nil {
			return err
		}
		e := s.entry(in.Input)
		if now[in.Input] || e.Generation <= u.first.Task.Generation {
			continue
		}
		was := s.recipe(e)
		if e.Size != in.Size || e.Print != in.Print || !was.sameOptions(&r.dir.Recipe) || was.IDs != r.dir.Recipe.IDs && r.dir.IDsChanged != IDsKeep {
			return r.overtaken(ctx, r.dir.rival(" of "+in.Input))
		}
	}
	return nil
}

// overtaken drops the run, which can be committed no more, and returns the error.
func (r *Run) overtaken(ctx context.Context, err error) error {
	l, failed := r.dir.lookBeside(ctx)
	if failed != nil {
		return failed
	}
	return errors.Join(err, r.drop(ctx, l))
}

// present returns an error unless what workers have staged is there, as far as the listing
// shows it: on object stores, it does not. Of copies, which have another time, the bytes are compared.
func (d *Dir) present(ctx context.Context, l *listing, s *State, files []File) error {
	for i := range files {
		f := &files[i]
		if !strings.HasSuffix(f.Staged, ".staged") { // an upload
			continue
		}
		name := f.Name[:strings.LastIndexByte(f.Name, '/')+1] + f.Staged
		staged, ok := l.objects[name]
		if now, copied := l.objects[f.Name]; !ok && copied && s.file(f.Name) == nil {
			name, staged, ok = f.Name, now, true
		}
		got := "nothing"
		switch {
		case ok && staged.Size != f.Bytes:
			got = fmt.Sprintf("%d bytes", staged.Size)
		case ok && (f.Identity == "" || f.Identity == staged.Identity || f.Sum == ""):
			continue
		case ok:
			sum, _, err := SumOf(ctx, d.Store, d.path(name))
			if err == nil && sum == f.Sum || errors.Is(err, fs.ErrNotExist) { // another process has published it
				continue
			}
			if err != nil {
				return err
			}
			got = "other bytes"
		}
		now, err := d.lookBeside(ctx)
		if err != nil {
			return err
		}
		if now.newest != l.newest { // another process has published it since the manifests were listed
			return errLost
		}
		return faults.Of(cause.Workers, faults.Mismatch(fault.At{File: d.path(f.Name)}, "the file", "what a worker has staged", got)).WithHint("run the worker that wrote it again")
	}
	return nil
}

// room returns an error if a file that this output has not written is in the way of one that is to
// be published.
func (d *Dir) room(ctx context.Context, l *listing, s *State, files []File, force bool) error {
	for _, f := range files {
		if err := l.way(f.Name); err != nil {
			return fmt.Errorf("%s: %w: %w, where an output belongs (remove it, or write to another directory)", d.Name, ErrExists, err)
		}
		now, ok := l.objects[f.Name]
		was := s.file(f.Name)
		if !ok || was != nil && (force || was.Identity != "" && was.Identity == now.Identity) {
			continue
		}
		marker, table, err := d.Marker(ctx, d.path(f.Name))
		if err != nil {
			return err
		}
		if marker == "" && (table || was == nil) {
			return faults.Errorf("%s: %w: %s is not an output of bloomjoin, and is in the way (remove it, or write to another directory)", d.Name, ErrExists, f.Name)
		}
	}
	return nil
}

// newest returns errLost, and removes a state again, if there is a later one that does not
// descend from it: it was made from an old state, whose number had become free.
func (d *Dir) newest(ctx context.Context, written *State, p *Part) error {
	l, err := d.lookBeside(ctx)
	if err != nil || l.newest <= written.Generation {
		return err
	}
	s, err := l.state(ctx)
	if err != nil || s.committed(p) {
		return err
	}
	return errors.Join(d.removeManifest(ctx, stateName(written.Generation)), errLost)
}

// forget removes the parts of a committed run, and its plan, and writes the copy of the state. The
// error is errLost if another state has replaced that with the run: some storages create no file
// exclusively.
func (d *Dir) forget(ctx context.Context, parts []*Part) error {
	l, err := d.settled(ctx)
	if err != nil {
		return err
	}
	s, err := l.state(ctx)
	if err != nil {
		return err
	}
	if !s.committed(parts[0]) {
		return errLost
	}
	if err := d.copyState(ctx, l, s); err != nil {
		return err
	}
	if of := parts[0].Of; of > 1 {
		if err := d.removeManifest(ctx, planName(parts[0].Run, of)); err != nil {
			return err
		}
	}
	staged := map[string]bool{}
	for _, p := range parts {
		for _, f := range p.Files {
			staged[f.Staged] = true
		}
	}
	left := l.of(parts[0].Run[:digits], parts[0].Of)
	return d.all(len(left), func(i int) error {
		part, err := l.load(ctx, left[i])
		switch {
		case err != nil, part == nil, !d.dead(s, part): // that one has begun since
			return err
		case slices.ContainsFunc(part.Files, func(f File) bool { return !staged[f.Staged] }): // of another attempt
			return l.dropPart(ctx, left[i])
		}
		return d.removeObject(ctx, d.listed(left[i]))
	})
}
