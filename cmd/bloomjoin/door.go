package main

import (
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/partition"
)

// The verbs have the files of the rooms, joins and builds take those of package partition.

func doors(files []*output.File) []*partition.File {
	return each.Slice(files, func(f *output.File) *partition.File { return (*partition.File)(f) })
}

func insides(files []*partition.File) []*output.File {
	return each.Slice(files, func(f *partition.File) *output.File { return (*output.File)(f) })
}

func doorPiece(p output.Piece) partition.Piece {
	return partition.Piece{File: (*partition.File)(p.File), Lo: p.Lo, Hi: p.Hi}
}

func insidePiece(p partition.Piece) output.Piece {
	return output.Piece{File: (*output.File)(p.File), Lo: p.Lo, Hi: p.Hi}
}
