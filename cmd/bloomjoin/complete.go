package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// completion returns the possible values of a flag that start with what was typed.
type completion = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// words returns the completion of a flag that takes one of several words.
func words(values ...string) completion {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeStore completes the names of settings for URLs.
func completeStore(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
	for _, f := range storeFlags() {
		names = append(names, f.name+"=")
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
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

// patience is how long a completion may wait for a network.
const patience = 3 * time.Second

// columns returns the columns of the first file that can be opened. Columns whose
// names need quotes are left out, since the shell would strip the quotes.
func (c *cli) columns(cmd *cobra.Command, names []string, open source.Opening) (columns []string) {
	open.Uncommitted = true
	ctx, cancel := context.WithTimeout(cmd.Context(), patience)
	defer cancel()
	if c.checkStore() != nil {
		return nil
	}
	open.Store = c.store()
	for _, name := range names {
		if name == "-" {
			continue
		}
		files, err := source.Open(ctx, []string{name}, open)
		if err != nil {
			continue
		}
		for _, f := range files[:min(1, len(files))] {
			for _, field := range f.Schema().Fields() {
				if (keys.Path{field.Name}).String() == field.Name {
					columns = append(columns, field.Name)
				}
			}
		}
		_ = source.Close(files)
		if len(columns) > 0 {
			break
		}
	}
	return columns
}

// ofLogs returns the columns of the logs that the arguments name.
func (c *cli) ofLogs(cmd *cobra.Command, args []string) []string {
	return c.columns(cmd, args, source.Opening{})
}

// pairs returns the completion of --on: columns of the log, and after an equals
// sign columns of the IDs.
func (c *cli) pairs(o *joinFlags) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		const how = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		before, last := cutLast(begun, ",")
		ids := c.columns(cmd, o.ids, source.Opening{OpenOptions: source.OpenOptions{Text: true, TextFormat: dataset.Format(o.text.format), Encoding: o.text.encoding}})
		if log, _, ok := strings.Cut(last, "="); ok {
			return inFront(before+log+"=", ids), how
		}
		logs := c.ofLogs(cmd, args)
		if len(logs) == 0 { // logs come last on the command line; the IDs may have the same column
			logs = ids
		}
		return inFront(before, logs), how
	}
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

// common returns the completions of flags that several verbs have, by flag.
func (c *cli) common() map[string]completion {
	return map[string]completion{
		"encoding":    words(text.Encodings()...),
		"ids-format":  words("lines", "csv", "tsv", "ndjson"),
		"key-type":    words("string", "int64", "uint64", "uuid", "date", "timestamp", "timestamptz", "bool"),
		"normalize":   listOf(func(*cobra.Command, []string) []string { return []string{"trim", "lower", "uuid"} }),
		"format":      words("parquet", "arrow"),
		"compression": words("snappy", "zstd", "gzip", "brotli", "lz4", "none"),
		"schema":      words("per-file", "strict", "union"),
		"missing-key": words("error", "skip-file"),
		"cast-errors": words("error", "null"),
		"int96":       words("us", "ns"),
		"empty":       words("skip", "write"),
		"columns":     listOf(c.ofLogs),
		"type":        words(joinTypes...),
		"strategy":    words(strategies...),
	}
}

func (c *cli) completeBuild(cmd *cobra.Command, o *buildFlags) {
	geometries := []string{"auto"}
	for _, g := range bloom.Geometries() {
		geometries = append(geometries, g.String())
	}
	of := c.common()
	of["kind"], of["geometry"] = words("auto", "bloom", "exact"), words(geometries...)
	of["key"] = listOf(func(cmd *cobra.Command, args []string) []string {
		return c.columns(cmd, args, source.Opening{OpenOptions: source.OpenOptions{Text: true, TextFormat: dataset.Format(o.ids.format), Encoding: o.ids.encoding}})
	})
	complete(cmd, of)
}

func (c *cli) completeScan(cmd *cobra.Command, _ *scanFlags) {
	of := c.common()
	of["key"] = listOf(c.ofLogs)
	of["match"] = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(begun, "=") {
			return nil, cobra.ShellCompDirectiveDefault // a file
		}
		before, _ := cutLast(begun, ",")
		return inFront(before, c.ofLogs(cmd, args)), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	of["no-match"] = of["match"]
	complete(cmd, of)
}

func (c *cli) completeJoin(cmd *cobra.Command, o *joinFlags) {
	of := c.common()
	of["on"] = c.pairs(o)
	complete(cmd, of)
}

func (c *cli) completePlan(cmd *cobra.Command, o *planFlags) { c.completeJoin(cmd, &o.joinFlags) }

// orderedVerbs returns the commands in the order in which a user needs them.
func orderedVerbs(root *cobra.Command) []*cobra.Command {
	order := []string{"join", "plan", "build", "merge", "scan", "probe", "inputs", "inspect", "version", "completion", "help"}
	list := slices.Clone(root.Commands())
	slices.SortStableFunc(list, func(a, b *cobra.Command) int {
		return slices.Index(order, a.Name()) - slices.Index(order, b.Name())
	})
	return list
}
