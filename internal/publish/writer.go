package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Writer stages the files of one worker. Finish creates the worker's part, and commits the run if
// this was its last worker.
type Writer struct {
	run     *Run
	targets []Target
	files   []*File
	waiting errgroup.Group // calls that wait for the disk or the store
	failed  atomic.Pointer[error]
	mu      sync.Mutex              // for settle, and the tokens of files
	settle  map[string]func() error // what makes the names in each directory durable
	parted  bool                    // a part has the files
	kept    []func()                // of staged files: to be called then, see tell
}

// staging is a file that is not complete yet.
type staging struct {
	storage.Writer
	seal objects.Seal
}

// Rest implements [storage.Rester].
func (s staging) Rest() error { return objects.Rest(s.Writer) }

// NewWriter returns a writer of some of the targets. The caller calls [Writer.End] in any case.
func (r *Run) NewWriter(targets []Target) *Writer {
	w := &Writer{run: r, targets: targets, settle: map[string]func() error{}}
	atOnce := min(max(objects.Concurrency(r.dir.Store, r.dir.Name), 8), requestsAtOnce)
	w.waiting.SetLimit(cmp.Or(r.dir.AtOnce, atOnce))
	return w
}

// Create begins a file, one of the targets. The caller passes the result to Add, or
// aborts it.
func (w *Writer) Create(ctx context.Context, name string) (storage.Writer, error) {
	d := w.run.dir
	file, seal, err := objects.Stage(ctx, d.Store, d.path(name), objects.Resolve(d.Store, d.Manifests))
	if err != nil {
		return nil, err
	}
	return staging{file, seal}, nil
}

// Add takes over a complete file, which f describes. It is made durable in the background; a
// later call returns the error.
func (w *Writer) Add(_ context.Context, file storage.Writer, f File) error {
	if err := w.failed.Load(); err != nil {
		return errors.Join(*err, file.Abort())
	}
	w.files = append(w.files, &f)
	w.waiting.Go(func() error {
		err := w.stage(file.(staging), &f)
		if err != nil {
			w.failed.CompareAndSwap(nil, &err)
		}
		return err
	})
	if w.run.dir.AtOnce == 1 {
		_ = w.waiting.Wait() // its error is kept
	}
	return nil
}

func (w *Writer) stage(file staging, f *File) error {
	token, identity, settle, err := file.seal()
	if err != nil {
		return errors.Join(err, file.Abort())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f.Staged, f.Identity = token, identity
	if settle != nil {
		w.settle[path.Dir(f.Name)] = settle
	}
	if of, ok := file.Writer.(interface{ Kept() }); ok {
		w.kept = append(w.kept, of.Kept)
	}
	return nil
}

// part returns this worker's part of the run, without files.
func (r *Run) part() *Part {
	d := r.dir
	return &Part{
		Version: version, Run: r.id, Recipe: d.Recipe, Shard: d.Shard, Of: r.of(), Task: r.task.brief(), Require: d.Require,
		Inputs: []Entry{}, Files: []File{},
	}
}

// Finish records that all files are there. entries are the inputs that this worker has read;
// matched IDs, of total, have a row. The last worker commits the run; otherwise waits says what the
// directory lacks. notes are for the user: what was damaged and why _SUCCESS is missing.
func (w *Writer) Finish(ctx context.Context, entries []Entry, matched, total int64) (notes []string, waits string, err error) {
	r := w.run
	d := r.dir
	d.Recipe.IDsMatched, d.Recipe.IDsTotal = [2]int64{matched, matched}, total
	if err := w.waiting.Wait(); err != nil {
		return nil, "", err
	}
	for _, settle := range w.settle {
		if err := settle(); err != nil {
			return nil, "", err
		}
	}
	p := r.part()
	p.Inputs = entries
	for _, f := range w.files {
		p.Files = append(p.Files, *f)
	}
	if err := w.create(ctx, p); err != nil {
		return nil, "", err
	}
	lack := ""
	if !d.NoCommit {
		if lack, err = r.commitIfComplete(ctx); err != nil {
			return r.notes, "", errors.Join(err, r.undo(context.WithoutCancel(ctx), err))
		}
	}
	if d.NoCommit || r.of() > 1 {
		waits, err = r.waits(ctx)
	}
	notes = r.notes
	if lack != "" && waits == "" {
		notes = append(notes, fmt.Sprintf("%s is not there: %s", Success, lack))
	}
	return notes, waits, err
}

// undo drops what a run has staged that could not be committed and has no other workers, or does not
// meet its requirements, or that another run was faster than.
func (r *Run) undo(ctx context.Context, failed error) error {
	unmet := errors.Is(failed, ErrRequire)
	switch {
	case r.swapped, !unmet && !errors.Is(failed, ErrExists): // others may be about to commit it
		return nil
	case r.of() > 1 && !unmet:
		_, err := r.dir.mark(ctx)
		return err
	}
	l, err := r.dir.lookBeside(ctx)
	if err != nil {
		return err
	}
	return r.drop(ctx, l)
}

// create creates this worker's part. If another attempt was faster, its part counts.
func (w *Writer) create(ctx context.Context, p *Part) error {
	r := w.run
	for try := range maxCommitAttempts {
		r.own = p
		err := r.dir.writePart(ctx, r.partName(), p)
		if err == nil {
			w.parted = true
			w.tell()
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			w.parted = errors.Is(err, storage.ErrAgain) || ctx.Err() != nil // the request may arrive later
			return err
		}
		l, err := r.dir.settled(ctx)
		if err != nil {
			return err
		}
		s, err := l.state(ctx)
		if err != nil || s.committed(p) {
			return err
		}
		now, err := r.dir.readPart(ctx, r.dir.manifest(r.partName()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was committed, or dropped
		case err != nil:
			return err
		case !r.dir.dead(s, now):
			r.own = now
			return nil
		default:
			err = l.dropPart(ctx, &partName{name: r.partName(), part: now})
		}
		if err := errors.Join(err, pause(ctx, try)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errLost
}

// Files returns the files that were added, in order.
func (w *Writer) Files() (files []File) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.files {
		files = append(files, *f)
	}
	return files
}

// End drops what was staged unless it is in this worker's part, and after a failure the
// directories that were made for it.
func (w *Writer) End(ctx context.Context, failed error) error {
	_ = w.waiting.Wait() // its error is in failed, or comes from what made failed
	if w.parted {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	d := w.run.dir
	files := w.Files()
	err := d.discard(ctx, files)
	if err == nil {
		w.tell()
	}
	if failed != nil {
		err = errors.Join(err, d.removeDirs(ctx, each.Slice(files, func(f File) string { return f.Name })))
	}
	return err
}

// tell says that a part has what is staged, or nothing is any more.
func (w *Writer) tell() {
	for _, kept := range w.kept {
		kept()
	}
	w.kept = nil
}
