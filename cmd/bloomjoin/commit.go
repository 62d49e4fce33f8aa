package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/listing"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/publish"
)

func (c *cli) commitCmd() *cobra.Command {
	var manifests, as string
	var sweep bool
	var older time.Duration
	cmd := &cobra.Command{
		Use:   "commit [flags] OUT/ [MANIFEST...]",
		Short: "Complete an output directory that several workers have written",
		Long: `Check that all workers with --shard are done, agree and have left whole files, then publish the list of files, and _SUCCESS.

The last worker does this itself, unless it ran with --no-commit or does not see the others' files. Workers without a common file system have each a directory and manifests of their own: bring their files together in OUT/, and name the manifests.`,
		Example: `  bloomjoin commit out/
  bloomjoin commit out/ worker-*/out.bloomjoin/shard-*.json
  bloomjoin commit --as iceberg out/`,
		Annotations: flags.Help("outputs"),
		Args:        flags.SomeArguments("OUT/"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case sweep && as != "":
				return flags.Usagef("--as %s: not with --sweep", as)
			case sweep && len(args) > 1:
				return flags.Usagef("--sweep: want one directory, got %s, too", args[1])
			case older < 0:
				return flags.Usagef("--older %v: want 0s or more, as 24h", older)
			case !sweep && (c.Force || cmd.Flags().Changed("older")):
				return flags.Usagef("--force and --older are for --sweep (add it)")
			case !sweep:
				return c.commit(cmd.Context(), manifests, as, args)
			}
			return c.sweep(cmd.Context(), manifests, args[0], older)
		},
	}
	f := cmd.Flags()
	flags.AddManifestDir(f, &manifests)
	f.StringVar(&as, "as", "", "`FORMAT` list the files for a table, too: iceberg or delta")
	f.BoolVar(&sweep, "sweep", false, "list what killed attempts have left")
	f.DurationVar(&older, "older", 24*time.Hour, "`DURATION` least age of that, as 7d")
	f.BoolVar(&c.Force, "force", false, "remove it")
	flags.Group(f, flags.GroupOutput)
	return cmd
}

// commitReport is the JSON report of commit.
type commitReport struct {
	session.Head
	Runs    int   `json:"runs"`    // that were committed
	Workers int   `json:"workers"` // of these
	Inputs  int   `json:"inputs"`  // of the whole directory
	Files   int   `json:"files"`
	Rows    int64 `json:"rows_out"`
	Bytes   int64 `json:"bytes"`

	Added string `json:"added,omitempty"` // what --as has written
}

func (c *cli) commit(ctx context.Context, manifests, as string, args []string) error {
	start := time.Now()
	if as != "" {
		if err := flags.OneOf("as", as, "iceberg", "delta"); err != nil {
			return err
		}
	}
	out, err := c.outDir(ctx, args[0], manifests)
	if err != nil {
		return err
	}
	names, err := c.expand(ctx, args[1:])
	if err != nil {
		return err
	}
	done, err := output.Commit(ctx, out, names)
	again := errors.Is(err, output.ErrDone)
	switch {
	case again && as == "":
		return c.AlreadyDone(ctx, "commit", out.Name, start, err, output.Earlier{})
	case err != nil && !again:
		return err
	case !again:
		c.Say("%s: %s of %s %s complete: %s in %s, %s", out.Name, words.Things(done.Workers, "worker"), words.Things(done.Runs, "run"), words.Number(done.Workers, "is", "are"),
			words.Things(done.Rows, "row"), words.Things(done.Files, "file"), words.Bytes(done.Bytes))
	}
	r := commitReport{Runs: done.Runs, Workers: done.Workers, Inputs: done.Inputs, Files: done.Files, Rows: done.Rows, Bytes: done.Bytes}
	if as != "" {
		if r.Added, err = output.Added(ctx, out, as); err != nil {
			return err
		}
		c.Say("%s: %s for a table", r.Added, words.Things(done.Files, "file"))
	}
	r.Head = c.NewHead("commit", start)
	r.AlreadyDone = again
	return c.Report(r, out.Name)
}

// outDir returns the directory that commit is about.
func (c *cli) outDir(ctx context.Context, name, manifests string) (out output.Destination, err error) {
	out = output.Destination{Output: output.Output{Name: name, Store: c.Store()}, ManifestDir: manifests}
	if err = flags.CheckWritable(name); err == nil && !out.IsDir(ctx) {
		err = flags.Usagef("%s: want the directory that the workers have written, as out/", name)
	}
	return out, err
}

// sweepReport is the JSON report of commit --sweep.
type sweepReport struct {
	session.Head
	Left []publish.Left `json:"left"`
}

func (c *cli) sweep(ctx context.Context, manifests, name string, older time.Duration) error {
	start := time.Now()
	out, err := c.outDir(ctx, name, manifests)
	if err != nil {
		return err
	}
	left, err := output.Sweep(ctx, out, older, c.Force)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(words.Printable{Writer: c.Stdout}, 0, 0, 2, ' ', 0)
	for _, x := range left {
		size := words.Bytes(x.Bytes)
		if x.Bytes < 0 {
			size = "?"
		}
		if !c.JSON {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.Kind, size, time.Duration(x.Age*1e9).Round(time.Second), x.Name)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	said := "left (--force removes them)"
	if c.Force {
		said = "removed"
	}
	c.Say("%s: %s of killed attempts, %v or older, %s", name, words.Things(len(left), "object"), older, said)
	return c.Report(sweepReport{c.NewHead("commit", start), append([]publish.Left{}, left...)}, "")
}

// expand returns the objects that patterns stand for.
func (c *cli) expand(ctx context.Context, patterns []string) (names []string, err error) {
	for _, p := range patterns {
		found, _, err := listing.List(ctx, c.Store(), p)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			names = append(names, o.Name)
		}
	}
	return names, nil
}
