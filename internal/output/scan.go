package output

import (
	"context"
	"errors"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Scan yields the rows of the pieces that pass, in input order, as Arrow
// records. The sequence can be used once.
func ScanRecords(ctx context.Context, s *keyscan.Scanner, pieces []source.Piece) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		if err := s.Begin(); err != nil {
			yield(Rows{}, err)
			return
		}
		for r, err := range scanRecords(ctx, s, pieces) {
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// scan is Scan for a part of the scan.
func scanRecords(ctx context.Context, s *keyscan.Scanner, pieces []source.Piece) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		ended := true // the consumer has stopped, got an error or panicked
		if s.Options.Schema == dataset.Union {
			yield(Rows{}, fault.Unsupported(fault.At{}, "the union of schemas in Arrow records").WithHint("write Parquet"))
			return
		}
		ctx, release, err := source.MapPieces(ctx, pieces)
		if err != nil {
			yield(Rows{}, err)
			return
		}
		s.CountGroups(pieces)
		defer func() {
			if err := release(); err != nil && !ended {
				yield(Rows{}, err)
			}
		}()
		way := tasks.NewFlight(tasks.InFlight(pieces)/tasks.ForRecords, tasks.Workers(pieces, s.Options.Threads), func() int64 { return tasks.Need(pieces, s.Options.ColumnsOf) + rowsNeed(pieces) })
		for r, err := range tasks.Map(ctx, tasks.Groups(pieces), way, func() (tasks.Work[arrow.Record], error) { return newScanWorker(s, pieces, way) }) {
			if !yield(Rows{Piece: r.Piece, Record: r.Value}, err) || err != nil {
				return
			}
		}
		ended = false
	}
}

// Count counts the rows of the pieces that pass, in Stats.
func Count(ctx context.Context, s *keyscan.Scanner, pieces []source.Piece) (err error) {
	if err := s.Begin(); err != nil {
		return err
	}
	ctx, release, err := source.OpenPieces(ctx, pieces)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	s.CountOnly()
	parts, err := partsOf(s, pieces, false)
	if err != nil {
		return err
	}
	for i := range parts {
		if p := &parts[i]; p.Piece.File.Parquet() != nil {
			p.pages = &pageSource{piece: p.Piece}
		}
	}
	for r, err := range eachPart(ctx, s, nil, parts, new(unfinishedGroup)) {
		if err != nil {
			return err
		}
		r.release()
	}
	return nil
}

// parts returns one part of an output for each piece. If own is set, each has the
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
// pageSource, else as records. Rows.Piece is the index of the part.
func eachPart(ctx context.Context, s *keyscan.Scanner, pairs *Pairs, parts []Part, left *unfinishedGroup) iter.Seq2[outRows, error] {
	return func(yield func(outRows, error) bool) {
		for lo, hi := 0, 0; lo < len(parts); lo = hi {
			asPages := parts[lo].pages != nil
			var pieces []source.Piece
			var sources []*pageSource
			for hi = lo; hi < len(parts) && (parts[hi].pages != nil) == asPages; hi++ {
				if asPages {
					parts[hi].pages.number = hi - lo
				}
				pieces, sources = append(pieces, parts[hi].Piece), append(sources, parts[hi].pages)
			}
			rows := asOut(scanRecords(ctx, s, pieces))
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

// Pages yields the rows that pass as pages. Rows.Piece is the index of the source.
func pages(ctx context.Context, s *keyscan.Scanner, pairs *Pairs, sources []*pageSource, left *unfinishedGroup) iter.Seq2[outRows, error] {
	return func(yield func(outRows, error) bool) {
		s.CountGroups(piecesOfSources(sources))
		for g, err := range copyPages(ctx, s, pairs, sources, left) {
			if err != nil {
				yield(outRows{}, err)
				return
			}
			if !yield(outRows{Rows{Piece: g.source}, g}, nil) {
				return
			}
		}
	}
}

// rowsNeed returns the maximum number of bytes needed to find the rows that pass:
// for their numbers, and those of the rows to examine.
func rowsNeed(pieces []source.Piece) (most int64) {
	for _, p := range pieces {
		if f := p.File.Parquet(); f != nil {
			for g := p.Lo; g < p.Hi; g++ {
				most = max(most, f.GroupRows(g))
			}
		}
	}
	return 3 * 4 * min(most, tasks.RangeRows)
}

func newScanWorker(s *keyscan.Scanner, pieces []source.Piece, way tasks.Flight) (tasks.Work[arrow.Record], error) {
	w := &scanWorker{scanner: s, way: way, checks: s.Checks(), buf: new(parquet.Buffers)}
	var err error
	if s.Options.Work != nil {
		w.further, err = s.Options.Work()
	}
	return func(ctx context.Context, t tasks.Task, emit func(arrow.Record) error) error {
		return w.group(ctx, pieces[t.Piece], t.Group, emit)
	}, err
}
