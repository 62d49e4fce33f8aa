package main

import (
	"fmt"
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
		Long: `Merge makes one filter of several.

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
error, and the filter is to be built from the IDs of all.`,
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
	if n := len(args); o.op() != "" && n < 2 {
		return usagef("want two filters or more, got %d", n)
	}
	budget, err := c.budget()
	if err != nil {
		return err
	}
	lim := codec.Limits{MaxBytes: uint64(budget)}
	f, err := mergeFilters(cmd, o, args, lim)
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
		return c.done("merge", o.out, start)
	}
	size, err := filterbuild.Write(cmd.Context(), partition.Local{}, o.out, f, codec.Options{Uncompressed: o.uncompressed}, c.force)
	if err != nil {
		return err
	}
	r, err := filterReport("merge", start, f, rep, size)
	if err != nil {
		return err
	}
	c.sayFilter(o.out, f, r, short)
	return c.report(r, o.out)
}

func mergeFilters(cmd *cobra.Command, o *mergeFlags, args []string, lim codec.Limits) (f *codec.Filter, err error) {
	ctx := cmd.Context()
	op := o.op()
	if op == "" {
		return filterbuild.Merge(ctx, partition.Local{}, args, o.partial, lim)
	}
	var filters []*codec.Filter
	for _, name := range args {
		f, err := filterbuild.Load(ctx, partition.Local{}, name, lim)
		if err != nil {
			return nil, err
		}
		filters = append(filters, f)
	}
	if f, err = filterbuild.Combine(op, filters, args); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return f, nil
}
