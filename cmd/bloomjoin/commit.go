package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/output"
)

func (c *cli) commitCmd() *cobra.Command {
	var manifests string
	cmd := &cobra.Command{
		Use:   "commit [flags] OUT/ [MANIFEST...]",
		Short: "Complete an output directory that several workers have written",
		Long: `Complete an output directory that several workers have written with --shard: check that all of them are done, agree and have left whole files, then publish the list of all files, and _SUCCESS.

The last worker does this by itself, unless it ran with --no-commit or does not see what the others have written. Workers without a common file system have each a directory and manifests of their own: bring their files together in OUT/, and name the manifests.`,
		Example: `  bloomjoin commit out/
  bloomjoin commit s3://bucket/out/
  bloomjoin commit out/ worker-*/out.bloomjoin/shard-*.json`,
		Annotations: flags.Help("outputs"),
		Args:        flags.SomeArguments("OUT/"),
		RunE:        func(cmd *cobra.Command, args []string) error { return c.commit(cmd, manifests, args) },
	}
	flags.Group(cmd.Flags(), flags.GroupOutput, func(f *pflag.FlagSet) { flags.AddManifestDir(f, &manifests) })
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
}

func (c *cli) commit(cmd *cobra.Command, manifests string, args []string) error {
	ctx, start := cmd.Context(), time.Now()
	out := output.Destination{Output: output.Output{Name: args[0], Store: c.Store()}, ManifestDir: manifests}
	if err := flags.CheckWritable(out.Name); err != nil {
		return err
	}
	if !out.IsDir(ctx) {
		return flags.Usagef("%s: want the directory that the workers have written, as out/", out.Name)
	}
	names, err := c.expand(ctx, args[1:])
	if err != nil {
		return err
	}
	done, err := output.Commit(ctx, out, names)
	if errors.Is(err, output.ErrDone) {
		return c.AlreadyDone(ctx, "commit", out.Name, start, err, output.Earlier{})
	}
	if err != nil {
		return err
	}
	c.Say("%s: %s of %s %s complete: %s in %s, %s", out.Name, words.Things(int64(done.Workers), "worker"), words.Things(int64(done.Runs), "run"), words.Number(done.Workers, "is", "are"),
		words.Things(done.Rows, "row"), words.Things(int64(done.Files), "file"), words.Bytes(done.Bytes))
	return c.Report(commitReport{
		Head: c.NewHead("commit", start), Runs: done.Runs, Workers: done.Workers, Inputs: done.Inputs, Files: done.Files, Rows: done.Rows, Bytes: done.Bytes,
	}, out.Name)
}

// expand returns the objects that patterns stand for.
func (c *cli) expand(ctx context.Context, patterns []string) (names []string, err error) {
	for _, p := range patterns {
		found, err := c.Store().List(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			names = append(names, o.Name)
		}
	}
	return names, nil
}
