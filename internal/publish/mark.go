package publish

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/storage"
)

// mark writes _SUCCESS for the directory and for each complete partition, and removes it from
// others. It looks until nothing changes any more, as other runs may commit meanwhile.
func (d *Dir) mark(ctx context.Context) (noSuccessReason string, err error) {
	for try := range maxCommitAttempts {
		l, err := d.settled(ctx)
		if err != nil {
			return "", err
		}
		noSuccessReason, done, err := d.markOnce(ctx, l)
		if done || err != nil {
			return noSuccessReason, err
		}
		if err := pause(ctx, try); err != nil {
			return "", err
		}
	}
	return "other runs keep changing the directory", nil
}

// markOnce is mark with one listing. done is false if it changed something.
func (d *Dir) markOnce(ctx context.Context, l *listing) (noSuccessReason string, done bool, err error) {
	done = true
	s, err := l.state(ctx)
	if err == nil {
		err = d.tidy(ctx, l, s)
	}
	if err != nil {
		return "", false, err
	}
	busy := map[string]bool{} // partitions that are not complete
	if noSuccessReason, err = d.incomplete(ctx, l, s, busy); err != nil {
		return "", false, err
	}
	markers := s.markers(busy, noSuccessReason == "" && l.newest > 0)
	var empty []string
	for name := range l.objects {
		if _, known := markers[name]; !known && path.Base(name) == Success && l.alone(name) { // of a partition whose inputs are gone
			markers[name], empty = false, append(empty, name)
		}
	}
	for _, names := range inOrder(markers) {
		names = slices.DeleteFunc(names, func(name string) bool {
			_, is := l.objects[name]
			return is == markers[name]
		})
		err := d.all(len(names), func(i int) error {
			if markers[names[i]] {
				return d.touch(ctx, names[i])
			}
			return d.remove(ctx, names[i])
		})
		if err != nil {
			return "", false, err
		}
		done = done && len(names) == 0
	}
	return noSuccessReason, done, d.removeDirs(ctx, empty)
}

// alone reports whether a marker is all that a name=value directory has.
func (l *listing) alone(marker string) bool {
	dir := path.Dir(marker)
	if partitionOf(marker) != dir {
		return false
	}
	for name := range l.objects {
		if name != marker && strings.HasPrefix(name, dir+"/") {
			return false
		}
	}
	return true
}

// tidy removes what commits that were cut short have left, older generations, and what runs have
// staged that can no longer be committed. It writes the copy of the state.
func (d *Dir) tidy(ctx context.Context, l *listing, s *State) error {
	if err := l.dropPlans(ctx, s); err != nil {
		return err
	}
	err := d.all(len(l.parts), func(i int) error {
		p := l.parts[i]
		part, err := l.load(ctx, p)
		planned := p.of == 1 || slices.Contains(l.plans, planName(p.run, p.of))
		if err != nil || part == nil || planned && !d.dead(s, part) {
			return err
		}
		return l.dropPart(ctx, p)
	})
	if err == nil {
		err = d.all(len(l.stale), func(i int) error { return d.removeManifest(ctx, l.stale[i]) })
	}
	if err != nil || l.newest == 0 {
		return err
	}
	c := State{}
	if _, err := d.readJSON(ctx, d.manifest(copyName), &c, func() int { return c.Version }); err == nil && c.Generation == s.Generation {
		return nil
	}
	return d.copyState(ctx, l, s)
}

// incomplete returns what is wrong with the first file that is not as the state says, or
// that is an output without being in the state. Their partitions are added to busy.
func (d *Dir) incomplete(ctx context.Context, l *listing, s *State, busy map[string]bool) (wrong string, err error) {
	d.damaged = map[string]string{}
	for i := range s.Files {
		f := &s.Files[i]
		trouble, err := d.trouble(ctx, l, f)
		if err != nil {
			return "", err
		}
		if trouble != "" {
			busy[partitionOf(f.Name)] = true
			what := f.Name + " is " + trouble
			wrong = cmp.Or(wrong, what)
			for _, input := range f.Inputs {
				d.damaged[input] = what
			}
		}
	}
	for _, name := range l.data() {
		if l.objects[name].Type != 0 || s.file(name) != nil {
			continue
		}
		marker, _, err := d.Marker(ctx, d.path(name))
		if err != nil {
			return "", err
		}
		if marker != "" {
			busy[partitionOf(name)] = true
			wrong = cmp.Or(wrong, name+" is an output that no manifest lists")
		}
	}
	return wrong, nil
}

// markers returns the names of all _SUCCESS files that there should be, or not.
func (s *State) markers(busy map[string]bool, all bool) map[string]bool {
	want := map[string]bool{Success: all}
	for p := range busy {
		want[path.Join(p, Success)] = p == "" && all
	}
	for _, e := range s.Inputs {
		if p := partitionOf(e.Input); p != "" && localName(p) && !busy[p] {
			want[path.Join(p, Success)] = true
		}
	}
	return want
}

// touch writes an empty file.
func (d *Dir) touch(ctx context.Context, name string) (err error) {
	file, err := d.Store.Create(ctx, d.path(name), storage.CreateOptions{})
	if err != nil {
		return err
	}
	defer faults.Join(&err, file.Abort)
	if err := file.Commit(false); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// inOrder returns the names of markers in the order of changing them, those together that may be
// changed at once: the marker of the whole directory is removed first and written last.
func inOrder(markers map[string]bool) [2][]string {
	var names []string
	for name := range markers {
		if name != Success {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if markers[Success] {
		return [2][]string{names, {Success}}
	}
	return [2][]string{{Success}, names}
}
