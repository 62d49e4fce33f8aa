package output

import (
	"context"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// WriteScan writes the rows of the pieces that pass the scanner; see
// [Destination.Write] for what of it an error leaves. logs are all files of the log,
// whatever the shard. The output records what its rows are and, if the scanner has one
// filter, which they have passed. An output that exists is an error that wraps
// [ErrExists], unless Force is set.
func (o Output) WriteScan(ctx context.Context, s *keyscan.Scanner, pieces []source.Piece, logs []*source.File) (w dataset.Written, err error) {
	if err := keyscan.Usable(s); err != nil {
		return w, err
	}
	d := Destination{Output: o, Result: s.Result()}
	if len(s.Match) == 1 {
		if d.Filter, err = s.Match[0].Filter.Digest(); err != nil {
			return w, err
		}
	}
	return d.WriteScan(ctx, s, pieces, logs, nil)
}
