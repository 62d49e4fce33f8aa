package flags

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// exclusiveMark is the command annotation that lists mutually exclusive flags:
// groups separated by semicolons, names by spaces.
const exclusiveMark = "exclusive"

// Exclusive declares flags of which at most one may be given.
func Exclusive(cmd *cobra.Command, names ...string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[exclusiveMark] += strings.Join(names, " ") + ";"
}

// CheckExclusive returns an error if mutually exclusive flags are given.
func CheckExclusive(cmd *cobra.Command) error {
	for group := range strings.SplitSeq(cmd.Annotations[exclusiveMark], ";") {
		var given []string
		for name := range strings.FieldsSeq(group) {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return Usagef("%s exclude each other: give one of them", strings.Join(given, " and "))
		}
	}
	return nil
}

// errTwice is the error of a flag that is given again with another value.
var errTwice = errors.New("the flag is given once")

// once is the value of a flag that may be given once. The same value again changes
// nothing.
type once struct {
	pflag.Value
	first *string // as it was given; nil: not yet
	hint  string
}

var days = regexp.MustCompile(`[0-9]+(\.[0-9]+)?d`)

func (o *once) Set(s string) error {
	if o.first != nil && *o.first != s {
		return fmt.Errorf("%w, and before it was %q (%s)", errTwice, *o.first, o.hint)
	}
	given := s
	if o.Type() == "duration" { // days are unknown to it
		s = days.ReplaceAllStringFunc(s, func(d string) string {
			n, _ := strconv.ParseFloat(d[:len(d)-1], 64) // digits, or the other error is better
			return strconv.FormatFloat(24*n, 'f', -1, 64) + "h"
		})
	}
	err := o.Value.Set(s)
	if err == nil {
		o.first = &given
	}
	return err
}

// repeatable is how the help of a flag says that it may be given several times.
const repeatable = "; repeatable"

// AtMostOnce wraps the values of the flags that may not be repeated.
func AtMostOnce(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.HasSuffix(f.Usage, repeatable) {
			hint := "leave one of them out"
			switch {
			case f.Name == "on", f.Name == "key":
				hint = "name several columns in one list, as --" + f.Name + " a,b"
			case f.Name == "filter" && flags.Lookup("match") != nil:
				hint = "add a further one as --match COL=FILTER"
			}
			f.Value = &once{Value: f.Value, hint: hint}
		}
	})
}

// Chosen are the values of --columns, divided into columns and stars.
type Chosen []string

// String implements pflag.Value.
func (c *Chosen) String() string { return strings.Join(*c, ",") }

// Set implements pflag.Value.
func (c *Chosen) Set(s string) error {
	if s != "" {
		*c = append(*c, keys.SplitChoices(s)...)
	}
	return nil
}

// Type implements pflag.Value.
func (c *Chosen) Type() string { return "string" }

// Texts returns the columns and stars as options take them; nil if there are none. A scan has
// no IDs.
func (c Chosen) Texts(scan bool) ([]string, error) {
	all, err := keys.ParseChoices(c, !scan)
	if err != nil {
		return nil, Usagef("--columns: %w", err)
	}
	return each.Slice(all, keys.Choice.String), nil
}
