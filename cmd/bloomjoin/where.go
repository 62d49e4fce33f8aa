package main

import (
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/internal/where"
	"github.com/bloomjoin/bloomjoin/partition"
)

// whereFlag is --where of scan, join and plan: the condition on the rows of the log.
type whereFlag struct {
	text  string
	given bool        // maybe as an empty text
	cond  *where.Cond // nil: none

	excluded int64 // files that were not opened
}

func (o *whereFlag) add(f *pflag.FlagSet) {
	f.Var(o, "where", "`CONDITION` leave out the log rows that do not satisfy it, as \"ts >= '2024-05-01' AND n > 0\"")
}

// String implements pflag.Value.
func (o *whereFlag) String() string { return o.text }

// Set implements pflag.Value.
func (o *whereFlag) Set(s string) error {
	o.text, o.given = s, true
	return nil
}

// Type implements pflag.Value.
func (o *whereFlag) Type() string { return "string" }

// fill checks the condition, before any input is opened, and copies it to the
// options for the log.
func (o *whereFlag) fill(open *partition.OpenOptions, keys *keyFlags) (err error) {
	if !o.given {
		return nil
	}
	if o.cond, err = where.Parse(o.text); err != nil {
		return usagef("--where: %w", err)
	}
	open.Where, open.IgnoreCase = o.text, keys.ignoreCase
	open.Excluded = func(string) { o.excluded++ }
	return nil
}

// words returns what the flag adds to the digest of a run.
func (o *whereFlag) words() []string {
	if o.cond == nil { // the default adds nothing: digests of older versions stay valid
		return nil
	}
	return []string{"where " + o.cond.String()}
}

// figure returns a figure of the report that only runs with a condition have.
func (o *whereFlag) figure(n int64) *int64 {
	if o.cond == nil {
		return nil
	}
	return &n
}
