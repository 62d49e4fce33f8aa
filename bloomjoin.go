// Package bloomjoin finds the rows of a huge Parquet or Arrow log whose key is in
// a set of IDs, and joins the two. It holds the calls that most programs need; its
// types are those of the packages below, which can do more.
//
//	              IDs                              log
//	               │                                │
//	Build, BuildFiles ──► filter ─────► Scan, ScanFiles ──► candidate rows
//	  BuildSeq, Merge       │ ▲
//	                   Save ▼ │ Load
//	                      a file
//
//	              IDs, log ─────► Join, JoinFiles ────────► the exact answer
//
// A filter is a small stand-in for a set of IDs: a Bloom filter, or for integers
// that lie close together an exact set. It never misses an ID. A Bloom filter also
// lets through a few rows whose key is not in the set, at a known rate; a join
// removes them.
//
// # Which call
//
//   - The IDs and the log are within reach of one machine: [JoinFiles] writes the
//     exact answer, [Join] yields it as Arrow records. Both build the filter that
//     they need. [Plan] estimates beforehand how large the answer will be and which
//     strategy is fastest.
//   - The log is spread over machines or jobs: build a filter once with [Build], [BuildSeq] or
//     [BuildFiles], [Save] it, let every job [Load] it and scan its own part with
//     [Scan] or [ScanFiles]. IDs that are spread as well make partial filters, which
//     [Merge] puts together.
//   - A program wants to ask about keys of its own: Probe and Contains of a
//     [codec.Filter] take Go values and Arrow arrays.
//   - Most rows match, or both sides fit in memory and SQL is at hand: another tool
//     does as well.
//
// # The parts
//
//	key          Go values and Arrow arrays as keys: which values are equal
//	codec        the filter, and its file
//	filterbuild  filters from files or values; merge, union, intersection
//	partition    files and records as tables: open, divide, scan, write
//	dataset      their values: formats, shards, matches
//	join         exact joins: options, strategies, records in memory, reports
//	storage      where files are: the local file system, or what a program provides
//	fault        errors, with the place in the file and what to do
//	bloom, exact the two kinds of sets inside a filter
//
// Records are those of arrow/go v15. The module
// github.com/bloomjoin/bloomjoin/arrow18 converts records of arrow-go v18 without
// copying, and joins and scans them.
//
// Files named here are local, and names may be files, directories or patterns. With
// [OpenLog] and [OpenIDs] they may be elsewhere: in a [storage.Source]. Records that a
// program has in memory are joined by [join.Seq].
//
// # Rules
//
// No call loses a row or leaves half a file as its output: a file that breaks the
// rules of its format is an error, which wraps fault.ErrCorrupt or another error of
// that package. [partition.Output.WriteScan] says what an error leaves of a directory.
// Calls end soon after their context does, with an error that wraps ctx.Err(); a nil
// context panics. No names, or names that stand for nothing, are an error that wraps
// [storage.ErrNoFiles]. Only the key or the filter must be set among the options.
// Calls may run at the same time.
package bloomjoin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/internal/door"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	outputs "github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Load reads a filter file and verifies it. Close the filter after use: an
// uncompressed file is mapped, and Close returns an error if it has changed meanwhile.
func Load(ctx context.Context, name string) (*codec.Filter, error) {
	stopped.Needs(ctx, "bloomjoin.Load")
	return codec.Load(ctx, storage.Local(), name, codec.Limits{})
}

// Save writes a filter file that only its owner may read, as an exact filter holds
// the IDs themselves. A file of that name is left alone: if it holds the same
// filter, Save succeeds, otherwise the error wraps fs.ErrExist.
func Save(ctx context.Context, name string, filter *codec.Filter) error {
	stopped.Needs(ctx, "bloomjoin.Save")
	_, err := codec.Save(ctx, storage.Local(), name, filter, codec.Options{})
	return err
}

// Merge returns the complete filter of the partial filters of one build: those of
// all its shards, in any order. The partial filters do not change.
func Merge(ctx context.Context, partials ...*codec.Filter) (*codec.Filter, error) {
	stopped.Needs(ctx, "bloomjoin.Merge")
	return filterbuild.Merge(ctx, partials...)
}

// errNoKeys is the error of a Build without keys.
var errNoKeys = fmt.Errorf("no keys were given: want some, which may be empty%w", quiet.Error{Err: storage.ErrNoFiles})

// Build returns a filter of keys that a program has. opts.Key names the columns
// with their types, such as "user_id::int64". Each of keys is added on a goroutine
// of its own, as far as opts.Memory allows. With opts.Shard the filter is partial:
// see [filterbuild.NewBuilder] for what it needs then. Without any arguments in
// keys, the error wraps [storage.ErrNoFiles]; empty ones, and a shard without any, are
// fine.
func Build(ctx context.Context, opts filterbuild.Options, keys ...key.Values) (f *codec.Filter, err error) {
	stopped.Needs(ctx, "bloomjoin.Build")
	b, err := filterbuild.NewBuilder(opts)
	if err != nil {
		return nil, err
	}
	defer faults.Join(&err, b.Close)
	if len(keys) == 0 && opts.Shard == (dataset.Shard{}) {
		return nil, errNoKeys
	}
	workers := min(b.Workers(), len(keys))
	failed := make([]error, workers)
	var done sync.WaitGroup
	for i := range workers {
		done.Go(func() {
			w, err := b.Worker()
			for k := i; k < len(keys) && err == nil && ctx.Err() == nil; k += workers {
				err = w.Add(keys[k])
			}
			failed[i] = err
		})
	}
	done.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	f, _, err = b.Finish(ctx)
	return f, err
}

// BuildSeq is [Build] of keys that come one by one, each sequence on a goroutine of its own,
// as far as opts.Memory allows: a cursor, a channel that all of them read, or slices.Values.
// See [filterbuild.AddSeq]. A sequence that waits must end when ctx does; its panic is an error.
func BuildSeq[T ~int64 | ~uint64 | ~string | ~[]byte | ~[16]byte](ctx context.Context, opts filterbuild.Options, keys ...iter.Seq[T]) (f *codec.Filter, err error) {
	stopped.Needs(ctx, "bloomjoin.BuildSeq")
	b, err := filterbuild.NewBuilder(opts)
	if err != nil {
		return nil, err
	}
	defer faults.Join(&err, b.Close)
	if len(keys) == 0 && opts.Shard == (dataset.Shard{}) {
		return nil, errNoKeys
	}
	if slices.ContainsFunc(keys, func(seq iter.Seq[T]) bool { return seq == nil }) {
		return nil, errors.New("a sequence of keys is nil")
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, seq := range keys {
		g.Go(func() (err error) {
			defer func() {
				if r := recover(); r != nil { // in a goroutine that the caller cannot guard
					err = fmt.Errorf("a sequence of keys panicked: %v\n%s", r, debug.Stack())
				}
			}()
			return filterbuild.AddSeq(gctx, b, seq)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	f, _, err = b.Finish(ctx)
	return f, err
}

// BuildFiles returns a filter of the IDs in Parquet, Arrow or text files. opts.Key
// names the key columns; a file with one ID a line has the column "id". With
// opts.Shard the filter is partial.
func BuildFiles(ctx context.Context, ids []string, opts filterbuild.Options, options ...Option) (f *codec.Filter, err error) {
	stopped.Needs(ctx, "bloomjoin.BuildFiles")
	s, err := settingsOf(options, "BuildFiles", false, true)
	if err != nil {
		return nil, err
	}
	files, err := s.openIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, partition.Close(files)) }()
	f, _, err = filterbuild.Build(ctx, files, opts)
	return f, err
}

// Scan yields the rows of log files that pass the filters of opts.Match, file by
// file in the order of their names. A record has the columns of its file. It is
// valid until the loop body ends; retain it to keep it longer. The sequence ends
// after its first error.
func Scan(ctx context.Context, logs []string, opts partition.ScanOptions, options ...Option) iter.Seq2[arrow.Record, error] {
	stopped.Needs(ctx, "bloomjoin.Scan")
	return sequence(func(yield func(partition.Rows, error) bool) (err error) {
		s, err := settingsOf(options, "Scan", true, false)
		if err != nil {
			return err
		}
		files, err := s.openLog(ctx, logs)
		if err != nil {
			return err
		}
		scanner, err := partition.NewScanner(opts, files...)
		if err != nil {
			return errors.Join(err, partition.Close(files))
		}
		defer func() {
			if err = errors.Join(err, partition.Close(files)); s.stats != nil {
				*s.stats = scanner.Stats()
			}
		}()
		pieces := partition.Split(files, dataset.Shard{})
		for rows, err := range scanner.Scan(ctx, pieces) {
			if !yield(rows, err) || err != nil {
				return nil
			}
		}
		return partition.Unchanged(pieces)
	})
}

// ScanFiles writes the rows of log files that pass the filters of opts.Match. The
// output is a file, or, if the name ends in a slash, a directory with a file for
// each log file; see [partition.Output.WriteScan] for what of it an error leaves. Made
// again, it continues as [JoinFiles] does; if nothing is left, only Rows is set. The output
// records which filters its rows have passed.
func ScanFiles(ctx context.Context, logs []string, output string, opts partition.ScanOptions, options ...Option) (w dataset.Written, err error) {
	stopped.Needs(ctx, "bloomjoin.ScanFiles")
	s, err := settingsOf(options, "ScanFiles", true, false)
	if err != nil {
		return w, err
	}
	out := outputs.Destination{Output: outputs.Output{Name: output}}
	s.kept = out.HiveTypes
	opened, err := s.openLog(ctx, logs)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, partition.Close(opened)) }()
	files := door.In(opened)
	scan := keyscan.ScanOptions(opts)
	scanner, err := keyscan.New(keyscan.Options{ScanOptions: scan}, files...)
	if err != nil {
		return w, err
	}
	out.Result = scanner.Result()
	if err := out.SetScan(ctx, &scan, "error", files, opening(s.log)); err != nil {
		return w, err
	}
	todo, err := out.Pending(ctx)
	if err == nil {
		w, err = out.WriteScan(ctx, scanner, out.Run.Pieces(todo, dataset.Shard{}), files, nil)
	}
	if errors.Is(err, outputs.ErrDone) {
		e, err := out.Earlier(ctx)
		return dataset.Written{Rows: known(e.RowsOut)}, err
	}
	return w, err
}

// known returns a figure of an earlier run; 0 if it is not known.
func known(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// Join yields the rows of the exact answer of log files joined with ID files. Records
// have the columns of their log file and, in joins that have them, those of the IDs. A record is valid until the loop body ends; retain it to keep it
// longer. The sequence ends after its first error.
func Join(ctx context.Context, ids, logs []string, opts join.Options, options ...Option) iter.Seq2[arrow.Record, error] {
	stopped.Needs(ctx, "bloomjoin.Join")
	return sequence(func(yield func(partition.Rows, error) bool) (err error) {
		s, err := settingsOf(options, "Join", true, true)
		if err != nil {
			return err
		}
		j, closeFiles, err := s.openJoin(ctx, ids, logs, opts)
		if err != nil {
			return err
		}
		defer func() {
			if err = errors.Join(err, closeFiles()); s.report != nil {
				*s.report = j.Report()
			}
		}()
		for rows, err := range j.Run(ctx) {
			if !yield(rows, err) || err != nil {
				break
			}
		}
		return nil
	})
}

// JoinFiles writes the exact answer of log files joined with ID files. The output
// is a file, or, if the name ends in a slash, a directory with a file for each log
// file; see [partition.Output.WriteScan] for what of it an error leaves.
//
// Made again, it continues as the command does: it reads and reports only log files without
// output in the directory. If none is left, the report has what is known of the output, and no
// Strategy. Any other output, and with opts.Pieces every one, is an error that wraps fs.ErrExist.
func JoinFiles(ctx context.Context, ids, logs []string, output string, opts join.Options, options ...Option) (r join.Report, err error) {
	stopped.Needs(ctx, "bloomjoin.JoinFiles")
	s, err := settingsOf(options, "JoinFiles", true, true)
	if err != nil {
		return r, err
	}
	out := outputs.Destination{Output: outputs.Output{Name: output}, Result: source.ResultExact}
	s.kept = out.HiveTypes
	j, closeFiles, err := s.openJoin(ctx, ids, logs, opts)
	if err != nil {
		return r, err
	}
	defer faults.Join(&err, closeFiles)
	left, err := (*joins.Join)(j).Left(ctx, &out, opening(s.ids), opening(s.log))
	if err == nil {
		j = (*join.Join)(left)
		_, err = left.Write(ctx, out, nil)
	}
	if errors.Is(err, outputs.ErrDone) {
		e, err := out.Earlier(ctx)
		return join.Report{
			RowsIn: known(e.RowsIn), RowsOut: known(e.RowsOut), KeysNull: known(e.KeysNull),
			IDsMatched: known(e.IDsMatched), IDsTotal: known(e.IDsTotal),
		}, err
	}
	return j.Report(), err
}

// Plan estimates a join of files: the size of its answer, the fastest strategy,
// and whether filtering gains anything. It reads all IDs and a sample of the log.
func Plan(ctx context.Context, ids, logs []string, opts join.Options, options ...Option) (p *join.Plan, err error) {
	stopped.Needs(ctx, "bloomjoin.Plan")
	s, err := settingsOf(options, "Plan", true, true)
	if err != nil {
		return nil, err
	}
	j, closeFiles, err := s.openJoin(ctx, ids, logs, opts)
	if err != nil {
		return nil, err
	}
	defer faults.Join(&err, closeFiles)
	return j.Plan(ctx, join.PlanOptions{})
}
