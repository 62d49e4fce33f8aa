package output

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/delta"
	"github.com/bloomjoin/bloomjoin/internal/lake/iceberg"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// An output directory has a state, of which package publish knows the rules: which
// version of which input has become which files. This file compares the inputs of a run
// with it.

// pendingInDir is Pending for a directory.
func (o Destination) pendingInDir(ctx context.Context) ([]*source.File, error) {
	d, err := o.directory(ctx)
	if err != nil {
		return nil, err
	}
	inputs, err := o.inputs(ctx)
	if err != nil {
		return nil, err
	}
	job, err := d.Begin(ctx, inputs)
	if err != nil {
		return nil, err
	}
	o.Run.job = job
	if o.Run.List != nil { // the writer checks the targets
		return nil, nil
	}
	var todo []*source.File
	for _, f := range o.logs {
		if job.Does(f.Rel()) {
			todo = append(todo, f)
		}
	}
	return todo, job.Check(ctx, o.targets(o.Run.Pieces(todo, o.Shard)))
}

// jobOf returns what is to be done in the directory: what Pending has found, or
// everything.
func (o *Destination) jobOf(ctx context.Context) (*publish.Run, error) {
	if o.Run != nil && o.Run.job != nil {
		o.Run.job.SetRequire(publish.Require(o.Require))
		return o.Run.job, nil
	}
	if !o.owner.Known() && !o.Shard.Whole() {
		return nil, fmt.Errorf("%s: a directory that several workers write needs the digest of their run", o.Name)
	}
	d, err := o.directory(ctx)
	if err != nil {
		return nil, err
	}
	d.All = true
	inputs, err := o.inputs(ctx)
	if err != nil {
		return nil, err
	}
	return d.Begin(ctx, inputs)
}

// directory returns the output as a directory.
func (o Destination) directory(ctx context.Context) (*publish.Dir, error) {
	d := &publish.Dir{
		Owner: *o.owner, Name: o.Name, Manifests: o.ManifestDir, Prune: o.Prune, OfTable: slices.ContainsFunc(o.logs, (*source.File).OfTable), IDsChanged: o.IDsChanged, NoCommit: o.NoCommit,
		Require: publish.Require(o.Require), Rows: o.rowsOf,
	}
	if d.Manifests == "" {
		d.Manifests = publish.ManifestsOf(unlinked(o.Store, o.Name))
	}
	d.Recipe = publish.Recipe{Result: o.Result, Hive: source.HiveTypes(o.logs), RawFiles: hive.Raw(ctx)}
	if o.Filter != [32]byte{} {
		d.Recipe.Filter = hex.EncodeToString(o.Filter[:])
	}
	if !o.owner.Known() {
		nonce, err := newNonce()
		d.Recipe.Options = nonce
		return d, err
	}
	options := o.Run.options()
	ids, _, err := o.Run.ids()
	d.Recipe.Options, d.Recipe.IDs, d.Recipe.Whole = hex.EncodeToString(options[:]), hex.EncodeToString(ids[:]), o.Run.Whole
	return d, err
}

// unlinked returns the directory that a link leads to, or the name itself if it is none, so
// that the directory has the same manifests by both names.
func unlinked(s storage.Storage, name string) string {
	parent, base := path.Split(strings.TrimRight(name, "/"))
	if base == "" || base == "." || base == ".." || strings.Contains(name, "://") {
		return name
	}
	real := objects.Resolve(s, name)
	if real == path.Join(objects.Resolve(s, cmp.Or(parent, ".")), base) {
		return name
	}
	return real
}

// inputs returns the files of the log as the state of a directory has them.
func (o Destination) inputs(ctx context.Context) (publish.Inputs, error) {
	if o.Run != nil && o.Run.List != nil {
		return o.Run.List.State(ctx), o.checkListed(ctx, o.Run.List)
	}
	in := publish.Inputs{Len: len(o.logs), Left: map[string]bool{}}
	if err := o.checkNames(o.logs); err != nil {
		return in, err
	}
	if err := source.Fingerprint(o.logs); err != nil {
		return in, err
	}
	all := inputs.NewDigest()
	if err := all.Files(o.logs); err != nil {
		return in, err
	}
	var known bool
	if in.Digest, known = all.Sum(); !known {
		nonce, err := newNonce()
		if err != nil {
			return in, err
		}
		copy(in.Digest[:], nonce)
	}
	if len(o.logs) > 0 {
		for _, rel := range o.logs[0].LeftOut() {
			in.Left[rel] = true
		}
	}
	if o.Run != nil {
		for _, f := range o.Run.Skipped {
			in.Left[f.Rel()] = true
		}
	}
	in.Each = func(yield func(publish.Input, error) bool) {
		for _, f := range o.logs {
			one, err := inputs.PublishedOf(f)
			if !yield(one, err) || err != nil {
				return
			}
		}
	}
	return in, nil
}

// checkListed is checkNames for a list.
func (o Destination) checkListed(ctx context.Context, list *inputs.List) error {
	if !list.Alike() {
		return nil
	}
	names := map[string]string{}
	for in, err := range list.Each(ctx) {
		if err != nil {
			return err
		}
		stem := source.StemOf(in.Rel)
		if other, ok := names[stem]; ok {
			return o.sameName(other, in.Name, stem+o.extension())
		}
		names[stem] = in.Name
	}
	return nil
}

// finishDir records what was written, and commits the run if this was its last worker.
func (o Destination) finishDir(ctx context.Context, files *publish.Writer, w *dataset.Written) (err error) {
	var idsMatched, idsTotal int64
	if o.Counts != nil {
		idsMatched, idsTotal = o.Counts(w.Inputs, o.given)
	}
	at := map[string]int{} // by Rel: its index among Inputs
	for i, in := range w.Inputs {
		at[in.Rel] = i
	}
	for _, f := range files.Files() {
		w.Files = append(w.Files, dataset.WrittenFile{Name: f.Name, Rows: f.Rows, Bytes: f.Bytes})
		w.Rows, w.Bytes = w.Rows+f.Rows, w.Bytes+f.Bytes
		for _, rel := range f.Inputs {
			if i, ok := at[rel]; ok {
				w.Inputs[i].Files = append(w.Inputs[i].Files, f.Name)
			}
		}
	}
	entries, err := o.entries(w)
	if err != nil {
		return err
	}
	w.Notes, w.Unfinished, err = files.Finish(ctx, entries, idsMatched, idsTotal)
	return err
}

// entries returns what the state has to say of the inputs that were read. Rows that come
// from no input are those of an input without a name.
func (o Destination) entries(w *dataset.Written) (entries []publish.Entry, err error) {
	placed := map[string]bool{}
	for i, in := range w.Inputs {
		one, err := inputs.PublishedOf(o.given[i].File)
		if err != nil {
			return nil, err
		}
		e := one.Entry
		e.Place = one.Resolve(o.Store)
		e.Lo, e.Hi, e.Files = in.Lo, in.Hi, slices.Sorted(slices.Values(in.Files))
		e.Counts = publish.Counts{RowsIn: max(in.RowsIn, 0), RowsKept: in.RowsKept, RowsOut: in.RowsOut, KeysNull: max(in.KeysNull, 0)}
		entries = append(entries, e)
		for _, name := range in.Files {
			placed[name] = true
		}
	}
	for _, u := range o.Unread {
		one := u.Input.Published()
		e := one.Entry
		e.Place = one.Resolve(o.Store)
		e.Lo, e.Hi, e.Counts = u.Lo, u.Hi, publish.Counts{RowsIn: u.RowsIn(), KeysNull: u.KeysNull}
		entries = append(entries, e)
	}
	if len(o.Unread) > 0 {
		slices.SortStableFunc(entries, func(a, b publish.Entry) int {
			return cmp.Or(cmp.Compare(a.Input, b.Input), cmp.Compare(a.Lo, b.Lo))
		})
	}
	var rest publish.Entry
	for _, f := range w.Files {
		if !placed[f.Name] {
			rest.Files = append(rest.Files, f.Name)
			rest.RowsOut += f.Rows
		}
	}
	if rest.Files != nil || o.Run != nil && o.Run.Whole { // none: the file of an earlier run goes
		entries = append(entries, rest)
	}
	return entries, nil
}

// rowsOf returns the number of rows of an output, as its footer has it.
func (o Destination) rowsOf(ctx context.Context, name string) (n int64, err error) {
	f, err := o.openOutput(ctx, name)
	if err != nil {
		return 0, err
	}
	n, err = f.CountRows()
	if err == nil && n < 0 {
		err = faults.Unsupported(fault.At{File: name}, "counting the rows of this format")
	}
	return n, errors.Join(err, f.Close())
}

// openOutput opens an output.
func (o Destination) openOutput(ctx context.Context, name string) (*source.File, error) {
	opts := source.Opening{OpenOptions: source.OpenOptions{Store: o.Store, Mem: o.mem}}
	if err := opts.Fill(); err != nil {
		return nil, err
	}
	return source.OpenObject(ctx, storage.Object{Name: name, Rel: path.Base(name)}, nil, opts)
}

// Earlier is what is known of a run that has written an output before, as a report has it. Of a
// file it is the number of rows; of a directory that several workers have written, nothing, as
// its manifest does not say which of them has written what.
type Earlier struct {
	RowsIn     *int64 `json:"rows_in,omitempty"`
	RowsOut    *int64 `json:"rows_out,omitempty"`
	KeysNull   *int64 `json:"keys_null,omitempty"`
	IDsMatched *int64 `json:"ids_matched,omitempty"`
	IDsTotal   *int64 `json:"ids_total,omitempty"`
}

// Earlier returns what is known of the run that has written the output, once Pending has found
// that it has.
func (o Destination) Earlier(ctx context.Context) (e Earlier, err error) {
	o.fill(ctx)
	if o.asText() {
		m, err := o.readMark(ctx, o.Name) // Pending has compared the text with it
		return Earlier{RowsOut: &m.Rows}, err
	}
	if !o.IsDir(ctx) {
		if n, err := o.rowsOf(ctx, o.Name); err == nil || !errors.Is(err, fault.ErrUnsupported) {
			return Earlier{RowsOut: &n}, err
		}
		return e, nil
	}
	if !o.Shard.Whole() {
		return e, nil
	}
	r, err := o.recorded(ctx)
	if err != nil || r == nil {
		return e, err
	}
	e.RowsIn, e.RowsOut, e.KeysNull = &r.RowsIn, &r.RowsOut, &r.KeysNull
	if r.IDsTotal > 0 && r.IDsMatched >= 0 {
		e.IDsMatched, e.IDsTotal = &r.IDsMatched, &r.IDsTotal
	}
	return e, nil
}

// recorded returns what the manifest of the directory says of the run; nil: it lacks inputs.
func (o Destination) recorded(ctx context.Context) (*publish.Recorded, error) {
	if err := o.prepare(ctx, nil); err != nil {
		return nil, err
	}
	d, err := o.directory(ctx)
	if err != nil {
		return nil, err
	}
	in, err := o.inputs(ctx)
	if err != nil {
		return nil, err
	}
	return d.Recorded(ctx, in)
}

// Files returns the files of the directory that hold the rows of the run, which has ended, in the
// order of its inputs; nil if that is not known, as its manifest may be that of an earlier run.
func (o Destination) Files(ctx context.Context) (files []storage.Object, err error) {
	if !o.Shard.Whole() || o.NoCommit {
		return nil, nil
	}
	o.fill(ctx)
	r, err := o.recorded(ctx)
	if err != nil || r == nil {
		return nil, err
	}
	files = []storage.Object{} // not nil
	for _, rel := range r.Files {
		files = append(files, storage.Object{Name: strings.TrimRight(o.Name, "/") + "/" + rel, Rel: rel})
	}
	return files, nil
}

// anyRun returns the directory as it is for all runs.
func (o *Destination) anyRun(ctx context.Context) (*publish.Dir, error) {
	o.fill(ctx)
	o.owner = &publish.Owner{Store: o.Store, Marker: o.marker, InDir: true}
	return o.directory(ctx)
}

// HiveTypes returns the types that columns of the inputs' paths had when the directory was written.
// What cannot be read is reported by Pending.
func (o Destination) HiveTypes(ctx context.Context) []string {
	d, err := o.anyRun(ctx)
	if err != nil {
		return nil
	}
	return d.HiveTypes(ctx)
}

// Directory describes an output directory.
type Directory struct {
	Generation int64 // of its state: the number of commits
	Inputs     int
	Files      int
	Rows       int64
	Bytes      int64
	Complete   bool     // it has _SUCCESS, and no run is under way
	Problems   []string // files that are not as its manifest says, outputs that it does not list, runs under way
	Runs       int      // runs that [Commit] has completed
	Workers    int      // of these
}

func (d *Directory) fill(s *publish.State) {
	d.Generation, d.Inputs, d.Files, d.Rows, d.Bytes = s.Generation, len(s.Inputs), len(s.Files), s.Rows, s.Bytes
}

// Commit completes an output directory when all workers of a run have written their parts,
// as the last of them does by itself unless [Destination].NoCommit is set: it checks that all
// are there, agree and are whole, publishes the root manifest, and writes _SUCCESS. Of out
// it needs Name, and Store and ManifestDir as they were for the workers. names are
// manifests of workers that stand elsewhere, because these had no storage in common.
//
// The error wraps ErrDone if there is nothing to commit and the directory is complete, and
// ErrRequire if the rows do not meet the run's conditions.
func Commit(ctx context.Context, out Destination, names []string) (*Directory, error) {
	d, err := out.unfinished(ctx)
	if err != nil {
		return nil, err
	}
	done, err := d.Complete(ctx, names)
	if err != nil && !errors.Is(err, ErrDone) {
		return nil, err
	}
	is := &Directory{Runs: done.Runs, Workers: done.Workers, Complete: true}
	is.fill(done.State)
	return is, err
}

// unfinished returns the directory whose runs are to be committed or swept.
func (o Destination) unfinished(ctx context.Context) (d *publish.Dir, err error) {
	if err = o.checkDir(ctx); err == nil {
		d, err = o.anyRun(ctx)
	}
	if err == nil && d.Manifests == "" {
		err = publish.NoManifests(o.Name)
	}
	return d, err
}

// Sweep is [publish.Dir.Sweep]. Of out it needs what [Commit] does.
func Sweep(ctx context.Context, out Destination, older time.Duration, remove bool) ([]publish.Left, error) {
	d, err := out.unfinished(ctx)
	if err != nil {
		return nil, err
	}
	return d.Sweep(ctx, older, remove)
}

// Added writes what adds the files of a complete directory to a table of a format, iceberg or delta, beside
// its manifests, and returns the name. Of out it needs what [Commit] does.
func Added(ctx context.Context, out Destination, format string) (string, error) {
	out.fill(ctx)
	d, err := out.unfinished(ctx)
	if err != nil {
		return "", err
	}
	add := map[string]func(*lake.Added) ([]byte, error){"iceberg": iceberg.Add, "delta": delta.Add}[format]
	return d.WriteAdded(ctx, format, func(of *publish.File, name string, hive []string) (line []byte, err error) {
		f, err := out.openOutput(ctx, name)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		p := f.Parquet()
		if p == nil {
			return nil, faults.Unsupported(fault.At{File: name}, "a file of a table that is not Parquet").WithHint("write Parquet with {Force}")
		}
		if rows := p.File().Metadata.NumRows; p.File().Size != of.Bytes || rows != of.Rows {
			return nil, fmt.Errorf("%s: %w", name, storage.ErrChanged)
		}
		a, err := lake.NewAdded(p.File(), of.Name, of.Modified, hive)
		if err != nil {
			return nil, err
		}
		return add(a)
	})
}

// InspectDirectory compares an output directory with its root manifest. With check it reads
// all files and compares their checksums and rows; otherwise their sizes. Of out it needs
// Name, and Store and ManifestDir as they were for the workers. The result is nil if the
// directory has no manifest.
func InspectDirectory(ctx context.Context, out Destination, check bool) (*Directory, error) {
	if err := out.checkDir(ctx); err != nil {
		return nil, err
	}
	d, err := out.anyRun(ctx)
	if err != nil || d.Manifests == "" {
		return nil, err
	}
	v, err := d.Verify(ctx, check)
	if err != nil || v == nil {
		return nil, err
	}
	is := &Directory{Complete: v.Complete, Problems: v.Problems}
	is.fill(v.State)
	return is, nil
}

// valuesIn returns the values of the partition columns in an output's name, without
// escapes, as the manifest has them: NULL is absent. Directories that are not columns
// of the log, as with HiveOff, have no value.
func (o Destination) valuesIn(name string) map[string]string {
	parts, err := hive.Parse(name)
	if err != nil {
		return nil // it was parsed before, as a part of the input's path
	}
	values := map[string]string{}
	for _, p := range parts {
		if t := o.hiveType(p.Name); t != nil && !p.IsNull(t) {
			values[p.Name] = p.Text
		}
	}
	return values
}

// hiveType returns the type of a partition column of the log, or nil if there is none of
// that name.
func (o Destination) hiveType(column string) arrow.DataType {
	for _, f := range o.logs { // as a rule the first one has it
		for _, p := range f.Partitions() {
			if p.Name == column {
				return p.Type
			}
		}
	}
	return nil
}
