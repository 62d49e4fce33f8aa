package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/sniff"
)

type mergeFlags struct {
	out                                                 string
	partial, union, intersect, difference, uncompressed bool
	strict, subtract                                    bool
	against                                             []string
}

// op returns the set operation that the flags ask for, or "".
func (o *mergeFlags) op() builds.SetOp {
	switch {
	case o.union:
		return builds.Union
	case o.intersect:
		return builds.Intersect
	case o.difference:
		return builds.Difference
	case o.subtract:
		return builds.Subtract
	}
	return ""
}

func (c *cli) mergeCmd() *cobra.Command {
	var o mergeFlags
	cmd := &cobra.Command{
		Use:   "merge [--partial | --union | --intersect | --difference | --subtract] -o FILTER FILTER...",
		Short: "Merge partial filters or sketches, or combine finished ones",
		Example: `  bloomjoin merge -o users.bjf parts/
  bloomjoin merge --partial -o rack-3.bjf parts/rack-3-*.bjf
  bloomjoin merge --union --strict -o tuesday.bjf monday.bjf new.bjf`,
		Annotations: flags.Help("filters"),
		Args:        flags.SomeArguments("FILTER"),
		RunE:        withFlags(c.merge, &o),
	}
	f := cmd.Flags()
	f.BoolVar(&o.partial, "partial", false, "merge some partial filters into a larger one")
	f.BoolVar(&o.union, "union", false, "keep keys that any finished filter has")
	f.BoolVar(&o.intersect, "intersect", false, "keep keys that all finished filters have")
	addAgainst(f, &o.against)
	f.BoolVar(&o.difference, "difference", false, "keep keys of the first exact filter that no other has")
	f.BoolVar(&o.subtract, "subtract", false, "remove the keys of other counting filters from the first")
	flags.Group(f, flags.GroupFilter)

	f.StringVarP(&o.out, "output", "o", "", "`FILE` the filter or sketch to write")
	c.AddForce(f)
	f.BoolVar(&o.uncompressed, "uncompressed", false, "write a filter that processes can map")
	flags.Group(f, flags.GroupOutput)

	f.BoolVar(&o.strict, "strict", false, flags.StrictHelp)
	flags.Group(f, flags.GroupChecks)
	flags.Exclusive(cmd, "partial", "union", "intersect", "difference", "subtract", "against")
	return cmd
}

func (c *cli) merge(cmd *cobra.Command, o *mergeFlags, args []string) error {
	start := time.Now()
	noun, ext := "filter", ".bjf"
	if flags.NamedAs(o.out) == "a sketch" {
		noun, ext = "sketch", ".bjs"
	}
	if err := namedOutput(o.out, noun, ext); err != nil {
		return err
	}
	names, err := c.mergeInputs(cmd.Context(), o, args)
	if err != nil {
		return err
	}
	read := c.sizes(cmd.Context(), names) // before the output replaces one
	switch kind, err := c.kindOf(cmd.Context(), names[0]); {
	case err != nil:
		return err
	case kind == sniff.ASketch:
		return c.mergeSketches(cmd.Context(), o, names, start, read)
	case kind == sniff.AFilter && noun != "filter":
		return fmt.Errorf("-o %s: its name says a sketch, and the filter %s is merged: name the file .bjf", o.out, names[0])
	}
	f, rep, err := c.mergeFilters(cmd, o, names)
	if err != nil {
		return err
	}
	out := filterOut{o.out, o.uncompressed, o.strict}
	return c.putFilter(cmd.Context(), "merge", start, out, f, rep, func(r buildReport) any {
		r.Inputs, r.BytesRead = len(names), read
		return r
	})
}

// filterOut is how a filter is written.
type filterOut struct {
	name                 string
	uncompressed, strict bool
}

// putFilter writes a filter, unless the same one is there, and reports what report returns.
func (c *cli) putFilter(ctx context.Context, verb string, start time.Time, o filterOut, f *filters.Filter, rep builds.Report, report func(buildReport) any) error {
	short := builds.Check(f, rep)
	if short != nil && o.strict {
		return fmt.Errorf("%s: not written: %w", o.name, short)
	}
	want, err := f.Digest()
	if err != nil {
		return err
	}
	done, err := c.outputDone(ctx, o.name, nil, func(h *filters.Header) bool {
		return h.Digest() == want && (h.Contiguous || !o.uncompressed)
	})
	if err != nil {
		return err
	}
	if done {
		return c.AlreadyDone(ctx, verb, o.name, start, output.ErrDone, output.Earlier{})
	}
	r, err := c.saveFilter(ctx, verb, start, o, f, rep)
	if err != nil {
		return err
	}
	c.sayFilter(o.name, f, r, short)
	c.sayKnown(&r, rep, f)
	return c.Report(report(r), o.name)
}

// mergeInputs returns the filter files that the arguments name.
func (c *cli) mergeInputs(ctx context.Context, o *mergeFlags, args []string) ([]string, error) {
	// An earlier output may be among the parts. If it is to be replaced, it counts as
	// one of them: otherwise its keys could be lost.
	var skip func(string) bool
	if !c.Force {
		skip = c.SameAs(o.out)
	}
	names, err := builds.Names(ctx, c.Store(), args, skip)
	if err == nil && (o.intersect || o.difference || o.subtract) { // a union or a merge has all that is replaced
		err = c.Spare(o.out, names...)
	}
	if n := len(names); err == nil && (o.difference || o.subtract) && n < 2 {
		err = flags.Usagef("--%s: want two filters or more, got %d", o.op(), n)
	}
	return names, err
}

// mergeFilters merges or combines filter files.
func (c *cli) mergeFilters(cmd *cobra.Command, o *mergeFlags, names []string) (f *filters.Filter, rep builds.Report, err error) {
	ctx := cmd.Context()
	budget, err := c.Budget()
	if err != nil {
		return nil, rep, err
	}
	if c.Threads > 0 { // nothing else runs in this process
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(c.Threads, runtime.GOMAXPROCS(0))))
	}
	lim := filters.Limits{MaxBytes: uint64(budget)}
	op := o.op()
	if op == "" {
		bits, err := c.FilterBudget()
		if err != nil {
			return nil, rep, err
		}
		lim.MaxBits = uint64(bits)
		if len(o.against) > 0 {
			return c.mergeAgainst(cmd, o, names, lim)
		}
		f, err = builds.MergeFiles(ctx, c.Store(), names, o.partial, lim)
		return f, builds.Count(f), err
	}
	if f, rep, err = builds.CombineCounted(ctx, c.Store(), op, names, lim); err != nil {
		return nil, rep, fmt.Errorf("%s: %w", op, err)
	}
	return f, rep, nil
}

// sizes returns the total size of files in bytes.
func (c *cli) sizes(ctx context.Context, names []string) int64 {
	var n atomic.Int64
	var all errgroup.Group
	all.SetLimit(objects.Concurrency(c.Store(), names[0]))
	for _, name := range names {
		all.Go(func() error {
			if o, err := c.Store().Stat(ctx, name); err == nil {
				n.Add(o.Size)
			}
			return nil
		})
	}
	_ = all.Wait() // sizes are only reported
	return n.Load()
}
