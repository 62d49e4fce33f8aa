package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/partition"
)

// buildFlags are the flags of build.
type buildFlags struct {
	key, tempDir, keyType, normalize, maxSize, kind, geometry, shard, out, idsFormat string
	fpr                                                                              float64
	expect, capacity                                                                 uint64
	uncompressed, noKeyRange, strict, skipBad                                        bool
	keys                                                                             keyFlags
	inputs                                                                           inputFlags
}

func (c *cli) buildCmd() *cobra.Command {
	var o buildFlags
	cmd := &cobra.Command{
		Use:   "build --key COL[,COL] -o FILTER IDS...",
		Short: "Turn an ID set into a filter, or a shard of it into a partial filter",
		Long: `Build turns an ID set into a filter file.

IDS are Parquet or Arrow files, or text: CSV and TSV with a header, NDJSON, or
one ID a line; compressed with gzip or zstd or not; directories and patterns of
such; or - for standard input. The IDs of text files are strings, unless
--key-type says otherwise. A line of text that is bad ends the build with its
number; with --skip-bad it is left out, counted and named instead. Bad is a
value that does not parse as the --key-type or is no UUID under --normalize uuid,
a row of CSV or TSV with another number of fields than the header, a line of
NDJSON that is no JSON object. What may be more than one line stays an error:
quotes of CSV that do not pair, a bad row over several lines, a line above 16
MiB, a header that is missing, UTF-16, binary data, broken compression.

Bits have one of two geometries. split-256 is Parquet's, and faster to probe on
processors without AVX-512; split-512 is smaller where few false positives are
wanted: by 7 % at 0.1 %, by 10 % at 0.01 %. auto takes split-512 from 0.1 % down;
if speed is worth more than size there, say --geometry split-256.

--normalize makes strings alike before they are compared: trim takes ASCII white
space off both ends, lower makes ASCII letters lower case and leaves all others
as they are, uuid makes 16 bytes of the text of a UUID (with dashes or without,
in braces, behind urn:uuid:, in any case), so that it meets columns of UUIDs; an
ID that is no UUID is an error then. They are applied in this order to every
column of strings in the key, and recorded in the filter: a scan says the same.

With --shard i/n, worker i of n (from 0) builds a partial filter of its share;
bloomjoin merge makes the filter of all of them. With --shard auto/n it takes i
from JOB_COMPLETION_INDEX (Kubernetes), AWS_BATCH_JOB_ARRAY_INDEX or
SLURM_ARRAY_TASK_ID (an array that starts at 0).

A filter is folded to the size that its keys need. With --capacity N it keeps
the size for N keys, so that the IDs of later days can be put in by
bloomjoin merge --union until N distinct ones are in: build all of them with the
same --capacity and --fpr (or --max-size).`,
		Example: `  bloomjoin build --key user_id -o users.bjf ids/
  zcat ids.txt.gz | bloomjoin build --key user_id --key-type int64 -o users.bjf -
  bloomjoin build --key user_id --shard 3/16 -o part-3.bjf ids/`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return c.build(cmd, &o, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.key, "key", "", `key columns, as user_id, user.id (a path into structs), "a.b",c`)
	f.StringVar(&o.keyType, "key-type", "", "type of the key in text inputs, as int64, uuid, date, 'decimal(18,2)'")
	f.StringVar(&o.normalize, "normalize", "", "rules by which strings are made alike: some of trim,lower,uuid")
	o.keys.add(f)
	f.Float64Var(&o.fpr, "fpr", 0, "false-positive rate (default: by the number of keys)")
	f.StringVar(&o.maxSize, "max-size", "", "most bytes of the filter's bits, as 64MiB")
	f.StringVar(&o.kind, "kind", "auto", "auto, bloom or exact")
	f.StringVar(&o.geometry, "geometry", "auto", "auto, split-256 (faster) or split-512 (smaller below 0.1 %)")
	f.StringVar(&o.shard, "shard", "", shardHelp)
	f.Uint64Var(&o.expect, "expect", 0, "upper bound on the number of keys (default: the number of rows, where files tell it)")
	f.Uint64Var(&o.capacity, "capacity", 0, "leave room for so many distinct keys in the end, put in by unions")
	f.BoolVar(&o.strict, "strict", false, "fail, and write nothing, rather than warn of more false positives than asked for, or more keys than --capacity")
	o.inputs.add(f)
	f.StringVar(&o.idsFormat, "ids-format", "", "format of IDs whose name does not say it, as on standard input: lines, csv, tsv or ndjson (default lines)")
	f.BoolVar(&o.skipBad, "skip-bad", false, skipBadHelp)
	f.BoolVar(&o.uncompressed, "uncompressed", false, "store the filter so that processes can map it")
	f.BoolVar(&o.noKeyRange, "no-key-range", false, "do not store the least and the greatest key, by which scans skip what they need not read")
	f.StringVar(&o.tempDir, "temp-dir", "", "directory for IDs that wait on disk, beyond --memory, until their number is known (default: the system's)")
	f.StringVarP(&o.out, "output", "o", "", "filter file to write")
	cmd.MarkFlagsMutuallyExclusive("expect", "capacity")
	return cmd
}

// options checks the flags before anything is opened.
func (c *cli) buildOptions(o *buildFlags, args []string) (filterbuild.Options, partition.OpenOptions, error) {
	opts := filterbuild.Options{Key: o.key, FPR: o.fpr, Capacity: o.expect, NoKeyRange: o.noKeyRange, Threads: c.threads, TempDir: o.tempDir}
	if o.capacity > 0 {
		opts.Capacity, opts.Room = o.capacity, true
	}
	open := partition.OpenOptions{Text: true, Stdin: c.stdin, SkipBad: o.skipBad}
	var err error
	if opts.Memory, err = c.budget(); err != nil {
		return opts, open, err
	}
	if o.out == "" || o.out == "-" {
		return opts, open, usagef("say with -o FILE where the filter goes")
	}
	if o.key == "" {
		return opts, open, usagef("say with --key COL which column holds the IDs")
	}
	columns, err := keys.ParseColumns(o.key)
	if err != nil {
		return opts, open, usagef("--key: %w", err)
	}
	if err := o.keys.check(columns); err != nil {
		return opts, open, err
	}
	opts.IgnoreCase, opts.NullMisfits = o.keys.ignoreCase, o.keys.nullMisfits()
	if _, err := keys.ParseRule(o.normalize); err != nil {
		return opts, open, usagef("--normalize %w", err)
	}
	opts.Normalize = o.normalize
	if opts.Geometry, err = geometryOf(o.geometry); err != nil {
		return opts, open, err
	}
	if o.maxSize != "" {
		if opts.MaxSize, err = parseSize(o.maxSize); err != nil {
			return opts, open, usagef("--max-size: %w", err)
		}
		least := max(opts.Geometry, bloom.Split256).BlockBytes()
		if opts.MaxSize < least {
			return opts, open, usagef("--max-size %s: want %d bytes or more", o.maxSize, least)
		}
		if o.fpr != 0 {
			return opts, open, usagef("--fpr and --max-size exclude each other")
		}
	}
	switch o.kind {
	case "auto":
	case "bloom":
		opts.Kind = codec.WantBloom
	case "exact":
		opts.Kind = codec.WantExact
	default:
		return opts, open, usagef("--kind %s: want auto, bloom or exact", o.kind)
	}
	if opts.Shard, err = c.shardOf(o.shard); err != nil {
		return opts, open, err
	}
	open.Column, open.IgnoreCase = columns[len(columns)-1].Name(), o.keys.ignoreCase
	open.Types, err = keyTypes(o.keyType, columns)
	if err != nil {
		return opts, open, err
	}
	open.TextFormat, err = textFormat(o.idsFormat)
	return opts, open, err
}

// geometryOf returns the geometry of that name, 0 for auto.
func geometryOf(name string) (bloom.Geometry, error) {
	names := []string{"auto"}
	for _, g := range bloom.Geometries() {
		if g.String() == name {
			return g, nil
		}
		names = append(names, g.String())
	}
	if name == names[0] {
		return 0, nil
	}
	return 0, usagef("--geometry %s: want %s", name, strings.Join(names, ", "))
}

// keyTypes pairs key columns with the types that --key-type names.
func keyTypes(s string, columns []keys.Column) (map[string]arrow.DataType, error) {
	if s == "" {
		return nil, nil
	}
	names := splitTypes(s)
	if len(names) != len(columns) {
		return nil, usagef("--key-type %s: want a type for each of the %d key columns", s, len(columns))
	}
	types := map[string]arrow.DataType{}
	for i, c := range columns {
		t, err := keys.ParseType(names[i])
		if err != nil {
			return nil, usagef("--key-type: %w", err)
		}
		types[c.Name()] = t
	}
	return types, nil
}

// splitTypes splits at the commas that stand in no parentheses.
func splitTypes(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth == 0
	})
}

func textFormat(s string) (partition.Format, error) {
	f := partition.Format(s)
	if s != "" && !f.IsText() {
		return "", usagef("--ids-format %s: want lines, csv, tsv or ndjson", s)
	}
	return f, nil
}

// buildReport is the JSON of build and merge.
type buildReport struct {
	head
	*badLines
	Inputs       int     `json:"inputs,omitempty"` // of merge: filter files
	Rows         int64   `json:"rows"`
	Keys         uint64  `json:"keys"`
	KeysNull     int64   `json:"keys_null"`
	Distinct     uint64  `json:"distinct"`
	Estimated    bool    `json:"distinct_estimated"`
	Capacity     uint64  `json:"capacity,omitempty"` // distinct keys that there is room for
	Kind         string  `json:"kind"`
	Geometry     string  `json:"geometry,omitempty"` // of a Bloom filter
	Sealed       bool    `json:"sealed"`
	BitsPerKey   float64 `json:"bits_per_key"`
	MemoryBytes  uint64  `json:"memory_bytes"`
	FileBytes    int64   `json:"file_bytes"`
	FPRAsked     float64 `json:"fpr_asked"`
	FPRPredicted float64 `json:"fpr_predicted"`
	BytesRead    int64   `json:"bytes_read"`
	// How a build was done: the workers and how they shared the filter, the
	// passes over the IDs, and the bytes that waited on disk.
	Threads      int                 `json:"threads,omitempty"`
	Sharing      filterbuild.Sharing `json:"sharing,omitempty"`
	Passes       int                 `json:"passes,omitempty"`
	SpilledBytes int64               `json:"spilled_bytes,omitempty"`
	Digest       string              `json:"digest"`
}

func (c *cli) build(cmd *cobra.Command, o *buildFlags, args []string) error {
	start := time.Now()
	if err := checkRate(cmd, o.fpr); err != nil {
		return err
	}
	if cmd.Flags().Changed("capacity") && o.capacity == 0 {
		return usagef("--capacity 0: want the number of keys to leave room for")
	}
	opts, open, err := c.buildOptions(o, args)
	if err != nil {
		return err
	}
	if err := o.inputs.fill(&open); err != nil {
		return err
	}
	files, err := c.open(cmd, args, open)
	if err != nil {
		return err
	}
	defer partition.Close(files)
	for _, f := range files {
		if err := spare(o.out, f.Name); err != nil {
			return err
		}
	}
	plan, err := filterbuild.NewPlan(files, opts)
	if err != nil {
		return err
	}
	if err := checkType(o.keyType, o.key, open.Types, plan); err != nil {
		return err
	}
	done, err := c.filterDone(cmd.Context(), o.out, func(h *codec.Header) bool {
		return plan.BuildID != [32]byte{} && h.Filter.BuildID == plan.BuildID && sameShard(h.Filter, opts.Shard) &&
			(h.Contiguous || !o.uncompressed)
	})
	if err != nil {
		return err
	}
	if done {
		if changed := partition.ChangedSince(cmd.Context(), partition.Local{}, o.out, files); changed != nil {
			return changed
		}
	}
	if done && o.strict { // the run before may not have been
		if err := checkFile(cmd.Context(), o.out, opts.Memory); err != nil {
			return err
		}
	}
	if done {
		return c.done(cmd.Context(), "build", o.out, start, partition.ErrDone)
	}
	add, end := c.progress("reading IDs", files)
	plan.SetProgress(add)
	f, rep, err := plan.Build(cmd.Context())
	end()
	if err != nil {
		return err
	}
	short := filterbuild.Check(f, rep)
	if short != nil && o.strict {
		return fmt.Errorf("%s: not written: %w", o.out, short)
	}
	size, err := filterbuild.Write(cmd.Context(), partition.Local{}, o.out, f, codec.Options{Uncompressed: o.uncompressed}, c.force)
	if err != nil {
		return err
	}
	r, err := filterReport("build", start, f, rep, size)
	if err != nil {
		return err
	}
	r.BytesRead, r.badLines = bytesRead(files), badLinesOf(files, o.skipBad)
	r.Threads, r.Sharing, r.Passes, r.SpilledBytes = rep.Workers, rep.Sharing, rep.Passes, rep.Spilled
	r.Shard = c.shard
	c.sayBad(r.badLines)
	c.sayFilter(o.out, f, r, short)
	return c.report(r, o.out)
}

// checkType refuses a --key-type that typed inputs contradict.
func checkType(flag, key string, types map[string]arrow.DataType, plan *filterbuild.Plan) error {
	columns, err := keys.ParseColumns(key)
	if err != nil {
		return err
	}
	for i, name := range plan.Spec.Names {
		t, ok := types[columns[i].Name()]
		if !ok || columns[i].Cast != nil {
			continue
		}
		c, err := keys.ClassOf(t)
		if err != nil {
			return err
		}
		if c = plan.Spec.Rule.Class(c); string(c) != plan.Spec.Classes[i] {
			return fmt.Errorf("--key-type %s is of class %s, but column %s of the files is of class %s (the flag is for text files)", flag, c, name, plan.Spec.Classes[i])
		}
	}
	return nil
}

func sameShard(f *codec.Filter, s partition.Shard) bool {
	if s == (partition.Shard{}) {
		return f.Sealed()
	}
	return !f.Sealed() && f.Partial.Of == s.Of && slices.Equal(f.Partial.Held, []uint32{s.Index})
}

// filterDone looks at an existing output: done if it is a whole filter of this
// very run, which same tells by its header, an error if it is anything else and
// may not be replaced.
func (c *cli) filterDone(ctx context.Context, name string, same func(*codec.Header) bool) (bool, error) {
	done, err := filterbuild.Holds(ctx, partition.Local{}, name, same)
	done = done && !c.force
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil || done: // with an error there is nothing that could be replaced
		return done, err
	case c.force:
		return false, nil
	}
	return false, fmt.Errorf("%s: %w, of another run (--force replaces it)", name, partition.ErrExists)
}

func filterReport(verb string, start time.Time, f *codec.Filter, rep filterbuild.Report, size int64) (buildReport, error) {
	digest, err := f.Digest()
	if err != nil {
		return buildReport{}, err
	}
	r := buildReport{
		head: newHead(verb, start),
		Rows: rep.Rows, Keys: f.Keys, KeysNull: rep.KeysNull, Distinct: rep.Distinct, Estimated: rep.Estimated,
		Capacity: f.Capacity.Keys, Kind: f.Kind().String(), Sealed: f.Sealed(), FileBytes: size,
		FPRAsked: f.FPRAsked, FPRPredicted: f.FPR(), Digest: fmt.Sprintf("%x", digest),
	}
	if b := f.Bloom(); b != nil {
		r.MemoryBytes, r.Geometry = b.Params().Bytes(), b.Params().Geometry.String()
	} else {
		r.MemoryBytes = f.Exact().Bytes()
	}
	if r.Distinct > 0 {
		r.BitsPerKey = 8 * float64(r.MemoryBytes) / float64(r.Distinct)
	}
	return r, nil
}

// checkFile is filterbuild.Check of a filter file.
func checkFile(ctx context.Context, name string, budget int64) (err error) {
	f, err := filterbuild.Read(ctx, partition.Local{}, name, codec.Limits{MaxBytes: uint64(budget)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := filterbuild.Check(f, filterbuild.Count(f)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// sayFilter tells people what was built, and warns of what it falls short of.
func (c *cli) sayFilter(name string, f *codec.Filter, r buildReport, short error) {
	about := ""
	if r.Estimated {
		about = "about "
	}
	state := "sealed"
	if !f.Sealed() {
		state = fmt.Sprintf("partial, %d of %d shards", len(f.Partial.Held), f.Partial.Of)
	}
	size := bytesOf(r.FileBytes)
	if r.Geometry != "" {
		size += " in " + r.Geometry
	}
	full := ""
	if r.Capacity > 0 && f.Sealed() {
		full = fmt.Sprintf(", %s of the room for %s", percent(int64(r.Distinct), int64(r.Capacity)), count(r.Capacity))
	}
	c.say("%s: %s filter, %s: %s keys (%s%s distinct%s), %s, false positives %.2g (asked: %.2g), in %.2f s",
		name, r.Kind, state, count(r.Keys), about, count(r.Distinct), full, size, r.FPRPredicted, r.FPRAsked, r.Seconds)
	if short != nil {
		c.warn("%s: %v", name, short)
	}
}
