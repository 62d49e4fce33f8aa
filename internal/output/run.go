package output

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Run is what an output comes from: what was read, and what was done with it.
// Runs of equal digests write equal outputs, so a run that finds an output of its
// own digest is done. The workers of one run differ in [Output].Shard alone.
//
// In a directory each file is compared by itself: it is up to date if it comes from the
// same input with the same options and IDs, whatever the other inputs are.
//
// The files must stay open while the Run is in use.
type Run struct {
	// Options describe what is done: the command, and the values of all options
	// that the output depends on, such as keys with their casts, columns, the
	// layout and the requested schema. If there are none, no output is recognised as
	// that of the same run.
	Options []string
	// IDs are inputs other than the log, and Filters are digests of filters.
	IDs     []*source.File
	Filters [][32]byte
	// Log has all files of the log that were found, whatever the shard. Their order
	// matters.
	Log []*source.File
	// Skipped are the files of Log that have no output because they have no key.
	Skipped []*source.File
	// List, if not nil, has the files of the log in place of Log, which then has only
	// those that are open, at least one of each schema. Inputs that were not chosen of
	// the list have no output.
	List *inputs.List
	// Found, if not nil, is List with the inputs that have no output because they have
	// no key: those that are Skipped of Log.
	Found *inputs.List
	// Uses reports whether outputs in a directory depend on the type of a column of the log's
	// paths; nil: on all.
	Uses func(column string) bool
	// Whole says that each row of the output depends on the whole log, as in right and
	// full joins: a directory is made anew when an input changes.
	Whole bool

	job *publish.Run // what is to be done in a directory, set by Pending
}

// outputs returns the files of the log that have an output.
func (r *Run) outputs() (files []*source.File) {
	skipped := map[*source.File]bool{}
	for _, f := range r.Skipped {
		skipped[f] = true
	}
	for _, f := range r.Log {
		if !skipped[f] {
			files = append(files, f)
		}
	}
	return files
}

// Pieces returns what one worker reads of the files that [Destination.Pending] has returned. It
// is [source.Split], except that inputs whose outputs were damaged are divided as when these were
// written, so that the same files come out.
func (r *Run) Pieces(pending []*source.File, s dataset.Shard) (pieces []source.Piece) {
	if r == nil || r.job == nil || !r.job.Heals() || source.CheckShard(s) != nil {
		return source.Split(pending, s)
	}
	for _, f := range pending {
		for _, c := range r.asBefore(f.Rel(), f.NumGroups()) {
			pieces = append(pieces, source.Piece{File: f, Lo: c[0], Hi: c[1]})
		}
	}
	return shareOf(pieces, s)
}

// ListedPieces is Pieces for what [Destination.PendingInputs] has returned.
func (r *Run) ListedPieces(ctx context.Context, pending *inputs.List, s dataset.Shard) (pieces []inputs.Piece, err error) {
	if r == nil || r.job == nil || !r.job.Heals() || source.CheckShard(s) != nil {
		return pending.Share(ctx, s)
	}
	for in, err := range pending.Each(ctx) {
		if err != nil {
			return nil, err
		}
		for _, c := range r.asBefore(in.Rel, len(in.Groups)) {
			pieces = append(pieces, inputs.Piece{Input: in, Lo: c[0], Hi: c[1]})
		}
	}
	return shareOf(pieces, s), nil
}

// asBefore returns the ranges of row groups into which an input was divided.
func (r *Run) asBefore(rel string, groups int) (ranges [][2]int) {
	lo := 0
	for _, hi := range r.job.Cuts(rel) {
		if lo < hi && hi < groups { // a manifest may say anything
			ranges = append(ranges, [2]int{lo, hi})
			lo = hi
		}
	}
	return append(ranges, [2]int{lo, groups})
}

// shareOf returns the pieces of one worker. All workers have about equally many.
func shareOf[T any](pieces []T, s dataset.Shard) []T {
	n, i := uint64(max(s.Of, 1)), uint64(s.Index)
	if i >= n { // there is no such worker
		return nil
	}
	all := uint64(len(pieces))
	return pieces[all*i/n : all*(i+1)/n]
}

// Digest identifies the run. It is computed from the options, the filters and each file's
// Rel, size and content, see [source.File.Fingerprint]. It is the same on every machine that
// has the same files, wherever they are mounted and whenever they were written.
// Columns that come from paths belong to it, with their types. known is false if an
// input has no identity, such as standard input.
func (r *Run) Digest() (sum [32]byte, known bool, err error) { return r.digest(context.Background()) }

func (r *Run) digest(ctx context.Context) (sum [32]byte, known bool, err error) {
	if err := r.check(); err != nil {
		return sum, false, err
	}
	d := inputs.NewDigest()
	for _, o := range r.Options {
		d.Put([]byte(o))
	}
	for _, f := range r.Filters {
		d.Put(f[:])
	}
	if err := d.Files(r.IDs); err != nil {
		return sum, false, err
	}
	if err := r.eachOfLog(ctx, d.Input); err != nil {
		return sum, false, err
	}
	sum, known = d.Sum()
	return sum, known, nil
}

// eachOfLog calls f with each input of the log.
func (r *Run) eachOfLog(ctx context.Context, f func(*inputs.Input)) error {
	if r.List == nil {
		if err := source.Fingerprint(r.Log); err != nil {
			return err
		}
		for _, file := range r.Log {
			in, err := inputs.BriefOf(file)
			if err != nil {
				return err
			}
			f(&in)
		}
		return nil
	}
	for in, err := range cmp.Or(r.Found, r.List).Each(ctx) {
		if err != nil {
			return err
		}
		f(&in)
	}
	return nil
}

// recipe returns the digest of what is done with each file of the log, with which IDs.
func (r *Run) recipe() (sum [32]byte, known bool, err error) {
	options := r.options()
	ids, known, err := r.ids()
	if err != nil || !known {
		return sum, false, err
	}
	d := inputs.NewDigest()
	d.Put(options[:])
	d.Put(ids[:])
	sum, known = d.Sum()
	return sum, known, nil
}

// options returns the digest of the options, and of the log's partition columns with the types of
// those that are used.
func (r *Run) options() [32]byte {
	d := inputs.NewDigest()
	for _, o := range r.Options {
		d.Put([]byte(o))
	}
	for _, t := range source.HiveTypes(r.Log) {
		d.Put([]byte("partition column " + r.used(t)))
	}
	sum, _ := d.Sum()
	return sum
}

// used returns a column with its type, as "dt:date", without the type if that is not used.
func (r *Run) used(column string) string {
	if i := strings.LastIndexByte(column, ':') + 1; r != nil && r.Uses != nil && !r.Uses(column[:i-1]) {
		return column[:i]
	}
	return column
}

// ids returns the digest of the IDs and filters.
func (r *Run) ids() (sum [32]byte, known bool, err error) {
	d := inputs.NewDigest()
	for _, f := range r.Filters {
		d.Put(f[:])
	}
	if err := d.Files(r.IDs); err != nil {
		return sum, false, err
	}
	sum, known = d.Sum()
	return sum, known, nil
}

// ChangedSince returns an error that wraps ErrExists if an input was written after
// the output, if the storage knows modification times. The digest does not cover
// all bytes of a large Parquet file, so an equal digest alone does not mean that a
// run is done.
func (r *Run) ChangedSince(ctx context.Context, store storage.Source, output string) (err error) {
	source.NeedContext(ctx)
	if err := r.check(); err != nil {
		return err
	}
	if store == nil {
		store = storage.Local()
	}
	out, err := store.Stat(ctx, output)
	if err != nil {
		return err
	}
	if out.ModTime.IsZero() {
		return nil
	}
	late := func(in *inputs.Input) {
		if err == nil && in.ModTime.After(out.ModTime) {
			err = faults.Errorf("%s: %w, and its input %s was written later ({Force} replaces it)", output, ErrExists, in.Name)
		}
	}
	for _, f := range r.IDs {
		in, failed := inputs.BriefOf(f)
		if failed != nil {
			return failed
		}
		late(&in)
	}
	if err := r.eachOfLog(ctx, late); err != nil {
		return err
	}
	return err
}

// check returns an error if the run, which may be nil, has files that are nil.
func (r *Run) check() error {
	if r == nil {
		return nil
	}
	return errors.Join(source.CheckFiles("Run.IDs", r.IDs), source.CheckFiles("Run.Log", r.Log), source.CheckFiles("Run.Skipped", r.Skipped))
}
