package main

import (
	"context"

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
