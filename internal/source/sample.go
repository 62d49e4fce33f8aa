package source

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Sample is a share of all keys: a file has only the rows with one of them.
type Sample struct {
	Columns []keys.Column
	Options keys.Options
	Share   float64 // above 0, at most 1
}

// Sample returns the keys whose rows the file has; nil: it has the rows of all.
func (f *File) Sample() *Sample { return f.sample }

// parseSample sets what SampleKeys and SampleBy ask for.
func (o *Opening) parseSample() (err error) {
	if o.SampleKeys == 0 && o.SampleBy == "" {
		return nil
	}
	if !(o.SampleKeys > 0 && o.SampleKeys <= 1) {
		return cause.Mark(cause.Condition, fmt.Errorf("a sample of %v of all keys: want more than 0, at most 1", o.SampleKeys))
	}
	s := &Sample{Share: o.SampleKeys, Options: keys.Options{Rule: o.SampleRule, IgnoreCase: o.IgnoreCase, NullMisfits: o.NullMisfits}}
	if s.Columns, err = keys.ParseColumns(o.SampleBy); err != nil {
		return fmt.Errorf("a sample of keys: %w", err)
	}
	for range s.Columns { // so that numbers are in the sample by their values
		s.Options.Classes = append(s.Options.Classes, keys.AnyNumber)
	}
	o.sample = s
	return nil
}
