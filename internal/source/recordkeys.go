package source

import (
	"context"
	"errors"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// StepRows is how many rows of a record are passed on at once, because a record
// batch of an Arrow file may contain the whole file.
const StepRows = 1 << 16

// ReadKeysOf is Read for columns that are used only as keys: for the given rows of a
// Parquet file (nil: all), and for all rows of other files.
func ReadKeysOf(ctx context.Context, from Table, group int, columns []int, rows []uint32) iter.Seq2[arrow.Record, error] {
	if p, ok := from.(*arrowparquet.Parquet); ok {
		return p.ReadKeys(ctx, group, columns, rows)
	}
	return from.Read(ctx, group, columns)
}

// InGroup adds the row group to an error about the keys of a record or page,
// which was made without it. Text and streams have no row groups.
func InGroup(err error, f *File, group int) error {
	var e *fault.Error
	if (errors.Is(err, keys.ErrNoUUID) || errors.Is(err, keys.ErrNoHost) || errors.Is(err, keys.ErrMisfit)) && f.GroupRows(group) >= 0 && errors.As(err, &e) {
		e.At.RowGroup = group + 1
	}
	return err
}
