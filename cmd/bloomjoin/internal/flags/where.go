package flags

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/where"
)

// Where is --where of scan, join and plan, the condition on the rows of the log, or --ids-where.
type Where struct {
	name  string   // of the flag
	given []string // all of which a row must satisfy

	Excluded int64 // files that were not opened
}

// Add adds the flag --where.
func (o *Where) Add(f *pflag.FlagSet) {
	o.name = "where"
	f.Var(o, o.name, "`CONDITION` keep log rows that satisfy it, as \"n > 0\"; repeatable")
}

// AddIDs adds the flag --ids-where.
func (o *Where) AddIDs(f *pflag.FlagSet) {
	o.name = "ids-where"
	f.Var(o, o.name, "`CONDITION` keep IDs that satisfy it; repeatable")
}

// String implements pflag.Value: one condition.
func (o *Where) String() string {
	if len(o.given) < 2 {
		return strings.Join(o.given, "")
	}
	return "(" + strings.Join(o.given, ") AND (") + ")"
}

// Set implements pflag.Value. The same condition again changes nothing.
func (o *Where) Set(s string) error {
	if !slices.Contains(o.given, s) {
		o.given = append(o.given, s)
	}
	return nil
}

// Type implements pflag.Value.
func (o *Where) Type() string { return "string" }

// Given reports whether there is a condition.
func (o *Where) Given() bool { return len(o.given) > 0 }

// Fill checks the conditions, before any input is opened, and copies them to the
// options.
func (o *Where) Fill(open *source.Opening, keys *Keys) (err error) {
	if open.IgnoreCase = keys.IgnoreCase; !o.Given() {
		return nil
	}
	open.Where = o.String()
	for _, s := range append(o.given, open.Where) { // each by itself: brackets of one must not close those of another
		if _, err = where.Parse(s); err != nil {
			return cause.Mark(cause.Condition, Usagef("--%s: %w", o.name, err))
		}
	}
	open.Excluded = func(string) { o.Excluded++ }
	return nil
}

// Figure returns a figure of the report that only runs with a condition have.
func (o *Where) Figure(n int64) *int64 {
	if !o.Given() {
		return nil
	}
	return &n
}
