package output

import (
	"context"
	"iter"

	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// Count scans the pieces and counts the rows that pass, in s.Stats.
func Count(ctx context.Context, s *keyscan.Scanner, pieces []source.Piece) (err error) {
	if err := s.Begin(); err != nil {
		return err
	}
	ctx, release, err := source.OpenPieces(ctx, pieces)
	if err != nil {
		return err
	}
	defer faults.Join(&err, release)
	s.CountOnly()
	parts, err := partsOf(s, pieces, false)
	if err != nil {
		return err
	}
	for i := range parts {
		if p := &parts[i]; p.Piece.File.Parquet() != nil {
			p.pages = &pagecopy.Source{Piece: p.Piece}
		}
	}
	for r, err := range eachPart(ctx, s, nil, parts, new(pagecopy.Unfinished)) {
		if err != nil {
			return err
		}
		r.release()
	}
	return nil
}

// partsOf returns one part of an output for each piece. If own is set, each has the
// schema of the kept columns of its file.
func partsOf(s *keyscan.Scanner, pieces []source.Piece, own bool) ([]Part, error) {
	if err := source.CheckPieces(pieces); err != nil {
		return nil, err
	}
	var parts []Part
	for _, p := range pieces {
		part := Part{Piece: p, Schema: p.File.Schema()}
		if own {
			var err error
			if part.Schema, err = s.Options.SchemaOf(p.File); err != nil {
				return nil, err
			}
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// eachPart yields the rows of the parts that pass: as pages if the part has a
// Source, else as records. Rows.Piece is the index of the part.
func eachPart(ctx context.Context, s *keyscan.Scanner, pairs *tables.Pairs, parts []Part, left *pagecopy.Unfinished) iter.Seq2[outRows, error] {
	return func(yield func(outRows, error) bool) {
		for lo, hi := 0, 0; lo < len(parts); lo = hi {
			asPages := parts[lo].pages != nil
			var pieces []source.Piece
			var sources []*pagecopy.Source
			for hi = lo; hi < len(parts) && (parts[hi].pages != nil) == asPages; hi++ {
				if asPages {
					parts[hi].pages.Number = hi - lo
				}
				pieces, sources = append(pieces, parts[hi].Piece), append(sources, parts[hi].pages)
			}
			rows := each.Seq(arraycopy.First(arraycopy.ScanPart(ctx, s, pairs, pieces), left.Left), func(r arraycopy.Rows) outRows { return outRows{Rows: r} })
			if asPages {
				rows = pages(ctx, s, pairs, sources, left)
			}
			for r, err := range rows {
				r.Piece += lo
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// pages yields the rows that pass as pages. Rows.Piece is the index of the source.
func pages(ctx context.Context, s *keyscan.Scanner, pairs *tables.Pairs, sources []*pagecopy.Source, left *pagecopy.Unfinished) iter.Seq2[outRows, error] {
	return func(yield func(outRows, error) bool) {
		s.CountGroups(pagecopy.PiecesOf(sources))
		for g, err := range pagecopy.Copy(ctx, s, pairs, sources, left) {
			if err != nil {
				yield(outRows{}, err)
				return
			}
			if !yield(outRows{arraycopy.Rows{Piece: g.Source}, g}, nil) {
				return
			}
		}
	}
}
