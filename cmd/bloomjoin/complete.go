package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// completion returns the possible values of a flag that start with what was typed.
type completion = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// choices returns the completion of a flag that takes one of several words.
func choices(values ...string) completion {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// listOf returns the completion of a flag that takes words separated by commas.
func listOf(values func(cmd *cobra.Command, args []string) []string) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		before, _ := cutLast(begun, ",")
		return inFront(before, values(cmd, args)), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// cutLast splits s after the last sep. If there is none, before is empty.
func cutLast(s, sep string) (before, after string) {
	i := strings.LastIndex(s, sep) + 1
	return s[:i], s[i:]
}

// inFront prepends what was typed to each value.
func inFront(before string, values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = before + v
	}
	return out
}

// complete registers completions by the name of their flag. Flags that the command
// does not have are ignored.
func complete(cmd *cobra.Command, of map[string]completion) {
	for name, f := range of {
		if cmd.Flags().Lookup(name) == nil && cmd.PersistentFlags().Lookup(name) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
			panic(err) // a flag has two completions: every test would fail
		}
	}
}
