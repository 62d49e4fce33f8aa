package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
)

// Check returns nil if this worker can write its targets, an error that wraps
// ErrDone if it has done so before and Force is not set, and one that wraps
// ErrExists if something is in the way. done is then the full name of the
// manifest of the finished run. Check removes a _SUCCESS that does not hold.
func (d *Dir) Check(ctx context.Context, targets []Target) (done string, err error) {
	l, err := d.look(ctx)
	if err != nil {
		return "", err
	}
	if err := d.dropFalseSuccess(ctx, l); err != nil {
		return "", err
	}
	if m := l.own(d); m != nil && m.Done && m.lists(targets) && !d.Force {
		problem, err := d.problem(ctx, l, m)
		if err != nil {
			return "", err
		}
		if problem == "" {
			return d.path(m.name), d.done(ctx)
		}
	}
	_, err = d.place(ctx, l, targets)
	return "", err
}

// dropFalseSuccess removes a _SUCCESS that does not hold.
func (d *Dir) dropFalseSuccess(ctx context.Context, l *listing) error {
	if _, ok := l.objects[Success]; !ok || len(l.manifests) == 0 {
		return nil
	}
	_, lack, _, err := d.summary(ctx, l)
	if err != nil || lack == "" {
		return err
	}
	return d.remove(ctx, Success)
}

// done returns the error of a run that has finished before. A worker that was
// stopped at the very end may have left the directory without _SUCCESS, so done
// writes it.
func (d *Dir) done(ctx context.Context) error {
	lack, err := d.succeed(ctx)
	if err != nil {
		return err
	}
	if lack != "" {
		return fmt.Errorf("%w, but there is no %s: %s", ErrDone, Success, lack)
	}
	return ErrDone
}

// place returns an error if a target cannot be written: its place, or a
// directory on the way, is taken by something that is neither of this run nor to
// be replaced with Force. Without Force no other run may have written to the
// directory at all, unless this one has finished there before and repairs its
// part. seen has the markers of the files that will be replaced.
func (d *Dir) place(ctx context.Context, l *listing, targets []Target) (seen map[string]string, err error) {
	if err := d.checkTypes(l); err != nil {
		return nil, err
	}
	if own := l.own(d); !d.Force && (own == nil || !own.Done) {
		if err := d.alone(ctx, l); err != nil {
			return nil, err
		}
	}
	if _, ok := l.objects[Success]; ok && len(l.manifests) == 0 {
		if _, err := d.readManifest(ctx, Success); err != nil {
			return nil, fmt.Errorf("%s: %w: %s was written by another program (write to another directory)", d.Name, ErrExists, Success)
		}
	}
	p := placement{dir: d, listing: l, replaced: l.replaced(d), own: map[string]bool{}, others: map[string]string{}}
	for name := range p.replaced {
		if obj, ok := l.objects[name]; ok && obj.Type != 0 {
			return nil, fmt.Errorf("%s: %w: %w, where an output of an earlier run was (remove it, or write to another directory)", d.Name, ErrExists, l.way(name))
		}
	}
	for _, m := range l.manifests {
		for _, f := range m.Files {
			if m.of(d) {
				p.own[f.Name] = true
			} else if p.others[f.Name] = f.Input; f.Input == "" {
				p.others[f.Name] = "other inputs"
			}
		}
	}
	seen = map[string]string{}
	for _, t := range targets {
		marker, ok, err := p.target(ctx, t)
		if err != nil {
			return nil, err
		}
		if ok {
			seen[t.Name] = marker
		}
	}
	return seen, nil
}

// checkTypes is CheckTypes for all files of other runs that stay in the directory.
func (d *Dir) checkTypes(l *listing) error {
	replaced := map[string]bool{}
	if d.Force {
		replaced = l.replaced(d)
	}
	for _, m := range l.manifests {
		stays := func(f File) bool { return !replaced[f.Name] }
		if m.of(d) || !slices.ContainsFunc(m.Files, stays) {
			continue
		}
		if err := d.CheckTypes(d.Name, m.Hive); err != nil {
			return err
		}
	}
	return nil
}

// placement decides which targets may be written.
type placement struct {
	dir      *Dir
	listing  *listing
	replaced map[string]bool   // see listing.replaced
	own      map[string]bool   // files in manifests of this run
	others   map[string]string // inputs of the files in manifests of other runs
}

// target returns an error if the target may not be written, and else the marker
// of the file that it replaces. ok is false if there is no such file.
func (p *placement) target(ctx context.Context, t Target) (marker string, ok bool, err error) {
	d := p.dir
	if !localName(t.Name) {
		return "", false, fmt.Errorf("%s: the output of %s would be %q, outside the directory (name the input by a path without ..)", d.Name, t.Input, t.Name)
	}
	if err := p.listing.way(t.Name); err != nil {
		return "", false, fmt.Errorf("%s: %w: %w, where the output of %s belongs (remove it, or write to another directory)", d.Name, ErrExists, err, t.Input)
	}
	if _, ok := p.listing.objects[t.Name]; !ok {
		return "", false, nil
	}
	marker, table, err := d.Marker(ctx, d.path(t.Name))
	if err != nil {
		return "", false, err
	}
	own, other := p.own[t.Name], p.others[t.Name]
	switch {
	case d.owns(marker), own && !table, d.Force && (own || p.replaced[t.Name]):
		return marker, true, nil
	case own:
		err = fault.Errorf("%s: %w: %s has changed since this run wrote it ({Force} replaces it)", d.Name, ErrExists, t.Name)
	case other != "" && !d.Force:
		err = d.foreign(t.Name)
	case other != "":
		err = fault.Errorf("%s: %w: %s is the output of %s, which is not an input of this run (write to another directory, or set {Base} so that the names differ)", d.Name, ErrExists, t.Name, other)
	default:
		err = fault.Errorf("%s: %w: %s is not listed in a manifest of this directory, so {Force} keeps it (remove it, or write to another directory)", d.Name, ErrExists, t.Name)
	}
	return "", false, err
}

// foreign returns the error of a file of another run.
func (d *Dir) foreign(name string) error {
	return fault.Errorf("%s: %w: %s does not come from these inputs and options ({Force} replaces the outputs of the inputs named, and keeps the others)", d.Name, ErrExists, name)
}

// alone returns an error that wraps ErrExists if the directory has anything but
// markers and outputs of this run.
func (d *Dir) alone(ctx context.Context, l *listing) error {
	own := map[string]bool{}
	for _, m := range l.manifests {
		if !m.of(d) {
			what := m.name
			if i := slices.IndexFunc(m.Files, func(f File) bool { _, ok := l.objects[f.Name]; return ok }); i >= 0 {
				what = m.Files[i].Name
			}
			return d.foreign(what)
		}
		for _, f := range m.Files {
			own[f.Name] = true
		}
	}
	for _, name := range l.data() {
		if own[name] {
			continue
		}
		marker := ""
		if l.objects[name].Type == 0 {
			var err error
			if marker, _, err = d.Marker(ctx, d.path(name)); err != nil {
				return err
			}
		}
		if marker == "" {
			return fault.Errorf("%s: %w: %s is not an output of bloomjoin (write to an empty directory; {Force} keeps such files)", d.Name, ErrExists, name)
		}
		if !d.owns(marker) {
			return d.foreign(name)
		}
	}
	return nil
}
