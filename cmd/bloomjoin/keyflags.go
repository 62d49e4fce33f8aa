package main

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// keyFlags say how columns are found and become keys; all verbs that name keys
// have them.
type keyFlags struct {
	ignoreCase bool
	castErrors string
}

func (o *keyFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&o.ignoreCase, "ignore-case", false, "find columns by name in upper or lower case")
	f.StringVar(&o.castErrors, "cast-errors", "error", "`MODE` values that do not fit COL::TYPE: error, or null to count them as NULL")
}

// check checks the flags before anything is opened. keyLists are the values of
// the flags that name keys.
func (o *keyFlags) check(columns ...[]key.Column) error {
	if err := oneOf("cast-errors", o.castErrors, "error", "null"); err != nil {
		return err
	}
	if o.nullMisfits() && !slices.ContainsFunc(slices.Concat(columns...), func(c key.Column) bool { return c.Cast != nil }) {
		return usagef("--cast-errors null: no key is cast (write COL::TYPE to cast one, or leave the flag out)")
	}
	return nil
}

func (o *keyFlags) nullMisfits() bool { return o.castErrors == "null" }

// match puts the flags into matches.
func (o *keyFlags) match(matches []partition.Match) {
	for i := range matches {
		matches[i].IgnoreCase, matches[i].NullMisfits = o.ignoreCase, o.nullMisfits()
	}
}

// words identify what the flags ask for, in the digest of a run.
func (o *keyFlags) words() (words []string) {
	if o.ignoreCase { // else the run is what it was before there was a choice
		words = append(words, "ignore case")
	}
	if o.nullMisfits() {
		words = append(words, "misfits are NULL")
	}
	return words
}
