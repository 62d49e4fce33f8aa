package output

import (
	"context"
	"fmt"

	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// needContext panics if there is no context.
func needContext(ctx context.Context) { stopped.Needs(ctx, "partition") }

// checkFiles returns an error if a file of a field or an argument was not opened.
func checkFiles(where string, files []*File) error {
	for i, f := range files {
		if err := f.usable(); err != nil {
			return fmt.Errorf("%s: file %d of %d: %w", where, i+1, len(files), err)
		}
	}
	return nil
}

// check returns an error if its file has no such row groups.
func (p Piece) check() error {
	if err := p.File.usable(); err != nil {
		return err
	}
	if n := p.File.NumGroups(); p.Lo < 0 || p.Lo > p.Hi || p.Hi > n {
		return fmt.Errorf("%s: row groups from %d up to %d: want a range within 0 to %d", p.File.name, p.Lo, p.Hi, n)
	}
	return nil
}

// checkPieces returns an error if one of the pieces is none, or if [Split] was given a
// shard that does not exist.
func checkPieces(pieces []Piece) error {
	if err := shared(pieces); err != nil {
		return err
	}
	for i, p := range pieces {
		if err := p.check(); err != nil {
			return fmt.Errorf("piece %d of %d: %w", i+1, len(pieces), err)
		}
	}
	return nil
}
