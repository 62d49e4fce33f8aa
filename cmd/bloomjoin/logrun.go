package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/look"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/keyindex"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// logRun is one run of a verb that reads a log: scan, join or plan. The verb
// calls its methods in this order, with its own steps between them:
//
//	settings      of the layout, before anything is opened
//	load          filters
//	openIDs       of join and plan
//	openLog
//	finishedBefore
//	finish        reports
//	close         in any case
type logRun struct {
	*cli
	verb   string
	start  time.Time
	out    output.Destination // unset for plan, and if nothing is written
	count  bool               // --count
	head   *look.Head         // --head
	shard  dataset.Shard
	layout *flags.Layout
	keep   keyscan.Options // rows, columns and schema of the output

	kept    int // files of the log that are not read, as their outputs are there
	filters []*filters.Filter
	// asked and predicted are false-positive rates of the first filter of a scan,
	// which is closed when the report is made.
	asked, predicted float64
	ids              []*source.File
	all              []*source.File // of the log
	files            []*source.File // of the log, with a key
	list             *inputs.List   // of --files-from; files are then those that this worker reads, and one of each schema
	found            *inputs.List   // list with the files that have no key; nil: it has none
	own              []source.Piece // what this worker reads; nil: its share of files
	opening          source.Opening
	index            *keyindex.Index         // of list; nil: it has none
	sought           sought                  // the keys to ask it for
	schemas          map[*source.File]string // of the list, by the file that was opened
	skipped          []skippedFile           // of the log, without
	end              func()                  // of the progress display; may be called again
}

func (c *cli) newRun(verb string) *logRun {
	return &logRun{cli: c, verb: verb, start: time.Now(), end: func() {}, head: new(look.Head)}
}

// close closes what is open. The error may say that a filter file has changed
// while it was in use.
func (r *logRun) close() error {
	r.end()
	_ = source.Close(r.all)
	if r.list != nil {
		_ = r.list.Close()
	}
	if r.index != nil {
		_ = r.index.Close()
	}
	_ = source.Close(r.ids)
	return r.closeFilters()
}

// closeFilters unmaps filter files. It must succeed before an output becomes
// visible: an error means that a file has changed while it was in use.
func (r *logRun) closeFilters() error {
	return errors.Join(each.Slice(r.filters, (*filters.Filter).Close)...)
}

// settings reads the schema that --schema-from names, and checks the layout.
func (r *logRun) settings(ctx context.Context) error {
	if err := r.pin(ctx, r.layout, &r.keep, r.out.Name); err != nil {
		return err
	}
	return r.layout.NeedDir(ctx, r.out)
}

// load reads a filter file, which must not be the output.
func (r *logRun) load(ctx context.Context, name string, memory int64) (*filters.Filter, error) {
	if err := r.Spare(r.out.Name, name); err != nil {
		return nil, err
	}
	f, err := filters.Load(ctx, r.Store(), name, filters.Limits{MaxBytes: uint64(memory)})
	if err == nil {
		r.filters = append(r.filters, f)
	}
	return f, err
}

// openIDs opens the files of an ID set.
func (r *logRun) openIDs(cmd *cobra.Command, names []string, open source.Opening, text *flags.IDs) (err error) {
	if r.ids, err = r.Open(cmd, names, open); err != nil {
		return err
	}
	return text.Apply(r.ids)
}

// openLog opens the files of the log, and separates those without a key.
func (r *logRun) openLog(cmd *cobra.Command, inputs *flags.Inputs, names []string, open source.Opening, sides []dataset.Match, anyKey bool) (err error) {
	if err := r.SpareList(r.out.Name, inputs); err != nil {
		return err
	}
	names, r.list, err = r.FilesFrom(cmd, inputs, names)
	if open.Digests = r.out.Name != "" && r.out.Name != "-"; open.Digests { // of what the output is made
		open.HiveKept = r.out.HiveTypes
	}
	if err == nil && r.list != nil {
		err = r.openListed(cmd.Context(), inputs.FilesFrom, open)
	} else if err == nil {
		r.all, err = r.Open(cmd, names, open)
	}
	if err != nil {
		return err
	}
	r.files, r.skipped, err = r.keyed(r.layout, r.all, sides, anyKey)
	if err != nil || len(r.skipped) == 0 {
		return err
	}
	of := len(r.all)
	if r.list != nil {
		of = r.list.Len()
		err = r.skipListed(cmd.Context())
	}
	r.saySkipped(r.skipped, of)
	return err
}

// showProgress shows how many rows of the log have been read. It returns the
// function to call with each batch's rows; nil: nothing is shown.
func (r *logRun) showProgress(what string) (add func(int64)) {
	add, r.end = r.Progress(what, r.pieces())
	return add
}

// showPhases shows the progress of a join: IDs and keys of the log may be read before its
// rows.
func (r *logRun) showPhases(opts *joins.Options) {
	adds, end := r.ProgressIn(
		session.NewMeter("reading IDs", source.Split(r.ids, dataset.Shard{})),
		session.NewMeter("reading keys of the log", r.pieces()),
		session.NewMeter("joining", r.pieces()),
	)
	if r.end = end; adds[0] == nil {
		return
	}
	opts.Progress = adds[2]
	opts.Prepares = func(ids bool, rows int64) {
		if ids {
			adds[0](rows)
		} else {
			adds[1](rows)
		}
	}
}

// pieces returns what this worker reads of the log.
func (r *logRun) pieces() []source.Piece {
	if r.own != nil {
		return r.own
	}
	return source.Split(r.files, r.shard)
}

// finishedBefore reports whether the same run has written its output before, and
// if so, reports it. Otherwise it leaves only the files that have to be read: of a
// directory, those that are new or have changed. An output that may not be replaced is an
// error.
func (r *logRun) finishedBefore(ctx context.Context) (bool, error) {
	if !r.writes() {
		return false, r.openOwn(ctx)
	}
	err := r.begun(ctx)
	if err == nil {
		return false, r.openOwn(ctx)
	}
	if !errors.Is(err, output.ErrDone) {
		return false, err
	}
	r.end()
	return true, r.alreadyDone(ctx, err)
}

// writes reports whether there is an output.
func (r *logRun) writes() bool { return !r.count && !r.head.Alone() }

// alreadyDone ends a run that an earlier one has done.
func (r *logRun) alreadyDone(ctx context.Context, why error) error {
	figures, err := r.out.Earlier(ctx)
	if err != nil {
		return err
	}
	if err := r.AlreadyDone(ctx, r.verb, r.out.Name, r.start, why, figures); err != nil {
		return err
	}
	rows := int64(-1)
	if figures.RowsOut != nil {
		rows = *figures.RowsOut
	}
	return r.head.Print(ctx, &r.Session, r.out, rows)
}

// collect reads the first rows of the answer for --head: with all the others, too. It returns an
// error if a file that it has read has changed since it was opened.
func (r *logRun) collect(rows iter.Seq2[arraycopy.Rows, error], all bool) error {
	last, err := r.head.Collect(&r.Session, rows, all)
	if err != nil {
		return err
	}
	pieces := r.pieces()
	return source.Unchanged(pieces[:min(last+1, len(pieces))])
}

// finishEarly ends a run that has not read the whole log, since --head had enough rows. Figures
// of a part would mislead.
func (r *logRun) finishEarly(ctx context.Context) error {
	r.SayWarnings(damaged(r.all))
	r.Say("first %s found, in %.2f s: what follows was not read (--count counts the rows, -o OUT writes them)", words.Things(r.head.Rows, "row"), time.Since(r.start).Seconds())
	return r.finish(ctx, nil, -1, dataset.Written{})
}

// begun completes what identifies the run, and leaves only what has to be read.
func (r *logRun) begun(ctx context.Context) error {
	r.out.Shard, r.out.Run.List, r.out.Run.Found = r.shard, r.list, r.found
	for _, s := range r.skipped {
		if s.file != nil {
			r.out.Run.Skipped = append(r.out.Run.Skipped, s.file)
		}
	}
	if r.list == nil {
		todo, err := r.out.Pending(ctx)
		if err == nil {
			if r.kept = len(r.files) - len(todo); len(todo) == 0 || !r.keep.United() { // a union is that of all files
				r.files = todo
			}
			r.own = append([]source.Piece{}, r.out.Run.Pieces(todo, r.shard)...) // not nil
		}
		return err
	}
	if r.out.Name == "-" {
		return nil
	}
	todo, err := r.out.PendingInputs(ctx)
	if err == nil {
		r.kept, r.list = r.list.Len()-todo.Len(), todo
	}
	return err
}

// fill completes the figures that scan and join have in common.
func (r *logRun) fill(rep *scanReport, w dataset.Written) {
	rep.Head = r.NewHead(r.verb, r.start)
	rep.FilesKept, rep.Unfinished = r.kept, w.Unfinished
	rep.BytesRead, rep.BytesWritten = session.BytesRead(r.all)+session.BytesRead(r.ids), w.Bytes
	rep.FilesSkipped = len(r.skipped) // of all shards
	for _, s := range r.skipped {
		rep.Path = append(rep.Path, session.ReadPath{File: publish.EscapeName(s.name), Path: "skipped", Reason: s.why})
	}
	r.addUnread(rep)
	rep.Warnings = append(rep.Warnings, damaged(r.all)...)
	if n := len(w.Gone); n > 0 {
		rep.Warnings = append(rep.Warnings, joins.Warning{Code: warnInputsGone, Text: fmt.Sprintf("outputs without their input are kept: of %s, first %s (--prune removes them)", words.Things(n, "input"), w.Gone[0])})
	}
}

// finish prints the report of a run as JSON, or with --count the number of rows, or with --head
// some of them, after what is remarkable about the files written. rowsOut is -1 if unknown.
func (r *logRun) finish(ctx context.Context, report any, rowsOut int64, w dataset.Written) error {
	r.SayNotes(r.out.Name, w)
	if w.Unfinished != "" {
		r.Say("%s: not finished: %s", r.out.Name, w.Unfinished)
	}
	if r.kept > 0 {
		r.Say("%s: the outputs of %s are up to date", r.out.Name, words.Things(int64(r.kept), "other input"))
	}
	if r.count && !r.JSON {
		_, err := fmt.Fprintln(r.Stdout, rowsOut)
		return err
	}
	if r.kept > 0 || r.writes() && !r.shard.Whole() {
		rowsOut = -1 // there are others in the output
	}
	return errors.Join(r.head.Print(ctx, &r.Session, r.out, rowsOut), r.Report(report, r.out.Name))
}

// logFrom prepares the options for opening a log. Standard input may be named once.
func (c *cli) logFrom(ctx context.Context, open *source.Opening, o *flags.Inputs, logs []string, shard dataset.Shard, out output.Destination) error {
	if err := o.Fill(open); err != nil {
		return err
	}
	if !slices.Contains(logs, "-") {
		return nil
	}
	switch {
	case slices.Contains(logs[slices.Index(logs, "-")+1:], "-"):
		return flags.Usagef("-: standard input can be read once, and is named twice")
	case !shard.Whole():
		return flags.Usagef("--shard %s: a log from standard input cannot be shared among workers (write it to a file first)", shard)
	case out.IsDir(ctx):
		return flags.Usagef("-o %s: a log from standard input has no name for its file in a directory: name a file, as -o rows.parquet", out.Name)
	}
	open.Stdin = c.Stdin
	return nil
}

// pin reads the schema of the --schema-from file, which must not be the output.
func (c *cli) pin(ctx context.Context, o *flags.Layout, opts *keyscan.Options, out string) (err error) {
	if o.SchemaFrom == "" {
		return nil
	}
	if err := c.Spare(out, o.SchemaFrom); err != nil {
		return err
	}
	opts.Pinned, err = output.ReadSchema(ctx, o.SchemaFrom, source.Opening{OpenOptions: source.OpenOptions{Store: c.Store()}})
	return err
}

// skippedFile is a file of the log that is left out, with the reason.
type skippedFile struct {
	name, why string
	file      *source.File // nil: of a list, and not open
}

// keyed returns the files that have the key columns of the matches, and with
// --missing-key skip-file, those that do not. Otherwise all files are returned.
func (c *cli) keyed(o *flags.Layout, files []*source.File, matches []dataset.Match, anyMatch bool) ([]*source.File, []skippedFile, error) {
	if o.MissingKey != "skip-file" {
		return files, nil, nil
	}
	var without []skippedFile
	with, err := keyscan.HaveKeys(files, matches, anyMatch, func(f *source.File, why string) {
		without = append(without, skippedFile{f.Name(), why, f})
	})
	return with, without, err
}

// saySkipped names files that are left out, of all files of the log.
func (c *cli) saySkipped(without []skippedFile, of int) {
	var names []string
	for i, s := range without {
		if i == 3 {
			names = append(names, "…")
			break
		}
		names = append(names, s.name)
	}
	c.Say("%d of %d files have no key column and are skipped: %s", len(without), of, strings.Join(names, ", "))
}
