package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/bloomjoin/bloomjoin/storage"
)

// Writer publishes the files of one worker in a directory. Before the first of
// them becomes visible, begin makes room; after the last one, Finish records that
// all are there.
//
// A process may be killed between any two of these steps. Each step leaves the
// directory such that every file is in a manifest, no manifest with Done lists a
// file of an earlier attempt, and _SUCCESS is only there with everything that it
// lists:
//
//	begin    the manifest, not done, with the names of all files to come
//	         _SUCCESS is removed
//	         with Force: files of other runs that will not be written over are
//	         removed, then other runs' manifests lose the files that are replaced
//	         each file, by renaming its whole copy
//	Finish   the manifest, done
//	         _SUCCESS, if all manifests are done and all files as they say
type Writer struct {
	dir     *Dir
	targets []Target
	hold    bool
	files   []File   // complete
	held    []staged // not visible yet
	seen    map[string]string
	intent  string // identity of the manifest as begin wrote it
	begun   bool
	changed bool // a file was published, or another run's file or manifest was changed
	notes   []string
}

// staged is a complete file that is not visible yet.
type staged struct {
	name string
	file storage.Writer
}

// NewWriter returns a writer of the targets. If hold is true, all files become
// visible at the end, and until then nothing in the directory is changed.
// The caller calls [Writer.End] in any case.
func (d *Dir) NewWriter(targets []Target, hold bool) *Writer {
	return &Writer{dir: d, targets: targets, hold: hold}
}

// Create begins a file, one of the targets. The caller passes the result to Add, or
// aborts it.
func (w *Writer) Create(ctx context.Context, name string) (storage.Writer, error) {
	return w.dir.Store.Create(ctx, w.dir.path(name), storage.CreateOptions{})
}

// Add takes over a file that is complete, and makes it visible unless files are held. f
// has its name, inputs, figures and checksum.
func (w *Writer) Add(ctx context.Context, file storage.Writer, f File) error {
	for _, t := range w.targets {
		if t.Name == f.Name {
			f.Input = t.Input
		}
	}
	w.files = append(w.files, f)
	w.held = append(w.held, staged{f.Name, file})
	if w.hold {
		return storage.Finish(file)
	}
	return w.publish(ctx)
}

// publish makes the files that are held visible.
func (w *Writer) publish(ctx context.Context) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	for len(w.held) > 0 {
		s := w.held[0]
		w.held = w.held[1:]
		if err := w.commit(ctx, s); err != nil {
			return errors.Join(err, s.file.Abort())
		}
	}
	return nil
}

// commit makes one file visible. It replaces what this run has left under the
// name, or what was to be replaced when the writer began, but nothing that
// another run has written meanwhile.
func (w *Writer) commit(ctx context.Context, s staged) error {
	d, name := w.dir, w.dir.path(s.name)
	if err := w.undisputed(ctx); err != nil {
		return err
	}
	marker, _, err := d.Marker(ctx, name)
	if err != nil {
		return err
	}
	before, there := w.seen[s.name]
	w.changed = true
	return d.Commit(ctx, name, s.file, d.owns(marker) || there && marker == before)
}

// undisputed returns an error if another run with Force has removed files from
// this worker's manifest, or all of it.
func (w *Writer) undisputed(ctx context.Context) error {
	d := w.dir
	now, err := d.Store.Stat(ctx, d.path(d.manifestName()))
	if err == nil && now.Identity == w.intent && now.Identity != "" {
		return nil
	}
	m, err := d.readManifest(ctx, d.manifestName())
	if err == nil && m.lists(w.targets) {
		w.intent = now.Identity // this writer, or another attempt at the same run, has written it
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: another run replaced outputs of this one in the meantime (let only one run write the outputs of an input)", d.Name, ErrExists)
	}
	return err
}

// begin makes room for the files: see Writer.
func (w *Writer) begin(ctx context.Context) error {
	if w.begun {
		return nil
	}
	d := w.dir
	l, err := d.look(ctx)
	if err != nil {
		return err
	}
	if w.seen, err = d.place(ctx, l, w.targets); err != nil {
		return err
	}
	own := l.own(d)
	if own != nil {
		w.changed = true // its manifest is about to be replaced
		if problem, err := d.problem(ctx, l, own); err != nil {
			return err
		} else if own.Done && problem != "" {
			w.notes = append(w.notes, problem+"; it was written again")
		}
	}
	plan := d.newManifest()
	for _, t := range w.targets {
		plan.Files = append(plan.Files, File{Name: t.Name, Input: t.Input})
	}
	if err := d.writeManifest(ctx, d.manifestName(), plan); err != nil {
		return err
	}
	w.begun = true
	if err := d.remove(ctx, Success); err != nil {
		return err
	}
	if own != nil && own.name != d.manifestName() { // of version 1
		if err := d.remove(ctx, own.name); err != nil {
			return err
		}
	}
	if d.Force {
		return w.clear(ctx, l)
	}
	return nil
}

// newManifest returns this worker's manifest without files.
func (d *Dir) newManifest() *Manifest {
	return &Manifest{Run: d.id(), Shard: d.Shard, Of: max(d.Of, 1), Result: d.Result, Filter: d.Filter, Hive: d.Hive, Files: []File{}}
}

// clear removes the files of other runs that are replaced and that no worker of
// this run writes over, and removes all that are replaced from the manifests.
func (w *Writer) clear(ctx context.Context, l *listing) error {
	d := w.dir
	replaced := l.replaced(d)
	if len(replaced) == 0 {
		return nil
	}
	w.changed = true
	written := map[string]bool{}
	for _, t := range w.targets {
		written[t.Name] = true
	}
	for _, name := range d.Outputs() {
		written[name] = true
	}
	for name := range replaced {
		if _, ok := l.objects[name]; !ok || written[name] {
			continue // place has refused what is not a regular file
		}
		if err := d.remove(ctx, name); err != nil {
			return err
		}
	}
	return w.prune(ctx, l, replaced)
}

// prune removes files from the manifests of other runs. A run that has no files
// left loses its manifests.
func (w *Writer) prune(ctx context.Context, l *listing, replaced map[string]bool) error {
	d := w.dir
	left := map[string]int{}
	for _, m := range l.manifests {
		if m.of(d) {
			continue
		}
		before := len(m.Files) + len(m.Without)
		gone := func(f File) bool { return replaced[f.Name] }
		m.Files, m.Without = slices.DeleteFunc(m.Files, gone), slices.DeleteFunc(m.Without, gone)
		left[m.group()] += len(m.Files) + len(m.Without)
		if len(m.Files)+len(m.Without) == before {
			continue
		}
		if err := d.recount(ctx, l, m); err != nil {
			return err
		}
		if err := d.writeManifest(ctx, m.name, m); err != nil {
			return err
		}
	}
	for _, m := range l.manifests {
		if n, ok := left[m.group()]; ok && n == 0 {
			if err := d.remove(ctx, m.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// recount sums up the figures of a manifest that has lost files. A changed file
// is recognised because it is younger than its manifest, which is about to be
// written: the manifest is then no longer done, and its run writes the file
// again.
func (d *Dir) recount(ctx context.Context, l *listing, m *Manifest) error {
	m.Rows, m.Bytes = 0, 0
	for _, f := range m.Files {
		m.Rows, m.Bytes = m.Rows+f.Rows, m.Bytes+f.Bytes
		trouble, err := d.trouble(ctx, l, m, f)
		if err != nil {
			return err
		}
		m.Done = m.Done && trouble != "changed"
	}
	return nil
}

// Finish publishes what is held, and records in the manifest that all files are
// there. notes are for the user: what was damaged and why _SUCCESS is missing.
func (w *Writer) Finish(ctx context.Context) (files []File, notes []string, err error) {
	if err := w.publish(ctx); err != nil {
		return nil, nil, err
	}
	if err := w.undisputed(ctx); err != nil {
		return nil, nil, err
	}
	d := w.dir
	m := d.newManifest()
	m.Done = true
	if m.Without, err = w.dropUnused(ctx); err != nil {
		return nil, nil, err
	}
	identities, err := w.identities(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range w.files {
		f.Identity = identities[f.Name]
		marker, _, err := d.Marker(ctx, d.path(f.Name))
		if err != nil {
			return nil, nil, err
		}
		if d.Known() && !d.owns(marker) {
			return nil, nil, fmt.Errorf("%s: %w: %s has changed since this run wrote it (let only one run write the outputs of an input)", d.Name, ErrExists, f.Name)
		}
		m.add(f)
	}
	if err := d.writeManifest(ctx, d.manifestName(), m); err != nil {
		return nil, nil, err
	}
	lack, err := d.succeed(ctx)
	if lack != "" {
		w.notes = append(w.notes, fmt.Sprintf("%s is not there: %s", Success, lack))
	}
	return w.files, w.notes, err
}

// dropUnused returns the targets that were not written. What was there in their place
// is removed, if it was to be replaced.
func (w *Writer) dropUnused(ctx context.Context) (without []File, err error) {
	written := map[string]bool{}
	for _, f := range w.files {
		written[f.Name] = true
	}
	for _, t := range w.targets {
		if written[t.Name] {
			continue
		}
		without = append(without, File{Name: t.Name, Input: t.Input})
		if _, ok := w.seen[t.Name]; !ok {
			continue
		}
		w.changed = true
		if err := w.dir.remove(ctx, t.Name); err != nil {
			return nil, err
		}
	}
	return without, nil
}

// identities returns the identities of the files that manifests record, see
// [File]. A file that is replaced after this is none that the manifest means.
func (w *Writer) identities(ctx context.Context) (map[string]string, error) {
	tree, err := w.dir.Store.Tree(ctx, w.dir.Name)
	if err != nil {
		return nil, err
	}
	identities := map[string]string{}
	for _, o := range tree {
		if !o.ModTime.IsZero() && o.ModTime.Nanosecond() == 0 {
			identities[o.Rel] = o.Identity
		}
	}
	return identities, nil
}

// End drops the files that are still held. After a failure, a run that has
// changed nothing removes its manifest.
func (w *Writer) End(ctx context.Context, failed error) error {
	var errs []error
	for _, s := range w.held {
		errs = append(errs, s.file.Abort())
	}
	w.held = nil
	if failed != nil && w.begun && !w.changed {
		errs = append(errs, w.dir.remove(context.WithoutCancel(ctx), w.dir.manifestName()))
	}
	return errors.Join(errs...)
}
