package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/codec"
	codecbloom "github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// buildFlags holds the flags of build.
type buildFlags struct {
	key, tempDir, maxSize, kind, geometry, shard, out, keyRange string
	fpr                                                         float64
	expect, capacity                                            flags.Count
	uncompressed, noKeyRange, strict, dryRun, multiset          bool
	from                                                        string
	against                                                     []string
	ids                                                         flags.IDs
	keys                                                        flags.Keys
	inputs                                                      flags.Inputs
	where                                                       flags.Where
}

func (c *cli) buildCmd() *cobra.Command {
	var o buildFlags
	cmd := &cobra.Command{
		Use:   "build [--key COL[,COL]] [flags] -o FILTER IDS...",
		Short: "Turn an ID set, or a shard of it, into a filter",
		Example: `  bloomjoin build --key user_id -o users.bjf ids/
  zcat ids.txt.gz | bloomjoin build --key-type int64 -o users.bjf -
  bloomjoin build --key user_id --shard 3/16 -o part-3.bjf ids/`,
		Annotations: flags.Help("filters", "output", "key key-type ids-format files-from include exclude shard fpr max-size kind expect capacity dry-run force"),
		Args:        o.arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.from != "" {
				return c.buildPlain(cmd, &o)
			}
			if o.dryRun {
				return c.dryBuild(cmd, &o, args)
			}
			return c.build(cmd, &o, args)
		},
	}
	f := cmd.Flags()
	o.ids.Add(f, "strings")
	o.inputs.AddFrom(f)
	o.inputs.Add(f)
	o.where.AddIDs(f)
	f.StringVar(&o.shard, "shard", "", flags.ShardHelp)
	flags.Group(f, flags.GroupInput)

	f.StringVar(&o.key, "key", "", "`COLUMNS` key columns, as a,b or user.id; COL::TYPE casts")
	o.keys.Add(f)
	flags.Group(f, flags.GroupKeys)

	flags.AddRate(f, &o.fpr, "fpr", 0, "`RATE` false-positive rate, as 0.01 or 1%")
	f.StringVar(&o.maxSize, "max-size", "", "`SIZE` size limit in place of --fpr, as 64MiB")
	f.StringVar(&o.kind, "kind", "auto", "`KIND` auto, bloom, exact or counting")
	f.BoolVar(&o.multiset, "multiset", false, "count every addition of a key (counting filters)")
	f.StringVar(&o.from, "from", "", "`FILTER` counting filter to convert, in place of IDs")
	f.StringVar(&o.geometry, "geometry", "auto", "`GEOMETRY` auto, split-256 (faster) or split-512 (smaller below 0.1 %)")
	f.Var(&o.expect, "expect", "`N` upper bound on keys; required for text with --shard")
	f.Var(&o.capacity, "capacity", "`N` leave room for N keys")
	addAgainst(f, &o.against)
	f.StringVar(&o.keyRange, "key-range", "auto", "`WHEN` store the smallest and largest key: on, off or auto")
	f.BoolVar(&o.noKeyRange, "no-key-range", false, "--key-range off")
	f.Lookup("no-key-range").Hidden = true
	flags.Group(f, flags.GroupFilter)

	f.StringVarP(&o.out, "output", "o", "", "`FILE` the filter to write; with --shard also a directory/")
	c.AddForce(f)
	f.BoolVar(&o.uncompressed, "uncompressed", false, "write a filter that processes can map")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the filter's size, without reading the IDs")
	flags.Group(f, flags.GroupOutput)

	f.BoolVar(&o.strict, "strict", false, flags.StrictHelp)
	flags.Group(f, flags.GroupChecks)

	flags.AddTempDir(f, &o.tempDir)
	flags.Exclusive(cmd, "expect", "capacity")
	flags.Exclusive(cmd, "key-range", "no-key-range")
	flags.Exclusive(cmd, "fpr", "max-size")
	flags.Exclusive(cmd, "against", "dry-run")
	c.completeBuild(cmd, &o)
	return cmd
}

// buildOptions returns the options from the flags, and how to open the IDs, checked before any input is opened.
func (c *cli) buildOptions(o *buildFlags, args []string, open *source.Opening) (opts builds.Options, err error) {
	opts = builds.Options{Key: o.key, FPR: o.fpr, Expect: uint64(o.expect), NoKeyRange: o.keyRange == "off", NoTextRange: o.keyRange == "auto", Threads: c.Threads, TempDir: o.tempDir}
	if o.capacity > 0 {
		opts.Expect, opts.Room = uint64(o.capacity), true
	}
	open.OpenOptions = source.OpenOptions{Text: true, Stdin: c.Stdin}
	if opts.Memory, err = c.Budget(); err != nil {
		return opts, err
	}
	if err := filterOutput(o.out); err != nil && !o.dryRun {
		return opts, err
	}
	if err := cmp.Or(o.ids.Check(open, args), o.keyOf(&opts, args)); err != nil {
		return opts, err
	}
	columns, err := keys.ParseColumns(opts.Key)
	if err != nil {
		return opts, flags.Usagef("--key: %w", err)
	}
	if err := o.keys.Check(columns); err != nil {
		return opts, err
	}
	open.Nested = keys.NestedPaths(columns)
	opts.Normalize, opts.IgnoreCase, opts.NullMisfits = o.keys.Normalize, o.keys.IgnoreCase, o.keys.NullMisfits()
	geometry, err := geometryOf(o.geometry)
	if err != nil {
		return opts, err
	}
	opts.Geometry = codecbloom.Geometry(geometry)
	if opts.MaxSize, err = filterSizeOf(o.maxSize, geometry, o.kind); err != nil {
		return opts, err
	}
	if err := flags.OneOf("kind", o.kind, kinds...); err != nil {
		return opts, err
	}
	switch o.kind {
	case "bloom":
		opts.Kind = codec.KindBloom
	case "exact":
		opts.Kind = codec.KindExact
	case "counting":
		opts.Kind, opts.Multiset = codec.KindCounting, o.multiset
	}
	if opts.Shard, err = c.ShardOf(o.shard); err != nil {
		return opts, err
	}
	if err := o.checkCounting(); err != nil {
		return opts, err
	}
	if o.shard != "" && strings.HasSuffix(o.out, "/") {
		o.out += partName(opts.Shard) + ".bjf"
	}
	open.Column = columns[len(columns)-1].Name()
	if err := o.where.Fill(open, &o.keys); err != nil {
		return opts, err
	}
	open.Types, err = flags.KeyTypes(o.ids.KeyType, columns)
	return opts, err
}

// kinds are the values of --kind.
var kinds = []string{"auto", "bloom", "exact", "counting"}

// lineKey is the default name of the key if there is one ID a line.
const lineKey = "id"

// keyOf sets the key columns in the options. --key is optional if there is one ID a
// line. Names of files with columns are refused here; other such files are refused when
// they are open.
func (o *buildFlags) keyOf(opts *builds.Options, args []string) error {
	if o.key != "" {
		return nil
	}
	opts.Key = lineKey
	given := o.ids.Open().TextFormat
	for _, name := range args {
		f, ok := text.FormatOf(address.WithoutQuery(name))
		if flags.TypedName(name) || ok && f != text.Lines && given == "" || given != "" && given != dataset.Lines {
			return flags.Required("%s: --key COL is required: name the column that holds the IDs", name)
		}
	}
	return nil
}

// hasLines returns an error if --key is missing and a file has columns.
func (o *buildFlags) hasLines(files []*source.File) error {
	if o.key != "" {
		return nil
	}
	for _, f := range files {
		if f.Format() != dataset.Lines {
			names := fieldNames(f.Schema().Fields())
			return cause.Mark(cause.Required, fmt.Errorf("%s: --key COL is required: name the column that holds the IDs (there are %s)", f.Name(), firstNames(names)))
		}
	}
	return nil
}

// fieldNames returns the names of columns.
func fieldNames(columns []arrow.Field) []string {
	return each.Slice(columns, func(c arrow.Field) string { return c.Name })
}

// firstNames returns a list of the first names.
func firstNames(names []string) string {
	if len(names) > 10 {
		names = append(names[:10:10], "…")
	}
	return strings.Join(names, ", ")
}

// partName returns the name of a partial filter in a directory of all of them.
func partName(s dataset.Shard) string {
	return fmt.Sprintf("part-%05d-of-%05d", s.Index, s.Of)
}

// filterOutput checks the -o of a filter.
func filterOutput(out string) error { return namedOutput(out, "filter", ".bjf") }

// namedOutput checks the -o of a filter or a sketch.
func namedOutput(out, what, ext string) error {
	switch {
	case out == "":
		return flags.Required("-o FILE is required: name the %s file to write", what)
	case out == "-":
		return flags.Usagef("-o -: a %s is written to a file, not to standard output: name one, as -o users%s", what, ext)
	}
	if says := flags.NamedAs(out); says != "" && says != "a "+what {
		return flags.Usagef("-o %s: its name says %s, and a %s is written: name the file %s", out, says, what, ext)
	}
	return errors.Join(flags.CheckWritable(out), flags.RegularOutput(out))
}

// geometryOf returns the geometry with a name; 0 for auto.
func geometryOf(name string) (bloom.Geometry, error) {
	for _, g := range bloom.Geometries() {
		if g.String() == name {
			return g, nil
		}
	}
	return 0, flags.OneOf("geometry", name, geometries()...)
}

// geometries are the values of --geometry.
func geometries() []string {
	return append([]string{"auto"}, each.Slice(bloom.Geometries(), bloom.Geometry.String)...)
}

func (c *cli) build(cmd *cobra.Command, o *buildFlags, args []string) error {
	ctx, start := cmd.Context(), time.Now()
	if err := o.checkNumbers(cmd); err != nil {
		return err
	}
	var open source.Opening
	opts, err := c.buildOptions(o, args, &open)
	if err != nil {
		return err
	}
	bits, err := c.FilterBudget()
	if err != nil {
		return err
	}
	plan, list, err := c.planOf(cmd, o, args, opts, open)
	if err != nil {
		return err
	}
	if list != nil {
		defer func() { _ = list.Close() }()
	}
	files := plan.Files()
	defer source.Close(files)
	known, knownPieces, err := c.openKnown(cmd, o.out, o.against, open)
	if err != nil {
		return err
	}
	defer source.Close(known)
	if known != nil {
		if err := plan.SetKnown(known); err != nil {
			return err
		}
	}
	run := &output.Run{Log: files, List: list}
	notes := []string{undivided(files, opts.Shard)}
	if done, err := c.builtBefore(ctx, o, plan, run, opts); err != nil {
		return err
	} else if done {
		return c.AlreadyDone(ctx, "build", o.out, start, output.ErrDone, output.Earlier{})
	}
	adds, end := c.ProgressIn(session.NewMeter("reading IDs", plan.Pieces()), session.NewMeter("reading known keys", knownPieces))
	plan.SetProgress(adds[0])
	if plan.Known != nil {
		plan.Known.SetProgress(adds[1])
	}
	plan.SetBits(bits)
	f, rep, err := plan.Build(ctx)
	end()
	if err != nil {
		return err
	}
	short := builds.Check(f, rep)
	if short != nil && o.strict {
		return fmt.Errorf("%s: not written: %w", o.out, short)
	}
	r, err := c.saveFilter(ctx, "build", start, filterOut{name: o.out, uncompressed: o.uncompressed}, f, rep)
	if err != nil {
		return err
	}
	r.BytesRead, r.BadLines = session.BytesRead(files), session.BadLinesOf(files, o.ids.SkipBad)
	r.Threads, r.Sharing, r.Passes, r.SpilledBytes = rep.Workers, rep.Sharing, rep.Passes, rep.Spilled
	c.SayBad(r.BadLines)
	c.sayFilter(o.out, f, r, short)
	c.sayKnown(&r, rep, f)
	if rep.Keys > 0 {
		notes = append(notes, flags.TextKeysNote(files, o.ids.KeyType, plan.Spec.Classes))
	} else if opts.Shard.Whole() {
		notes = append(notes, "there is no ID, or none whose key is not NULL: nothing passes the filter")
	}
	for _, note := range notes {
		if note != "" {
			r.Notes = append(r.Notes, note)
			c.Say("note: %s", note)
		}
	}
	return c.Report(r, o.out)
}

// undivided returns a note about text files that one of the shard's workers reads as a
// whole, or "".
func undivided(files []*source.File, s dataset.Shard) string {
	if s.Whole() {
		return ""
	}
	var names []string
	for _, f := range files {
		if why := f.Undivided(); why != "" {
			names = append(names, fmt.Sprintf("%s (%s)", f.Name(), why))
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "one worker reads all of " + names[0] + ", which cannot be divided; see bloomjoin help workers"
	}
	return fmt.Sprintf("one worker each reads all of %d files that cannot be divided: %s; see bloomjoin help workers", len(names), firstNames(names))
}

// sameDivision reports whether a filter's inputs were divided like those of a plan.
func sameDivision(f *filters.Filter, plan *builds.Plan) bool {
	p := f.Facts().Partial
	return p == nil || p.Division == plan.Division
}

// checkNumbers refuses numbers that were given and cannot be meant.
func (o *buildFlags) checkNumbers(cmd *cobra.Command) error {
	if err := flags.CheckRate(cmd, o.fpr); err != nil {
		return err
	}
	if cmd.Flags().Changed("expect") && o.expect == 0 {
		return flags.Usagef("--expect 0: want an upper bound on the number of keys")
	}
	if cmd.Flags().Changed("capacity") && o.capacity == 0 {
		return flags.Usagef("--capacity 0: want the number of keys to leave room for")
	}
	if o.noKeyRange {
		o.keyRange = "off"
	}
	return flags.OneOf("key-range", o.keyRange, "auto", "on", "off")
}

// planOf plans the build from what the arguments and flags name. The caller closes the plan's
// files, and the list if there is one.
func (c *cli) planOf(cmd *cobra.Command, o *buildFlags, args []string, opts builds.Options, open source.Opening) (plan *builds.Plan, list *inputs.List, err error) {
	if err := cmp.Or(o.inputs.Fill(&open), c.SpareList(o.out, &o.inputs)); err != nil {
		return nil, nil, err
	}
	args, list, err = c.FilesFrom(cmd, &o.inputs, args)
	switch {
	case err != nil:
		return nil, nil, err
	case list == nil:
		plan, err = c.planNamed(cmd, o, args, opts, open)
		return plan, nil, err
	}
	if plan, err = c.planListed(cmd.Context(), o, list, opts, open); err != nil {
		return nil, nil, errors.Join(err, list.Close())
	}
	return plan, list, nil
}

// planNamed opens the files that the names stand for, and plans the build from them. The
// caller closes the plan's files.
func (c *cli) planNamed(cmd *cobra.Command, o *buildFlags, names []string, opts builds.Options, open source.Opening) (*builds.Plan, error) {
	files, err := c.Open(cmd, names, open)
	if err != nil {
		return nil, err
	}
	if err := o.inputs.CheckHive(files...); err != nil {
		return nil, errors.Join(err, source.Close(files))
	}
	plan, err := c.planBuild(o, files, opts, open)
	if err != nil {
		return nil, errors.Join(err, source.Close(files))
	}
	return plan, nil
}

// planListed plans the build from a list of inputs. The caller closes the plan's files.
func (c *cli) planListed(ctx context.Context, o *buildFlags, list *inputs.List, opts builds.Options, open source.Opening) (*builds.Plan, error) {
	if err := cmp.Or(c.Budgets(&open), c.SpareListed(ctx, o.out, list)); err != nil {
		return nil, err
	}
	first, err := list.Schemas(ctx)
	if err != nil {
		return nil, err
	}
	for _, in := range first {
		if o.key == "" && in.Format != dataset.Lines {
			return nil, cause.Mark(cause.Required, fmt.Errorf("%s: --key COL is required: name the column that holds the IDs", in.Name))
		}
	}
	chosen, err := list.Where(open.Where, open.IgnoreCase)
	if err != nil {
		return nil, err
	}
	plan, err := builds.NewPlanOf(ctx, chosen.With(open), opts)
	if err != nil {
		return nil, err
	}
	if err = o.ids.Apply(plan.Files()); err == nil {
		err = checkType(o.ids.KeyType, opts.Key, open.Types, plan)
	}
	if err != nil {
		return nil, errors.Join(err, plan.Close())
	}
	return plan, nil
}

// planBuild plans the build from the files, none of which may be the output.
func (c *cli) planBuild(o *buildFlags, files []*source.File, opts builds.Options, open source.Opening) (*builds.Plan, error) {
	if err := errors.Join(o.hasLines(files), o.ids.Apply(files)); err != nil {
		return nil, err
	}
	if err := c.Spare(o.out, each.Slice(files, (*source.File).Name)...); err != nil {
		return nil, err
	}
	plan, err := builds.NewPlan(files, opts)
	if err != nil {
		if n := flags.TextKeysNote(files, o.ids.KeyType, []string{"bytes"}); n != "" && opts.Kind == codec.KindExact && errors.Is(err, fault.ErrUnsupported) {
			return nil, cause.Mark(cause.KeyColumn, fmt.Errorf("--kind exact: unsupported for text: %s, or use --kind bloom", n))
		}
		return nil, err
	}
	return plan, checkType(o.ids.KeyType, opts.Key, open.Types, plan)
}

// builtBefore reports whether the same run has written the output before. With
// --strict that filter is checked, since the earlier run may not have been strict.
func (c *cli) builtBefore(ctx context.Context, o *buildFlags, plan *builds.Plan, run *output.Run, opts builds.Options) (bool, error) {
	done, err := c.outputDone(ctx, o.out, nil, func(h *filters.Header) bool {
		return plan.BuildID != [32]byte{} && h.Filter.Facts().BuildID == plan.BuildID && sameShard(h.Filter, opts.Shard) && sameDivision(h.Filter, plan) &&
			(h.Contiguous || !o.uncompressed)
	})
	if err != nil || !done {
		return false, err
	}
	if err := run.ChangedSince(ctx, c.Store(), o.out); err != nil {
		return false, err
	}
	if o.strict {
		if err := c.checkFile(ctx, o.out, opts.Memory); err != nil {
			return false, err
		}
	}
	return true, nil
}

// checkType returns an error if --key-type contradicts typed inputs.
func checkType(flag, column string, types map[string]arrow.DataType, plan *builds.Plan) error {
	columns, err := keys.ParseColumns(column)
	if err != nil {
		return err
	}
	for i, name := range plan.Spec.Names {
		t, ok := types[columns[i].Flat()]
		if !ok || columns[i].Cast != nil {
			continue
		}
		c, err := keys.ClassOf(t)
		if err != nil {
			return err
		}
		if c = plan.Spec.Rule.Class(c); string(c) != plan.Spec.Classes[i] {
			return fmt.Errorf("--key-type %s: text is read as class %s, but column %s of the typed files is of class %s (give text and files the same type, or cast with COL::TYPE)", flag, c, name, plan.Spec.Classes[i])
		}
	}
	return nil
}

func sameShard(f *filters.Filter, s dataset.Shard) bool {
	p := f.Facts().Partial
	if p == nil {
		return s == (dataset.Shard{})
	}
	return p.Of == s.Of && slices.Equal(p.Held, []uint32{s.Index})
}

// outputDone reports whether the output is a complete file of a kind (nil: a filter) and of the
// same run, which same decides by its header. Any other existing output that must not be
// replaced is an error.
func (c *cli) outputDone(ctx context.Context, name string, kind *filters.Other, same func(*filters.Header) bool) (bool, error) {
	done, err := kind.Holds(ctx, c.Store(), name, same)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && c.Force:
		return false, nil
	case err != nil || done:
		return done, err
	}
	return false, fmt.Errorf("%s: %w, but does not come from these inputs and options (--force replaces it)", name, output.ErrExists)
}

// checkFile returns the result of builds.Check for a filter file.
func (c *cli) checkFile(ctx context.Context, name string, budget int64) (err error) {
	f, err := filters.Load(ctx, c.Store(), name, filters.Limits{MaxBytes: uint64(budget)})
	if err != nil {
		return err
	}
	defer faults.Join(&err, f.Close)
	if err := builds.Check(f, builds.Count(f)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
