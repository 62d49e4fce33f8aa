package main

import (
	"context"
	"path"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// inputFlags say which files of directories are read, and what outputs mirror.
type inputFlags struct {
	include, exclude []string
	base             string
	allowEmpty       bool
}

func (o *inputFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&o.include, "include", nil, "GLOB: of directories, read only the files that match: by the path below the directory, or by the name if GLOB has no slash; may be repeated")
	f.StringArrayVar(&o.exclude, "exclude", nil, "GLOB: of directories, leave out the files that match; may be repeated")
}

// addOutput adds the flags of verbs that write an output for each input.
func (o *inputFlags) addOutput(f *pflag.FlagSet) {
	f.BoolVar(&o.allowEmpty, "allow-empty", false, "take a directory of LOGS without data for a log without rows")
	f.StringVar(&o.base, "base", "", "directory of LOGS that OUT/ mirrors (default: the part of a path before its first name=value directory, else the directory named)")
}

// fill checks the flags and puts them into the options.
func (o *inputFlags) fill(open *partition.OpenOptions) error {
	for _, p := range slices.Concat(o.include, o.exclude) {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return usagef("--include or --exclude %q: want a pattern such as '*.parquet' or 'dt=2024-*/*'", p)
		}
	}
	open.Include, open.Exclude, open.AllowEmpty, open.Base = o.include, o.exclude, o.allowEmpty, o.base
	return nil
}

// writeEmpty writes the output of a log without files.
func (c *cli) writeEmpty(ctx context.Context, out partition.Output, opts partition.ScanOptions, schemaFrom string) (w partition.Written, err error) {
	var schema *arrow.Schema
	if schemaFrom != "" {
		files, err := partition.Open(ctx, []string{schemaFrom}, partition.OpenOptions{})
		if err != nil {
			return w, err
		}
		defer partition.Close(files)
		if schema, err = opts.SchemaOf(files[0]); err != nil {
			return w, err
		}
	}
	return out.WriteEmpty(ctx, schema)
}

// joinEmpty joins a log without files: no row has an ID.
func (c *cli) joinEmpty(ctx context.Context, o *joinFlags, opts join.Options, out partition.Output) (partition.Written, error) {
	var w partition.Written
	switch {
	case opts.Type == join.Right || opts.Type == join.Full:
		return w, usagef("--allow-empty with --type %s: the log has no file, and so no columns, which every row of the answer has", opts.Type)
	case opts.Require.Rows > 0 || opts.Require.IDsMatched > 0:
		return w, join.ErrRequire
	case o.count:
		return w, nil
	}
	return c.writeEmpty(ctx, out, partition.ScanOptions{Columns: bareNames(opts.Columns)}, o.layout.schemaFrom)
}

// bareNames returns the names of columns of the log, which may be written
// log.NAME.
func bareNames(columns []string) (names []string) {
	for _, c := range columns {
		paths, _ := keys.ParsePaths(c) // which was checked
		names = append(names, paths[0].Name())
	}
	return names
}
