package publish

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// clear removes the files that a state has no place for. What another program has put there
// since stays.
func (d *Dir) clear(ctx context.Context, l *listing, s *State) error {
	names := make([]string, len(s.Remove))
	err := d.all(len(names), func(i int) error {
		f := &s.Remove[i]
		names[i] = f.Name
		o, ok := l.objects[f.Name]
		if !ok || o.Type != 0 || s.file(f.Name) != nil {
			return nil
		}
		if why, err := d.replaced(ctx, l, f); err != nil || why != "" {
			return err
		}
		return d.removeObject(ctx, storage.Object{Name: d.path(f.Name), Identity: o.Identity})
	})
	if err != nil {
		return err
	}
	return d.removeDirs(ctx, names)
}

// replaced returns what others have made of a file that the state lists. It is empty if the
// file is gone or as this output wrote it, also if a killed run left another version: that one
// is marked as an output.
func (d *Dir) replaced(ctx context.Context, l *listing, f *File) (string, error) {
	why, err := d.trouble(ctx, l, f)
	obj := l.objects[f.Name]
	if why == "" && f.Sum == "" && f.Identity != obj.Identity {
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
	return d.all(len(next.Remove), func(i int) error {
		f := &next.Remove[i]
		why, err := d.replaced(ctx, l, f)
		if err == nil && why != "" {
			return fmt.Errorf("%s: %s is not the file that this output has written (%s), and this run would remove it, as its input is gone or has other outputs (move the file to another place)%w", d.Name, f.Name, why, quiet.Error{Err: ErrExists})
		}
		return err
	})
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
