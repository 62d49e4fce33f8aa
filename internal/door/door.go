// Package door converts the files and pieces of package partition, which programs have, to
// those of package source, which rooms use. They are the same files.
//
// Packages that take a program's files may use it.
package door

import (
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/partition"
)

// In converts files for rooms.
func In(files []*partition.File) []*source.File {
	return each.Slice(files, func(f *partition.File) *source.File { return (*source.File)(f) })
}

// PiecesIn converts pieces for rooms.
func PiecesIn(pieces []partition.Piece) []source.Piece {
	return each.Slice(pieces, func(p partition.Piece) source.Piece {
		return source.Piece{File: (*source.File)(p.File), Lo: p.Lo, Hi: p.Hi}
	})
}
