package flags

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/cause"
)

// UsageError reports wrong usage, detected before any input was opened.
type UsageError struct{ error }

// Unwrap returns the error as it was made.
func (e UsageError) Unwrap() error { return e.error }

// Cause returns the code of wrong usage that has none of its own.
func (UsageError) Cause() cause.Code { return cause.Usage }

// Usagef returns a usage error, formatted as by fmt.Errorf.
func Usagef(format string, args ...any) error {
	return UsageError{fmt.Errorf(format, args...)}
}

// Required returns the error for something that is missing.
func Required(format string, args ...any) error {
	return cause.Mark(cause.Required, Usagef(format, args...))
}

// OneOf returns a usage error if the value of a flag is not one of words.
func OneOf(flag, value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	if near := words.Meant(value, known); near != "" {
		return Usagef("--%s %s: want %s (did you mean %s?)", flag, value, orList(known), near)
	}
	return Usagef("--%s %s: want %s", flag, value, orList(known))
}

// orList joins words as in "a, b or c".
func orList(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// ParseSize parses a size such as 64MiB, 3GiB or 100MB, in bytes.
func ParseSize(s string) (uint64, error) {
	n, err := humanize.ParseBytes(s)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, fmt.Errorf("size %q: want one such as 64MiB, 3GiB or 100MB", s)
	}
	return n, nil
}

// Count is the value of a flag that is a number of things, which may be written as 1e9.
type Count uint64

// String implements pflag.Value.
func (c *Count) String() string { return strconv.FormatUint(uint64(*c), 10) }

// Set implements pflag.Value.
func (c *Count) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(s, 64)
		if ferr != nil || f < 0 || f > 1<<53 || f != math.Trunc(f) {
			return err
		}
		n = uint64(f)
	}
	*c = Count(n)
	return nil
}

// Type implements pflag.Value.
func (c *Count) Type() string { return "count" }

// AddRate adds a flag for a share, as 0.01 or 1%.
func AddRate(f *pflag.FlagSet, to *float64, name string, value float64, usage string) {
	*to = value
	f.Var((*rate)(to), name, usage)
}

// rate is the value of a flag that is a share.
type rate float64

// String implements pflag.Value.
func (r *rate) String() string { return strconv.FormatFloat(float64(*r), 'g', -1, 64) }

// Set implements pflag.Value.
func (r *rate) Set(s string) error {
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	*r = rate(v)
	return err
}

// Type implements pflag.Value.
func (r *rate) Type() string { return "float64" }

// CheckRate returns an error if --fpr is given and not a rate.
func CheckRate(cmd *cobra.Command, p float64) error {
	if cmd.Flags().Changed("fpr") && !(p > 0 && p < 1) { // true for NaN, too
		return Usagef("--fpr %v: want more than 0 and less than 1, as 0.01", p)
	}
	return nil
}

// SplitColumn splits COL[,COL]=REST at the first equals sign outside quotes.
func SplitColumn(s string) (columns, rest string, ok bool) {
	quoted := false
	for i, r := range s {
		switch {
		case r == '"':
			quoted = !quoted
		case r == '=' && !quoted:
			return s[:i], s[i+1:], i > 0 && i+1 < len(s)
		}
	}
	return s, "", false
}
