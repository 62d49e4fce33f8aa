package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// patience is how long a completion may wait for a network.
const patience = 3 * time.Second

// columns returns the columns of the first file that can be opened. Columns whose
// names need quotes are left out, since the shell would strip the quotes.
func (c *cli) columns(cmd *cobra.Command, names []string, open source.Opening) (columns []string) {
	open.Uncommitted = true
	ctx, cancel := context.WithTimeout(cmd.Context(), patience)
	defer cancel()
	if c.CheckStore() != nil {
		return nil
	}
	open.Store = c.Store()
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

// common returns the completions of flags that several verbs have, by flag.
func (c *cli) common() map[string]flags.Completion {
	return map[string]flags.Completion{
		"delimiter":  flags.Choices("','", "';'", "'|'", "tab"),
		"encoding":   flags.Choices(text.Encodings()...),
		"ids-format": flags.Choices("lines", "csv", "tsv", "ndjson"),
		"key-type":   flags.Choices("string", "int64", "uint64", "uuid", "date", "timestamp", "timestamptz", "bool"),
		"normalize": flags.ListOf(func(*cobra.Command, []string) []string {
			return []string{"trim", "lower", "uuid", "url", "url-host", "ascii-only"}
		}),
		"format":      flags.Choices(formats...),
		"compression": flags.Choices("snappy", "zstd", "gzip", "brotli", "lz4", "none"),
		"schema":      flags.Choices("per-file", "strict", "union"),
		"missing-key": flags.Choices("error", "skip-file"),
		"cast-errors": flags.Choices("error", "null"),
		"int96":       flags.Choices("us", "ns"),
		"empty":       flags.Choices("skip", "write"),
		"columns":     flags.ListOf(c.ofLogs),
		"type":        flags.Choices(joinTypes...),
		"strategy":    flags.Choices(strategies...),
	}
}

func (c *cli) completeBuild(cmd *cobra.Command, o *buildFlags) {
	of := c.common()
	of["key-range"] = flags.Choices("auto", "on", "off")
	of["kind"], of["geometry"] = flags.Choices(kinds...), flags.Choices(geometries()...)
	of["key"] = flags.ListOf(func(cmd *cobra.Command, args []string) []string {
		return c.columns(cmd, args, o.ids.Open())
	})
	c.Complete(cmd, of)
}

func (c *cli) completeScan(cmd *cobra.Command) {
	of := c.common()
	of["key"] = flags.ListOf(c.ofLogs)
	of["match"] = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(begun, "=") {
			return nil, cobra.ShellCompDirectiveDefault // a file
		}
		before, _ := flags.CutLast(begun, ",")
		return flags.InFront(before, c.ofLogs(cmd, args)), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	of["no-match"] = of["match"]
	c.Complete(cmd, of)
}

func (c *cli) completeJoin(cmd *cobra.Command, o *joinFlags) {
	of := c.common()
	// Columns of the log, and after an equals sign columns of the IDs.
	of["on"] = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		const how = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		before, last := flags.CutLast(begun, ",")
		ids := c.columns(cmd, o.ids, o.text.Open())
		if log, _, ok := strings.Cut(last, "="); ok {
			return flags.InFront(before+log+"=", ids), how
		}
		logs := c.ofLogs(cmd, args)
		if len(logs) == 0 { // logs come last on the command line; the IDs may have the same column
			logs = ids
		}
		return flags.InFront(before, logs), how
	}
	c.Complete(cmd, of)
}
