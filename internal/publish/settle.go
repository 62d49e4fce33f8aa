package publish

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// newest returns errLost, and removes the generation again, if there is a later one: it
// was made from an old state.
func (d *Dir) newest(ctx context.Context, generation int64) error {
	tree, err := d.Store.Tree(ctx, d.Manifests)
	if err != nil {
		return err
	}
	for _, obj := range tree {
		if generationOf(obj.Rel) > generation {
			return cmp.Or(d.removeManifest(ctx, stateName(generation)), errLost)
		}
	}
	return nil
}

// settle removes what a new state has no place for, and the parts of the run. If it is
// cut short, the parts are still there, and the run is committed once more.
func (d *Dir) settle(ctx context.Context, l *listing, next *State, parts []*Part, run *Run) error {
	if err := d.clear(ctx, l, next); err != nil {
		return err
	}
	if err := d.removeDirs(ctx, parts[0].Task.Remove); err != nil { // they may have had no file but _SUCCESS
		return err
	}
	if err := d.supersede(ctx, next, parts, run); err != nil {
		return err
	}
	if err := d.copyState(ctx, next); err != nil {
		return err
	}
	for _, name := range l.stale {
		if err := d.removeManifest(ctx, name); err != nil {
			return err
		}
	}
	if next.Generation > 1 {
		if err := d.removeManifest(ctx, stateName(next.Generation-1)); err != nil {
			return err
		}
	}
	id, of := parts[0].Run, parts[0].Of
	if of > 1 {
		if err := d.removeManifest(ctx, planName(id, of)); err != nil {
			return err
		}
	}
	for _, p := range parts {
		unfinished := strings.TrimSuffix(path.Base(p.name), ".json") + begun + ".json" // of a second attempt
		for _, name := range []string{unfinished, path.Base(p.name)} {
			if err := d.removeManifest(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// reads reports whether a part has read, or is about to write, some of the inputs.
func (p *Part) reads(inputs map[string]bool) bool {
	return slices.ContainsFunc(p.Inputs, func(e Entry) bool { return inputs[e.Input] }) ||
		slices.ContainsFunc(p.Files, func(f File) bool {
			return slices.ContainsFunc(f.Inputs, func(input string) bool { return inputs[input] })
		})
}

// supersede takes the inputs of a run that is being committed from the parts of other runs.
// They were killed, or began with another list of inputs, or will notice.
func (d *Dir) supersede(ctx context.Context, next *State, parts []*Part, run *Run) error {
	l, err := d.look(ctx)
	if err != nil {
		return err
	}
	l.known = next
	reads := map[string]bool{}
	for _, p := range parts {
		for _, e := range p.Inputs {
			reads[e.Input] = true
		}
	}
	done := maps.Clone(reads)
	if run != nil {
		for in, err := range run.in.Each {
			if err != nil {
				return err
			}
			done[in.Input] = true
		}
	}
	key := keyOf(parts[0].Run, parts[0].Of)
	own := func(p *partName) bool { return p.key() == key }
	outdone, err := l.outdone(ctx, key, &parts[0].Recipe, next, done, nil)
	if err != nil {
		return err
	}
	if err := l.dropPlans(ctx, func(key string) bool { return outdone[key] }); err != nil {
		return err
	}
	touched := map[string]bool{} // runs with a part that has read some of these inputs
	for _, p := range l.parts {
		if own(p) {
			continue
		}
		part, err := l.load(ctx, p)
		if err != nil {
			return err
		}
		if part != nil && part.reads(reads) {
			touched[p.key()] = true
		}
	}
	unread := func(p *partName, f *File) bool { // its rows were none, and it has read inputs of the run, or nothing
		return outdone[p.key()] || f == nil && !slices.ContainsFunc(p.part.Inputs, func(e Entry) bool { return !reads[e.Input] }) && (len(p.part.Inputs) > 0 || touched[p.key()])
	}
	return l.takeOver(ctx, own, unread, nil, reads)
}

// copyState writes the copy of the state for other programs. If another run commits
// meanwhile, the copy is of its state.
func (d *Dir) copyState(ctx context.Context, s *State) error {
	for range maxCommitAttempts {
		if err := d.writeState(ctx, copyName, s, true); err != nil {
			return err
		}
		l := &listing{dir: d}
		if err := l.manifests(ctx); err != nil {
			return err
		}
		if l.newest == s.Generation {
			return nil
		}
		var err error
		if s, err = l.state(ctx); err != nil {
			return err
		}
	}
	return errLost
}

// unsettled reports whether a file is of the generation before a state, and would have been
// removed if the commit had not been cut short: that generation goes after its files.
func (l *listing) unsettled(s *State, name string) bool {
	return slices.Contains(s.Remove, name) && slices.Contains(l.stale, stateName(s.Generation-1))
}

// clear removes the files that a state has no place for, as they were listed: what
// another run or program has written there since stays.
func (d *Dir) clear(ctx context.Context, l *listing, s *State) error {
	for _, name := range s.Remove {
		o, ok := l.objects[name]
		if !ok || s.file(name) != nil || o.Type != 0 {
			continue
		}
		if own, err := d.own(ctx, l, s, name); err != nil {
			return err
		} else if !own {
			continue
		}
		if err := d.removeObject(ctx, storage.Object{Name: d.path(name), Identity: o.Identity}); err != nil {
			return err
		}
	}
	return d.removeDirs(ctx, s.Remove)
}

// own reports whether a file that is to be removed is the one that this output wrote.
func (d *Dir) own(ctx context.Context, l *listing, s *State, name string) (bool, error) {
	if i := slices.IndexFunc(s.Removed, func(f File) bool { return f.Name == name }); i >= 0 {
		why, err := d.replaced(ctx, l, &s.Removed[i])
		return why == "", err
	}
	marker, _, err := d.Marker(ctx, d.path(name))
	return marker != "", err
}

// replaced returns what others have made of a file that the state lists. It is empty if the
// file is gone or as this output wrote it, also if a killed run left another version: that one
// is marked as an output.
func (d *Dir) replaced(ctx context.Context, l *listing, f *File) (string, error) {
	why, err := d.trouble(ctx, l, f)
	obj := l.objects[f.Name]
	if why == "" && f.Sum == "" && f.Identity != obj.Identity && f.Modified != millis(obj.ModTime) {
		why = "changed"
	}
	if why == "" || why == "missing" || err != nil {
		return "", err
	}
	marker, _, err := d.Marker(ctx, d.path(f.Name))
	if marker != "" {
		why = ""
	}
	return why, err
}

// sparing returns an error if a new state would remove a file that this output has not
// written, although it had written one of that name.
func (d *Dir) sparing(ctx context.Context, l *listing, next *State) error {
	for i := range next.Removed {
		f := &next.Removed[i]
		why, err := d.replaced(ctx, l, f)
		if err != nil {
			return err
		}
		if why != "" {
			return fmt.Errorf("%s: %s is not the file that this output has written (%s), and this run would remove it, as its input is gone or has other outputs (move the file to another place)%w", d.Name, f.Name, why, quiet.Error{Err: ErrExists})
		}
	}
	return nil
}

// removeDirs removes the directories of files that are gone, as far as they are empty.
func (d *Dir) removeDirs(ctx context.Context, gone []string) error {
	seen := map[string]bool{}
	var dirs []string
	for _, name := range gone {
		for dir := path.Dir(name); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return strings.Compare(b, a) }) // what is in a directory comes before it
	for _, dir := range dirs {
		if err := objects.RemoveDir(ctx, d.Store, d.path(dir)); err != nil {
			return err
		}
	}
	return nil
}
