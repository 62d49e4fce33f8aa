package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// checkCounting checks what the flags ask of a counting filter.
func (o *buildFlags) checkCounting() error {
	switch {
	case o.multiset && o.kind != "counting":
		return flags.Usagef("--multiset needs --kind counting, which counts keys (give both)")
	case o.kind != "counting":
		return nil
	case o.geometry == "split-512":
		return flags.Usagef("--geometry split-512: a counting filter has blocks of 256 counters: leave the flag out")
	case o.shard != "" && !o.multiset:
		return flags.Usagef("--shard of --kind counting needs --multiset: a set counts each key once, and shards may have keys in common")
	}
	return nil
}

// buildPlain makes the plain filter of a counting one.
func (c *cli) buildPlain(cmd *cobra.Command, o *buildFlags) error {
	ctx, start := cmd.Context(), time.Now()
	takes := map[string]bool{"from": true, "output": true, "force": true, "uncompressed": true, "strict": true}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !takes[f.Name] && cmd.InheritedFlags().Lookup(f.Name) == nil {
			err = flags.Usagef("--from %s: --%s has no effect, as the counting filter has its key, size and rate (leave it out)", o.from, f.Name)
		}
	})
	if err != nil {
		return err
	}
	if err := filterOutput(o.out); err != nil {
		return err
	}
	budget, err := c.FilterBudget()
	if err != nil {
		return err
	}
	if err := c.Spare(o.out, o.from); err != nil {
		return err
	}
	f, err := filters.Load(ctx, c.Store(), o.from, filters.Limits{MaxBytes: uint64(budget)})
	if err != nil {
		return err
	}
	read := c.sizes(ctx, []string{o.from})
	plain, err := builds.Plain(f)
	if err != nil {
		return fmt.Errorf("%s: %w", o.from, err)
	}
	return c.putFilter(ctx, "build", start, filterOut{o.out, o.uncompressed, o.strict}, plain, builds.Count(plain), func(r buildReport) any {
		r.BytesRead = read
		return r
	})
}
