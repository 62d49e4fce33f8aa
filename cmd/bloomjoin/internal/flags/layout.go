package flags

import (
	"cmp"
	"context"

	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Layout are the flags of scan and join for the layout of outputs and the
// handling of log files whose schemas differ.
type Layout struct {
	Columns                                            Chosen
	schema, SchemaFrom, compression, MissingKey, int96 string
	targetSize, empty                                  string
}

// Add adds the flags of verbs that write rows.
func (o *Layout) Add(f *pflag.FlagSet) {
	f.Var(&o.Columns, "columns", "`COLUMNS` columns to keep, as a,b or *; repeatable")
	f.StringVar(&o.schema, "schema", "", "`MODE` log files that differ: per-file, strict or union")
	f.StringVar(&o.SchemaFrom, "schema-from", "", "`FILE` Parquet file with the schema to write")
	f.StringVar(&o.compression, "compression", "", "`CODEC[:LEVEL]` snappy, zstd, gzip, brotli, lz4 or none")
	f.StringVar(&o.targetSize, "target-file-size", "", "`SIZE` size of files in OUT/ that small inputs share")
	f.StringVar(&o.empty, "empty", "skip", "`MODE` inputs without a row: skip, or write to OUT/")
	o.AddInt96(f)
}

// AddMissingKey adds --missing-key.
func (o *Layout) AddMissingKey(f *pflag.FlagSet) {
	f.StringVar(&o.MissingKey, "missing-key", "error", "`MODE` files without the key: error or skip-file")
}

// AddInt96 adds --int96.
func (o *Layout) AddInt96(f *pflag.FlagSet) {
	f.StringVar(&o.int96, "int96", "us", "`UNIT` unit of rewritten INT96 timestamps: us or ns")
}

// Int96Nanos reports whether INT96 timestamps keep nanoseconds.
func (o *Layout) Int96Nanos() (bool, error) {
	return o.int96 == "ns", OneOf("int96", o.int96, "us", "ns")
}

// Check copies the flags other than --columns to the options of the scan and the
// output, before any input is opened.
func (o *Layout) Check(opts *keyscan.Options, out *output.Destination) (err error) {
	opts.Schema = dataset.SchemaMode(o.schema)
	if o.schema != "" {
		if err := OneOf("schema", o.schema, string(dataset.PerFile), string(dataset.Strict), string(dataset.UnionByName)); err != nil {
			return err
		}
	}
	if o.SchemaFrom != "" {
		if opts.Schema != "" && opts.Schema != dataset.UnionByName {
			return Usagef("--schema %s: --schema-from gives all files one schema (leave --schema out)", o.schema)
		}
		opts.Schema = dataset.UnionByName
	}
	if err := cmp.Or(OneOf("missing-key", o.MissingKey, "error", "skip-file"), o.checkSizes(out)); err != nil {
		return err
	}
	kind := out.Kind()
	if opts.Schema == dataset.UnionByName && kind != dataset.Parquet {
		return Usagef("--schema union: unsupported for %s outputs (write Parquet)", FormatNames[kind])
	}
	if o.compression == "" {
		return nil
	}
	switch {
	case source.IsText(kind):
		return Usagef("--compression %s: it is for Parquet (name the file .gz to compress %s, and leave --compression out)", o.compression, FormatNames[kind])
	case kind != dataset.Parquet:
		return Usagef("--compression %s: Arrow outputs are not compressed (write Parquet, or leave --compression out)", o.compression)
	}
	out.Compression = o.compression
	if err := output.CheckCompression(o.compression); err != nil {
		return Usagef("--%w", err)
	}
	return nil
}

// checkSizes copies the flags for the files of a directory to the output.
func (o *Layout) checkSizes(out *output.Destination) error {
	out.WriteEmpty = o.empty == "write"
	if o.empty != "" { // as in plan, which has no output
		if err := OneOf("empty", o.empty, "skip", "write"); err != nil {
			return err
		}
	}
	if o.targetSize == "" {
		return nil
	}
	n, err := ParseSize(o.targetSize)
	if err != nil {
		return Usagef("--target-file-size: %w", err)
	}
	out.TargetSize = int64(n)
	return nil
}

// NeedDir returns an error if flags for the files of a directory are given for another
// output.
func (o *Layout) NeedDir(ctx context.Context, out output.Destination) error {
	flag := ""
	switch {
	case out.TargetSize > 0:
		flag = "--target-file-size " + o.targetSize
	case out.WriteEmpty:
		flag = "--empty " + o.empty
	}
	if flag == "" || out.IsDir(ctx) {
		return nil
	}
	return Usagef("%s: the output is one file (write to a directory, as -o out/, or leave the flag out)", flag)
}
