package partition

import (
	"context"
	"errors"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
)

// Inputs is a list of inputs that `bloomjoin inputs` wrote. With it, no directory is listed
// and no file opened to find what to read. Its methods may be called from many goroutines.
// The caller closes it.
type Inputs inputs.List

func (in *Inputs) in() *inputs.List { return (*inputs.List)(in) }

// ReadInputs opens a list of inputs and reads its header and index. Its files are opened with
// opts, in which options that select files or describe columns of paths must be empty: the
// list has its own.
func ReadInputs(ctx context.Context, name string, opts OpenOptions) (*Inputs, error) {
	in, err := inputs.Read(ctx, opts.Store, name)
	if err != nil {
		return nil, err
	}
	return (*Inputs)(in.With(opts.in())), nil
}

// Close closes the list.
func (in *Inputs) Close() error { return in.in().Close() }

// Open opens the files that belong to the shard, and returns them with the pieces that
// [Split] would return. A file other than the listed one is an error that wraps
// [storage.ErrChanged]. The caller closes the files; see [Close].
func (in *Inputs) Open(ctx context.Context, s dataset.Shard) ([]*File, []Piece, error) {
	if in == nil {
		return nil, nil, errors.New("the list of inputs is nil: want one from ReadInputs")
	}
	share, err := in.in().Share(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	files, pieces, err := in.in().Opened(ctx, share)
	return each.Slice(files, outer), each.Slice(pieces, outerPiece), err
}
