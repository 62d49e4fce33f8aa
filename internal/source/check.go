package source

import (
	"context"
	"fmt"

	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// Check reads a row group and compares what a Parquet file says of it, see
// Audit in package parquet, or reads the corresponding part of a file of another format. It
// returns the first error. Row group 0 of an Arrow file without any stands for its footer.
func (f *File) Check(ctx context.Context, group int) (err error) {
	held, release, err := f.keepOpen(ctx)
	if err != nil {
		return err
	}
	defer faults.Join(&err, release)
	if t, ok := Stored(f.table).(*arrowipc.Table); ok {
		if err := t.Check(); err != nil || group == 0 && t.NumGroups() == 0 {
			return err
		}
	}
	if err := f.checkGroup(group); err != nil {
		return err
	}
	for _, err := range onFault(ReadKeysOf(held, f.table, group, nil, nil)) { // ReadKeysOf accepts INT96 in any unit
		if err != nil {
			return err
		}
	}
	if p := f.Parquet(); p != nil {
		for leaf := range p.File().Leaves {
			if err := p.File().Audit(ctx, group, leaf, f.Doubt); err != nil {
				return err
			}
		}
	}
	return nil
}

// NeedContext panics if there is no context.
func NeedContext(ctx context.Context) { stopped.Needs(ctx, "partition") }

// CheckFiles returns an error if a file of a field or an argument was not opened.
func CheckFiles(where string, files []*File) error {
	for i, f := range files {
		if err := f.usable(); err != nil {
			return fmt.Errorf("%s: file %d of %d: %w", where, i+1, len(files), err)
		}
	}
	return nil
}

// Check returns an error if its file has no such row groups.
func (p Piece) Check() error {
	if err := p.File.usable(); err != nil {
		return err
	}
	if n := p.File.NumGroups(); p.Lo < 0 || p.Lo > p.Hi || p.Hi > n {
		return fmt.Errorf("%s: row groups from %d up to %d: want a range within 0 to %d", p.File.name, p.Lo, p.Hi, n)
	}
	return nil
}

// CheckPieces returns an error if one of the pieces is none, or if [Split] was given a
// shard that does not exist.
func CheckPieces(pieces []Piece) error {
	if err := shared(pieces); err != nil {
		return err
	}
	for i, p := range pieces {
		if err := p.Check(); err != nil {
			return fmt.Errorf("piece %d of %d: %w", i+1, len(pieces), err)
		}
	}
	return nil
}
