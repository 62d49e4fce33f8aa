package publish

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/storage"
)

// mark writes _SUCCESS for the directory and for each complete partition without a run under
// way, and removes it from others. settled is false if it changed something: the caller looks
// again, as others may have changed the directory meanwhile.
func (d *Dir) mark(ctx context.Context, l *listing) (noSuccessReason string, settled bool, err error) {
	settled = true
	s, err := l.state(ctx)
	if err == nil {
		err = d.tidy(ctx, l, s)
	}
	if err != nil {
		return "", false, err
	}
	busy := map[string]bool{} // partitions that are not complete
	for _, p := range l.parts {
		if left, err := l.leftOver(ctx, p); err != nil {
			return "", false, err
		} else if left {
			if err := d.removeManifest(ctx, p.name); err != nil {
				return "", false, err
			}
			settled = false // its run may have been committed after the state was read
			continue
		}
		noSuccessReason = cmp.Or(noSuccessReason, "the run of "+d.manifest(p.name)+" has not finished")
		part, err := l.load(ctx, p)
		if err != nil {
			return "", false, err
		}
		if part == nil {
			return "", false, nil // it has been committed meanwhile
		}
		part.busy(busy)
	}
	if wrong, err := d.incomplete(ctx, l, s, busy); err != nil {
		return "", false, err
	} else if wrong != "" {
		noSuccessReason = wrong
	}
	markers := s.markers(busy, noSuccessReason == "" && l.newest > 0)
	for _, name := range inOrder(markers) {
		_, is := l.objects[name]
		want := markers[name]
		switch {
		case is && !want:
			err = d.remove(ctx, name)
		case want && !is:
			err = d.touch(ctx, name)
		default:
			continue
		}
		if err != nil {
			return "", false, err
		}
		settled = false
	}
	return noSuccessReason, settled, nil
}

// busy adds the partitions that a run changes; p may be nil.
func (p *Part) busy(partitions map[string]bool) {
	if p == nil {
		return
	}
	for _, f := range p.Files {
		partitions[partitionOf(f.Name)] = true
	}
	for _, input := range p.Task.Remove {
		partitions[partitionOf(input)] = true
	}
}

// tidy does what commits that were cut short have left undone: it removes files that the
// state has no place for and older generations, and writes the copy of the state.
func (d *Dir) tidy(ctx context.Context, l *listing, s *State) error {
	if err := d.clear(ctx, l, s); err != nil {
		return err
	}
	for _, name := range l.stale {
		if err := d.removeManifest(ctx, name); err != nil {
			return err
		}
	}
	if l.newest == 0 || l.copied {
		return nil
	}
	return d.copyState(ctx, s)
}

// incomplete returns what is wrong with the first file that is not as the state says, or
// that is an output without being in the state. Their partitions are added to busy.
func (d *Dir) incomplete(ctx context.Context, l *listing, s *State, busy map[string]bool) (wrong string, err error) {
	for i := range s.Files {
		f := &s.Files[i]
		trouble, err := d.trouble(ctx, l, f)
		if err != nil {
			return "", err
		}
		if trouble != "" {
			busy[partitionOf(f.Name)] = true
			wrong = cmp.Or(wrong, f.Name+" is "+trouble)
		}
	}
	planned, err := l.planned(ctx, func(*Part) bool { return true })
	if err != nil {
		return "", err
	}
	for _, name := range l.data() {
		if planned[name] || l.objects[name].Type != 0 || s.file(name) != nil || slices.Contains(s.Remove, name) {
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
		if p := partitionOf(e.Input); p != "" && !busy[p] {
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

// inOrder returns the names of markers in the order of changing them: the marker of the whole
// directory is removed first and written last.
func inOrder(markers map[string]bool) (names []string) {
	for name := range markers {
		if name != Success {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if markers[Success] {
		return append(names, Success)
	}
	return append([]string{Success}, names...)
}
