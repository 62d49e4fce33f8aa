package flags

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Keys are the flags for finding, converting and normalizing key columns, for all verbs
// that name keys.
type Keys struct {
	Normalize  string
	IgnoreCase bool
	castErrors string
}

// Add adds the flags.
func (o *Keys) Add(f *pflag.FlagSet) {
	f.StringVar(&o.Normalize, "normalize", "", NormalizeHelp)
	f.BoolVar(&o.IgnoreCase, "ignore-case", false, "ignore the case of column names")
	f.StringVar(&o.castErrors, "cast-errors", "error", "`MODE` values that COL::TYPE cannot cast: error, or null")
}

// Check checks the flags before any input is opened. columns are the key columns
// that other flags name.
func (o *Keys) Check(columns ...[]keys.Column) error {
	if err := OneOf("cast-errors", o.castErrors, "error", "null"); err != nil {
		return err
	}
	if o.NullMisfits() && !slices.ContainsFunc(slices.Concat(columns...), func(c keys.Column) bool { return c.Cast != nil }) {
		return Usagef("--cast-errors null: no key is cast (write COL::TYPE to cast one, or leave the flag out)")
	}
	_, err := Rule(o.Normalize)
	return err
}

// Rule returns the rule that --normalize names.
func Rule(normalize string) (keys.Rule, error) {
	rule, err := keys.ParseRule(normalize)
	if err != nil {
		return rule, Usagef("--normalize %w", err)
	}
	return rule, nil
}

// NullMisfits reports whether values that cannot be cast count as NULL.
func (o *Keys) NullMisfits() bool { return o.castErrors == "null" }

// Match copies the flags to matches.
func (o *Keys) Match(matches []dataset.Match) {
	for i := range matches {
		matches[i].IgnoreCase, matches[i].NullMisfits = o.IgnoreCase, o.NullMisfits()
	}
}
