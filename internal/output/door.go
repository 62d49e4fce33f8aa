package output

import (
	"context"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// NewScanner returns a scanner, as [ScannerOf] does.
func NewScanner(opts ScanOptions, files ...*source.File) (*Scanner, error) {
	return ScannerOf(Scan{ScanOptions: opts}, files...)
}

// WriteScan writes the rows of the pieces that pass the scanner; see
// [Destination.Write] for what of it an error leaves. logs are all files of the log,
// whatever the shard. The output records what its rows are and, if the scanner has one
// filter, which they have passed. An output that exists is an error that wraps
// [ErrExists], unless Force is set.
func (o Output) WriteScan(ctx context.Context, s *Scanner, pieces []source.Piece, logs []*source.File) (w dataset.Written, err error) {
	if err := checkScanner(s); err != nil {
		return w, err
	}
	d := Destination{Output: o, Result: s.Result()}
	if len(s.match) == 1 {
		if d.Filter, err = s.match[0].Filter.Digest(); err != nil {
			return w, err
		}
	}
	return d.WriteScan(ctx, s, pieces, logs, nil)
}
