package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Writer publishes the files of one worker in a directory. Before the first of them
// becomes visible, begin makes room; after the last one, Finish records that all are
// there, and commits if this was the last worker.
//
// A process may be killed between any two of these steps:
//
//	begin    this worker's part of the run, not done, with the names of all files to come
//	         _SUCCESS is removed, of the directory and of the partitions that change
//	         each file, by renaming its whole copy, several at a time; where a partition's
//	         files are replaced, all of them together, when the last is complete
//	Finish   the part, done
//	         the commit, see [Dir.Complete]
type Writer struct {
	run     *Run
	targets []Target
	hold    bool
	files   []File         // complete
	held    []staged       // to become visible all together
	waiting errgroup.Group // calls that wait for the disk or the store
	failed  atomic.Pointer[error]
	seen    map[string]storage.Object // targets that were there when the writer began
	mu      sync.Mutex                // for the next three
	intent  string                    // identity of the part as begin wrote it
	settle  map[string]func() error   // what makes the names in each directory durable
	wrote   map[string]string         // identities of the files that are visible
	swaps   map[string]bool           // partitions in which files are replaced
	begun   bool
	changed bool // a file was published, or there was a part of an earlier attempt
}

// staged is a complete file that is not visible yet.
type staged struct {
	File
	file storage.Writer
}

// NewWriter returns a writer of some of the targets. If hold is true, all files become
// visible at the end, and until then nothing in the directory is changed. The caller
// calls [Writer.End] in any case.
func (r *Run) NewWriter(targets []Target, hold bool) *Writer {
	w := &Writer{run: r, targets: targets, hold: hold, settle: map[string]func() error{}, wrote: map[string]string{}}
	w.waiting.SetLimit(cmp.Or(r.dir.AtOnce, 8))
	return w
}

// Create begins a file, one of the targets. The caller passes the result to Add, or
// aborts it.
func (w *Writer) Create(ctx context.Context, name string) (storage.Writer, error) {
	return w.run.dir.Store.Create(ctx, w.run.dir.path(name), storage.CreateOptions{})
}

// Add takes over a complete file, which f describes. Unless files are held, it becomes visible
// in the background; a later call returns the error.
func (w *Writer) Add(ctx context.Context, file storage.Writer, f File) error {
	partition := partitionOf(f.Name)
	if !w.hold && len(w.held) > 0 && partitionOf(w.held[0].Name) != partition {
		if err := w.publish(ctx); err != nil { // the partition before is complete
			return errors.Join(err, file.Abort())
		}
	}
	if err := w.failed.Load(); err != nil {
		return errors.Join(*err, file.Abort())
	}
	w.files = append(w.files, f)
	s := staged{f, file}
	if !w.hold {
		if err := w.begin(ctx); err != nil {
			return errors.Join(err, file.Abort())
		}
	}
	if w.hold || w.swaps[partition] {
		w.held = append(w.held, s)
		w.later(func() error { return objects.Rest(file) })
		return nil
	}
	w.changed = true
	w.later(func() error { return w.commit(ctx, s) })
	return nil
}

// publish makes the files that are held visible, and waits until all files are, durably.
func (w *Writer) publish(ctx context.Context) error {
	if err := w.waiting.Wait(); err != nil {
		return err
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	w.changed = w.changed || len(w.held) > 0
	for _, s := range w.held {
		w.later(func() error { return w.commit(ctx, s) })
	}
	w.held = nil
	if err := w.waiting.Wait(); err != nil {
		return err
	}
	for _, settle := range w.settle {
		w.later(settle)
	}
	w.settle = map[string]func() error{}
	return w.waiting.Wait()
}

// later calls f while the caller goes on, as far as AtOnce allows.
func (w *Writer) later(f func() error) {
	w.waiting.Go(func() error {
		err := f()
		if err != nil {
			w.failed.CompareAndSwap(nil, &err)
		}
		return err
	})
	if w.run.dir.AtOnce == 1 {
		_ = w.waiting.Wait() // its error is kept
	}
}

// commit makes one file visible, or drops it. It replaces what was there when the writer began,
// but nothing that another run wrote meanwhile. A file that is there by now and has the same bytes
// is that of another attempt, and stays.
func (w *Writer) commit(ctx context.Context, s staged) (err error) {
	defer faults.Join(&err, s.file.Abort)
	if w.failed.Load() != nil {
		return nil // the error is known
	}
	if err := objects.Rest(s.file); err != nil { // the slow part, before the question whose place this is
		return err
	}
	if err := w.undisputed(ctx); err != nil {
		return err
	}
	before, there := w.seen[s.Name]
	identity, settle, err := objects.CommitOver(s.file, there, before.Identity)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, storage.ErrChanged) {
		d, name := w.run.dir, w.run.dir.path(s.Name)
		sum, now, failed := SumOf(ctx, d.Store, name)
		if failed != nil || sum != s.Sum {
			if other := d.Compare(ctx, name); other != nil && !errors.Is(other, ErrDone) {
				return other
			}
			return w.run.disputed() // of another run of this recipe, over other inputs
		}
		identity, err = now, nil
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote[s.Name] = identity
	if settle != nil {
		w.settle[path.Dir(s.Name)] = settle
	}
	return nil
}

// undisputed returns nil if this worker's part of the run is as it wrote it. It returns ErrDone
// if another attempt has finished and committed the run, and another error if another run has
// replaced outputs of this one.
func (w *Writer) undisputed(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.run
	d := r.dir
	name := d.manifest(r.partName(false))
	now, err := d.Store.Stat(ctx, name)
	if err == nil && now.Identity == w.intent && now.Identity != "" {
		return nil
	}
	p, err := d.readPart(ctx, name)
	if err == nil && p.lists(w.targets) {
		w.intent = now.Identity // this writer, or another attempt at the same run, has written it
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for range 2 { // another attempt's part may be committed, and thus gone, between listing and reading
		l, err := d.look(ctx)
		if err != nil {
			return err
		}
		if own, err := l.done(ctx, r); own != nil || err != nil { // another attempt is done
			return err
		}
		if is, err := w.committed(ctx, l); err != nil {
			return err
		} else if is {
			return ErrDone
		}
	}
	return r.disputed()
}

// committed reports whether the state has outputs of all targets' inputs as they are, by
// this run's recipe, and these are whole.
func (w *Writer) committed(ctx context.Context, l *listing) (bool, error) {
	d := w.run.dir
	s, err := l.state(ctx)
	if err != nil {
		return false, err
	}
	left := map[string]bool{}
	for _, t := range w.targets {
		left[t.Input] = true
	}
	is := func(input, sum string) (bool, error) {
		e := s.entry(input)
		if e == nil || !s.recipe(e).same(&d.Recipe) || sum != "" && e.Print != sum {
			return false, nil
		}
		delete(left, input)
		for _, name := range e.Files {
			if trouble, err := d.trouble(ctx, l, s.file(name)); err != nil || trouble != "" {
				return false, err
			}
		}
		return true, nil
	}
	for in, err := range w.run.in.Each {
		if err != nil {
			return false, err
		}
		if left[in.Input] {
			if is, err := is(in.Input, in.Print); !is || err != nil {
				return false, err
			}
		}
	}
	if left[""] { // rows that come from no input
		if is, err := is("", ""); !is || err != nil {
			return false, err
		}
	}
	return len(left) == 0, nil
}

// lists reports whether a part has all targets among its files.
func (p *Part) lists(targets []Target) bool {
	names := map[string]bool{}
	for _, f := range p.Files {
		names[f.Name] = true
	}
	return !slices.ContainsFunc(targets, func(t Target) bool { return !names[t.Name] })
}

// begin makes room for the files: see Writer.
func (w *Writer) begin(ctx context.Context) error {
	if w.begun {
		return nil
	}
	r := w.run
	d := r.dir
	l, err := d.look(ctx)
	if err != nil {
		return err
	}
	own, err := l.done(ctx, r)
	if err != nil {
		return err
	}
	again := own != nil
	if again && !d.Force && !d.All {
		if damaged, err := d.damaged(ctx, l, own.Files); err != nil {
			return err
		} else if damaged == "" { // another attempt has finished meanwhile
			return d.done(ctx, r)
		}
	}
	if w.seen, err = r.place(ctx, l, w.targets); err != nil {
		return err
	}
	w.changed = slices.ContainsFunc(l.parts, func(p *partName) bool { return r.has(p) && p.shard == d.Shard }) // it is about to be replaced
	intent := r.part()
	for _, t := range w.targets {
		intent.Files = append(intent.Files, File{Name: t.Name, Inputs: []string{t.Input}})
	}
	if err := d.writePart(ctx, r.partName(false), intent); err != nil {
		return err
	}
	w.begun = true
	if err := w.takeOver(ctx, l); err != nil { // now that this part lists the files, too
		return err
	}
	if again { // and not if another attempt finishes right now
		if err := d.removeManifest(ctx, r.partName(true)); err != nil {
			return err
		}
	}
	return w.unmark(ctx, l)
}

// part returns this worker's part of the run, without files.
func (r *Run) part() *Part {
	d := r.dir
	return &Part{
		Version: version, Run: r.id, Recipe: d.Recipe, Shard: d.Shard, Of: r.of(), Task: r.task.brief(), Require: d.Require,
		Inputs: []Entry{}, Files: []File{},
	}
}

// unmark removes _SUCCESS from the directory and from the partitions that this worker
// changes.
func (w *Writer) unmark(ctx context.Context, l *listing) error {
	w.swaps = map[string]bool{}
	touched := map[string]bool{Success: false}
	for _, t := range w.targets {
		p := partitionOf(t.Name)
		touched[path.Join(p, Success)] = false
		if _, ok := l.objects[t.Name]; ok {
			w.swaps[p] = true
		}
	}
	for _, input := range w.run.task.Remove {
		touched[path.Join(partitionOf(input), Success)] = false
		w.swaps[partitionOf(input)] = true
	}
	for _, name := range inOrder(touched) {
		if _, ok := l.objects[name]; !ok && name != Success { // which a run may have written since
			continue
		}
		if err := w.run.dir.remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Finish publishes what is held, and records that all files are there. entries are the
// inputs that this worker has read; matched IDs, of total, have a row. The last worker
// commits the run; otherwise waits says what the directory lacks. notes are for the user:
// what was damaged and why _SUCCESS is missing.
func (w *Writer) Finish(ctx context.Context, entries []Entry, matched, total int64) (notes []string, waits string, err error) {
	recipe := &w.run.dir.Recipe
	recipe.IDsMatched, recipe.IDsTotal = [2]int64{matched, matched}, total
	if err := w.allowed(ctx, entries); err != nil {
		return nil, "", err
	}
	if err := w.publish(ctx); err != nil {
		return nil, "", err
	}
	if err := w.undisputed(ctx); err != nil {
		return nil, "", err
	}
	r := w.run
	d := r.dir
	p := r.part()
	p.Done, p.Inputs = true, entries
	if p.Files, err = w.identified(ctx); err != nil {
		return nil, "", err
	}
	if err := d.writePart(ctx, r.partName(true), p); err != nil {
		return nil, "", err
	}
	if err := d.removeManifest(ctx, r.partName(false)); err != nil {
		return nil, "", err
	}
	lack := ""
	if !d.NoCommit {
		if lack, err = r.commitIfComplete(ctx); err == nil {
			err = r.remains(ctx, entries)
		}
	}
	if err == nil && (d.NoCommit || r.of() > 1) {
		waits, err = d.Unfinished(ctx, r)
	}
	notes = r.notes
	if lack != "" && waits == "" {
		notes = append(notes, fmt.Sprintf("%s is not there: %s", Success, lack))
	}
	return notes, waits, err
}

// remains returns an error unless the inputs that this worker has read are in the state, or
// wait there for other workers: another run may have taken the place of this one.
func (r *Run) remains(ctx context.Context, entries []Entry) error {
	l := &listing{dir: r.dir}
	if err := l.manifests(ctx); err != nil {
		return err
	}
	if slices.ContainsFunc(l.parts, func(p *partName) bool { return r.has(p) && p.shard == r.dir.Shard && p.done }) {
		return nil
	}
	s, err := l.state(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if now := s.entry(e.Input); now == nil || !s.recipe(now).same(&r.dir.Recipe) || now.Print != e.Print {
			return r.disputed()
		}
	}
	return nil
}

// disputed returns the error of a run whose place another one has taken. Another attempt
// finds what that one has left to do.
func (r *Run) disputed() error {
	return cause.Mark(cause.Workers, fmt.Errorf("%s: %w: another run replaced outputs of this one in the meantime (let only one run write the outputs of an input)%w", r.dir.Name, ErrExists, quiet.Error{Err: storage.ErrAgain}))
}

// allowed checks the requirements of a run with one worker before anything becomes visible.
// Those of a run with several are checked at the commit.
func (w *Writer) allowed(ctx context.Context, entries []Entry) error {
	d := w.run.dir
	if d.Of > 1 || d.Require == (Require{}) {
		return nil
	}
	l := &listing{dir: d}
	if err := l.manifests(ctx); err != nil {
		return err
	}
	s, err := l.state(ctx)
	if err != nil {
		return err
	}
	u := &mergedParts{first: w.run.part(), matched: d.Recipe.IDsMatched}
	for _, e := range entries {
		u.counts.add(e.Counts)
	}
	return u.required(s)
}

// Files returns the files that were added, in order.
func (w *Writer) Files() []File { return w.files }

// identified returns the files with what identifies them in their storage. A file that
// was replaced meanwhile is not what the manifest means.
func (w *Writer) identified(ctx context.Context) ([]File, error) {
	d := w.run.dir
	l := &listing{dir: d}
	if err := l.tree(ctx); err != nil {
		return nil, err
	}
	for i := range w.files {
		f := &w.files[i]
		f.Identity = w.wrote[f.Name]
		if trouble, err := d.trouble(ctx, l, f); err != nil {
			return nil, err
		} else if trouble != "" {
			return nil, fmt.Errorf("%s: %w: %s has changed since this run wrote it (let only one run write the outputs of an input)", d.Name, ErrExists, f.Name)
		}
		o := l.objects[f.Name]
		f.Modified, f.Identity = millis(o.ModTime), o.Identity
	}
	return w.files, nil
}

// End drops the files that are still held. After a failure, a run that has changed nothing
// removes its part, and a run that was replaced removes its files, too.
func (w *Writer) End(ctx context.Context, failed error) error {
	_ = w.waiting.Wait() // its error is in failed, or comes from what made failed
	var errs []error
	for _, s := range w.held {
		errs = append(errs, s.file.Abort())
	}
	w.held = nil
	if failed == nil || !w.begun {
		return errors.Join(errs...)
	}
	ctx = context.WithoutCancel(ctx)
	if w.changed && errors.Is(failed, ErrExists) {
		errs = append(errs, w.withdraw(ctx))
	}
	if !w.changed || errors.Is(failed, ErrExists) {
		for _, done := range []bool{false, true} {
			errs = append(errs, w.run.dir.removeManifest(ctx, w.run.partName(done)))
		}
	}
	if errors.Is(failed, ErrDone) { // but this one has removed _SUCCESS since
		_, err := w.run.commitIfComplete(ctx)
		errs = append(errs, err)
	} else if errors.Is(failed, ErrExists) { // as it may have replaced a file beside _SUCCESS
		l, err := w.run.dir.look(ctx)
		if err == nil {
			_, _, err = w.run.dir.mark(ctx, l)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
