package flags

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/joins"
)

// Require are the conditions that an answer must meet to be published.
type Require struct {
	rows                int64
	idsMatched, maxKept string
}

// Add adds the flags.
func (o *Require) Add(f *pflag.FlagSet) {
	f.Int64Var(&o.rows, "require-rows", 0, "`N` exit with 2, publish nothing, if there are fewer rows")
	f.StringVar(&o.idsMatched, "require-ids-matched", "", "`SHARE` the same, if fewer of the IDs have a row, as 50%")
	f.StringVar(&o.maxKept, "max-kept", "", "`SHARE` the same, if more of the log is kept, as 10%")
}

// Conditions returns the conditions, checked against the type of the join and the output.
func (o *Require) Conditions(typ joins.Type, out string) (r dataset.Require, err error) {
	if o.rows < 0 {
		return r, Usagef("--require-rows %d: want 0 or more", o.rows)
	}
	r.Rows = o.rows
	if r.IDsMatched, err = percentFlag("--require-ids-matched", o.idsMatched); err != nil {
		return r, err
	}
	if r.MaxKept, err = percentFlag("--max-kept", o.maxKept); err != nil {
		return r, err
	}
	switch {
	case r.MaxKept > 0 && (typ == joins.Left || typ == joins.Full):
		return r, Usagef("--max-kept %s: --type %s keeps all rows of the log (leave one of them out)", o.maxKept, typ)
	case r != dataset.Require{} && out == "-":
		return r, Usagef("-o -: --require-rows, --require-ids-matched and --max-kept are unsupported on standard output, where rows have gone before they are counted (write a file)")
	}
	return r, nil
}

var percentage = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?%$`)

// percentFlag parses a share such as 10% or 0.5%, above 0 and at most 100%; an
// empty string is 0. The result is the float64 nearest to the share, so 7 of 1000
// are exactly 0.7%.
func percentFlag(flag, s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	if percentage.MatchString(s) {
		if p, err := strconv.ParseFloat(strings.TrimSuffix(s, "%")+"e-2", 64); err == nil && p > 0 && p <= 1 {
			return p, nil
		}
	}
	return 0, Usagef("%s %s: want more than 0%% and at most 100%%, as 10%% or 0.5%%", flag, s)
}
