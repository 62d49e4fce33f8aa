package partition

import (
	"context"
	"errors"

	"github.com/bloomjoin/bloomjoin/internal/prune"
)

// Skips counts what a scan need not read of a log, according to the bounds in its
// files.
type Skips struct {
	Groups, GroupsSkipped int64
	Pages, PagesSkipped   int64 // of the key column, where there is a page index
	Rows, RowsSkipped     int64
}

// Skippable counts what cannot hold a member of the match's filter, by statistics
// and page indexes, as a scan would. It reads no page. Of more than most row groups
// it samples most of them, evenly spread.
func Skippable(ctx context.Context, pieces []Piece, m Match, most int) (s Skips, err error) {
	var groups []Piece
	for _, p := range pieces {
		for g := p.Lo; g < p.Hi; g++ {
			if p.File.parquet() != nil {
				groups = append(groups, Piece{p.File, g, g + 1})
			}
		}
	}
	n := min(len(groups), most)
	var file *File
	var by *prune.Pruner
	for i := range n {
		p := groups[nth(i, n, int64(len(groups)))]
		if p.File != file {
			if by, err = m.pruner(p.File); err != nil {
				return s, err
			}
			file = p.File
		}
		if err := s.look(ctx, by, p); err != nil {
			return s, err
		}
	}
	return s, nil
}

// look counts one row group.
func (s *Skips) look(ctx context.Context, by *prune.Pruner, p Piece) (err error) {
	defer func() { err = errors.Join(p.File.unless(err), p.File.rest()) }()
	rows := p.File.GroupRows(p.Lo)
	s.Groups++
	s.Rows += rows
	if by == nil || rows == 0 {
		return nil
	}
	ranges, _, err := by.Rows(ctx, p.Lo)
	if err != nil {
		return err
	}
	left := int64(0)
	for _, r := range ranges {
		left += r[1] - r[0]
	}
	s.RowsSkipped += rows - left
	if left == 0 {
		s.GroupsSkipped++
	}
	leaf, ok := by.Leaf()
	if !ok {
		return nil
	}
	x, ok, err := p.File.parquet().File().OffsetIndex(p.Lo, leaf)
	if err != nil || !ok {
		return err
	}
	s.Pages += int64(len(x.Pages))
	for i, page := range x.Pages {
		if len(prune.Intersect(ranges, [][2]int64{{page.FirstRow, x.End(i)}})) == 0 {
			s.PagesSkipped++
		}
	}
	return nil
}
