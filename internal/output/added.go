package output

import (
	"context"
	"errors"
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/delta"
	"github.com/bloomjoin/bloomjoin/internal/lake/iceberg"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Added writes what adds the files of a complete directory to a table of a format, iceberg or delta, beside
// its manifests, and returns the name. Of out it needs what [Commit] does.
func Added(ctx context.Context, out Destination, format string) (string, error) {
	out.fill(ctx)
	d, err := out.unfinished(ctx)
	if err != nil {
		return "", err
	}
	add := map[string]func(*lake.Added) ([]byte, error){"iceberg": iceberg.Add, "delta": delta.Add}[format]
	return d.WriteAdded(ctx, format, func(of *publish.File, name string, hive []string) (line []byte, err error) {
		f, err := out.openOutput(ctx, name)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		p := f.Parquet()
		if p == nil {
			return nil, faults.Unsupported(fault.At{File: name}, "a file of a table that is not Parquet").WithHint("write Parquet with {Force}")
		}
		if rows := p.File().Metadata.NumRows; p.File().Size != of.Bytes || rows != of.Rows {
			return nil, fmt.Errorf("%s: %w", name, storage.ErrChanged)
		}
		a, err := lake.NewAdded(p.File(), of.Name, of.Modified, hive)
		if err != nil {
			return nil, err
		}
		return add(a)
	})
}
