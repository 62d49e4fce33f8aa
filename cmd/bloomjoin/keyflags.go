package main

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// keyFlags are the flags for finding and converting key columns, for all verbs
// that name keys.
type keyFlags struct {
	ignoreCase bool
	castErrors string
}

func (o *keyFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&o.ignoreCase, "ignore-case", false, "find columns by name in upper or lower case")
	f.StringVar(&o.castErrors, "cast-errors", "error", "`MODE` values that do not fit COL::TYPE: error, or null to count them as NULL")
}

// check checks the flags before any input is opened. columns are the key columns
// that other flags name.
func (o *keyFlags) check(columns ...[]keys.Column) error {
	if err := oneOf("cast-errors", o.castErrors, "error", "null"); err != nil {
		return err
	}
	if o.nullMisfits() && !slices.ContainsFunc(slices.Concat(columns...), func(c keys.Column) bool { return c.Cast != nil }) {
		return usagef("--cast-errors null: no key is cast (write COL::TYPE to cast one, or leave the flag out)")
	}
	return nil
}

func (o *keyFlags) nullMisfits() bool { return o.castErrors == "null" }

// match copies the flags to matches.
func (o *keyFlags) match(matches []dataset.Match) {
	for i := range matches {
		matches[i].IgnoreCase, matches[i].NullMisfits = o.ignoreCase, o.nullMisfits()
	}
}

// words returns what the flags add to the digest of a run.
func (o *keyFlags) words() (words []string) {
	if o.ignoreCase { // defaults add nothing: digests of older versions stay valid
		words = append(words, "ignore case")
	}
	if o.nullMisfits() {
		words = append(words, "misfits are NULL")
	}
	return words
}
