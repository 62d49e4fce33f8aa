package flags

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Sample is --sample-keys of scan, join and plan: a share of the keys.
type Sample struct {
	Share float64 // 0: it is not given
}

// Add adds the flag.
func (o *Sample) Add(f *pflag.FlagSet) {
	AddRate(f, &o.Share, "sample-keys", 0, "`SHARE` keep this share of the keys, with all their rows, as 1%")
}

// Check checks the flag.
func (o *Sample) Check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("sample-keys") && !(o.Share > 0 && o.Share <= 1) {
		return Usagef("--sample-keys %v: want a share of the keys above 0, as 1%% or 0.01", o.Share)
	}
	return nil
}

// Fill copies the flag to the options for a side whose key columns are by.
func (o *Sample) Fill(open *source.Opening, by string, keys *Keys) {
	if o.Share == 0 {
		return
	}
	open.SampleKeys, open.SampleBy, open.NullMisfits = o.Share, by, keys.NullMisfits()
	open.SampleRule, _ = Rule(keys.Normalize) // checked before
}
