package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
)

// usageError reports wrong usage, detected before any input was opened.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// oneOf returns a usage error if the value of a flag is not one of words.
func oneOf(flag, value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	if near := words.Meant(value, known); near != "" {
		return usagef("--%s %s: want %s (did you mean %s?)", flag, value, orList(known), near)
	}
	return usagef("--%s %s: want %s", flag, value, orList(known))
}

// orList joins words as in "a, b or c".
func orList(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// parseSize parses a size such as 64MiB, 3GiB or 100MB, in bytes.
func parseSize(s string) (uint64, error) {
	n, err := humanize.ParseBytes(s)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, fmt.Errorf("size %q: want one such as 64MiB, 3GiB or 100MB", s)
	}
	return n, nil
}

// checkRate returns an error if --fpr is given and not a rate.
func checkRate(cmd *cobra.Command, p float64) error {
	if cmd.Flags().Changed("fpr") && !(p > 0 && p < 1) { // true for NaN, too
		return usagef("--fpr %v: want more than 0 and less than 1, as 0.01", p)
	}
	return nil
}

// splitColumn splits COL[,COL]=REST at the first equals sign outside quotes.
func splitColumn(s string) (columns, rest string, ok bool) {
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
