package output

import (
	"context"
	"errors"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// ReadSchema reads the schema of a Parquet file, such as an earlier output.
func ReadSchema(ctx context.Context, name string, opts source.Opening) (p *dataset.PinnedSchema, err error) {
	opts.Hive, opts.Uncommitted = dataset.HiveOff, true // the schema is that of the file
	files, err := source.Open(ctx, []string{name}, opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close(files)) }()
	if len(files) > 1 || files[0].Parquet() == nil {
		return nil, faults.Unsupported(fault.At{File: name}, "a schema from anything but one Parquet file").
			WithHint("name a Parquet file, such as an earlier output")
	}
	return pin(files[0].Parquet().File())
}
