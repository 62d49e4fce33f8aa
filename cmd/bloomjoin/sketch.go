package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/progress"
	"github.com/bloomjoin/bloomjoin/internal/sketches"
	"github.com/bloomjoin/bloomjoin/internal/sniff"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

type sketchFlags struct {
	key, weight, normalize, shard, out string
	epsilon, delta                     float64
	ranges                             bool
	inputs                             flags.Inputs
}

func (c *cli) sketchCmd() *cobra.Command {
	var o sketchFlags
	cmd := &cobra.Command{
		Use:   "sketch --key COL[,COL] [flags] -o SKETCH INPUTS...",
		Short: "Count how often keys occur, in little memory; sketch query asks",
		Example: `  bloomjoin sketch --key user_id -o users.bjs logs/
  bloomjoin sketch --key user_id --shard 3/16 -o part-3.bjs logs/
  bloomjoin sketch --key ts --range -o times.bjs logs/`,
		Annotations: flags.Help("sketches", "key output", "weight range epsilon delta files-from include exclude shard force"),
		Args:        o.inputs.Arguments("INPUTS"),
		RunE:        withFlags(c.sketch, &o),
	}
	f := cmd.Flags()
	o.inputs.AddFrom(f)
	o.inputs.Add(f)
	f.StringVar(&o.shard, "shard", "", flags.ShardHelp)
	flags.Group(f, flags.GroupInput)

	f.StringVar(&o.key, "key", "", "`COLUMNS` key columns; COL::TYPE casts")
	f.StringVar(&o.weight, "weight", "", "`COLUMN` integers to add up (default: 1 a row)")
	f.StringVar(&o.normalize, "normalize", "", flags.NormalizeHelp)
	flags.Group(f, flags.GroupKeys)

	f.Float64Var(&o.epsilon, "epsilon", sketches.DefaultEpsilon, "`SHARE` error of estimates, as a share of the total")
	f.Float64Var(&o.delta, "delta", sketches.DefaultDelta, "`P` probability of a larger error")
	f.BoolVar(&o.ranges, "range", false, "count ranges, too: 50 times as large")
	flags.Group(f, flags.GroupFilter)

	f.StringVarP(&o.out, "output", "o", "", "`FILE` the sketch to write; with --shard also a directory/")
	c.AddForce(f)
	flags.Group(f, flags.GroupOutput)
	cmd.AddCommand(c.sketchQueryCmd())
	of := c.common()
	of["key"] = flags.ListOf(c.ofLogs)
	of["weight"] = of["key"]
	c.Complete(cmd, of)
	return cmd
}

// check checks the flags before any input is opened.
func (o *sketchFlags) check(spec *sketches.Spec, open *source.Opening) (err error) {
	*spec = sketches.Spec{Key: o.key, Weight: o.weight, Ranges: o.ranges}
	if o.key == "" {
		return flags.Required("--key COL is required: name the column to count")
	}
	if *open, err = keyOpening(o.key); err != nil {
		return flags.Usagef("--key: %w", err)
	}
	weight, err := keys.ParseColumns(o.weight)
	if o.weight != "" && err != nil {
		return flags.Usagef("--weight: %w", err)
	} else if len(weight) > 1 {
		return flags.Usagef("--weight %s: want one column, as bytes or bytes::int64", o.weight)
	}
	open.Nested = append(open.Nested, keys.NestedPaths(weight)...)
	if _, err := flags.Rule(o.normalize); err != nil {
		return err
	}
	if o.epsilon == 0 || o.delta == 0 { // which stand for the defaults below
		return flags.Usagef("--epsilon %v, --delta %v: want numbers above 0", o.epsilon, o.delta)
	}
	if spec.Params, err = sketches.ParamsFor(o.epsilon, o.delta); err != nil {
		err = flags.Usagef("%w", err)
	}
	return err
}

// keyOpening returns how files with the key are opened.
func keyOpening(key string) (open source.Opening, err error) {
	columns, err := keys.ParseColumns(key)
	if err == nil {
		open.Text, open.Column, open.Nested = true, columns[len(columns)-1].Name(), keys.NestedPaths(columns)
	}
	return open, err
}

// sketchReport is the JSON report of sketch, and of merge of sketches.
type sketchReport struct {
	session.Head
	Inputs    int   `json:"inputs,omitempty"` // number of sketches, of merge
	Rows      int64 `json:"rows"`             // read, not of merge
	KeysNull  int64 `json:"keys_null"`
	BytesRead int64 `json:"bytes_read"`
	Threads   int   `json:"threads,omitempty"`
	sketchFacts
	FileBytes int64 `json:"file_bytes"`
}

// sketchFacts are the facts about a sketch in reports.
type sketchFacts struct {
	Sealed      bool       `json:"sealed"`
	Shards      []uint32   `json:"shards,omitempty"`
	Of          uint32     `json:"of,omitempty"`
	Key         []keyFacts `json:"key"`
	Normalize   string     `json:"normalize,omitempty"`
	Weight      string     `json:"weight,omitempty"` // column
	Ranges      bool       `json:"ranges"`
	KeyRows     uint64     `json:"rows_with_key"`
	Total       uint64     `json:"total"` // weight of these rows
	Epsilon     float64    `json:"epsilon"`
	Error       uint64     `json:"error"` // epsilon times total
	Delta       float64    `json:"delta"`
	Width       uint64     `json:"width"`
	Depth       uint32     `json:"depth"`
	MemoryBytes uint64     `json:"memory_bytes"`
	BuildID     string     `json:"build_id"`
	Digest      string     `json:"digest"`
}

func factsOf(spec sketches.Spec, f *filters.Facts, rows, total uint64, digest [32]byte) sketchFacts {
	s := sketchFacts{
		Sealed: f.Partial == nil, Key: keyOf(f), Normalize: f.Rule, Weight: spec.Weight, Ranges: spec.Ranges, KeyRows: rows, Total: total,
		Epsilon: spec.Params.Epsilon(), Error: spec.Bound(float64(total)), Delta: spec.Params.Delta(), Width: spec.Params.Width, Depth: spec.Params.Depth, MemoryBytes: spec.Bytes(),
		BuildID: fmt.Sprintf("%x", f.BuildID), Digest: fmt.Sprintf("%x", digest),
	}
	if p := f.Partial; p != nil {
		s.Shards, s.Of = p.Held, p.Of
	}
	return s
}

// state describes which rows are in the sketch.
func (s *sketchFacts) state() string {
	if s.Sealed {
		return "finished"
	}
	return fmt.Sprintf("partial, %d of %d shards", len(s.Shards), s.Of)
}

// counted describes what was counted.
func (s *sketchFacts) counted() string {
	if s.Weight == "" {
		return words.Count(s.Total) + " rows"
	}
	return fmt.Sprintf("%s of %s in %s rows", words.Count(s.Total), s.Weight, words.Count(s.KeyRows))
}

// bound describes how far estimates may be off.
func (s *sketchFacts) bound() string {
	return fmt.Sprintf("estimates are at most %s too high (%.3g of the total), with probability %.3g %%", words.Count(s.Error), s.Epsilon, 100*(1-s.Delta))
}

func (c *cli) sketch(cmd *cobra.Command, o *sketchFlags, args []string) error {
	ctx, start := cmd.Context(), time.Now()
	var spec sketches.Spec
	var open source.Opening
	err := o.check(&spec, &open)
	if err != nil {
		return err
	}
	opts := spec.PlanOptions(builds.Options{Normalize: o.normalize, Threads: c.Threads})
	if opts.Memory, err = c.Budget(); err != nil {
		return err
	}
	if opts.Shard, err = c.ShardOf(o.shard); err != nil {
		return err
	}
	if o.shard != "" && strings.HasSuffix(o.out, "/") {
		o.out += partName(opts.Shard) + ".bjs"
	}
	if err := namedOutput(o.out, "sketch", ".bjs"); err != nil {
		return err
	}
	open.Stdin = c.Stdin
	plan, list, err := c.planOf(cmd, &buildFlags{key: o.key, out: o.out, inputs: o.inputs}, args, opts, open)
	if err != nil {
		return err
	}
	if list != nil {
		defer func() { _ = list.Close() }()
	}
	files := plan.Files()
	defer source.Close(files)
	id := spec.ID(plan)
	done, err := c.outputDone(ctx, o.out, sketches.Kind(), func(h *filters.Header) bool {
		return id != [32]byte{} && h.Filter.Facts().BuildID == id && sameShard(h.Filter, opts.Shard) && sameDivision(h.Filter, plan)
	})
	if done {
		err = (&output.Run{Log: files, List: list}).ChangedSince(ctx, c.Store(), o.out)
	}
	switch {
	case err != nil:
		return err
	case done:
		return c.AlreadyDone(ctx, "sketch", o.out, start, output.ErrDone, output.Earlier{})
	}
	add, end := c.Progress("counting rows", plan.Pieces())
	s, rep, err := sketches.Build(progress.With(ctx, add), plan, spec, sketches.Options{Shard: opts.Shard, Threads: c.Threads, Memory: opts.Memory})
	end()
	if err != nil {
		return err
	}
	r := sketchReport{Rows: rep.Rows, KeysNull: rep.KeysNull, BytesRead: session.BytesRead(files), Threads: rep.Workers}
	if note := undivided(files, opts.Shard); note != "" {
		r.Notes = []string{note}
		c.Say("note: %s", note)
	}
	return c.saveSketch(ctx, "sketch", o.out, s, start, r)
}

// saveSketch writes a sketch and reports it.
func (c *cli) saveSketch(ctx context.Context, verb, name string, s *sketches.Sketch, start time.Time, r sketchReport) error {
	size, digest, err := s.Save(ctx, c.Store(), name, c.Force)
	if err != nil {
		return err
	}
	notes := r.Notes
	r.Head = c.NewHead(verb, start)
	r.Notes = append(notes, r.Notes...)
	r.sketchFacts, r.FileBytes = factsOf(s.Spec(), s.Facts(), s.Rows(), s.Total(), digest), size
	null, what := "", "a key"
	if r.Weight != "" {
		what = "a key or weight"
	}
	if r.KeysNull > 0 {
		null = fmt.Sprintf(" (%s without %s)", words.Count(r.KeysNull), what)
	}
	c.Say("%s: sketch, %s: %s%s, %s, %s in memory; %s; in %.2f s", name, r.state(), r.counted(), null, words.Bytes(size), words.Bytes(r.MemoryBytes), r.bound(), r.Seconds)
	return c.Report(r, name)
}

// kindOf returns the kind of a file.
func (c *cli) kindOf(ctx context.Context, name string) (kind string, err error) {
	src, err := c.Store().Open(ctx, storage.Object{Name: name})
	if err != nil {
		return "", err
	}
	defer faults.Join(&err, src.Close)
	first, err := firstOf(src)
	return sniff.Kind(first), err
}

// mergeSketches is merge for sketches.
func (c *cli) mergeSketches(ctx context.Context, o *mergeFlags, names []string, start time.Time, read int64) error {
	if o.intersect || o.difference || o.uncompressed || o.strict {
		return cause.Mark(cause.NotFilter, fmt.Errorf("%s: want filters for --intersect, --difference, --uncompressed and --strict, got a sketch (merge partial sketches without these flags, and add finished ones up with --union)", names[0]))
	}
	if says := flags.NamedAs(o.out); says != "" && says != "a sketch" {
		return fmt.Errorf("-o %s: its name says %s, and sketches are merged: name the file .bjs", o.out, says)
	}
	budget, err := c.Budget()
	if err != nil {
		return err
	}
	s, err := sketches.MergeFiles(ctx, c.Store(), names, o.partial, o.union, budget)
	if err != nil {
		return err
	}
	want, err := s.Digest()
	if err != nil {
		return err
	}
	done, err := c.outputDone(ctx, o.out, sketches.Kind(), func(h *filters.Header) bool { return h.Digest() == want })
	if err != nil {
		return err
	}
	if done {
		return c.AlreadyDone(ctx, "merge", o.out, start, output.ErrDone, output.Earlier{})
	}
	return c.saveSketch(ctx, "merge", o.out, s, start, sketchReport{Inputs: len(names), BytesRead: read})
}

// sketch describes a sketch.
func (i *inspected) sketch(src storage.Reader, name string, check bool) error {
	h, err := sketches.DecodeHeader(src, src.Object().Size, name)
	if err != nil {
		return err
	}
	facts := factsOf(h.Spec, h.Filter.Facts(), h.Rows, h.Total, h.Digest())
	i.Sketch = &facts
	i.key(facts.Key, facts.Normalize)
	i.say("sketch", "%s", facts.state())
	i.say("counted", "%s", facts.counted())
	ranges := ""
	if facts.Ranges {
		ranges = ", and ranges"
	}
	i.say("counters", "%s rows of %s%s: %s in memory", words.Count(int64(facts.Depth)), words.Count(facts.Width), ranges, words.Bytes(facts.MemoryBytes))
	i.say("error", "%s", facts.bound())
	i.say("reveals", "%s", "about how often any key occurs")
	i.say("digest", "%s", facts.Digest)
	i.say("build", "%s", facts.BuildID)
	if !check {
		return nil
	}
	return i.checked(h.Verify())
}
