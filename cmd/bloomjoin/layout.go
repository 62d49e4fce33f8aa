package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/partition"
)

// layoutFlags say what the files of an output are like, and what becomes of
// log files that differ. Scan and join have them.
type layoutFlags struct {
	columns, schema, schemaFrom, compression, missingKey, int96 string
}

func (o *layoutFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.columns, "columns", "", "columns to keep, separated by commas (default: all)")
	f.StringVar(&o.schema, "schema", "", "log files that differ: per-file, strict or union (default: per-file in a directory, else strict)")
	f.StringVar(&o.schemaFrom, "schema-from", "", "Parquet file that has the schema wanted, as an earlier output; with it, --schema union")
	f.StringVar(&o.compression, "compression", "", "of Parquet: snappy, zstd, gzip, brotli, lz4 or none, and :LEVEL (default: as the first input)")
	f.StringVar(&o.missingKey, "missing-key", "error", "files without the key: error or skip-file")
	o.addInt96(f)
}

func (o *layoutFlags) addInt96(f *pflag.FlagSet) {
	f.StringVar(&o.int96, "int96", "us", "unit of INT96 timestamps in rows that are made anew: us (all years) or ns (1677 to 2262)")
}

// int96Nanos reports whether INT96 timestamps are to keep nanoseconds.
func (o *layoutFlags) int96Nanos() (bool, error) {
	if o.int96 != "us" && o.int96 != "ns" {
		return false, usagef("--int96 %s: want us or ns", o.int96)
	}
	return o.int96 == "ns", nil
}

// any reports whether something is asked of what is written.
func (o *layoutFlags) any() bool { return o.schema != "" || o.schemaFrom != "" || o.compression != "" }

// check puts the flags, but for --columns, into the options of scan and output
// before anything is opened.
func (o *layoutFlags) check(opts *partition.ScanOptions, out *partition.Output) (err error) {
	opts.Schema = partition.SchemaMode(o.schema)
	if !slices.Contains([]partition.SchemaMode{"", partition.PerFile, partition.Strict, partition.Union}, opts.Schema) {
		return usagef("--schema %s: want per-file, strict or union", o.schema)
	}
	if o.schemaFrom != "" {
		if opts.Schema != "" && opts.Schema != partition.Union {
			return usagef("--schema-from gives all files one schema, so that --schema %s makes no sense with it", o.schema)
		}
		opts.Schema = partition.Union
	}
	if o.missingKey != "error" && o.missingKey != "skip-file" {
		return usagef("--missing-key %s: want error or skip-file", o.missingKey)
	}
	arrow := out.Name == "-" || formatWord(*out) != string(partition.Parquet)
	if opts.Schema == partition.Union && arrow {
		return usagef("--schema union is unsupported for Arrow outputs: write Parquet")
	}
	if o.compression == "" {
		return nil
	}
	if arrow {
		return usagef("--compression is that of Parquet outputs; Arrow is not compressed")
	}
	if out.Compression, err = partition.ParseCompression(o.compression); err != nil {
		return usagef("--%w", err)
	}
	return nil
}

// pin reads the schema that --schema-from names, which must not be the output.
func (o *layoutFlags) pin(ctx context.Context, opts *partition.ScanOptions, out string) (err error) {
	if o.schemaFrom == "" {
		return nil
	}
	if err := spare(out, o.schemaFrom); err != nil {
		return err
	}
	opts.Pinned, err = partition.ReadSchema(ctx, o.schemaFrom, partition.OpenOptions{})
	return err
}

// words identify what the flags ask for, in the digest of a run.
func (o *layoutFlags) words(ctx context.Context, opts *partition.ScanOptions, out partition.Output) ([]string, error) {
	words := []string{
		o.columns, string(out.SchemaModeOf(ctx, opts.Schema)), o.missingKey,
		out.Compression.Codec, fmt.Sprint(out.Compression.Level), formatWord(out),
	}
	if o.int96 == "ns" { // else the run is what it was before there was a choice
		words = append(words, "int96 ns")
	}
	if opts.Pinned == nil {
		return words, nil
	}
	b, err := opts.Pinned.Bytes()
	return append(words, string(b)), err
}

// keyed leaves out files without the key columns of the matches, if that is
// wanted, and says so.
func (c *cli) keyed(o *layoutFlags, files []*partition.File, matches []partition.Match, anyMatch bool) ([]*partition.File, []partition.Skipped, error) {
	if o.missingKey != "skip-file" {
		return files, nil, nil
	}
	with, without, err := partition.HaveKeys(files, matches, anyMatch)
	if err != nil || len(without) == 0 {
		return with, without, err
	}
	var names []string
	for i, s := range without {
		if i == 3 {
			names = append(names, "…")
			break
		}
		names = append(names, s.File.Name)
	}
	c.say("%d of %d files are skipped, as they lack the key: %s", len(without), len(files), strings.Join(names, ", "))
	return with, without, nil
}

// leftOut adds the files that were skipped, whatever the shard.
func (r *scanReport) leftOut(skipped []partition.Skipped) {
	r.FilesSkipped = len(skipped)
	for _, s := range skipped {
		r.Path = append(r.Path, pathOf{partition.EscapeName(s.File.Name), "skipped", s.Why})
	}
}
