package flags

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Part is --limit and --sample-keys of scan and join.
type Part struct {
	Limit int64   // 0: it is not given
	Share float64 // of the keys; 0: all
}

// AddLimit adds --limit.
func (o *Part) AddLimit(f *pflag.FlagSet) {
	f.Int64Var(&o.Limit, "limit", 0, "`N` only the first N rows")
}

// AddSample adds --sample-keys.
func (o *Part) AddSample(f *pflag.FlagSet) {
	AddRate(f, &o.Share, "sample-keys", 0, "`SHARE` share of the keys to keep, as 1%")
}

// Check checks the flags against others. dir says that the output is a directory.
func (o *Part) Check(cmd *cobra.Command, dir bool) error {
	given := cmd.Flags().Changed
	if given("sample-keys") && !(o.Share > 0 && o.Share <= 1) {
		return Usagef("--sample-keys %v: want a share of the keys above 0, as 1%% or 0.01", o.Share)
	}
	if !given("limit") {
		return nil
	}
	if o.Limit < 1 {
		return Usagef("--limit %d: want 1 or more rows", o.Limit)
	}
	if dir {
		return Usagef("--limit %d: a directory has all rows (write one file, as -o rows.parquet)", o.Limit)
	}
	for _, name := range []string{"shard", "require-ids-matched", "max-kept"} {
		if given(name) {
			return Usagef("--limit %d: --%s is about the whole log (leave one of them out)", o.Limit, name)
		}
	}
	return nil
}

// Sample copies the share to the options for a side whose key columns are by.
func (o *Part) Sample(open *source.Opening, by string, keys *Keys) {
	if o.Share > 0 {
		open.SampleKeys, open.SampleBy, open.NullMisfits = o.Share, by, keys.NullMisfits()
		open.SampleRule, _ = Rule(keys.Normalize) // checked before
	}
}
