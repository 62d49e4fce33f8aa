package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// updateFlags holds the flags of update.
type updateFlags struct {
	add, remove       []string
	key, out, tempDir string
	ignoreMissing     bool
	ids               flags.IDs
}

func (c *cli) updateCmd() *cobra.Command {
	var o updateFlags
	cmd := &cobra.Command{
		Use:   "update [--remove IDS]... [--add IDS]... -o NEW FILTER",
		Short: "Remove keys from a counting filter, then add others",
		Long:  `Remove keys from a counting filter, then add others. A set ignores an added key that seems to be in: if that is a false positive, later removals may lose the key. A multiset (build --multiset) counts every addition.`,
		Example: `  bloomjoin update --add new.txt -o tuesday.bjf monday.bjf
  bloomjoin update --remove gone.txt --add new.txt -o new.bjf old.bjf
  bloomjoin update --remove gone.parquet --key user_id -o new.bjf old.bjf`,
		Annotations: flags.Help("filters", "output", "add remove ignore-missing key key-type ids-format force"),
		Args:        flags.SomeArguments("FILTER"),
		RunE:        withFlags(c.update, &o),
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.add, "add", nil, "`IDS` IDs to add, after the removals; repeatable")
	f.StringArrayVar(&o.remove, "remove", nil, "`IDS` IDs to remove, all of which are in; repeatable")
	f.BoolVar(&o.ignoreMissing, "ignore-missing", false, "skip IDs to remove that are not in")
	flags.AddRaw(f)
	o.ids.Add(f, "the filter's")
	flags.Group(f, flags.GroupInput)

	f.StringVar(&o.key, "key", "", "`COLUMNS` key columns; COL::TYPE casts (default: as in the filter)")
	flags.Group(f, flags.GroupKeys)

	f.StringVarP(&o.out, "output", "o", "", "`FILE` the filter to write; FILTER stays as it is")
	c.AddForce(f)
	flags.Group(f, flags.GroupOutput)

	flags.AddTempDir(f, &o.tempDir)
	of := c.common()
	of["key"] = flags.ListOf(func(cmd *cobra.Command, _ []string) []string {
		return c.columns(cmd, slices.Concat(o.add, o.remove), source.Opening{OpenOptions: source.OpenOptions{Text: true}})
	})
	c.Complete(cmd, of)
	return cmd
}

// check checks the flags before any input is opened.
func (o *updateFlags) check(args []string, open *source.Opening) error {
	open.Text = true
	all := slices.Concat(o.add, o.remove)
	switch {
	case len(args) > 1:
		return flags.Usagef("want one FILTER, got %d arguments (merge combines filters)", len(args))
	case len(all) == 0:
		return flags.Required("--add IDS or --remove IDS is required: name keys to add or to remove")
	case len(slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name != "-" })) > 1:
		return flags.Usagef("standard input, -, is named more than once: it is read once")
	case o.ignoreMissing && len(o.remove) == 0:
		return flags.Usagef("--ignore-missing: no keys are removed (give --remove IDS, or leave the flag out)")
	}
	if err := errors.Join(filterOutput(o.out), o.ids.Check(open, all)); err != nil {
		return err
	}
	if o.key == "" {
		return flags.CheckTypes(o.ids.KeyType)
	}
	columns, err := keys.ParseColumns(o.key)
	if err != nil {
		return flags.Usagef("--key: %w", err)
	}
	_, err = flags.KeyTypes(o.ids.KeyType, columns)
	return err
}

// updateReport is the JSON report of update.
type updateReport struct {
	buildReport
	builds.Updated
}

func (c *cli) update(cmd *cobra.Command, o *updateFlags, args []string) (err error) {
	ctx, start := cmd.Context(), time.Now()
	var open source.Opening
	if err := o.check(args, &open); err != nil {
		return err
	}
	budget, err := c.FilterBudget()
	if err != nil {
		return err
	}
	if err := c.Spare(o.out, slices.Concat(args, o.add, o.remove)...); err != nil {
		return err
	}
	f, err := filters.Load(ctx, c.Store(), args[0], filters.Limits{MaxBytes: uint64(budget), Counters: true})
	if err != nil {
		return err
	}
	if f.Kind() != filters.KindCounting {
		return cause.Mark(cause.Unlike, fmt.Errorf("%s: filter to update: want kind counting, got %s (make it with bloomjoin build --kind counting)", args[0], f.Kind()))
	}
	if err := f.Usable(fault.At{File: args[0]}); err != nil {
		return err
	}
	read := c.sizes(ctx, args)
	remove, add, files, err := c.changes(cmd, o, f, args[0], open, max(budget-int64(f.Bytes()), leastList))
	defer source.Close(files)
	if err != nil {
		return err
	}
	done, end := c.Progress("reading IDs", slices.Concat(remove.Pieces(), add.Pieces()))
	remove.SetProgress(done)
	add.SetProgress(done)
	u, err := builds.Update(ctx, f, remove, add, o.ignoreMissing)
	end()
	if errors.Is(err, builds.ErrMissing) {
		if err = fmt.Errorf("%s: %w", args[0], err); u.Missing > 0 && !o.ignoreMissing {
			err = fmt.Errorf("%w (remove only keys that were added; --ignore-missing removes those that are in)", err)
		}
	}
	if err != nil {
		return err
	}
	return c.putFilter(ctx, "update", start, filterOut{name: o.out}, f, builds.Count(f), func(r buildReport) any {
		r.Rows, r.KeysNull = u.Rows, u.Null
		r.BytesRead, r.BadLines = read+session.BytesRead(files), session.BadLinesOf(files, o.ids.SkipBad)
		c.SayBad(r.BadLines)
		c.Say("  removed %s, %s were not in; added %s, %s seem to be in already", words.Count(u.Removed), words.Count(u.Missing), words.Count(u.Added), words.Count(u.Present))
		if u.Unnoticed >= 0.5 {
			c.Warn("about %s of the removed keys were not in the filter: keys that share their counters may be lost", words.Count(uint64(u.Unnoticed+0.5)))
		}
		if u.Mistaken >= 0.5 {
			c.Warn("about %s keys to add only seem to be in, so they are not added: they may be lost once keys that share their counters are removed (filters built with --multiset add them)", words.Count(uint64(u.Mistaken+0.5)))
		}
		return updateReport{r, u}
	})
}

// leastList is the least memory in bytes for the lists of an update.
const leastList = 4 << 20

// changes opens the files of an update and plans how their keys are read. The caller closes
// the files, after an error, too.
func (c *cli) changes(cmd *cobra.Command, o *updateFlags, f *filters.Filter, name string, open source.Opening, memory int64) (remove, add *builds.Plan, files []*source.File, err error) {
	opts := builds.Options{
		Key: o.key, Kind: codec.KindCounting, Normalize: f.Facts().Rule,
		Threads: c.Threads, TempDir: o.tempDir, Memory: memory,
	}
	if opts.Key == "" {
		opts.Key = strings.Join(f.KeyNames(), ",")
	}
	columns, err := keys.ParseColumns(opts.Key)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: its key has no usable name: give --key COL: %w", name, err)
	}
	if open.Types, err = flags.KeyTypes(o.ids.KeyType, columns); err == nil && open.Types == nil {
		open.Types, err = typesOf(f, columns)
	}
	if err != nil {
		return nil, nil, nil, errors.New(name + ": " + err.Error()) // no longer wrong usage: the filter was opened
	}
	open.Nested = keys.NestedPaths(columns)
	open.Column, open.Stdin = columns[len(columns)-1].Name(), c.Stdin
	var lists [2][]*source.File
	for i, names := range [][]string{o.remove, o.add} {
		if len(names) > 0 {
			if lists[i], err = c.Open(cmd, names, open); err != nil {
				return nil, nil, files, err
			}
			files = append(files, lists[i]...)
		}
	}
	if err := errors.Join(o.ids.Apply(files), c.Spare(o.out, each.Slice(files, (*source.File).Name)...)); err != nil {
		return nil, nil, files, err
	}
	var plans [2]*builds.Plan
	for i, list := range lists {
		if len(list) == 0 {
			continue
		}
		if plans[i], err = builds.NewPlan(list, opts); err == nil {
			err = plans[i].Changes(f, name)
		}
		if err != nil {
			return nil, nil, files, err
		}
	}
	return plans[0], plans[1], files, nil
}

// checkCounting checks what the flags ask of a counting filter.
func (o *buildFlags) checkCounting() error {
	switch {
	case o.multiset && o.kind != "counting":
		return flags.Usagef("--multiset needs --kind counting, which counts keys (give both)")
	case o.kind != "counting":
		return nil
	case len(o.against) > 0:
		return flags.Usagef("--against is not for --kind counting: a key that is added later may be one of those that must not pass (build a filter of another kind)")
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
	takes := []string{"from", "output", "force", "uncompressed", "strict"}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(takes, f.Name) && cmd.InheritedFlags().Lookup(f.Name) == nil {
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
