package output

import (
	"context"
	"errors"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// Check reads a row group with its page indexes, or the corresponding part of a
// file of another format, and returns the first error.
func (f *File) Check(ctx context.Context, group int) (err error) {
	held, release, err := f.keepOpen(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := f.checkGroup(group); err != nil {
		return err
	}
	for _, err := range onFault(readKeys(held, f.table, group, nil)) { // readKeys accepts INT96 in any unit
		if err != nil {
			return err
		}
	}
	if p := f.parquet(); p != nil {
		return checkIndexes(p.File(), group)
	}
	return nil
}

// checkIndexes reads the page indexes of a row group, which reading its pages
// does not.
func checkIndexes(f *parquet.File, group int) error {
	for leaf := range f.Metadata.RowGroups[group].Columns {
		x, ok, err := f.OffsetIndex(group, leaf)
		if err == nil && ok {
			_, _, err = f.ColumnIndex(group, leaf, x)
		}
		if err != nil && !errors.Is(err, fault.ErrUnsupported) {
			return err
		}
	}
	return nil
}
