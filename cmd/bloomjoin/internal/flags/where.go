package flags

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/where"
)

// Where is --where of scan, join and plan: the condition on the rows of the log.
type Where struct {
	given []string    // all of which a row must satisfy
	cond  *where.Cond // of all; nil: none

	Excluded int64 // files that were not opened
}

// Add adds the flag.
func (o *Where) Add(f *pflag.FlagSet) {
	f.Var(o, "where", "`CONDITION` keep log rows that satisfy it, as \"n > 0\"; repeatable")
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

// Fill checks the conditions, before any input is opened, and copies them to the
// options for the log.
func (o *Where) Fill(open *source.Opening, keys *Keys) (err error) {
	if len(o.given) == 0 {
		return nil
	}
	for _, s := range o.given { // each by itself: brackets of one must not close those of another
		if o.cond, err = where.Parse(s); err != nil {
			return cause.Mark(cause.Condition, Usagef("--where: %w", err))
		}
	}
	if o.cond, err = where.Parse(o.String()); err != nil {
		return cause.Mark(cause.Condition, Usagef("--where: %w", err))
	}
	open.Where, open.IgnoreCase = o.String(), keys.IgnoreCase
	open.Excluded = func(string) { o.Excluded++ }
	return nil
}

// Identity returns what the flag adds to the digest of a run.
func (o *Where) Identity() []string {
	if o.cond == nil { // the default adds nothing: digests of older versions stay valid
		return nil
	}
	return []string{"where " + o.cond.String()}
}

// Figure returns a figure of the report that only runs with a condition have.
func (o *Where) Figure(n int64) *int64 {
	if o.cond == nil {
		return nil
	}
	return &n
}
