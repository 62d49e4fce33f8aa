package flags

import (
	"strings"

	"github.com/spf13/cobra"
)

// Completion returns the possible values of a flag that start with what was typed.
type Completion = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// Choices returns the completion of a flag that takes one of several words.
func Choices(values ...string) Completion {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// ListOf returns the completion of a flag that takes words separated by commas.
func ListOf(values func(cmd *cobra.Command, args []string) []string) Completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		before, _ := CutLast(begun, ",")
		return InFront(before, values(cmd, args)), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// CutLast splits s after the last sep. If there is none, before is empty.
func CutLast(s, sep string) (before, after string) {
	i := strings.LastIndex(s, sep) + 1
	return s[:i], s[i:]
}

// InFront prepends what was typed to each value.
func InFront(before string, values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = before + v
	}
	return out
}
