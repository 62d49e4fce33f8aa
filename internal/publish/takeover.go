package publish

import (
	"context"
	"slices"

	"github.com/bloomjoin/bloomjoin/storage"
)

// takeOver takes the inputs that this worker reads from uncommitted runs. The first worker of
// a run that replaces others also takes their inputs that no worker of this run reads.
func (w *Writer) takeOver(ctx context.Context, l *listing) error {
	r := w.run
	mine, reads := map[string]bool{}, map[string]bool{}
	for _, t := range w.targets {
		mine[t.Name], reads[t.Input] = true, true
	}
	if len(w.seen) > 0 {
		s, err := l.state(ctx)
		if err != nil {
			return err
		}
		for name := range w.seen {
			w.changed = w.changed || s.file(name) == nil // from here on, only this part lists it
		}
	}
	unread := func(p *partName, f *File) bool {
		return r.dir.Shard == 0 && slices.Contains(r.task.Abandon, p.key()) && (f == nil || !slices.ContainsFunc(f.Inputs, r.Does))
	}
	if r.dir.Shard == 0 {
		if err := l.dropPlans(ctx, func(key string) bool { return slices.Contains(r.task.Abandon, key) && key != r.key() }); err != nil {
			return err
		}
	}
	return l.takeOver(ctx, r.has, unread, mine, reads)
}

// dropPlans removes the plans of runs that no worker has begun, where gone returns true.
func (l *listing) dropPlans(ctx context.Context, gone func(key string) bool) error {
	for _, name := range l.plans {
		key := keyOfPlan(name)
		if !gone(key) || slices.ContainsFunc(l.parts, func(p *partName) bool { return p.key() == key }) {
			continue
		}
		if err := l.dir.removeManifest(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// takeOver removes files from the parts of other uncommitted runs: files in mine, files of
// inputs in reads, and files for which gone returns true. These runs were killed, or will notice. A
// part without files is removed if it has lost any or gone is true of it; with the last part goes
// the run's plan. Files that are neither in the state nor about to be written are removed, too.
func (l *listing) takeOver(ctx context.Context, own func(*partName) bool, gone func(*partName, *File) bool, mine, reads map[string]bool) error {
	left := map[string]int{} // parts by run
	for _, p := range l.parts {
		if own(p) {
			continue
		}
		part, err := l.load(ctx, p)
		if err != nil {
			return err
		}
		if part == nil {
			continue
		}
		var dropped []File
		kept := slices.DeleteFunc(slices.Clone(part.Files), func(f File) bool {
			drop := mine[f.Name] || slices.ContainsFunc(f.Inputs, func(input string) bool { return reads[input] }) || gone(p, &f)
			if drop {
				dropped = append(dropped, f)
			}
			return drop
		})
		left[p.key()] += 0 // so that the key is there
		if len(dropped) == 0 && (len(kept) > 0 || !gone(p, nil)) {
			left[p.key()]++
			continue
		}
		if len(kept) > 0 {
			left[p.key()]++
		}
		part.Files, part.Inputs, part.Done, part.Yielded = kept, []Entry{}, false, true // another attempt of that run has to do them again
		if err := l.dir.yield(ctx, l, p, dropped, mine); err != nil {
			return err
		}
	}
	for key, n := range left {
		if n > 0 {
			continue
		}
		if err := l.dir.removeManifest(ctx, planOf(key)); err != nil {
			return err
		}
	}
	return nil
}

// yield writes the part of another run without the dropped files, and removes those files
// unless they are in the state or about to be written.
func (d *Dir) yield(ctx context.Context, l *listing, p *partName, dropped []File, mine map[string]bool) error {
	s, err := l.state(ctx)
	if err != nil {
		return err
	}
	for _, f := range dropped {
		if _, ok := l.objects[f.Name]; ok && !mine[f.Name] && s.file(f.Name) == nil {
			if err := d.remove(ctx, f.Name); err != nil {
				return err
			}
		}
	}
	unfinished, finished := p.names() // its worker may have finished since the directory was listed
	if len(p.part.Files) > 0 {
		if err := d.writePart(ctx, unfinished, p.part); err != nil {
			return err
		}
	} else if err := d.removeManifest(ctx, unfinished); err != nil {
		return err
	}
	return d.removeManifest(ctx, finished)
}

// withdraw removes the files of this worker that are neither in the state nor planned by
// another run.
func (w *Writer) withdraw(ctx context.Context) error {
	r := w.run
	d := r.dir
	l, err := d.look(ctx)
	if err != nil {
		return err
	}
	s, err := l.state(ctx)
	if err != nil {
		return err
	}
	l.parts = slices.DeleteFunc(l.parts, r.has)
	planned, err := l.planned(ctx, func(*Part) bool { return true })
	if err != nil {
		return err
	}
	for _, t := range w.targets {
		wrote := w.wrote[t.Name]
		if wrote == "" || planned[t.Name] || s.file(t.Name) != nil {
			continue
		}
		if err := d.removeObject(ctx, storage.Object{Name: d.path(t.Name), Identity: wrote}); err != nil {
			return err
		}
	}
	return nil
}
