package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/look"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

type joinFlags struct {
	ids                                           []string
	filter, on, typ, strategy, shard, format, out string
	tempDir, suffix                               string
	text                                          flags.IDs
	keys                                          flags.Keys
	layout                                        flags.Layout
	inputs                                        flags.Inputs
	where, idsWhere                               flags.Where
	part                                          flags.Part
	require                                       flags.Require
	dir                                           flags.Directory
	fpr                                           float64
	count                                         bool
	estimates                                     bool     // of plan: nothing is written
	logNames                                      []string // other names of key columns of the log
	head                                          look.Head
}

func (c *cli) joinCmd() *cobra.Command {
	var o joinFlags
	cmd := &cobra.Command{
		Use:   "join --ids IDS --on LOGCOL[=IDCOL][,...] [flags] -o OUT LOGS...",
		Short: "Join a log with an ID set exactly",
		Long: `Join a log, the left side, with an ID set, the right side.

  semi   log rows whose key is in the ID set, each once
  anti   log rows whose key is not in the ID set, or is NULL
  inner  pairs of a log row and an ID with the same key
  left   inner, and log rows without an ID
  right  inner, and IDs without a log row
  full   left and right`,
		Example: `  bloomjoin join --ids users.parquet --on user_id -o rows.parquet logs/
  bloomjoin join --ids ids.csv --on origin=iata --type inner --head 10 logs/
  bloomjoin join --ids users.parquet --on user_id --count --type anti logs/`,
		Annotations: flags.Help("join", "ids on output", "type where columns count head shard ids-format key-type files-from include force require-rows"),
		Args:        o.inputs.Arguments("LOGS"),
		RunE:        withFlags(c.join, &o),
	}
	f := cmd.Flags()
	o.addInput(f)
	o.inputs.AddLog(f)
	flags.Group(f, flags.GroupInput)

	o.addKeys(f)
	o.layout.AddMissingKey(f)
	o.part.AddSample(f)
	flags.Group(f, flags.GroupKeys)

	o.addJoin(f)
	flags.Group(f, flags.GroupJoin)

	f.StringVarP(&o.out, "output", "o", "", flags.OutputHelp)
	f.BoolVar(&o.count, "count", false, "print the number of rows, write nothing")
	o.part.AddLimit(f)
	o.head.Add(cmd, f)
	c.AddForce(f)
	o.layout.Add(f)
	f.Lookup("columns").Usage = columnsHelp
	f.StringVar(&o.suffix, "suffix", defaultSuffix, "`TEXT` suffix of ID columns whose name the log has, too")
	o.inputs.AddOutput(f)
	o.dir.Add(f)
	f.StringVar(&o.format, "format", "", flags.FormatHelp)
	flags.Group(f, flags.GroupOutput)

	o.require.Add(f)
	flags.Group(f, flags.GroupChecks)

	flags.AddTempDir(f, &o.tempDir)
	c.completeJoin(cmd, &o)
	return cmd
}

// columnsHelp is the usage of --columns of join and plan.
const columnsHelp = "`COLUMNS` columns to keep, as a,log.b,ids.*; repeatable"

// addInput adds the flags for inputs, which plan has, too.
func (o *joinFlags) addInput(f *pflag.FlagSet) {
	f.StringArrayVar(&o.ids, "ids", nil, "`IDS` a file, directory, pattern, table or -; repeatable")
	o.text.Add(f, "the log's")
	o.inputs.AddFrom(f)
	o.inputs.Add(f)
	o.where.Add(f)
	o.idsWhere.AddIDs(f)
	f.StringVar(&o.shard, "shard", "", flags.ShardHelp)
}

// addKeys adds the flags for keys, which plan has, too.
func (o *joinFlags) addKeys(f *pflag.FlagSet) {
	f.StringVar(&o.on, "on", "", "`LOGCOL=IDCOL` key columns, or one name for both; COL|OTHER, COL::TYPE")
	o.keys.Add(f)
}

// addJoin adds the flags for the join, which plan has, too.
func (o *joinFlags) addJoin(f *pflag.FlagSet) {
	f.StringVar(&o.typ, "type", "semi", "`TYPE` semi, anti, inner, left, right or full")
	f.StringVar(&o.strategy, "strategy", "auto", "`STRATEGY` auto, exact, lookup, broadcast, reverse or shuffle")
	f.StringVar(&o.filter, "filter", "", "`FILE` a filter built from these IDs")
	flags.AddRate(f, &o.fpr, "fpr", 0, "`RATE` false-positive rate of the filter, as 0.01 or 1%")
}

// fprBound is a measured false-positive rate with its bounds.
type fprBound struct {
	Rate float64 `json:"rate"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	Rows int64   `json:"rows"` // rows without an ID
}

// joinReport is the JSON report of join.
type joinReport struct {
	scanReport
	*session.BadLines
	Candidates   int64    `json:"candidates"`
	IDsTotal     int64    `json:"ids_total"`
	RowsMatched  int64    `json:"rows_matched"`
	IDsMatched   int64    `json:"ids_matched"`  // rows of the IDs
	KeysMatched  int64    `json:"keys_matched"` // their distinct keys
	FPRMeasured  float64  `json:"fpr_measured"`
	FPRBound     fprBound `json:"fpr_measured_bound"`
	Strategy     string   `json:"strategy"`
	SpilledBytes int64    `json:"spilled_bytes"`
	Columns      []string `json:"columns,omitempty"` // of the answer, with --columns
	Plan         *planned `json:"plan,omitempty"`
}

// joinOptions returns the options from the flags, and how to open the IDs and to write, checked
// before any input is opened.
func (c *cli) joinOptions(ctx context.Context, o *joinFlags, open *source.Opening, out *output.Destination) (opts joins.Options, err error) {
	opts = joins.Options{
		On: o.on, Type: joins.Type(o.typ), Strategy: joins.Strategy(o.strategy), FPR: o.fpr, Threads: c.Threads,
		TempDir: o.tempDir,
	}
	open.OpenOptions = source.OpenOptions{Text: true, Stdin: c.Stdin}
	if o.writes() {
		if *out, err = c.outputOf(ctx, o.out, o.format); err == nil {
			err = o.dir.Fill(ctx, out)
		}
	}
	if err != nil {
		return opts, err
	}
	if open.Int96Nanos, err = o.layout.Int96Nanos(); err != nil {
		return opts, err
	}
	if err := cmp.Or(o.text.Check(open, o.ids), o.inputs.FillHive(open)); err != nil {
		return opts, err
	}
	if o.on == "" {
		return opts, flags.Required("--on LOGCOL=IDCOL is required: name the key columns, or --on COL if both sides use that name")
	}
	if o.on, o.logNames, open.OtherNames, err = keys.SplitNames(o.on); err != nil {
		return opts, flags.Usagef("--on: %w", err)
	}
	opts.On = o.on
	left, right, err := keys.ParsePairs(o.on)
	if err != nil {
		return opts, flags.Usagef("--on: %w", err)
	}
	if err := o.keys.Check(left, right); err != nil {
		return opts, err
	}
	open.Nested = keys.NestedPaths(right)
	opts.IgnoreCase, opts.NullMisfits = o.keys.IgnoreCase, o.keys.NullMisfits()
	rule, _ := flags.Rule(o.keys.Normalize) // checked with the other keys
	opts.Normalize = rule.String()
	if err := cmp.Or(flags.OneOf("type", o.typ, joinTypes...), flags.OneOf("strategy", o.strategy, strategies...)); err != nil {
		return opts, err
	}
	if opts.Strategy == joins.Exact && opts.Type != joins.Semi && opts.Type != joins.Anti {
		return opts, flags.Usagef("--strategy exact: it answers semi and anti joins only; --type %s needs the IDs' columns, which a filter does not hold (try lookup)", o.typ)
	}
	if opts.Require, err = o.require.Conditions(opts.Type, o.out); err != nil {
		return opts, err
	}
	if opts.Shard, err = c.ShardOf(o.shard); err != nil {
		return opts, err
	}
	opts.Limit = o.part.Limit
	switch keepsIDs := opts.Type == joins.Right || opts.Type == joins.Full; {
	case keepsIDs && opts.Limit > 0:
		return opts, flags.Usagef("--limit %d: --type %s needs the whole log, to know which IDs have no row (use inner or left)", opts.Limit, o.typ)
	case opts.Limit > 0 && opts.Require.Rows > opts.Limit:
		return opts, flags.Usagef("--limit %d: fewer than --require-rows %d (leave one of them out)", opts.Limit, opts.Require.Rows)
	case keepsIDs && !opts.Shard.Whole():
		return opts, flags.Usagef("--type %s: it needs the whole log, since an ID without a row in this shard may have one in another (run it without --shard)", o.typ)
	}
	if opts.Memory, err = c.Budget(); err != nil {
		return opts, err
	}
	open.Column = right[len(right)-1].Name()
	if err := o.idsWhere.Fill(open, &o.keys); err != nil {
		return opts, err
	}
	if open.Types, err = flags.KeyTypes(o.text.KeyType, right); err != nil {
		return opts, err
	}
	opts.KeepTypes, out.TempDir = o.text.KeyType != "", o.tempDir
	return opts, o.checkLayout(&opts, out)
}

// checkLayout checks the flags for the layout against the type of the join.
func (o *joinFlags) checkLayout(opts *joins.Options, out *output.Destination) error {
	var kept keyscan.Options
	if err := o.layout.Check(&kept, out); err != nil {
		return err
	}
	opts.Schema = kept.Schema
	if err := o.chooseColumns(opts); err != nil {
		return err
	}
	if o.layout.MissingKey == "skip-file" && slices.Contains([]joins.Type{joins.Anti, joins.Left, joins.Full}, opts.Type) {
		return flags.Usagef("--missing-key skip-file: --type %s keeps rows without a key, which this would leave out (leave one of them out)", o.typ)
	}
	return nil
}

// joinTypes are the values of --type.
var joinTypes = []string{"semi", "anti", "inner", "left", "right", "full"}

// strategies are the values of --strategy.
var strategies = []string{"auto", "exact", "lookup", "broadcast", "reverse", "shuffle"}

// hasIDs returns an error if --ids is missing. The error shows the command with the
// first argument as the IDs. It is not assumed, since it may be part of the log.
func (o *joinFlags) hasIDs(cmd *cobra.Command, args []string) error {
	if len(o.ids) > 0 {
		return nil
	}
	if len(args) < 2 {
		return flags.Required("--ids IDS is required: name the IDs to join with")
	}
	return flags.Required("--ids IDS is required: if %s are the IDs, %s", args[0], flags.RightForm(cmd, "ids", args, "LOGS"))
}

// chooseColumns copies --columns and --suffix to the options.
func (o *joinFlags) chooseColumns(opts *joins.Options) (err error) {
	if opts.Type != joins.Semi && opts.Type != joins.Anti {
		opts.Suffix = o.suffix
	}
	if opts.Columns, err = o.layout.Columns.Texts(false); err != nil {
		return err
	}
	if opts.Columns == nil && o.count {
		opts.Columns = []string{}
	}
	if err := opts.CheckColumns(); err != nil {
		return flags.Usagef("--columns: %w", err)
	}
	return nil
}

// defaultSuffix is the default of --suffix.
const defaultSuffix = "_ids"

// checkSuffix checks --suffix.
func (o *joinFlags) checkSuffix() error {
	switch typ := joins.Type(o.typ); {
	case o.suffix == "":
		return flags.Usagef("--suffix is empty: name what is appended to the name of an ID column, as %s", defaultSuffix)
	case typ == joins.Semi || typ == joins.Anti:
		return flags.Usagef("--suffix %s: the answer of --type %s has no columns of the IDs (leave --suffix out)", o.suffix, typ)
	}
	return nil
}

func (c *cli) join(cmd *cobra.Command, o *joinFlags, args []string) (err error) {
	ctx, r := cmd.Context(), c.newRun("join")
	defer faults.Join(&err, r.close)
	if err := o.checkJoin(cmd, args); err != nil {
		return err
	}
	var open source.Opening
	var out output.Destination
	opts, err := c.joinOptions(ctx, o, &open, &out)
	if err != nil {
		return err
	}
	if err := o.part.Check(cmd, out.Name != "" && out.IsDir(ctx)); err != nil {
		return err
	}
	c.WatchReader(ctx, out.Name)
	r.layout, r.count, r.head, r.out, r.shard = &o.layout, o.count, &o.head, out, opts.Shard
	openLog := source.Opening{OpenOptions: source.OpenOptions{Int96Nanos: open.Int96Nanos, OtherNames: o.logNames}}
	if err := r.joinInputs(ctx, o, opts, &openLog, args); err != nil {
		return err
	}
	o.sampleSides(&open, &openLog)
	r.keep = keyscan.Options{ScanOptions: keyscan.ScanOptions{Columns: opts.Columns, Schema: opts.Schema}}
	if err := r.settings(ctx); err != nil {
		return err
	}
	opts.Pinned = r.keep.Pinned
	if err := r.joinFiles(cmd, o, &opts, open, openLog, args); err != nil {
		return err
	}
	if len(r.files) > 0 { // before the output is looked at
		j, err := joins.New(r.ids, r.files, opts)
		if err != nil {
			return err
		}
		r.sought = soughtByJoin(j, &opts)
	}
	opts.SetRun(ctx, &r.out, o.layout.MissingKey, r.ids, r.all, &open.OpenOptions, &openLog.OpenOptions)
	if done, err := r.finishedBefore(ctx); done || err != nil {
		return err
	}
	opts.Pieces = r.own
	opts.UnreadRows, opts.UnreadNulls = r.unreadRows()
	r.showPhases(&opts)
	var j *joins.Join // nil: nothing is to be read
	if len(r.files) > 0 {
		if j, err = joins.New(r.ids, r.files, opts); err != nil {
			return err
		}
	}
	written, err := r.writeJoin(ctx, o, opts, j)
	r.end()
	if errors.Is(err, output.ErrDone) { // another attempt was faster
		return r.alreadyDone(ctx, err)
	}
	if errors.Is(err, output.ErrRequire) && o.writes() {
		return fmt.Errorf("%w; nothing was published (check the IDs, and the columns of --on)", err)
	}
	if err != nil {
		return err
	}
	if o.head.Stopped() {
		return r.finishEarly(ctx)
	}
	rep := r.joinReport(o, opts, j, written)
	r.hintNoneMatched(ctx, opts, &rep, j)
	c.SayBad(rep.BadLines)
	c.sayJoin(o, rep)
	return r.finish(ctx, rep, rep.RowsOut, written)
}

// writes reports whether there is an output.
func (o *joinFlags) writes() bool { return !o.count && !o.estimates && !o.head.Alone() }

// checkJoin checks the flags that plan does not have.
func (o *joinFlags) checkJoin(cmd *cobra.Command, args []string) error {
	if err := cmp.Or(o.hasIDs(cmd, args), flags.CheckCount(cmd, o.count), o.head.Check(cmd, o.out), flags.CheckRate(cmd, o.fpr)); err != nil {
		return err
	}
	if cmd.Flags().Changed("suffix") {
		return o.checkSuffix()
	}
	return nil
}

// joinInputs sets how to open the log, and checks what comes from standard
// input.
func (r *logRun) joinInputs(ctx context.Context, o *joinFlags, opts joins.Options, open *source.Opening, args []string) error {
	if o.writes() && !r.shard.Whole() && slices.Contains(o.ids, "-") && r.out.IsDir(ctx) {
		return flags.Usagef("--ids -: workers that fill %s together must read the same IDs, which standard input does not ensure (name a file)", o.out)
	}
	if err := cmp.Or(r.logFrom(ctx, open, &o.inputs, args, r.shard, r.out), o.where.Fill(open, &o.keys)); err != nil {
		return err
	}
	if o.inputs.FilesFrom == "-" && slices.Contains(o.ids, "-") {
		return flags.Usagef("-: standard input can be read once, and is named by --ids and by --files-from")
	}
	if slices.Contains(o.ids, "-") && slices.Contains(args, "-") {
		return flags.Usagef("-: standard input can be read once: name a file for the IDs or for the log")
	}
	if s := opts.Strategy; slices.Contains(args, "-") && (s == joins.Broadcast || s == joins.Reverse || s == joins.Shuffle) {
		return flags.Usagef("--strategy %s: it reads the log more than once, and standard input can be read once (leave --strategy out, or name a file)", s)
	}
	return nil
}

// sampleSides asks for a sample of the IDs' keys, and of the log's if rows whose key is none of them pass.
func (o *joinFlags) sampleSides(ids, log *source.Opening) {
	left, right, _ := keys.ParsePairs(o.on) // joinOptions has checked it
	o.part.Sample(ids, keys.ColumnsString(right), &o.keys)
	if o.filter != "" || slices.Contains([]string{"anti", "left", "full"}, o.typ) {
		o.part.Sample(log, keys.ColumnsString(left), &o.keys)
	}
}

// joinFiles opens the filter, the IDs and the log.
func (r *logRun) joinFiles(cmd *cobra.Command, o *joinFlags, opts *joins.Options, ids, log source.Opening, args []string) (err error) {
	if o.filter != "" {
		f, err := r.load(cmd.Context(), o.filter, opts.Memory)
		if err != nil {
			return err
		}
		opts.Filter = f
	}
	if err := r.openIDs(cmd, o.ids, ids, &o.text); err != nil {
		return err
	}
	left, _, _ := keys.ParsePairs(o.on) // joinOptions has checked it
	if err := r.openLog(cmd, &o.inputs, args, log, []dataset.Match{{Key: keys.ColumnsString(left), IgnoreCase: opts.IgnoreCase}}, false); err != nil {
		return err
	}
	return o.inputs.CheckHive(slices.Concat(r.ids, r.all)...)
}

// writeJoin joins into the output, or only counts. j is nil if the log has no
// file.
func (r *logRun) writeJoin(ctx context.Context, o *joinFlags, opts joins.Options, j *joins.Join) (w dataset.Written, err error) {
	switch {
	case j == nil:
		return r.joinEmpty(ctx, o, opts, r.out)
	case r.count:
		_, err = j.Count(ctx)
		return w, errors.Join(err, r.closeFilters())
	case !o.writes():
		return w, errors.Join(r.collect(j.Run(ctx), opts.Require != (dataset.Require{})), r.closeFilters())
	}
	return j.Write(ctx, r.out, r.closeFilters)
}

// isLog reports whether a file of IDs is in the log, too.
func (r *logRun) isLog(ids *source.File) bool {
	return slices.ContainsFunc(r.all, func(f *source.File) bool { return f.Name() == ids.Name() })
}

// joinReport returns the report of a join. j is nil if the log has no file.
func (r *logRun) joinReport(o *joinFlags, opts joins.Options, j *joins.Join, w dataset.Written) joinReport {
	rep := newJoinReport(joins.Report{})
	if j != nil {
		rep = newJoinReport(j.Report())
		rep.RowsWhere, rep.FilesExcluded = o.where.Figure(j.Report().RowsWhere), o.where.Figure(o.where.Excluded)
		rep.Plan = r.comparePlan(o.typ, r.start, j.Report())
		for _, w := range j.Report().Warnings {
			if i := slices.IndexFunc(r.ids, r.isLog); i >= 0 && w.Code == joins.WarnNothingDropped {
				w.Text = fmt.Sprintf("%s is an ID file and a log file, so each of its rows has an ID", r.ids[i].Name())
			}
			rep.Warnings = append(rep.Warnings, w)
		}
		for _, p := range r.pieces() {
			rep.RowGroups += int64(p.Hi - p.Lo)
		}
		rep.Path = session.ReadPaths(r.pieces(), j.PathOf)
		rep.Columns = columnsOf(j, opts)
		rep.LimitReached = opts.Limit > 0 && rep.RowsOut >= opts.Limit
	}
	r.fill(&rep.scanReport, w)
	rep.BadLines = session.BadLinesOf(r.ids, o.text.SkipBad)
	return rep
}

// columnsOf returns the names of the chosen columns in the answer; nil without a choice.
func columnsOf(j *joins.Join, opts joins.Options) []string {
	if opts.Type == joins.Semi || opts.Type == joins.Anti {
		return bareNames(opts.Columns)
	}
	if len(opts.Columns) > 0 {
		return fieldNames(j.Parts()[0].Schema.Fields())
	}
	return nil
}

func newJoinReport(rep joins.Report) joinReport {
	return joinReport{
		scanReport: scanReport{
			RowsIn: rep.RowsIn, RowsOut: rep.RowsOut, KeysNull: rep.KeysNull,
			RowGroupsSkipped: rep.RowGroupsSkipped, Pages: rep.Pages, PagesSkipped: rep.PagesSkipped,
			FPRAsked: rep.FPRAsked, FPRPredicted: rep.FPRPredicted, Warnings: []joins.Warning{},
		},
		Candidates: rep.Candidates, RowsMatched: rep.RowsMatched, IDsTotal: rep.IDsTotal, IDsMatched: rep.IDsMatched, KeysMatched: rep.KeysMatched,
		FPRMeasured: rep.FPRMeasured.Value, FPRBound: fprBound{rep.FPRMeasured.Value, rep.FPRMeasured.Low, rep.FPRMeasured.High, rep.FPRRows}, Strategy: string(rep.Strategy),
		SpilledBytes: rep.SpilledBytes,
	}
}

// sayJoin prints a summary of a join, and its warnings.
func (c *cli) sayJoin(o *joinFlags, r joinReport) {
	if c.Verbose {
		c.sayPaths(r.Path)
		c.Say("  strategy %s; false positives: %.2g predicted, %.2g measured over %s rows (expected %.2g to %.2g)",
			r.Strategy, r.FPRPredicted, r.FPRMeasured, words.Count(r.FPRBound.Rows), r.FPRBound.Low, r.FPRBound.High)
		if r.SpilledBytes > 0 {
			c.Say("  %s spilled to disk", words.Bytes(r.SpilledBytes))
		}
		if r.Plan != nil {
			c.sayPlanned(r.Plan)
		}
	}
	c.Say("%s join: %s from %s; %s (%s) %s an ID; %s;%s in %.2f s",
		o.typ, words.Things(r.RowsOut, "row"), words.Count(r.RowsIn), words.Things(r.RowsMatched, "log row"), words.Percent(r.RowsMatched, r.RowsIn),
		words.Number(r.RowsMatched, "has", "have"), r.idsMatched(), into(o.out), r.Seconds)
	c.sayLimit(r.scanReport)
	c.SayWarnings(r.Warnings)
}
