// Package arraycopy makes Arrow records of rows: of all, or of those that pass.
//
//	Pieces ─┬─ Scan(Scanner) ── keys first, then the rows that pass ─┬─► Rows, in input order
//	        └─ Map(Work) ────── all rows ───────────────────────────┘
//
// In come pieces and a [keyscan.Scanner] or a [keyscan.Work]; out come records with the piece
// that they are of. The receiver releases each. The order is that of the input, whatever the
// number of workers; the sizes of batches depend on memory.
//
// Package output, tables of IDs, joins and the door may use it.
package arraycopy

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Scan yields the rows of the pieces that pass, in input order, as Arrow
// records. The sequence can be used once.
func Scan(ctx context.Context, s *keyscan.Scanner, pieces []source.Piece) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		if err := s.Begin(); err != nil {
			yield(Rows{}, err)
			return
		}
		for r, err := range ScanPart(ctx, s, pieces) {
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// ScanPart is [Scan] for a part of a scan that has begun.
func ScanPart(ctx context.Context, s *keyscan.Scanner, pieces []source.Piece) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		ended := true // the consumer has stopped, got an error or panicked
		if s.Options.Schema == dataset.UnionByName {
			yield(Rows{}, faults.Unsupported(fault.At{}, "the union of schemas in Arrow records").WithHint("write Parquet"))
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
		way := tasks.NewFlight(tasks.InFlight(pieces)/tasks.ForRecords, tasks.Workers(pieces, s.Options.Threads), func() int64 { return tasks.Need(pieces, s.Options.ColumnsOf) + RowsNeed(pieces) })
		for r, err := range tasks.Map(ctx, tasks.Groups(pieces), way, func() (tasks.Work[arrow.Record], error) { return newScanWorker(s, pieces, way) }) {
			if !yield(Rows{Piece: r.Piece, Record: r.Value}, err) || err != nil {
				return
			}
		}
		ended = false
	}
}

// RowsNeed returns the maximum number of bytes needed to find the rows that pass:
// for their numbers, and those of the rows to examine.
func RowsNeed(pieces []source.Piece) (most int64) {
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
	w := &Worker{Scanner: s, Way: way, Checks: s.Checks(), Buf: new(parquet.Buffers)}
	var err error
	if s.Options.Work != nil {
		w.further, err = s.Options.Work()
	}
	return func(ctx context.Context, t tasks.Task, emit func(arrow.Record) error) error {
		return w.group(ctx, pieces[t.Piece], t.Group, emit)
	}, err
}
