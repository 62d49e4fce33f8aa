package bloomjoin

import (
	"context"
	"errors"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// openIDs opens ID files, which may be text.
func openIDs(ctx context.Context, names []string) ([]*partition.File, error) {
	return partition.Open(ctx, names, partition.OpenOptions{Text: true})
}

// openScan opens log files and returns them with a scanner that they all fit. The
// caller closes the files, if the error is nil.
func openScan(ctx context.Context, logs []string, opts partition.ScanOptions) ([]*partition.File, *partition.Scanner, error) {
	files, err := partition.Open(ctx, logs, partition.OpenOptions{})
	if err != nil {
		return nil, nil, err
	}
	s, err := partition.NewScanner(opts, files...)
	if err != nil {
		return nil, nil, errors.Join(err, partition.Close(files))
	}
	return files, s, nil
}

// openJoin opens ID and log files and returns their join and a function that
// closes them, to be called if the error is nil.
func openJoin(ctx context.Context, ids, logs []string, opts join.Options) (*join.Join, func() error, error) {
	idFiles, err := openIDs(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	logFiles, err := partition.Open(ctx, logs, partition.OpenOptions{})
	if err != nil {
		return nil, nil, errors.Join(err, partition.Close(idFiles))
	}
	closeFiles := func() error { return errors.Join(partition.Close(idFiles), partition.Close(logFiles)) }
	j, err := join.New(idFiles, logFiles, opts)
	if err != nil {
		return nil, nil, errors.Join(err, closeFiles())
	}
	return j, closeFiles, nil
}

// sequence returns the records of the rows that run yields, each of which it
// releases, and at the end the error that run returns.
func sequence(run func(yield func(partition.Rows, error) bool) error) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		ended := false
		err := run(func(rows partition.Rows, err error) bool {
			if err != nil {
				ended = true
				return yield(nil, err)
			}
			defer rows.Record.Release()
			ended = !yield(rows.Record, nil)
			return !ended
		})
		if err != nil && !ended {
			yield(nil, err)
		}
	}
}
