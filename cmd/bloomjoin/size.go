package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/codec"
	codecbloom "github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

type sizeFlags struct {
	keys    flags.Count
	fpr     float64
	maxSize string
}

func (c *cli) sizeCmd() *cobra.Command {
	var o sizeFlags
	cmd := &cobra.Command{
		Use:   "size --keys N [--fpr P | --max-size SIZE]",
		Short: "Print how large a filter of so many keys is, without building it",
		Example: `  bloomjoin size --keys 1e10 --fpr 1e-4
  bloomjoin size --keys 50000000 --max-size 64MiB
  bloomjoin size --keys 1e9 --json`,
		Annotations: flags.Help("filters"),
		Args:        flags.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return c.size(cmd, &o) },
	}
	f := cmd.Flags()
	f.Var(&o.keys, "keys", "`N` distinct keys, as 5000000 or 1e9")
	flags.AddRate(f, &o.fpr, "fpr", 0, "`RATE` false-positive rate, as 0.01 or 1%")
	f.StringVar(&o.maxSize, "max-size", "", "`SIZE` size limit in place of --fpr, as 64MiB")
	flags.Group(f, flags.GroupFilter)
	flags.Exclusive(cmd, "fpr", "max-size")
	c.Complete(cmd, c.common())
	return cmd
}

func (c *cli) size(cmd *cobra.Command, o *sizeFlags) error {
	start := time.Now()
	if o.keys == 0 {
		return flags.Required("--keys N is required: want the number of distinct keys, as 1e9")
	}
	if err := flags.CheckRate(cmd, o.fpr); err != nil {
		return err
	}
	opts := builds.Options{Key: lineKey, FPR: o.fpr, Expect: uint64(o.keys), Room: true}
	var err error
	if opts.MaxSize, err = filterSizeOf(o.maxSize, 0, ""); err != nil {
		return err
	}
	return c.saySize("size", start, opts, 0)
}

// dryBuild checks a build's options, and prints the size of its filter.
func (c *cli) dryBuild(cmd *cobra.Command, o *buildFlags, args []string) error {
	start := time.Now()
	if err := o.checkNumbers(cmd); err != nil {
		return err
	}
	c.Planned = true
	var open source.Opening
	opts, err := c.buildOptions(o, args, &open)
	if err != nil {
		return err
	}
	bits, err := c.FilterBudget()
	if err != nil {
		return err
	}
	if opts.Expect > 0 {
		return c.saySize("build", start, opts, bits)
	}
	plan, list, err := c.planOf(cmd, o, args, opts, open)
	if err != nil {
		return err
	}
	if list != nil {
		defer func() { _ = list.Close() }()
	}
	defer source.Close(plan.Files())
	if opts.Expect = plan.Spec.Capacity; opts.Expect == 0 {
		return fmt.Errorf("--dry-run: how many IDs there are is known only after reading them: give an upper bound, --expect N")
	}
	return c.saySize("build", start, opts, bits)
}

// sizeReport is the JSON report of size, and of build --dry-run.
type sizeReport struct {
	session.Head
	Keys     uint64       `json:"keys"`
	FPRAsked float64      `json:"fpr_asked,omitempty"`
	Filters  []filterSize `json:"filters"`
}

// filterSize is the size of one kind of filter.
type filterSize struct {
	Kind         string  `json:"kind"`
	Geometry     string  `json:"geometry"`
	Hash         string  `json:"hash"`
	BitsSet      int     `json:"bits_set"` // for each key
	Blocks       uint64  `json:"blocks"`
	MemoryBytes  uint64  `json:"memory_bytes"`
	FileBytes    uint64  `json:"file_bytes"` // at most
	BitsPerKey   float64 `json:"bits_per_key"`
	FPRPredicted float64 `json:"fpr_predicted"`
	Default      bool    `json:"default"` // what build takes if nothing else is asked for
}

// saySize prints the size of the Bloom filters that the options allow.
func (c *cli) saySize(verb string, start time.Time, opts builds.Options, bits int64) error {
	chosen, _, err := builds.Size(opts, bits)
	if err != nil {
		return err
	}
	rep := sizeReport{Keys: opts.Expect, FPRAsked: opts.FPR}
	var all []builds.Options
	if opts.Kind != codec.KindCounting {
		for _, g := range bloom.Geometries() {
			if of := opts; of.Geometry == 0 || of.Geometry == codecbloom.Geometry(g) {
				of.Kind, of.Geometry = codec.KindBloom, codecbloom.Geometry(g)
				all = append(all, of)
			}
		}
	}
	if opts.Kind == codec.KindCounting || verb == "size" {
		of := opts
		of.Kind, of.Geometry = codec.KindCounting, codecbloom.Split256
		all = append(all, of)
	}
	for _, of := range all {
		of.Memory = 0
		p, fpr, err := builds.Size(of, 0)
		if err != nil {
			continue // not in this size; the chosen one is
		}
		g, bytes := p.Geometry, p.Bytes()
		if of.Kind == codec.KindCounting {
			bytes = counting.Bytes(p)
		}
		size := filterSize{
			Kind: of.Kind.String(), Geometry: g.String(), Hash: p.Hash.String(), BitsSet: bloom.BitsPerKey,
			Blocks: p.Blocks, MemoryBytes: bytes, FileBytes: filters.MostFileBytes(bytes), BitsPerKey: 8 * float64(bytes) / float64(opts.Expect), FPRPredicted: fpr,
			Default: opts.Kind == codec.KindCounting || of.Kind == codec.KindBloom && g == chosen.Geometry,
		}
		mark := ""
		if size.Default {
			mark = " (the default)"
		}
		if c.JSON {
			rep.Filters = append(rep.Filters, size)
			continue
		}
		fmt.Fprintf(c.Stdout, "%s, %s%s: %s bytes (%s), up to %s as a file, %.2f bits per key, false positives %.3g; %s sets %d bits of a block of %d\n",
			size.Kind, size.Geometry, mark, words.Count(size.MemoryBytes), words.Bytes(size.MemoryBytes), words.Count(size.FileBytes), size.BitsPerKey, fpr, size.Hash, size.BitsSet, 8*g.BlockBytes())
	}
	rep.Head = c.NewHead(verb, start)
	return c.Report(rep, "")
}

// arguments checks that IDs are named, where they are needed.
func (o *buildFlags) arguments(cmd *cobra.Command, args []string) error {
	if o.from != "" {
		if len(args) > 0 {
			return flags.Usagef("--from %s takes the place of IDs, got %s (leave one of them out)", o.from, args[0])
		}
		return nil
	}
	if o.dryRun && o.expect+o.capacity > 0 {
		return nil
	}
	return o.inputs.Arguments("IDS")(cmd, args)
}

// filterSizeOf returns the value of --max-size in bytes, 0 if it is not given.
func filterSizeOf(maxSize string, g bloom.Geometry, kind string) (uint64, error) {
	if maxSize == "" {
		return 0, nil
	}
	n, err := flags.ParseSize(maxSize)
	if err != nil {
		return 0, flags.Usagef("--max-size: %w", err)
	}
	least := max(g, bloom.Split256).BlockBytes()
	if kind == "counting" {
		least = counting.BlockBytes
	}
	if n < least {
		return 0, flags.Usagef("--max-size %s: want %d bytes or more", maxSize, least)
	}
	return n, nil
}
