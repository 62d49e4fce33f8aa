package keyscan

import (
	"context"
	"errors"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Skippable counts what a scan with the match's filter would skip by statistics and page
// indexes alone, of the key and of the files' conditions. RowsOut are the rows that are left,
// Pages the key column's pages, where there is a page index. It reads no page. If there are more
// than most row groups, it samples most of them, evenly spread, and fewer over a network, where
// each may take a request.
func Skippable(ctx context.Context, pieces []source.Piece, m dataset.Match, most int) (_ *Stats, err error) {
	ctx, release, err := source.OpenPieces(ctx, pieces)
	if err != nil {
		return nil, err
	}
	defer faults.Join(&err, release)
	s := new(Stats)
	var groups []source.Piece
	for _, p := range pieces {
		for g := p.Lo; g < p.Hi; g++ {
			if p.File.Parquet() != nil {
				groups = append(groups, source.Piece{File: p.File, Lo: g, Hi: g + 1})
			}
		}
	}
	if slices.ContainsFunc(groups, func(p source.Piece) bool { return p.File.Remote() }) {
		most = min(most, remoteSkippable)
	}
	n := min(len(groups), most)
	var file *source.File
	var by *prune.Pruner
	var where *rowfilter.Filter
	for i := range n {
		p := groups[source.Nth(i, n, int64(len(groups)))]
		if p.File != file {
			var err error
			if by, err = (Predicate{Match: m}).pruner(p.File); err != nil {
				return nil, err
			}
			file, where = p.File, nil
			if file.Partial() {
				where = rowfilter.New(file, nil)
			}
		}
		if err := s.look(ctx, by, where, p); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// remoteSkippable is the number of row groups over a network that Skippable looks at.
const remoteSkippable = 16

// look counts one row group. After an error the counts are incomplete.
func (s *Stats) look(ctx context.Context, by *prune.Pruner, where *rowfilter.Filter, p source.Piece) (err error) {
	defer func() { err = errors.Join(p.File.Unless(err), p.File.Rest()) }()
	n := p.File.GroupRows(p.Lo)
	s.RowGroups.Add(1)
	s.RowsIn.Add(p.File.LiveRows(p.Lo))
	if by == nil && where == nil || n == 0 {
		s.RowsOut.Add(n)
		return nil
	}
	ranges := rows.Range(0, n)
	if where != nil { // the key's index is not needed where no row satisfies the condition
		if err := where.Look(ctx, p.Lo); err != nil {
			return err
		}
		if len(where.Possible) == 0 {
			s.RowGroupsSkipped.Add(1)
			return nil
		}
	}
	if by != nil {
		if ranges, _, err = by.Rows(ctx, p.Lo); err != nil {
			return err
		}
	}
	if where != nil {
		spans, err := where.Candidates(ctx, tasks.Range{Group: p.Lo, Hi: n}, ranges)
		if err != nil {
			return err
		}
		ranges = spans
	}
	left := int64(0)
	for _, r := range ranges {
		left += r[1] - r[0]
	}
	s.RowsOut.Add(left)
	if left == 0 {
		s.RowGroupsSkipped.Add(1)
	}
	if by == nil {
		return nil
	}
	leaf, ok := by.Leaf()
	if !ok {
		return nil
	}
	x, ok, err := p.File.Parquet().File().OffsetIndex(p.Lo, leaf)
	if err != nil || !ok {
		return err
	}
	s.Pages.Add(int64(len(x.Pages)))
	for i, page := range x.Pages {
		if len(ranges.And(rows.Range(page.FirstRow, x.End(i)))) == 0 {
			s.PagesSkipped.Add(1)
		}
	}
	return nil
}
