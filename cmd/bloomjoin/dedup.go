package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/dedups"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/ring"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

type dedupFlags struct {
	key, time, unit, format, late string
	keep                          string
	delimiter                     string
	by                            byte // of it
	out, state, tempDir           string
	window, jump, checkpoint      time.Duration
	slots                         int
	expect                        flags.Count
	rate, fpr                     float64
	exact, approximate            bool
	keys                          flags.Keys
	layout                        flags.Layout // its defaults
	inputs                        flags.Inputs // likewise
}

// Values of --keep.
const (
	keepFirst = "first"
	keepLast  = "last"
)

// timeUnits are the values of --time-unit.
var timeUnits = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond}

func (c *cli) dedupCmd() *cobra.Command {
	var o dedupFlags
	cmd := &cobra.Command{
		Use:   "dedup --key COL[,COL] [--time COL --window 24h] [flags] [-o OUT] [FILE...]",
		Short: "Drop rows whose key came before, in a stream or a log",
		Long:  `Drop rows whose key came before, in a stream or a log: one of equal rows stays. Files lose no other row. From a pipe, or with --state, a few are wrongly dropped, at the rate of --fpr.`,
		Example: `  tail -f x.ndjson | bloomjoin dedup --key id --time ts --window 24h --rate 1e4
  bloomjoin dedup --key id -o unique.parquet clicks/
  bloomjoin dedup --key id -o unique.csv.gz clicks.csv`,
		Annotations: flags.Help("dedup", "key", "time keep window expect rate fpr late format output state force"),
		RunE:        withFlags(c.dedup, &o),
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "", "`FORMAT` lines, csv, tsv, ndjson or arrow")
	flags.AddDelimiter(f, &o.delimiter)
	flags.AddRaw(f)
	flags.Group(f, flags.GroupInput)

	f.StringVar(&o.key, "key", "", "`COLUMNS` key columns; COL::TYPE casts")
	f.StringVar(&o.time, "time", "", "`COLUMN` time of the rows")
	f.StringVar(&o.unit, "time-unit", "", "`UNIT` unit of integer times, since 1970: s, ms, us or ns")
	o.keys.Add(f)
	flags.Group(f, flags.GroupKeys)

	f.StringVar(&o.keep, "keep", keepFirst, "`ROW` first, or last (by --time)")
	f.DurationVar(&o.window, "window", 0, "`DURATION` how long a key is remembered, as 24h")
	f.IntVar(&o.slots, "slots", 24, "`N` parts of the window, forgotten one by one")
	f.Var(&o.expect, "expect", "`N` distinct keys in a window: pipes need it")
	f.Float64Var(&o.rate, "rate", 0, "`N` distinct keys a second, in place of --expect")
	flags.AddRate(f, &o.fpr, "fpr", 0.001, "`RATE` share of rows wrongly dropped")
	f.BoolVar(&o.exact, "exact", false, "drop no row wrongly: the default for files")
	f.BoolVar(&o.approximate, "approximate", false, "drop a few rows wrongly, in less memory")
	f.StringVar(&o.late, "late", string(dedups.Keep), "`MODE` rows outside the window: keep, drop or error")
	f.DurationVar(&o.jump, "max-jump", 0, "`DURATION` how far one row may move the window ahead")
	flags.Group(f, flags.GroupFilter)

	f.StringVarP(&o.out, "output", "o", "", "`OUT` file, directory/ or - (the default of streams)")
	f.StringVar(&o.state, "state", "", "`FILE` what came before, for runs that continue")
	f.DurationVar(&o.checkpoint, "checkpoint", time.Minute, "`DURATION` time between commits of --state")
	c.AddForce(f)
	flags.Group(f, flags.GroupOutput)

	flags.AddTempDir(f, &o.tempDir)
	flags.Exclusive(cmd, "expect", "rate")
	flags.Exclusive(cmd, "exact", "state")
	flags.Exclusive(cmd, "exact", "approximate")
	unseen := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.layout.Add(unseen)
	o.layout.AddMissingKey(unseen)
	o.inputs.Add(unseen)
	of := c.common()
	of["format"] = flags.Choices(probeFormats...)
	of["key"], of["time"] = flags.ListOf(c.ofLogs), flags.ListOf(c.ofLogs)
	of["keep"] = flags.Choices(keepFirst, keepLast)
	of["time-unit"], of["late"] = flags.Choices("s", "ms", "us", "ns"), flags.Choices("keep", "drop", "error")
	c.Complete(cmd, of)
	return cmd
}

// dedupRun is one run of dedup.
type dedupRun struct {
	*logRun
	o       *dedupFlags
	of      dedups.Columns
	window  ring.Window
	params  ring.Params
	room    int64 // bytes for the ring, or for exact keys; 0: no limit
	stream  bool
	done    bool          // by an earlier run, which was reported
	exact   *dedups.Exact // nil: the run is approximate
	judge   *dedups.Judge // nil: it is exact
	state   *dedups.State // nil: none
	classes []string      // of the keys of the inputs so far
}

func (c *cli) dedup(cmd *cobra.Command, o *dedupFlags, args []string) (err error) {
	r := &dedupRun{logRun: c.newRun("dedup"), o: o}
	defer faults.Join(&err, r.close)
	if err := r.check(cmd, args); err != nil {
		return err
	}
	if r.stream {
		err = r.streams(cmd.Context(), args)
	} else {
		err = r.tables(cmd, args)
	}
	if err != nil || r.done {
		return err
	}
	return r.report()
}

// check checks the flags before anything is opened.
func (r *dedupRun) check(cmd *cobra.Command, args []string) (err error) {
	o := r.o
	if r.stream, err = o.streams(args); err != nil {
		return err
	}
	piped := len(args) == 0 || args[0] == "-"
	o.exact = o.exact || !o.approximate && o.state == "" && !piped
	r.of.Exact, r.of.Last = o.exact, o.keep == keepLast
	if err := o.checkKeep(cmd); err != nil {
		return err
	}
	if err := o.columns(cmd, &r.of); err != nil {
		return err
	}
	r.of.Options.IgnoreCase, r.of.Options.NullMisfits = o.keys.IgnoreCase, o.keys.NullMisfits()
	if err := cmp.Or(o.keys.Check(r.of.Key, r.of.Time), flags.OneOf("late", o.late, string(dedups.Keep), string(dedups.Drop), string(dedups.Refuse)), r.checkOutput(cmd, args)); err != nil {
		return err
	}
	if r.stream && !piped {
		format, _, _ := probeFormat(o.format, args[0], nil) // the name says it
		if err := r.checkName(format); err != nil {
			return err
		}
	}
	if err := r.size(cmd); err != nil {
		return err
	}
	if o.exact {
		r.room, err = r.Budget()
	} else {
		r.room, err = r.FilterBudget()
	}
	if err == nil && r.window.Expect > 0 {
		err = r.plan()
	}
	return err
}

// checkKeep checks --keep, and the flags that it excludes.
func (o *dedupFlags) checkKeep(cmd *cobra.Command) error {
	if err := flags.OneOf("keep", o.keep, keepFirst, keepLast); err != nil || o.keep == keepFirst {
		return err
	}
	for _, name := range []string{"window", "slots", "rate", "max-jump", "late"} {
		if cmd.Flags().Changed(name) {
			return flags.Usagef("--keep last with --%s: rows are compared over whole files, not within a window (leave --%[1]s out)", name)
		}
	}
	with, hint := "standard input", "add --exact, which stores the input first, or name files"
	switch {
	case o.exact:
		return nil
	case o.state != "":
		with, hint = "--state", "leave it out"
	case o.approximate:
		with, hint = "--approximate", "leave it out"
	}
	return flags.Usagef("--keep last with %s: want an exact run, which reads all rows before it writes one (%s)", with, hint)
}

// checkName returns an error if the name of the output says another format than that of the rows.
func (r *dedupRun) checkName(format string) error {
	if r.o.out == "-" {
		return nil
	}
	return flags.CheckFormat(output.Output{Name: r.o.out, Format: dataset.Format(format)}, r.o.format != "")
}

// streams reports whether the input passes as it comes, rather than being copied.
func (o *dedupFlags) streams(args []string) (_ bool, err error) {
	if o.by, err = flags.RowsDelimiter(o.delimiter, &o.format); err != nil {
		return false, err
	}
	if o.format != "" {
		if err := flags.OneOf("format", o.format, probeFormats...); err != nil {
			return false, err
		}
	}
	texts := 0
	for _, a := range args {
		if _, ok := text.FormatOf(address.WithoutQuery(a)); ok || o.format != "" {
			texts++
		}
	}
	switch {
	case len(args) == 0 || len(args) == 1 && args[0] == "-":
		return true, nil
	case slices.Contains(args, "-"):
		return false, flags.Usagef("-: standard input and files: give one or the other (pass several through a pipe: cat FILE... | ...)")
	case o.format == probeArrow && len(args) > 1:
		return false, flags.Usagef("--format arrow: want one stream, got %d files (leave --format out to copy Arrow files)", len(args))
	case texts > 0 && texts < len(args):
		return false, flags.Usagef("text and other files: %d of %d names are text: give one kind", texts, len(args))
	}
	return texts > 0, nil
}

// columns sets key and time columns.
func (o *dedupFlags) columns(cmd *cobra.Command, of *dedups.Columns) (err error) {
	if o.key == "" {
		return flags.Required("--key COL is required: name the column whose values are compared")
	}
	if of.Key, err = keys.ParseColumns(o.key); err != nil {
		return flags.Usagef("--key: %w", err)
	}
	if of.Options.Rule, err = flags.Rule(o.keys.Normalize); err != nil {
		return err
	}
	if o.time == "" {
		if cmd.Flags().Changed("time") {
			return flags.Usagef("--time: want the name of a column")
		}
		for _, name := range []string{"window", "slots", "rate", "max-jump", "time-unit"} {
			if cmd.Flags().Changed(name) {
				return flags.Required("--time COL is required with --%s: name the column that has the times of the rows", name)
			}
		}
		return nil
	}
	if of.Time, err = keys.ParseColumns(o.time); err != nil || len(of.Time) > 1 {
		return flags.Usagef("--time %s: want one column", o.time)
	}
	if o.unit != "" {
		if err := flags.OneOf("time-unit", o.unit, "s", "ms", "us", "ns"); err != nil {
			return err
		}
		of.Unit = timeUnits[o.unit]
	}
	return nil
}

// checkOutput checks the flags of the output and of the state.
func (r *dedupRun) checkOutput(cmd *cobra.Command, args []string) error {
	o, stream, given := r.o, r.stream, cmd.Flags().Changed
	if o.out == "" && given("output") {
		return flags.Usagef("-o: want the name of a file, a directory/, or - for standard output")
	} else if o.out == "" && stream {
		o.out = "-"
	}
	if stream && o.out != "-" {
		if err := errors.Join(flags.CheckWritable(o.out), flags.RegularOutput(o.out)); err != nil {
			return err
		}
		if objects.IsDir(cmd.Context(), r.Store(), o.out) {
			return flags.Usagef("-o %s: rows of text are written as they are: name one file of that format", o.out)
		}
	}
	if o.checkpoint <= 0 || o.state == "" && given("checkpoint") {
		return flags.Usagef("--checkpoint %s: want a duration, as 1m, with --state", o.checkpoint)
	}
	if o.state == "" {
		if given("state") {
			return flags.Usagef("--state: want the name of a file")
		}
		return nil
	}
	packed := func(name string) bool { return slices.Contains([]string{".gz", ".zst"}, filepath.Ext(name)) }
	switch {
	case len(args) == 0 || args[0] == "-":
		return flags.Usagef("--state %s: standard input cannot be read again from a place in it: name a file", o.state)
	case o.out == "" || o.out == "-" || strings.HasSuffix(o.out, "/"):
		return flags.Usagef("--state %s: what goes to standard output or a directory cannot be committed with it: name a file, as -o unique.ndjson", o.state)
	case o.format == probeArrow:
		return flags.Usagef("--state %s: an Arrow stream cannot be read again from a place in it: name Arrow files, without --format", o.state)
	case stream && slices.ContainsFunc(append([]string{o.out}, args...), packed):
		return flags.Usagef("--state %s: compressed text cannot be continued from a place in it: name plain text", o.state)
	case address.IsURL(o.state) || address.IsURL(o.out) || stream && slices.ContainsFunc(args, address.IsURL):
		return flags.Usagef("--state %s: unsupported for URLs: name files of this machine", o.state)
	}
	return nil
}

// size sets what determines the ring; Expect stays 0 if the rows of the files do.
func (r *dedupRun) size(cmd *cobra.Command) error {
	o := r.o
	if err := flags.CheckRate(cmd, o.fpr); err != nil {
		return err
	}
	w := ring.Window{Window: o.window, Jump: o.jump, Slots: o.slots, Expect: uint64(o.expect), FPR: o.fpr}
	switch {
	case o.time == "" || r.of.Last:
		w.Slots = 1
	case o.window <= 0:
		return flags.Required("--window DURATION is required with --time: say how long a key is remembered, as 24h (or keep each key's newest row with --keep last)")
	case o.slots < 1 || o.slots > ring.MostSlots:
		return flags.Usagef("--slots %d: want 1 to %d", o.slots, ring.MostSlots)
	case o.jump < 0:
		return flags.Usagef("--max-jump %s: want a duration, as 1h", o.jump)
	}
	if cmd.Flags().Changed("rate") {
		if !(o.rate > 0 && o.rate < 1e12) {
			return flags.Usagef("--rate %v: want keys a second, as 10000", o.rate)
		}
		w.Expect = uint64(math.Ceil(o.rate * o.window.Seconds()))
	}
	if o.exact && !cmd.Flags().Changed("expect") {
		w.Expect = 1 // exact runs have no ring to size
	}
	if w.Expect == 0 && (cmd.Flags().Changed("expect") || r.stream || o.time != "" || o.state != "") {
		return flags.Required("--expect N is required: say how many distinct keys a window may have, or --rate how many a second")
	}
	r.window = w
	return nil
}

// plan sets the parameters of the ring.
func (r *dedupRun) plan() (err error) {
	if r.params, err = ring.Plan(r.window); err != nil {
		return flags.Usagef("%w", err)
	}
	if r.of.Width = r.params.Width; r.of.Last {
		r.of.Width = time.Second
	}
	if r.o.exact {
		return nil
	}
	return r.params.Fits(uint64(max(r.room, 0)))
}

// options returns the options that rows to drop depend on, in words.
func (r *dedupRun) options() string {
	o := r.o
	list := []string{"key " + keys.ColumnsString(r.of.Key)}
	if !o.exact {
		list = append(list, fmt.Sprintf("expect %d", r.params.Expect), fmt.Sprintf("fpr %g", o.fpr))
	}
	if o.time != "" {
		list = append(list, "time "+keys.ColumnsString(r.of.Time), fmt.Sprintf("window %s", o.window), fmt.Sprintf("slots %d", o.slots), "late "+o.late)
	}
	normalize := strings.TrimSuffix(o.keys.Normalize, ",ascii-only") // as states of earlier versions have it
	if rule := r.of.Options.Rule; rule&keys.Unicode != 0 {
		normalize = rule.Stored()
	}
	for _, of := range []struct{ name, value string }{{"time unit", o.unit}, {"normalize", normalize}, {"format", o.format}, {"delimiter", o.delimiter}} {
		if of.value != "" {
			list = append(list, of.name+" "+of.value)
		}
	}
	if o.jump > 0 {
		list = append(list, fmt.Sprintf("max jump %s", o.jump))
	}
	if o.exact {
		list = append(list, "exact")
	}
	if r.of.Last {
		list = append(list, "keep last")
	}
	return strings.Join(append(list, output.OfKeys(o.keys.IgnoreCase, o.keys.NullMisfits())...), "; ")
}

// begin makes the ring, or loads it from the state.
func (r *dedupRun) begin(ctx context.Context) (err error) {
	if r.o.exact {
		r.exact = dedups.NewExact(r.params, dedups.Late(r.o.late), r.room, r.o.tempDir)
		r.exact.Last = r.of.Last
		return nil
	}
	j := &dedups.Judge{Late: dedups.Late(r.o.late)}
	if r.o.state != "" {
		if err := objects.Sweep(ctx, r.Store(), r.o.state); err != nil { // what killed runs have left
			return err
		}
		if r.state, j.Ring, err = dedups.LoadState(ctx, r.Store(), r.o.state, uint64(max(r.room, 0))); err != nil {
			return err
		}
		if len(r.state.Inputs) == 0 { // there was no row
			j.Ring, r.state.Options, r.state.Classes = nil, r.options(), nil
		}
		if err := r.state.Agree(r.options()); err != nil {
			return err
		}
		r.classes = r.state.Classes
	} else {
		j.Sample = dedups.NewSample(r.params, r.room)
	}
	if j.Ring == nil {
		j.Ring = ring.New(r.params)
	}
	r.judge = j
	return nil
}

// agree compares the classes of an input's keys with those of the inputs before it.
func (r *dedupRun) agree(enc *dedups.Encoder, file string) error {
	classes := keys.NamesOf(enc.Classes())
	if len(r.classes) == 0 {
		r.classes = classes
	}
	if !slices.Equal(classes, r.classes) {
		e := faults.Of(cause.KeyTypes, faults.Mismatch(keyscan.AtColumns(file, r.of.Key), "key class", strings.Join(r.classes, ", ")+" (the inputs before)", strings.Join(classes, ", ")))
		return e.WithHint("cast the key with {Key COL::TYPE}")
	}
	if r.state != nil {
		r.state.Classes = classes
	}
	return nil
}

// dedupReport is the JSON report of dedup.
type dedupReport struct {
	session.Head
	dedups.Counts
	RowsOut      int64   `json:"rows_out"`
	Exact        bool    `json:"exact"`
	Slots        int     `json:"slots"`
	MemoryBytes  uint64  `json:"memory_bytes"` // of the ring
	Expect       uint64  `json:"expect"`       // likewise
	FPRAsked     float64 `json:"fpr_asked"`
	FPRPredicted float64 `json:"fpr_predicted"` // the highest

	WronglyDropped *wronglyDropped `json:"wrongly_dropped,omitempty"` // without --exact

	Warnings []joins.Warning `json:"warnings"`
}

// wronglyDropped are rows that had no equal before.
type wronglyDropped struct {
	Expected float64  `json:"expected"`           // by the fill of the filters
	Measured *float64 `json:"measured,omitempty"` // by exact bookkeeping for a sample of the keys
	Error    *float64 `json:"standard_error,omitempty"`
	OneIn    uint64   `json:"sampled_one_in,omitempty"` // key
}

// report prints the figures. Rows that were wrongly dropped at a much higher rate than asked for
// are an error.
func (r *dedupRun) report() error {
	r.end()
	d := dedupReport{Exact: r.o.exact, Slots: r.params.Slots, Warnings: []joins.Warning{}}
	if r.judge != nil {
		d.Counts = r.judge.Counts
		r.sayApproximate(&d)
	} else {
		d.Counts = r.exact.Counts
	}
	n := d.Counts
	d.Head, d.RowsOut = r.NewHead(r.verb, r.start), n.RowsIn-n.Duplicates-n.Unjudged
	r.Say("%s of %s rows stay (%s): %s duplicates, in %.2f s", words.Count(d.RowsOut), words.Count(n.RowsIn), words.Percent(d.RowsOut, n.RowsIn), words.Count(n.Duplicates), d.Seconds)
	switch {
	case n.Late+n.Ahead+n.TimesNull+n.KeysNull == 0:
	case r.of.Last:
		r.Say("%s rows have no time and count as the oldest; %s have no key and stay", words.Count(n.TimesNull), words.Count(n.KeysNull))
	default:
		r.Say("%s rows are older than the window, %s too far ahead, %s without a time (--late %s); %s have no key and stay",
			words.Count(n.Late), words.Count(n.Ahead), words.Count(n.TimesNull), r.o.late, words.Count(n.KeysNull))
	}
	if what, fits := n.Doubt(r.of.Unit); what != "" && !r.of.Last { // a unit does not change which is the newest
		if fits != "" {
			what += " (--time-unit " + fits + " would fit)"
		}
		d.Warnings = append(d.Warnings, joins.Warning{Code: warnTimeUnit, Text: fmt.Sprintf("--time-unit %s: %s", r.o.unit, what)})
	}
	r.SayWarnings(d.Warnings)
	if err := r.Report(d, r.o.out); err != nil || r.judge == nil || !r.judge.Missed(r.o.fpr) {
		return err
	}
	hint := "raise --expect, or drop none with --exact"
	if r.state != nil {
		hint = "begin another --state with a higher --expect: " + r.o.state + " is not saved"
	}
	return fmt.Errorf("%w: --fpr %g: rows were wrongly dropped at a higher rate (%s)", publish.ErrRequire, r.o.fpr, hint)
}

// sayApproximate says how many rows were wrongly dropped.
func (r *dedupRun) sayApproximate(d *dedupReport) {
	j, p := r.judge, r.params
	d.MemoryBytes, d.Expect, d.FPRAsked, d.FPRPredicted = p.Bytes(), p.Expect, p.FPR, j.Rate
	d.WronglyDropped = &wronglyDropped{Expected: j.Expected}
	said := ""
	if s := j.Sample; s != nil {
		measured, deviation, oneIn := s.Wrong()
		d.WronglyDropped.Measured, d.WronglyDropped.Error, d.WronglyDropped.OneIn = &measured, &deviation, oneIn
		if said = fmt.Sprintf("; %.0f found", measured); oneIn > 1 {
			said = fmt.Sprintf("; %.0f ± %.0f estimated from one key in %d", measured, deviation, oneIn)
		}
	}
	if r.state == nil {
		said += " (--exact drops none)"
	}
	r.Say("approximate: rows wrongly dropped: %.1f expected%s", j.Expected, said)
}

// warnTimeUnit is the code of the warning that times are probably of another unit.
const warnTimeUnit = "time-unit"
