package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/join"
)

// inputFlags are the flags that select the files of directories, and the
// directory that outputs mirror.
type inputFlags struct {
	include, exclude []string
	base             string
	filesFrom        string
	allowEmpty       bool
	uncommitted      bool
	hive, hiveTypes  string
}

func (o *inputFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&o.include, "include", nil, "`GLOB` read only the files that match, as '*.parquet' or 'dt=2024-*/'; may be repeated")
	f.StringArrayVar(&o.exclude, "exclude", nil, "`GLOB` leave out the files that match; may be repeated")
	f.BoolVar(&o.uncommitted, "uncommitted", false, "read outputs that are not finished, too")
	f.StringVar(&o.hive, "hive-partitioning", "auto", "`MODE` auto: directories named name=value are columns; off: they are not")
	f.StringVar(&o.hiveTypes, "hive-types", "", "`NAME:TYPE,...` types of these columns, as dt:date,country:string (default: as their values are)")
}

// addFrom adds the flag that takes the place of arguments.
func (o *inputFlags) addFrom(f *pflag.FlagSet) {
	f.StringVar(&o.filesFrom, "files-from", "", filesFromHelp)
}

// addLog adds the flags of verbs that accept an empty log.
func (o *inputFlags) addLog(f *pflag.FlagSet) {
	f.BoolVar(&o.allowEmpty, "allow-empty", false, "accept a directory without data as a log without rows")
}

// addOutput adds the flags of verbs that write an output for each input.
func (o *inputFlags) addOutput(f *pflag.FlagSet) {
	f.StringVar(&o.base, "base", "", "`DIR` directory that OUT/ mirrors (default: the path before the first name=value directory)")
}

// fill checks the flags and copies them to the options.
func (o *inputFlags) fill(open *source.Opening) error {
	for i, p := range slices.Concat(o.include, o.exclude) {
		if _, err := glob.ParseRule(p); err != nil {
			name := "include"
			if i >= len(o.include) {
				name = "exclude"
			}
			return usagef("--%s %q: %w (want a pattern, as '*.parquet' or 'dt=2024-*/*')", name, p, err)
		}
	}
	open.Include, open.Exclude, open.AllowEmpty, open.Base = o.include, o.exclude, o.allowEmpty, o.base
	return o.fillHive(open)
}

// fillHive checks the flags about name=value directories and copies them to the
// options.
func (o *inputFlags) fillHive(open *source.Opening) error {
	open.Uncommitted = o.uncommitted
	if err := oneOf("hive-partitioning", o.hive, string(dataset.HiveAuto), string(dataset.HiveOff)); err != nil {
		return err
	}
	if _, err := hive.ParseTypes(o.hiveTypes); err != nil {
		return usagef("--hive-types: %v", err)
	}
	open.Hive, open.HiveTypes = dataset.HiveMode(o.hive), o.hiveTypes
	return nil
}

// checkHive returns an error if a type is given for a name that no directory of the
// inputs has.
func (o *inputFlags) checkHive(files ...*source.File) error {
	var names []string
	for _, f := range files {
		for _, p := range f.Partitions() {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return o.checkTypes(names, len(files))
}

// checkTypes is checkHive for the names of the directories of a number of files.
func (o *inputFlags) checkTypes(names []string, files int) error {
	types, _ := hive.ParseTypes(o.hiveTypes) // checked before
	for _, t := range types {
		switch {
		case slices.Contains(names, t.Name) || files == 0:
		case len(names) == 0:
			return fmt.Errorf("--hive-types %s: no input is in a directory named name=value", t.Name)
		default:
			return fmt.Errorf("--hive-types %s: no such name among the directories of the inputs, only %s", t.Name, strings.Join(names, ", "))
		}
	}
	return nil
}

// logFrom prepares the options for opening a log. Standard input may be named once.
func (c *cli) logFrom(ctx context.Context, open *source.Opening, o *inputFlags, logs []string, shard dataset.Shard, out output.Destination) error {
	if err := o.fill(open); err != nil {
		return err
	}
	if !slices.Contains(logs, "-") {
		return nil
	}
	switch {
	case slices.Contains(logs[slices.Index(logs, "-")+1:], "-"):
		return usagef("-: standard input can be read once, and is named twice")
	case !shard.Whole():
		return usagef("--shard %s: a log from standard input cannot be shared among workers (write it to a file first)", shard)
	case out.IsDir(ctx):
		return usagef("-o %s: a log from standard input has no name for its file in a directory: name a file, as -o rows.parquet", out.Name)
	}
	open.Stdin = c.stdin
	return nil
}

// writeEmpty writes the output of a log without files: a directory without files, or
// a file with the schema of --schema-from.
func (c *cli) writeEmpty(ctx context.Context, out output.Destination, opts keyscan.Options, schemaFrom string) (w dataset.Written, err error) {
	var schema *arrow.Schema
	if schemaFrom != "" {
		files, err := source.Open(ctx, []string{schemaFrom}, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff, Uncommitted: true, Store: c.store()}})
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
			return w, fault.Errorf("%s: the log has no files, so the columns of the output are unknown (write to a directory, {Output OUT/}, or give them with {Pinned})", out.Name)
		}
		parts = []output.Part{{Schema: schema}}
	}
	return out.Write(ctx, parts, func(func(arraycopy.Rows, error) bool) {})
}

// joinEmpty writes the answer of a join whose log has no files.
func (c *cli) joinEmpty(ctx context.Context, o *joinFlags, opts join.Options, out output.Destination) (dataset.Written, error) {
	var w dataset.Written
	switch {
	case opts.Type == join.Right || opts.Type == join.Full:
		return w, fmt.Errorf("--allow-empty --type %s: the answer has the log's columns, and a log without files has none (use --type inner)", opts.Type)
	case out.IsDir(ctx) && !o.count:
		out.Require, out.Hold = opts.Require, opts.Shard.Whole()
	case opts.Require.Rows > 0 || opts.Require.IDsMatched > 0:
		return w, join.ErrRequire
	case o.count:
		return w, nil
	}
	return c.writeEmpty(ctx, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Columns: bareNames(opts.Columns)}}, o.layout.schemaFrom)
}

// bareNames returns log columns without the prefix "log." that they may have.
func bareNames(columns []string) (names []string) {
	for _, c := range columns {
		paths, _ := keys.ParsePaths(c) // checked before
		names = append(names, paths[0].Name())
	}
	return names
}
