package main

import (
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/partition"
)

// The verbs have the files of the rooms, joins and builds take those of package partition.

func doors(files []*source.File) []*partition.File {
	return each.Slice(files, func(f *source.File) *partition.File { return (*partition.File)(f) })
}

func insides(files []*partition.File) []*source.File {
	return each.Slice(files, func(f *partition.File) *source.File { return (*source.File)(f) })
}

func doorPiece(p source.Piece) partition.Piece {
	return partition.Piece{File: (*partition.File)(p.File), Lo: p.Lo, Hi: p.Hi}
}

func insidePiece(p partition.Piece) source.Piece {
	return source.Piece{File: (*source.File)(p.File), Lo: p.Lo, Hi: p.Hi}
}
