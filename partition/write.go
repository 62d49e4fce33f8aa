package partition

import (
	"context"
	"io"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Output says where rows are written, and how.
type Output struct {
	// Name is a file, a directory (if it ends in a slash or exists as one), or
	// "-" for Stdout.
	Name string
	// Stdout is required with the name "-". After an error it has part of an output, which
	// must not be used.
	Stdout io.Writer
	Store  storage.Storage // nil: the local file system
	// Format is Parquet, ArrowFile or, except in a directory, CSV, TSV or NDJSON, compressed if
	// the name ends with .gz. Empty: from the name, else Parquet. On Stdout it is Parquet,
	// text or, empty too, an Arrow stream.
	Format dataset.Format
	// Compression is the codec of Parquet files (snappy, zstd, gzip, brotli, lz4 for
	// the format's LZ4_RAW, or none), and optionally its level, as in "zstd:3". Empty:
	// the codec of the first input. Anything else is an error.
	Compression string
	Shard       dataset.Shard // the worker that writes
	// Force writes completed outputs again, and replaces what another run has
	// written: a file or, in a directory, the outputs for this run's inputs that
	// its manifests list.
	Force bool
	// TargetSize is the size in bytes that files of a directory should have; 0: one file
	// for each input. Inputs in one directory, with the same schema and codec, then share
	// files, in order: a file that has TargetSize bytes is followed by another one, which
	// is named after the first input in it. Rows keep the order of inputs; one row group
	// may have rows of two. The size is that of a Parquet file's pages, or of an Arrow
	// file's values.
	TargetSize int64
	// WriteEmpty writes a file without rows for an input that has no row in the output;
	// otherwise a directory has no file for it. With TargetSize, inputs that would share a
	// file get one together.
	WriteEmpty bool
	// Require are conditions on the rows of a directory, over all of its workers. If
	// they are not met, there is no _SUCCESS, and without a Shard nothing is published.
	Require dataset.Require
	// Memory is the maximum number of bytes of encoded pages to hold in memory
	// until their row group is complete; 0: no limit. Further pages wait in TempDir;
	// empty: os.TempDir. The output's bytes are the same.
	Memory  int64
	TempDir string
}

// WriteScan writes the rows of the pieces that pass the scanner. logs are all files of the
// log, whatever the shard. The output records what its rows are and, if the scanner has just
// one filter, that filter. An output that exists is an error that wraps fs.ErrExist, unless
// Force is set.
//
// After an error nothing is visible, and what was there is unchanged: a file appears whole or not
// at all. The files of a directory appear when all of its workers are done; until then they need
// space in addition to those that they replace. What was written to a stream remains there.
func (o Output) WriteScan(ctx context.Context, s *Scanner, pieces []Piece, logs []*File) (dataset.Written, error) {
	return output.Output(o).WriteScan(ctx, s.room(), each.Slice(pieces, Piece.in), each.Slice(logs, (*File).in))
}

// Errors of outputs and inputs.
var (
	// ErrNoData means that a file has no format that can be read.
	ErrNoData = source.ErrNoData
	// ErrRequire means that rows do not meet the conditions of an Output or a join.
	ErrRequire = output.ErrRequire
	// ErrOutdated means that a file is not the one that a list of inputs describes.
	ErrOutdated = inputs.ErrOutdated
)
