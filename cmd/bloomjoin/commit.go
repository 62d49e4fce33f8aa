package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/internal/output"
)

// dirFlags are the flags of scan and join for output directories.
type dirFlags struct {
	manifests, idsChanged string
	prune, noCommit       bool
}

func (o *dirFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&o.prune, "prune", false, "in a directory, remove the outputs of inputs that are gone")
	f.StringVar(&o.idsChanged, "ids-changed", "", "`WHAT` in a directory, rerun or keep outputs that were made with other IDs (default: an error)")
	f.BoolVar(&o.noCommit, "no-commit", false, "in a directory, leave the last step to bloomjoin commit")
	addManifestDir(f, &o.manifests)
}

func addManifestDir(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "manifest-dir", "", "`DIR` directory for the manifests of OUT/ (default: OUT.bloomjoin beside it)")
}

// fill checks the flags and copies them to the output.
func (o *dirFlags) fill(ctx context.Context, out *output.Destination) error {
	if o.idsChanged != "" {
		if err := oneOf("ids-changed", o.idsChanged, output.IDsRerun, output.IDsKeep); err != nil {
			return err
		}
	}
	out.ManifestDir, out.Prune, out.IDsChanged, out.NoCommit = o.manifests, o.prune, o.idsChanged, o.noCommit
	if *o == (dirFlags{}) || out.IsDir(ctx) {
		return nil
	}
	for flag, set := range map[string]bool{"prune": o.prune, "ids-changed": o.idsChanged != "", "no-commit": o.noCommit, "manifest-dir": o.manifests != ""} {
		if set {
			return usagef("--%s: -o %s is no directory, and the flag is about directories (write to a directory, as -o out/)", flag, out.Name)
		}
	}
	return nil
}

func (c *cli) commitCmd() *cobra.Command {
	var manifests string
	cmd := &cobra.Command{
		Use:   "commit [flags] OUT/ [MANIFEST...]",
		Short: "Complete an output directory that several workers have written",
		Long: `Complete an output directory that several workers have written with --shard: check
that all of them are done, agree and have left whole files, then publish the list of
all files, and _SUCCESS.

The last worker does this by itself, unless it ran with --no-commit or does not see
what the others have written. Workers without a common file system have each a
directory and manifests of their own: bring their files together in OUT/, and name
the manifests.`,
		Example: `  bloomjoin commit out/
  bloomjoin commit s3://bucket/out/
  bloomjoin commit out/ worker-*/out.bloomjoin/shard-*.json`,
		Annotations: docs("outputs.md#commit"),
		Args:        anyInputs("OUT/"),
		RunE:        func(cmd *cobra.Command, args []string) error { return c.commit(cmd, manifests, args) },
	}
	flagGroup(cmd.Flags(), groupOutput, func(f *pflag.FlagSet) { addManifestDir(f, &manifests) })
	return cmd
}

// commitReport is the JSON report of commit.
type commitReport struct {
	head
	Runs    int   `json:"runs"`    // that were committed
	Workers int   `json:"workers"` // of these
	Inputs  int   `json:"inputs"`  // of the whole directory
	Files   int   `json:"files"`
	Rows    int64 `json:"rows_out"`
	Bytes   int64 `json:"bytes"`
}

func (c *cli) commit(cmd *cobra.Command, manifests string, args []string) error {
	ctx, start := cmd.Context(), time.Now()
	out := output.Destination{Output: output.Output{Name: args[0], Store: c.store()}, ManifestDir: manifests}
	if err := readOnly(out.Name); err != nil {
		return err
	}
	if !out.IsDir(ctx) {
		return usagef("%s: want the directory that the workers have written, as out/", out.Name)
	}
	names, err := c.expand(ctx, args[1:])
	if err != nil {
		return err
	}
	done, err := output.Commit(ctx, out, names)
	if errors.Is(err, output.ErrDone) {
		return c.done(ctx, "commit", out.Name, start, err)
	}
	if err != nil {
		return err
	}
	c.say("%s: %s of %s are complete: %s rows in %s, %s", out.Name, things(int64(done.Workers), "worker"), things(int64(done.Runs), "run"),
		count(done.Rows), things(int64(done.Files), "file"), bytesOf(done.Bytes))
	return c.report(commitReport{
		head: c.newHead("commit", start), Runs: done.Runs, Workers: done.Workers, Inputs: done.Inputs, Files: done.Files, Rows: done.Rows, Bytes: done.Bytes,
	}, out.Name)
}

// expand returns the objects that patterns stand for.
func (c *cli) expand(ctx context.Context, patterns []string) (names []string, err error) {
	for _, p := range patterns {
		found, err := c.store().List(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			names = append(names, o.Name)
		}
	}
	return names, nil
}
