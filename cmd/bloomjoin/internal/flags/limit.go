package flags

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Limit is --limit of scan and join.
type Limit struct {
	Rows int64 // 0: it is not given
}

// Add adds the flag.
func (o *Limit) Add(f *pflag.FlagSet) {
	f.Int64Var(&o.Rows, "limit", 0, "`N` stop after the first N rows, in the log's order")
}

// Check checks the flag against others. dir says that the output is a directory.
func (o *Limit) Check(cmd *cobra.Command, dir bool) error {
	if !cmd.Flags().Changed("limit") {
		return nil
	}
	if o.Rows < 1 {
		return Usagef("--limit %d: want 1 or more rows", o.Rows)
	}
	if dir {
		return Usagef("--limit %d: a directory has all rows (write one file, as -o rows.parquet)", o.Rows)
	}
	for _, name := range []string{"shard", "require-ids-matched", "max-kept"} {
		if cmd.Flags().Changed(name) {
			return Usagef("--limit %d: --%s is about the whole log (leave one of them out)", o.Rows, name)
		}
	}
	return nil
}
