// Package door passes files and pieces through the door: programs have those of package
// partition, rooms those of package source. They are the same files.
//
// Packages that take a program's files may use it.
package door

import (
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/partition"
)

// In returns files as rooms have them.
func In(files []*partition.File) []*source.File {
	return each.Slice(files, func(f *partition.File) *source.File { return (*source.File)(f) })
}

// PiecesIn returns pieces as rooms have them.
func PiecesIn(pieces []partition.Piece) []source.Piece {
	return each.Slice(pieces, func(p partition.Piece) source.Piece {
		return source.Piece{File: (*source.File)(p.File), Lo: p.Lo, Hi: p.Hi}
	})
}
