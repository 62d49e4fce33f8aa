package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/partition"
)

type mergeFlags struct {
	out                                                 string
	partial, union, intersect, difference, uncompressed bool
	strict                                              bool
}

// op returns the set operation that is wanted, or "".
func (o *mergeFlags) op() filterbuild.SetOp {
	switch {
	case o.union:
		return filterbuild.Union
	case o.intersect:
		return filterbuild.Intersect
	case o.difference:
		return filterbuild.Difference
	}
	return ""
}

func (c *cli) mergeCmd() *cobra.Command {
	var o mergeFlags
	cmd := &cobra.Command{
		Use:   "merge [--partial | --union | --intersect | --difference] -o FILTER FILTER...",
		Short: "Merge partial filters into the filter of all, or combine finished ones",
		Long: `Merge makes one filter of several: files, directories or patterns of such. Parts of
a path that begin with _ or . are no data.

Without a flag it merges all partial filters of one build, in any order, into
the finished filter. With --partial it merges some of them into a larger
partial filter. The other flags combine finished filters of any builds:

  --union       passes every key of any of the sets, and others at the rate of a
                filter of its size with so many keys
  --intersect   passes every key that is in all of the sets; a key that one set
                lacks passes at most at the rate of that set's filter
  --difference  holds the keys of the first set that are in no other; exact
                filters only

Bloom filters must be of one geometry. Those of different sizes are folded to a
common one; where that lets through more than twice what was asked for, it is an
error, and the filter is to be built from the IDs of all. Filters that are to grow
by unions are built with one --capacity: they are of one size, and so is the union,
which says how much of the capacity is used.`,
		Example: `  bloomjoin merge -o users.bjf parts/
  bloomjoin merge --partial -o rack-3.bjf parts/rack-3-*.bjf
  bloomjoin merge --union --strict -o users-tuesday.bjf users-monday.bjf new-on-tuesday.bjf`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return c.merge(cmd, &o, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.partial, "partial", false, "make a larger partial filter of some")
	f.BoolVar(&o.union, "union", false, "make a filter of the keys of all")
	f.BoolVar(&o.intersect, "intersect", false, "make a filter of the keys that are in each")
	f.BoolVar(&o.difference, "difference", false, "make a filter of the keys that are in the first alone (exact filters)")
	f.BoolVar(&o.strict, "strict", false, "fail, and write nothing, rather than warn of more false positives than asked for, or more keys than the capacity")
	f.BoolVar(&o.uncompressed, "uncompressed", false, "store the filter so that processes can map it")
	f.StringVarP(&o.out, "output", "o", "", "filter file to write")
	cmd.MarkFlagsMutuallyExclusive("partial", "union", "intersect", "difference")
	return cmd
}

func (c *cli) merge(cmd *cobra.Command, o *mergeFlags, args []string) error {
	start := time.Now()
	if o.out == "" || o.out == "-" {
		return usagef("say with -o FILE where the filter goes")
	}
	names, err := c.mergeInputs(cmd.Context(), o, args)
	if err != nil {
		return err
	}
	read := sizes(names) // while they all stand there
	f, err := c.mergeFilters(cmd.Context(), o, names)
	if err != nil {
		return err
	}
	rep := filterbuild.Count(f)
	short := filterbuild.Check(f, rep)
	if short != nil && o.strict {
		return fmt.Errorf("%s: not written: %w", o.out, short)
	}
	want, err := f.Digest()
	if err != nil {
		return err
	}
	done, err := c.filterDone(cmd.Context(), o.out, func(h *codec.Header) bool {
		return h.Digest() == want && (h.Contiguous || !o.uncompressed)
	})
	if err != nil {
		return err
	}
	if done {
		return c.done(cmd.Context(), "merge", o.out, start, partition.ErrDone)
	}
	size, err := filterbuild.Write(cmd.Context(), partition.Local{}, o.out, f, codec.Options{Uncompressed: o.uncompressed}, c.force)
	if err != nil {
		return err
	}
	r, err := filterReport("merge", start, f, rep, size)
	if err != nil {
		return err
	}
	r.Inputs, r.BytesRead = len(names), read
	c.sayFilter(o.out, f, r, short)
	return c.report(r, o.out)
}

// mergeInputs lists the filter files that the arguments stand for.
func (c *cli) mergeInputs(ctx context.Context, o *mergeFlags, args []string) ([]string, error) {
	// The output of the run before may stand among the parts. Where it is to be
	// replaced, it counts as one of them: else what it holds could be lost.
	var skip func(string) bool
	if out, err := os.Stat(o.out); err == nil && !c.force {
		skip = func(name string) bool {
			in, err := os.Stat(name)
			return err == nil && os.SameFile(in, out)
		}
	}
	names, err := filterbuild.Names(ctx, partition.Local{}, args, skip)
	if n := len(names); err == nil && o.op() != "" && n < 2 {
		err = usagef("want two filters or more, got %d", n)
	}
	return names, err
}

// mergeFilters merges or combines filter files.
func (c *cli) mergeFilters(ctx context.Context, o *mergeFlags, names []string) (*codec.Filter, error) {
	budget, err := c.budget()
	if err != nil {
		return nil, err
	}
	if c.threads > 0 { // nothing else runs in the process
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(c.threads, runtime.GOMAXPROCS(0))))
	}
	lim := codec.Limits{MaxBytes: uint64(budget)}
	op := o.op()
	if op == "" {
		return filterbuild.Merge(ctx, partition.Local{}, names, o.partial, lim)
	}
	f, err := filterbuild.Combine(ctx, partition.Local{}, op, names, lim)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return f, nil
}

// sizes adds up the sizes of files.
func sizes(names []string) (n int64) {
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}
