// Package output turns rows that pass into files with an identity: it writes them as pages or
// as Arrow records, and lets package publish make them visible.
//
//	Scanner, Pieces ─► Destination.WriteScan ─► parts, one a piece ─┬─ pages  ─┬─► rowWriter ─► sink: file, stream, directory ─► publish
//	rows ────────────► Destination.Write ───────────────────────────┴─ records ┘
//
// In come a [keyscan.Scanner] with pieces, or rows with the parts that they belong to, and a
// [Destination] that says where they go; out goes a [dataset.Written]. Nothing of a file is
// visible before it is whole. A [Run] is what an output is made from: of equal digests, equal
// outputs, so that a run which is repeated is recognised.
//
// Packages partition and join and the command may use it.
package output

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

var (
	// ErrExists is wrapped by errors about an output of another run with the same
	// name.
	ErrExists = publish.ErrExists
	// ErrDone is wrapped by an error that says that the same run has finished
	// before and its output is complete.
	ErrDone = publish.ErrDone
)

// Output has the fields of partition.Output, which documents them.
type Output struct {
	Name        string
	Stdout      io.Writer
	Store       storage.Storage
	Format      dataset.Format
	Compression string
	Shard       dataset.Shard
	Force       bool
	TargetSize  int64
	WriteEmpty  bool
	Require     dataset.Require
	Memory      int64
	TempDir     string
}

// Destination is an [Output] with what joins and the command set beside it.
type Destination struct {
	Output

	Result string   // ResultCandidates, ResultExact or ResultFiltered
	Filter [32]byte // digest of the filter that was used; zero: none
	// Run is what the output is made from. If nil, outputs have no identity, and
	// none is recognised as that of the same run.
	Run *Run
	// ManifestDir is the directory for the manifests of a directory; empty: beside it, as
	// OUT.bloomjoin.
	ManifestDir string
	// Prune removes outputs from a directory whose input is gone. Otherwise they are
	// kept, except in name=value directories that have other inputs.
	Prune bool
	// IDsChanged says what happens to outputs in a directory that were made with other
	// IDs or filters: publish.IDsRerun makes them again, publish.IDsKeep keeps them; empty: an error.
	IDsChanged publish.IDsChange
	// NoCommit leaves it to [Commit] to complete a directory, even if this is the last
	// worker.
	NoCommit bool
	// Counts, if not nil, is called when all rows have been written, of a directory before
	// its manifest is: it completes what is known of the inputs, which are those pieces, and
	// returns how many IDs have a row, of how many.
	Counts func(inputs []dataset.WrittenInput, pieces []source.Piece) (idsMatched, idsTotal int64)
	// Unread are pieces of the log that are known to have no row in the output, and are not
	// read. A directory records them like others. Parts without rows must have no file: with
	// WriteEmpty and TargetSize there are none.
	Unread []Unread
	mem    memory.Allocator
	pool   *parquet.Pool  // shared by all writers
	owner  *publish.Owner // see prepare
	logs   []*source.File // files of the log that have an output
	given  []source.Piece // those of Written.Inputs
}

// Unread is a piece of the log that is not read. KeysNull counts its rows with a NULL in the
// first filter's key.
type Unread struct {
	inputs.Piece
	KeysNull int64
}

// RowsIn returns the number of its stored rows.
func (u *Unread) RowsIn() (n int64) {
	for _, g := range u.Input.Groups[u.Lo:u.Hi] {
		n += g[0]
	}
	return n
}

// Part becomes a separate file in a directory: the rows of one piece, or rows that
// do not come from the log.
type Part struct {
	Piece  source.Piece // File nil: rows that do not come from the log
	Name   string       // file name without extension, if Piece.File is nil
	Schema *arrow.Schema

	pages *pagecopy.Source // nil: its rows come as records, not as pages
}

// name identifies the part in messages.
func (p Part) name() string {
	if p.Piece.File != nil {
		return p.Piece.File.Name()
	}
	return p.Name
}

// onlySchema reports whether the part has no rows and only gives a file its schema.
func (p Part) onlySchema() bool { return p.Piece.File == nil && p.Name == "" }

// fill sets defaults. A directory that is named like text has tables all the same.
func (o *Destination) fill(ctx context.Context) {
	if o.Store == nil {
		o.Store = storage.Local()
	}
	if o.mem == nil {
		o.mem = memory.DefaultAllocator
	}
	if o.Format == "" {
		if o.Format = o.Kind(); o.asText() && objects.IsDir(ctx, o.Store, o.Name) {
			o.Format = dataset.Parquet
		}
	}
}

// Kind returns Format or, if it is empty, the one that the name says.
func (o Output) Kind() dataset.Format {
	named := source.FormatByName(o.Name)
	switch {
	case o.Format != "":
		return o.Format
	case o.Name == "-":
		return dataset.ArrowStream
	case slices.Contains(formats, named):
		return named
	}
	return dataset.Parquet
}

// prepare sets defaults and determines the writer's identity. logs are the files of
// the log unless Run has them; nil: unknown.
func (o *Destination) prepare(ctx context.Context, logs []*source.File) error {
	o.fill(ctx)
	if o.owner != nil {
		return nil
	}
	if err := o.Apart(ctx, logs...); err != nil {
		return err
	}
	o.logs = logs
	if o.Run != nil && len(o.Run.Log) > 0 {
		o.logs = o.Run.outputs()
	}
	owner := &publish.Owner{
		Store: o.Store, Shard: o.Shard.Index, Of: o.Shard.Of, Force: o.Force, Marker: o.marker, Hive: source.HiveTypes(o.logs), InDir: o.IsDir(ctx),
	}
	if owner.InDir {
		owner.Hive = each.Slice(owner.Hive, o.Run.used)
	}
	if o.Run == nil && !owner.InDir && o.Require != (dataset.Require{}) { // the command checks the figures itself
		return fmt.Errorf("Output.Require: it is about all inputs and workers of a directory, and %s is a file (check the figures of the scan, or set Options.Require of a join)", o.Name)
	}
	if owner.InDir && o.Format != dataset.Parquet && o.Format != dataset.ArrowFile {
		return faults.Unsupported(fault.At{File: o.Name}, "%s files in a directory", o.Format).WithHint("set Output.Format to ArrowFile or Parquet")
	}
	if o.Run != nil && len(o.Run.Options) > 0 {
		var err error
		if owner.InDir {
			owner.Run, _, err = o.Run.recipe()
		} else {
			owner.Run, _, err = o.Run.digest(ctx)
		}
		if err != nil {
			return err
		}
	}
	o.owner = owner
	return nil
}

// IsDir reports whether the output is a directory.
func (o Destination) IsDir(ctx context.Context) bool {
	o.fill(ctx)
	return o.Name != "-" && objects.IsDir(ctx, o.Store, o.Name)
}

// Pending returns the files of Run.Log that have to be read: all of those with an output
// or, of a directory, those whose outputs do not exist yet, come from other contents, or
// are damaged. The workers of a run get the same answer. Call Pending before the work, and
// write the pieces of these files only. With Run.List, Pending returns no files; see
// PendingInputs.
//
// The error wraps ErrDone if there is nothing to do and Force is not set, and ErrExists if
// there is something that may not be replaced. An output that is or contains an input is
// always refused. Without a Run there are no files, and only these errors.
func (o Destination) Pending(ctx context.Context) ([]*source.File, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	if o.Run == nil {
		o.Run = &Run{}
	}
	if o.Name == "-" {
		return o.Run.outputs(), nil
	}
	o.fill(ctx)
	if err := o.apart(ctx, o.Run); err != nil {
		return nil, err
	}
	if err := o.prepare(ctx, nil); err != nil {
		return nil, err
	}
	if o.owner.InDir {
		return o.pendingInDir(ctx)
	}
	err := o.owner.Compare(ctx, o.Name)
	switch {
	case o.Force && (errors.Is(err, ErrDone) || errors.Is(err, ErrExists)):
		err = nil
	case errors.Is(err, ErrExists):
		err = cmp.Or(o.owner.CheckTypes(o.Name, source.StoredHive(ctx, o.Store, o.Name)), err)
	case errors.Is(err, ErrDone):
		err = cmp.Or(o.Run.ChangedSince(ctx, o.Store, o.Name), err)
	}
	return o.logs, err
}

// PendingInputs is [Destination.Pending] for a run with a list of inputs: it returns the list of
// those that have to be read.
func (o Destination) PendingInputs(ctx context.Context) (*inputs.List, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	if o.Run == nil || o.Run.List == nil {
		return nil, errors.New("Output.Run.List is nil (set it to the list of inputs, or call Pending for files that are open)")
	}
	if _, err := o.Pending(ctx); err != nil {
		return nil, err
	}
	if job := o.Run.job; job != nil && !job.All() {
		return o.Run.List.Pick(ctx, func(in *inputs.Input) bool { return job.Does(in.Rel) })
	}
	return o.Run.List, nil
}

// Apart refuses an output over the files of a program, which has no Run. Those of the log
// are looked at when the output is opened.
func (o Destination) Apart(ctx context.Context, files ...*source.File) error {
	if o.Run != nil || o.Name == "-" || o.Name == "" {
		return nil // Pending has looked
	}
	o.fill(ctx)
	return o.apart(ctx, &Run{Log: files})
}

// apart refuses an output that is or contains an input, or that is in an input
// directory: the next run would read it as part of the log.
func (o Destination) apart(ctx context.Context, r *Run) error {
	place := source.NewPlace(o.Store, o.Name)
	clear := map[string]bool{"": true} // directories known to be clear
	check := func(name, root string, is bool) error {
		switch {
		case is:
			return cause.Mark(cause.IsInput, fmt.Errorf("%s: the output is the input %s (write to another file or directory)", o.Name, name))
		case !clear[root] && source.NewPlace(o.Store, root).Holds(o.Name):
			return cause.Mark(cause.IsInput, fmt.Errorf("%s: the output is inside the input directory %s, and the next run would read it (write to another directory)", o.Name, root))
		}
		clear[root] = true
		return nil
	}
	for _, f := range slices.Concat(r.IDs, r.Log) {
		if f.Reader() == nil { // not in a storage
			continue
		}
		if err := check(f.Name(), f.Origin().Root, place.HoldsFile(f.Name())); err != nil {
			return err
		}
	}
	if r.List == nil {
		return nil
	}
	roots, known := r.List.Roots()
	known = known && o.IsDir(ctx) // a file may be an input by any name
	for _, root := range roots {
		in := root.Dir
		if !root.Found {
			in = ""
		}
		known = known && !place.Holds(root.Dir)
		if err := check(root.Dir, in, false); err != nil {
			return err
		}
	}
	if known { // pieces that are opened are looked at one by one
		return nil
	}
	dirs := map[string]bool{} // of a list, which may be long: directories that are not in the place
	for in, err := range r.List.Each(ctx) {
		if err != nil {
			return err
		}
		dir := address.Parent(in.Name)
		if !dirs[dir] && !place.Holds(dir) {
			dirs[dir] = true
		}
		if err := check(in.Name, in.FoundIn(), !dirs[dir] || place.Is(in.Name)); err != nil {
			return err
		}
	}
	return nil
}

// newNonce identifies a run without a digest.
func newNonce() (string, error) {
	var b [32]byte
	_, err := rand.Read(b[:])
	return hex.EncodeToString(b[:]), err
}

// metadata returns the metadata of every file of the output.
func (o Destination) metadata() map[string]string {
	m := map[string]string{source.MetaResult: o.Result}
	if o.owner.Known() {
		m[source.MetaRun] = o.owner.Mark()
	}
	if o.Filter != [32]byte{} {
		m[source.MetaFilter] = hex.EncodeToString(o.Filter[:])
	}
	if hive := source.HiveTypes(o.logs); len(hive) > 0 {
		b, _ := json.Marshal(hive) // strings have JSON
		m[source.MetaHive] = string(b)
	}
	return m
}

// Write writes the rows to the output. Rows.Piece is an index into parts; rows
// come in ascending order of it. The rows of a part have its schema. A single
// file or stream needs one schema for all parts.
//
// If Write returns an error, nothing is visible: a file appears whole or not at all, and those of
// a directory when all of its workers are done. What was written to a stream remains there.
func (o Destination) Write(ctx context.Context, parts []Part, rows iter.Seq2[arraycopy.Rows, error]) (w dataset.Written, err error) {
	if err := o.check(ctx); err != nil {
		return w, err
	}
	if rows == nil {
		return w, errors.New("Output.Write: the sequence of rows is nil (an output without rows needs one that yields none)")
	}
	out, err := o.openRows(ctx, parts)
	if err != nil {
		return w, err
	}
	for r, err := range rows {
		if err != nil {
			outRows{Rows: r}.release()
			return w, out.fail(err)
		}
		if r.Record != nil {
			r.Kept = r.Record.NumRows()
		}
		if err := out.write(outRows{Rows: r}); err != nil {
			return w, err
		}
	}
	return out.close()
}
