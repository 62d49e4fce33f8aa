package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/internal/text"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

type scanFlags struct {
	filter, key, normalize, shard, format, out string
	match, noMatch                             []string
	all, any, count                            bool
	keys                                       keyFlags
	layout                                     layoutFlags
	inputs                                     inputFlags
}

func (c *cli) scanCmd() *cobra.Command {
	var o scanFlags
	cmd := &cobra.Command{
		Use:   "scan --filter FILTER [--key COL[,COL]] [flags] -o OUT LOGS...",
		Short: "Copy the rows of a log that a filter lets through",
		Long: `Copy the rows of a log that a filter lets through. No row whose key is in the ID
set is missing; a Bloom filter lets a few others through, too. For exact answers
use bloomjoin join.`,
		Example: `  bloomjoin scan --filter users.bjf -o candidates.parquet logs/
  bloomjoin scan --filter users.bjf --key user.id --shard 3/16 -o out/ logs/
  bloomjoin scan --filter users.bjf --columns user_id,url -o - logs/ | consumer`,
		Annotations: docs("commands.md#scan"),
		Args:        inputs("LOGS"),
		RunE:        func(cmd *cobra.Command, args []string) error { return c.scan(cmd, &o, args) },
	}
	all := cmd.Flags()
	flagGroup(all, groupInput, func(f *pflag.FlagSet) {
		f.StringVar(&o.filter, "filter", "", "`FILE` the filter to apply")
		o.inputs.add(f)
		o.inputs.addLog(f)
		f.StringVar(&o.shard, "shard", "", shardHelp)
	})
	flagGroup(all, groupKeys, func(f *pflag.FlagSet) {
		f.StringVar(&o.key, "key", "", "`COLUMNS` key columns of the log; COL::TYPE casts (default: the names in the filter)")
		f.StringVar(&o.normalize, "normalize", "", normalizeHelp+", as the filter was built")
		o.keys.add(f)
		o.layout.addMissingKey(f)
	})
	flagGroup(all, groupFilter, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.match, "match", nil, "`COL=FILTER` a further filter and its columns; may be repeated")
		f.BoolVar(&o.all, "all", false, "keep rows that all filters let through (the default)")
		f.BoolVar(&o.any, "any", false, "keep rows that any filter lets through")
		f.StringArrayVar(&o.noMatch, "no-match", nil, "`COL=FILTER` drop the members of an exact filter; may be repeated")
	})
	flagGroup(all, groupOutput, func(f *pflag.FlagSet) {
		f.StringVarP(&o.out, "output", "o", "", outputHelp)
		f.BoolVar(&o.count, "count", false, "count the rows, and write nothing")
		c.addForce(f)
		o.layout.add(f)
		o.inputs.addOutput(f)
		f.StringVar(&o.format, "format", "", formatHelp)
	})
	exclusive(cmd, "all", "any")
	c.completeScan(cmd, &o)
	return cmd
}

// Descriptions of flags that scan and join have.
const (
	outputHelp = "`OUT` file.parquet or .arrow; directory/ for a file per input; - for an Arrow stream"
	formatHelp = "`FORMAT` format of the output: parquet or arrow (default: by the name)"
)

// checkCount refuses flags about an output beside --count.
func checkCount(cmd *cobra.Command, count bool) error {
	for _, name := range []string{"output", "schema", "schema-from", "compression", "format", "columns", "suffix", "force", "base"} {
		if count && cmd.Flags().Changed(name) {
			return usagef("--count writes nothing (remove --%s)", name)
		}
	}
	return nil
}

// matchFlag is a filter file and the columns it is applied to.
type matchFlag struct {
	columns, file string
	none          bool // drop the members
}

// matches lists the filters that the flags name.
func (o *scanFlags) matches() ([]matchFlag, error) {
	var out []matchFlag
	var all []key.Column
	if o.filter != "" {
		if o.key != "" {
			columns, err := key.ParseColumns(o.key)
			if err != nil {
				return nil, usagef("--key: %w", err)
			}
			all = append(all, columns...)
		}
		out = append(out, matchFlag{columns: o.key, file: o.filter})
	} else if o.key != "" {
		return nil, usagef("--key %s: it names the columns for --filter, which is not given (with --match and --no-match, write COL=FILTER)", o.key)
	}
	for i, list := range [][]string{o.match, o.noMatch} {
		name := []string{"--match", "--no-match"}[i]
		for _, m := range list {
			cols, file, ok := splitColumn(m)
			if !ok {
				return nil, usagef("%s %s: want COL=FILTER, as %s user_id=users.bjf", name, m, name)
			}
			columns, err := key.ParseColumns(cols)
			if err != nil {
				return nil, usagef("%s: %w", name, err)
			}
			all = append(all, columns...)
			out = append(out, matchFlag{cols, file, i == 1})
		}
	}
	if len(out) == 0 {
		return nil, usagef("--filter FILE is required: name the filter to apply, which bloomjoin build makes")
	}
	return out, o.keys.check(all)
}

// outputOf checks -o and --format.
func (c *cli) outputOf(ctx context.Context, out, format string) (partition.Output, error) {
	o := partition.Output{Name: out, Stdout: c.stdout, Force: c.force, Memory: c.inFlight() / outputsPages}
	if format != "" {
		if err := oneOf("format", format, "parquet", "arrow"); err != nil {
			return o, err
		}
	}
	o.Format = partition.Format(format)
	switch {
	case out == "":
		return o, usagef("-o OUT is required: a file, a directory/, or - for standard output")
	case out == "-" && format == "parquet":
		return o, usagef("-o - --format parquet: standard output takes an Arrow stream (name a file, or leave --format out)")
	case out == "-" || o.IsDir(ctx):
		return o, nil
	case textName(out):
		return o, usagef("-o %s: rows are written as Parquet or Arrow, not as text: name the file .parquet or .arrow", out)
	case format == "" && !strings.Contains(filepath.Base(out), ".") && !strings.Contains(out, "://"):
		if err := regularOutput(out); err != nil {
			return o, err
		}
		return o, usagef("-o %s: want a file as %s.parquet or %s.arrow, or a directory as %s/ (or say --format)", out, out, out, out)
	}
	return o, regularOutput(out)
}

// regularOutput refuses an output that is a device or a pipe: outputs are written
// beside their name and get it when they are whole.
func regularOutput(out string) error {
	info, err := os.Stat(out)
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		return nil // what cannot be looked at, others report
	}
	return usagef("-o %s: want a regular file, got a device or pipe (scan and join write an Arrow stream to standard output with -o -, and nothing with --count)", out)
}

// textName reports whether a file of that name would be taken for text.
func textName(name string) bool {
	_, ok := text.FormatOf(name)
	return ok || strings.HasSuffix(strings.ToLower(name), ".json")
}

// formatWord names the output's format among the words of a run: the same
// whether --format says it or the name.
func formatWord(o partition.Output) string {
	if o.Format != "" {
		return string(o.Format)
	}
	switch strings.ToLower(filepath.Ext(o.Name)) {
	case ".arrow", ".feather", ".ipc":
		return string(partition.ArrowFile)
	case ".arrows":
		return string(partition.ArrowStream)
	}
	return string(partition.Parquet)
}

// columnNames parses --columns.
func columnNames(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	paths, err := key.ParsePaths(s)
	if err != nil {
		return nil, usagef("--columns: %w", err)
	}
	var names []string
	for _, p := range paths {
		if len(p) > 1 {
			return nil, usagef(`--columns: %s is a path; whole columns are kept (a column of that very name is written '"%s"')`, p, strings.Join(p, "."))
		}
		if slices.Contains(names, p[0]) {
			return nil, usagef("--columns: %s is named twice (name it once)", p[0])
		}
		names = append(names, p[0])
	}
	return names, nil
}

// scanReport is the JSON of scan; join's has it too.
type scanReport struct {
	head
	RowsIn           int64    `json:"rows_in"`
	RowsOut          int64    `json:"rows_out"`
	KeysNull         int64    `json:"keys_null"`
	RowGroups        int64    `json:"row_groups"`
	RowGroupsSkipped int64    `json:"row_groups_skipped"`
	Pages            int64    `json:"pages"`
	PagesSkipped     int64    `json:"pages_skipped"`
	BytesRead        int64    `json:"bytes_read"`
	BytesWritten     int64    `json:"bytes_written"`
	FPRAsked         float64  `json:"fpr_asked"`
	FPRPredicted     float64  `json:"fpr_predicted"`
	FilesSkipped     int      `json:"files_skipped"`
	Path             []pathOf `json:"path"`

	Warnings []join.Warning `json:"warnings"`
}

func (c *cli) scan(cmd *cobra.Command, o *scanFlags, args []string) (err error) {
	start := time.Now()
	if o.filter == "" && len(o.match)+len(o.noMatch) == 0 && len(args) > 1 {
		return usagef("--filter FILE is required: %s", rightForm(cmd, "filter", args, "LOGS"))
	}
	matches, err := o.matches()
	if err != nil {
		return err
	}
	if _, err := key.ParseRule(o.normalize); err != nil {
		return usagef("--normalize %w", err)
	}
	shard, err := c.shardOf(o.shard)
	if err != nil {
		return err
	}
	var out partition.Output
	if err := checkCount(cmd, o.count); err != nil {
		return err
	}
	if !o.count {
		if out, err = c.outputOf(cmd.Context(), o.out, o.format); err != nil {
			return err
		}
	}
	int96Nanos, err := o.layout.int96Nanos()
	if err != nil {
		return err
	}
	budget, err := c.budget()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	opts := partition.ScanOptions{Any: o.any, Normalize: o.normalize, IgnoreCase: o.keys.ignoreCase, Threads: c.threads}
	if opts.Columns, err = columnNames(o.layout.columns); err != nil {
		return err
	}
	if err := o.layout.check(&opts, &out); err != nil {
		return err
	}
	open := partition.OpenOptions{Int96Nanos: int96Nanos}
	if err := c.logFrom(ctx, &open, &o.inputs, args, shard, out); err != nil {
		return err
	}
	if err := o.layout.pin(ctx, &opts, o.out); err != nil {
		return err
	}
	layout, err := o.layout.words(ctx, &opts, out)
	if err != nil {
		return err
	}
	words := append([]string{"scan", fmt.Sprint(o.any)}, append(layout, o.keys.words()...)...)
	filters, words, err := readFilters(ctx, matches, o.out, words, codec.Limits{MaxBytes: uint64(budget)})
	defer func() { err = errors.Join(err, closeFilters(filters.files)) }() // as far as the scan has not
	if err != nil {
		return err
	}
	asked, predicted := filters.files[0].FPRAsked, filters.files[0].FPR()
	opts.Match = filters.match
	o.keys.match(opts.Match)
	opts.End = func() error { return closeFilters(filters.files) }
	all, err := c.open(cmd, args, open)
	if err != nil {
		return err
	}
	defer partition.Close(all)
	files, skipped, err := c.keyed(&o.layout, all, opts.Match, opts.Any)
	if err != nil {
		return err
	}
	add, end := c.progress("scanning", partition.Split(files, shard))
	defer end()
	opts.Progress = add
	scanner, err := partition.NewScanner(opts)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := scanner.Check(f); err != nil {
			return err
		}
	}
	out.Result, out.Filter, out.Shard = scanner.Result(), filters.digest, shard
	out.Run = &partition.Job{Options: words, Log: all, Skipped: filesOf(skipped)}
	pieces := partition.Split(files, shard)
	written, err := c.scanTo(ctx, scanner, opts, o.layout.schemaFrom, files, skipped, pieces, out, o.count)
	end()
	if errors.Is(err, partition.ErrDone) {
		return c.done(cmd.Context(), "scan", o.out, start, err)
	}
	if err != nil {
		return err
	}
	st := scanner.Stats
	r := scanReport{
		head:   newHead("scan", start),
		RowsIn: st.RowsIn.Load(), RowsOut: st.RowsOut.Load(), KeysNull: st.KeysNull.Load(),
		RowGroups: st.RowGroups.Load(), RowGroupsSkipped: st.RowGroupsSkipped.Load(),
		Pages: st.Pages.Load(), PagesSkipped: st.PagesSkipped.Load(),
		BytesRead: bytesRead(all), BytesWritten: written.Bytes,
		FPRAsked: asked, FPRPredicted: predicted, Path: pathsOf(pieces, scanner.PathOf),
	}
	r.leftOut(skipped)
	r.Shard = c.shard
	r.Warnings = append(scanWarnings(opts.Match, r), damaged(all)...)
	c.sayScan(o, r)
	c.notes(o.out, written)
	if o.count && !c.json {
		_, err := fmt.Fprintln(c.stdout, r.RowsOut)
		return err
	}
	return c.report(r, o.out)
}

// scanTo scans into the output, or only counts.
func (c *cli) scanTo(ctx context.Context, s *partition.Scanner, opts partition.ScanOptions, schemaFrom string, files []*partition.File, skipped []partition.Skipped, pieces []partition.Piece, out partition.Output, count bool) (w partition.Written, err error) {
	if count {
		return w, s.Count(ctx, pieces)
	}
	if err := out.Check(ctx); err != nil {
		return w, err
	}
	if len(files) == 0 {
		return c.writeEmpty(ctx, out, opts, schemaFrom)
	}
	return out.WriteScan(ctx, s, pieces, files)
}

func filesOf(skipped []partition.Skipped) []*partition.File {
	var files []*partition.File
	for _, s := range skipped {
		files = append(files, s.File)
	}
	return files
}

// filterSet is the filters of a scan.
type filterSet struct {
	match  []partition.Match
	files  []*codec.Filter
	digest [32]byte // of the one filter, or of all of them
}

// closeFilters gives mapped filter files back. The error may say that one has
// changed meanwhile.
func closeFilters(filters []*codec.Filter) error {
	var errs []error
	for _, f := range filters {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// readFilters reads the filter files, none of which may be the output, and adds to words what identifies them.
func readFilters(ctx context.Context, flags []matchFlag, out string, words []string, lim codec.Limits) (filterSet, []string, error) {
	var set filterSet
	h := sha256.New()
	for _, m := range flags {
		if err := spare(out, m.file); err != nil {
			return set, nil, err
		}
		f, err := codec.Load(ctx, storage.Local{}, m.file, lim)
		if err != nil {
			return set, nil, err
		}
		set.files = append(set.files, f)
		d, err := f.Digest()
		if err != nil {
			return set, nil, err
		}
		h.Write(d[:])
		set.digest = d
		set.match = append(set.match, partition.Match{Filter: f, Key: m.columns, NoMatch: m.none})
		words = append(words, m.columns, fmt.Sprint(m.none), string(d[:]))
	}
	if len(flags) > 1 {
		h.Sum(set.digest[:0])
	}
	return set, words, nil
}

// sayPaths prints how the rows of each file went to the output.
func (c *cli) sayPaths(paths []pathOf) {
	for _, p := range paths {
		how := p.Reason
		if p.Path == "generic" {
			how = "as Arrow records: " + how
		}
		c.say("  %s: %s", p.File, how)
	}
}

// sayScan tells people what a scan came to.
func (c *cli) sayScan(o *scanFlags, r scanReport) {
	if c.verbose {
		c.sayPaths(r.Path)
	}
	to := ""
	if !o.count {
		to = " into " + o.out
	}
	c.say("%s of %s rows are candidates (%s)%s: %s read, %s written, in %.2f s",
		count(r.RowsOut), count(r.RowsIn), percent(r.RowsOut, r.RowsIn), to, bytesOf(r.BytesRead), bytesOf(r.BytesWritten), r.Seconds)
	c.sayWarnings(r.Warnings)
}
