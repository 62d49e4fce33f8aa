package flags

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/publish"
)

// Directory are the flags of scan and join for output directories.
type Directory struct {
	manifests, idsChanged string
	prune, noCommit       bool
}

// Add adds the flags.
func (o *Directory) Add(f *pflag.FlagSet) {
	f.BoolVar(&o.prune, "prune", false, "remove outputs of inputs that are gone")
	f.StringVar(&o.idsChanged, "ids-changed", "", "`WHAT` outputs made with other IDs: rerun or keep")
	f.BoolVar(&o.noCommit, "no-commit", false, "leave the last step to bloomjoin commit")
	AddManifestDir(f, &o.manifests)
}

// AddTempDir adds the flag of verbs that put on disk what exceeds their memory.
func AddTempDir(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "temp-dir", "", "`DIR` directory for what exceeds --memory")
	Group(f, GroupMemory)
}

// AddManifestDir adds --manifest-dir.
func AddManifestDir(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "manifest-dir", "", "`DIR` directory of OUT/'s manifests (default OUT.bloomjoin)")
}

// Fill checks the flags and copies them to the output.
func (o *Directory) Fill(ctx context.Context, out *output.Destination) error {
	if o.idsChanged != "" {
		if err := OneOf("ids-changed", o.idsChanged, string(publish.IDsRerun), string(publish.IDsKeep)); err != nil {
			return err
		}
	}
	out.ManifestDir, out.Prune, out.IDsChanged, out.NoCommit = o.manifests, o.prune, publish.IDsChange(o.idsChanged), o.noCommit
	if *o == (Directory{}) || out.IsDir(ctx) {
		return nil
	}
	for flag, set := range map[string]bool{"prune": o.prune, "ids-changed": o.idsChanged != "", "no-commit": o.noCommit, "manifest-dir": o.manifests != ""} {
		if set {
			return Usagef("--%s: -o %s is no directory, and the flag is about directories (write to a directory, as -o out/)", flag, out.Name)
		}
	}
	return nil
}
