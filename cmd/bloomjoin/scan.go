package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/look"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

type scanFlags struct {
	filter, key, shard, format, out string
	match, noMatch                  []string
	all, any, count                 bool
	keys                            flags.Keys
	layout                          flags.Layout
	inputs                          flags.Inputs
	where                           flags.Where
	part                            flags.Part
	dir                             flags.Directory
	head                            look.Head
}

func (c *cli) scanCmd() *cobra.Command {
	var o scanFlags
	cmd := &cobra.Command{
		Use:   "scan --filter FILTER [--key COL[,COL]] [flags] -o OUT LOGS...",
		Short: "Copy the rows of a log that a filter lets through",
		Long:  `Copy the rows of a log that a filter, or --where alone, lets through. No row whose key is in the ID set is missing; a Bloom filter lets a few others through, too. For exact answers use bloomjoin join.`,
		Example: `  bloomjoin scan --filter users.bjf -o candidates.parquet logs/
  bloomjoin scan --filter users.bjf --key user.id --shard 3/16 -o out/ logs/
  bloomjoin scan --filter users.bjf --columns user_id,url --head 10 logs/`,
		Annotations: flags.Help("outputs", "filter output", "key match no-match where columns count head shard files-from include exclude force schema"),
		Args:        o.inputs.Arguments("LOGS"),
		RunE:        withFlags(c.scan, &o),
	}
	f := cmd.Flags()
	f.StringVar(&o.filter, "filter", "", "`FILE` the filter to apply")
	o.inputs.AddFrom(f)
	o.inputs.Add(f)
	o.inputs.AddLog(f)
	o.where.Add(f)
	f.StringVar(&o.shard, "shard", "", flags.ShardHelp)
	flags.Group(f, flags.GroupInput)

	f.StringVar(&o.key, "key", "", "`COLUMNS` key columns; COL::TYPE casts (default: as in the filter)")
	o.keys.Add(f)
	o.layout.AddMissingKey(f)
	o.part.AddSample(f)
	flags.Group(f, flags.GroupKeys)

	f.StringArrayVar(&o.match, "match", nil, "`COL=FILTER` a further filter and its columns; repeatable")
	f.BoolVar(&o.all, "all", false, "keep rows that pass all filters (the default)")
	f.BoolVar(&o.any, "any", false, "keep rows that pass any filter")
	f.StringArrayVar(&o.noMatch, "no-match", nil, "`COL=FILTER` drop the members of an exact filter; repeatable")
	flags.Group(f, flags.GroupFilter)

	f.StringVarP(&o.out, "output", "o", "", flags.OutputHelp)
	f.BoolVar(&o.count, "count", false, "print the number of rows, write nothing")
	o.part.AddLimit(f)
	o.head.Add(cmd, f)
	c.AddForce(f)
	o.layout.Add(f)
	o.inputs.AddOutput(f)
	f.StringVar(&o.format, "format", "", flags.FormatHelp)
	o.dir.Add(f)
	flags.Group(f, flags.GroupOutput)
	flags.Exclusive(cmd, "all", "any")
	c.completeScan(cmd)
	return cmd
}

// matchFlag is a filter file and the columns that it is applied to.
type matchFlag struct {
	columns, file string
	none          bool // --no-match: drop the members
}

// conditional reports whether no filter is named.
func (o *scanFlags) conditional() bool { return o.filter == "" && len(o.match)+len(o.noMatch) == 0 }

// matches returns the filters that the flags name.
func (o *scanFlags) matches(cmd *cobra.Command, args []string) ([]matchFlag, error) {
	if o.conditional() && !o.where.Given() && o.part.Share == 0 {
		hint := "name the filter to apply, which bloomjoin build makes, or say which rows to keep"
		if len(args) > 1 {
			hint = flags.RightForm(cmd, "filter", args, "LOGS")
		}
		return nil, flags.Required("--filter FILE or --where CONDITION is required: %s", hint)
	}
	var out []matchFlag
	var all []keys.Column
	if o.key != "" {
		columns, err := keys.ParseColumns(o.key)
		if err != nil {
			return nil, flags.Usagef("--key: %w", err)
		}
		all = append(all, columns...)
	}
	if o.filter != "" {
		out = append(out, matchFlag{columns: o.key, file: o.filter})
	} else if o.key != "" && o.part.Share == 0 {
		return nil, flags.Usagef("--key %s: it names the columns for --filter, which is not given (with --match and --no-match, write COL=FILTER)", o.key)
	}
	for i, list := range [][]string{o.match, o.noMatch} {
		name := []string{"--match", "--no-match"}[i]
		for _, m := range list {
			cols, file, ok := flags.SplitColumn(m)
			if !ok {
				return nil, flags.Usagef("%s %s: want COL=FILTER, as %s user_id=users.bjf", name, m, name)
			}
			columns, err := keys.ParseColumns(cols)
			if err != nil {
				return nil, flags.Usagef("%s: %w", name, err)
			}
			all = append(all, columns...)
			out = append(out, matchFlag{cols, file, i == 1})
		}
	}
	if len(out) == 0 && o.key == "" && o.part.Share > 0 {
		return nil, flags.Required("--key COLUMNS is required: name the columns of the keys that --sample-keys is about")
	}
	return out, o.keys.Check(all)
}

// formats are the values of --format.
var formats = []string{"parquet", "arrow", "csv", "tsv", "ndjson"}

// outputOf checks -o and --format.
func (c *cli) outputOf(ctx context.Context, out, format string) (output.Destination, error) {
	o := output.Destination{Output: output.Output{Name: out, Stdout: c.Stdout, Store: c.Store(), Force: c.Force, Memory: c.OutputMemory()}}
	if format != "" {
		if err := flags.OneOf("format", format, formats...); err != nil {
			return o, err
		}
	}
	o.Format = dataset.Format(format)
	text := source.IsText(o.Kind())
	switch {
	case out == "":
		return o, flags.Required("-o OUT is required: a file, a directory/, or - for standard output (--head 10 shows rows without it)")
	case out == "-" && format == "parquet":
		return o, flags.Usagef("-o - --format parquet: standard output takes an Arrow stream or text (name a file, or leave --format out)")
	case out == "-" && c.Shown && !text:
		return o, flags.Usagef("-o -: standard output is a terminal, and rows are written to it as an Arrow stream, which is not text: --head 10 shows rows, --format csv writes text, -o FILE a file, and a pipe takes them to a program")
	case flags.CheckWritable(out) != nil:
		return o, flags.CheckWritable(out)
	case out == "-":
		return o, nil
	case o.IsDir(ctx) && text && format != "":
		return o, flags.Usagef("-o %s --format %s: unsupported: a directory takes Parquet or Arrow (name a file, as -o rows.%s)", out, format, format)
	case o.IsDir(ctx):
		if text { // as the directory is called
			o.Format = dataset.Parquet
		}
		return o, nil
	case format == "" && !strings.Contains(filepath.Base(out), "."):
		return o, cmp.Or(flags.RegularOutput(out), flags.Usagef("-o %s: want a file as %s.parquet or %s.arrow, or a directory as %s/", out, out, out, out))
	}
	return o, cmp.Or(flags.CheckFormat(o.Output, format != ""), flags.RegularOutput(out))
}

// scanReport is the JSON report of scan, and a part of join's.
type scanReport struct {
	session.Head
	RowsIn           int64              `json:"rows_in"`
	RowsWhere        *int64             `json:"rows_where,omitempty"`     // with --where
	FilesExcluded    *int64             `json:"files_excluded,omitempty"` // with --where: not opened
	RowsOut          int64              `json:"rows_out"`
	KeysNull         int64              `json:"keys_null"`
	RowGroups        int64              `json:"row_groups"`
	RowGroupsSkipped int64              `json:"row_groups_skipped"`
	Pages            int64              `json:"pages"`
	PagesSkipped     int64              `json:"pages_skipped"`
	BytesRead        int64              `json:"bytes_read"`
	BytesWritten     int64              `json:"bytes_written"`
	FPRAsked         float64            `json:"fpr_asked"`
	FPRPredicted     float64            `json:"fpr_predicted"`
	LimitReached     bool               `json:"limit_reached,omitempty"` // figures are of what was read until then
	FilesSkipped     int                `json:"files_skipped"`
	FilesUnread      *int               `json:"files_skipped_by_index,omitempty"` // not opened, if the list has an index
	FilesKept        int                `json:"files_kept,omitempty"`             // not read, as their outputs are there
	Unfinished       string             `json:"unfinished,omitempty"`             // what the directory lacks when this worker ends
	Path             []session.ReadPath `json:"path"`

	Warnings []joins.Warning `json:"warnings"`
}

// Read implements what [session.Session.Report] asks for.
func (r scanReport) Read() int64 { return r.BytesRead }

func (c *cli) scan(cmd *cobra.Command, o *scanFlags, args []string) (err error) {
	ctx, r := cmd.Context(), c.newRun("scan")
	defer faults.Join(&err, r.close)
	matches, err := o.matches(cmd, args)
	if err != nil {
		return err
	}
	var open source.Opening
	if err := r.scanOptions(cmd, o, args, &open); err != nil {
		return err
	}
	c.WatchReader(ctx, r.out.Name)
	if err := r.scanFilters(ctx, o, matches); err != nil {
		return err
	}
	o.part.Sample(&open, o.sampled(r.keep.Match), &o.keys)
	sides := r.keep.Match
	if o.conditional() && o.key != "" { // of a sample
		r.keep.Normalize = ""
		sides = []dataset.Match{{Key: o.key, IgnoreCase: o.keys.IgnoreCase}}
	}
	if err := r.openLog(cmd, &o.inputs, args, open, sides, r.keep.Any); err != nil {
		return err
	}
	if err := o.inputs.CheckHive(r.all...); err != nil {
		return err
	}
	scanner, err := keyscan.New(r.keep, r.files...)
	if err != nil {
		return err
	}
	r.out.Result = scanner.Result()
	r.sought = soughtByScan(&r.keep)
	if err := r.out.SetScan(ctx, &r.keep.ScanOptions, o.layout.MissingKey, r.all, &open.OpenOptions); err != nil {
		return err
	}
	if o.conditional() { // which has no keys but a sample's
		r.out.Run.Options = append(r.out.Run.Options, fmt.Sprint("keys ", o.keys.Normalize, o.keys.NullMisfits()))
	}
	if done, err := r.finishedBefore(ctx); done || err != nil {
		return err
	}
	r.keep.Progress = r.showProgress("scanning")
	if scanner, err = keyscan.New(r.keep, r.files...); err != nil { // those that are left
		return err
	}
	written, err := r.write(ctx, scanner)
	r.end()
	if errors.Is(err, output.ErrDone) { // another attempt was faster
		return r.alreadyDone(ctx, err)
	}
	if err != nil {
		return err
	}
	if o.head.Stopped() {
		return r.finishEarly(ctx)
	}
	rep := r.scanReport(scanner, written)
	rep.RowsWhere, rep.FilesExcluded = o.where.Figure(scanner.Stats.RowsWhere.Load()), o.where.Figure(o.where.Excluded)
	c.sayScan(o, rep)
	return r.finish(ctx, rep, rep.RowsOut, written)
}

// scanOptions checks the flags, except those of the filters, before anything is
// opened.
func (r *logRun) scanOptions(cmd *cobra.Command, o *scanFlags, args []string, open *source.Opening) (err error) {
	r.layout, r.count, r.head = &o.layout, o.count, &o.head
	r.keep = keyscan.Options{ScanOptions: keyscan.ScanOptions{Any: o.any, Normalize: o.keys.Normalize, IgnoreCase: o.keys.IgnoreCase, Threads: r.Threads}}
	if r.shard, err = r.ShardOf(o.shard); err != nil {
		return err
	}
	if err := cmp.Or(flags.CheckCount(cmd, o.count), o.head.Check(cmd, o.out)); err != nil {
		return err
	}
	if r.writes() {
		if r.out, err = r.outputOf(cmd.Context(), o.out, o.format); err != nil {
			return err
		}
		if err := o.dir.Fill(cmd.Context(), &r.out); err != nil {
			return err
		}
	}
	if err := o.part.Check(cmd, r.writes() && r.out.IsDir(cmd.Context())); err != nil {
		return err
	}
	r.keep.Limit = o.part.Limit
	if open.Int96Nanos, err = o.layout.Int96Nanos(); err != nil {
		return err
	}
	if r.keep.Columns, err = o.layout.Columns.Texts(true); err != nil {
		return err
	}
	if err := cmp.Or(o.layout.Check(&r.keep, &r.out), o.where.Fill(open, &o.keys)); err != nil {
		return err
	}
	return r.logFrom(cmd.Context(), open, &o.inputs, args, r.shard, r.out)
}

// scanFilters reads the filters.
func (r *logRun) scanFilters(ctx context.Context, o *scanFlags, flags []matchFlag) error {
	if err := r.settings(ctx); err != nil {
		return err
	}
	budget, err := r.Budget()
	if err != nil {
		return err
	}
	for _, m := range flags {
		f, err := r.load(ctx, m.file, budget)
		if err != nil {
			return err
		}
		r.keep.Match = append(r.keep.Match, dataset.Match{Filter: (*codec.Filter)(f), Key: m.columns, NoMatch: m.none})
	}
	if len(r.filters) > 0 {
		r.asked, r.predicted = r.filters[0].Facts().FPRAsked, r.filters[0].FPR()
	}
	o.keys.Match(r.keep.Match)
	return nil
}

// sampled returns the key columns of --sample-keys.
func (o *scanFlags) sampled(matches []dataset.Match) string {
	if o.key != "" || len(matches) == 0 {
		return o.key
	}
	return cmp.Or(matches[0].Key, strings.Join(matches[0].Filter.KeyNames(), ","))
}

// write scans into the output, or only counts. It closes the filters after the last
// row, before the output becomes visible: one may have changed while it was used.
func (r *logRun) write(ctx context.Context, s *keyscan.Scanner) (written dataset.Written, err error) {
	switch {
	case r.count:
		if err := output.Count(ctx, s, r.pieces()); err != nil {
			return written, err
		}
		return written, r.closeFilters()
	case !r.writes():
		return written, errors.Join(r.collect(arraycopy.Scan(ctx, s, r.pieces()), false), r.closeFilters())
	case len(r.files) == 0:
		return r.writeEmpty(ctx, r.out, r.keep, r.layout.SchemaFrom)
	}
	scan := func(w *output.ScanWriter) error {
		if err := w.Scan(ctx, s, nil, r.pieces()); err != nil {
			return err
		}
		return r.closeFilters()
	}
	return r.out.WriteScan(ctx, s, r.pieces(), r.files, &output.Scans{Each: scan})
}

func (r *logRun) scanReport(s *keyscan.Scanner, w dataset.Written) scanReport {
	st := s.Stats
	rows, nulls := r.unreadRows()
	rep := scanReport{
		RowsIn: st.RowsIn.Load() + rows, RowsOut: st.RowsOut.Load(), KeysNull: st.KeysNull.Load() + nulls,
		RowGroups: st.RowGroups.Load(), RowGroupsSkipped: st.RowGroupsSkipped.Load(),
		Pages: st.Pages.Load(), PagesSkipped: st.PagesSkipped.Load(),
		FPRAsked: r.asked, FPRPredicted: r.predicted,
		Path: session.ReadPaths(r.pieces(), s.PathOf),
	}
	if most := r.keep.Limit; most > 0 && rep.RowsOut >= most { // figures of a part of the log warn of nothing
		rep.RowsOut, rep.LimitReached, rep.Warnings = most, true, []joins.Warning{}
	} else {
		rep.Warnings = scanWarnings(r.keep.Match, rep, slices.ContainsFunc(r.files, (*source.File).Filtered))
	}
	r.fill(&rep, w)
	return rep
}

// sayPaths prints how each file was read.
func (c *cli) sayPaths(paths []session.ReadPath) {
	for _, p := range paths {
		how := p.Reason
		if p.Path == "generic" {
			how = "as Arrow records: " + how
		}
		c.Say("  %s: %s", p.File, how)
	}
}

// into names the output, if there is one.
func into(out string) string {
	if out == "" {
		return ""
	}
	return " into " + out
}

// sayScan prints a summary of a scan.
func (c *cli) sayScan(o *scanFlags, r scanReport) {
	if c.Verbose {
		c.sayPaths(r.Path)
	}
	what := words.Number(r.RowsOut, "is a candidate", "are candidates")
	if o.conditional() {
		what = words.Number(r.RowsOut, "is kept", "are kept")
	}
	c.Say("%s of %s %s (%s)%s: %s read, %s written, in %.2f s",
		words.Count(r.RowsOut), words.Things(r.RowsIn, "row"), what, words.Percent(r.RowsOut, r.RowsIn), into(o.out), words.Bytes(r.BytesRead), words.Bytes(r.BytesWritten), r.Seconds)
	c.sayLimit(r)
	c.SayWarnings(r.Warnings)
}

// sayLimit says that the log was not read to its end.
func (c *cli) sayLimit(r scanReport) {
	if r.LimitReached {
		c.Say("stopped by --limit: the log may have more such rows, and the figures are of what was read")
	}
}
