package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// writeEmpty writes the output of a log without files: a directory without files, or
// a file with the schema of --schema-from.
func (c *cli) writeEmpty(ctx context.Context, out output.Destination, opts keyscan.Options, schemaFrom string) (w dataset.Written, err error) {
	var schema *arrow.Schema
	if schemaFrom != "" {
		files, err := source.Open(ctx, []string{schemaFrom}, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff, Uncommitted: true, Store: c.Store()}})
		if err != nil {
			return w, err
		}
		defer source.Close(files)
		if schema, err = opts.SchemaOf(files[0]); err != nil {
			return w, err
		}
	}
	var parts []output.Part // a directory gets no file
	if !out.IsDir(ctx) {
		if schema == nil {
			return w, cause.Mark(cause.NoInputs, faults.Errorf("%s: the log has no files, so the columns of the output are unknown (write to a directory, {Output OUT/}, or give them with {Pinned})", out.Name))
		}
		parts = []output.Part{{Schema: schema}}
	}
	return out.Write(ctx, parts, func(func(arraycopy.Rows, error) bool) {})
}

// joinEmpty writes the answer of a join whose log has no files.
func (c *cli) joinEmpty(ctx context.Context, o *joinFlags, opts joins.Options, out output.Destination) (dataset.Written, error) {
	var w dataset.Written
	switch {
	case opts.Type == joins.Right || opts.Type == joins.Full:
		return w, cause.Mark(cause.NoInputs, fmt.Errorf("--allow-empty --type %s: the answer has the log's columns, and a log without files has none (use --type inner)", opts.Type))
	case o.writes() && out.IsDir(ctx):
	case opts.Require.Rows > 0 || opts.Require.IDsMatched > 0:
		return w, output.ErrRequire
	case !o.writes():
		return w, nil
	}
	return c.writeEmpty(ctx, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Columns: bareNames(opts.Columns)}}, o.layout.SchemaFrom)
}

// bareNames returns chosen log columns without the prefix "log." that they may have.
func bareNames(columns []string) (names []string) {
	choices, _ := keys.ParseChoices(columns, true) // checked before
	for _, c := range choices {
		names = append(names, strings.TrimPrefix(c.String(), "log."))
	}
	return names
}
