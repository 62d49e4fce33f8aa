// Package arraycopy makes Arrow records of rows that pass, with their partners if there are any.
//
//	Pieces ── unit: a range of Parquet, or a record ── Selection ──┬─ read ──────────┬─► Rows, in input order
//	          found by a keyscan.Scanner                           └─ Table, arrays ─┘
//
// In come pieces, a [keyscan.Scanner] and perhaps [tables.Pairs]; out come records with the piece
// that they are of. The receiver releases each. The order is that of the input, whatever the
// number of workers; the sizes of batches depend on memory.
//
// Package output, joins and the door may use it.
package arraycopy

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Rows is a record batch with its origin. The receiver releases the record.
type Rows struct {
	Piece  int // position among the pieces that were read
	Record arrow.Record
	Kept   int64 // kept rows of the log that no earlier batch has counted
}

// made is what a worker makes.
type made struct {
	arrow.Record
	kept int64
}

// Scan yields the rows of the pieces that pass, in input order, as Arrow
// records. The sequence can be used once.
func Scan(ctx context.Context, s *keyscan.Scanner, pieces []source.Piece) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		if err := s.Begin(); err != nil {
			yield(Rows{}, err)
			return
		}
		for r, err := range First(ScanPart(ctx, s, nil, pieces), s.Options.Left()) {
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// First yields rows until none may follow; left is how many may, nil: any number. It counts them down.
func First(rows iter.Seq2[Rows, error], left *int64) iter.Seq2[Rows, error] {
	if left == nil {
		return rows
	}
	return func(yield func(Rows, error) bool) {
		if *left == 0 {
			return
		}
		for r, err := range rows {
			if n := *left; err == nil && r.Record.NumRows() > n {
				all := r.Record
				r.Record = all.NewSlice(0, n)
				all.Release()
			}
			if err == nil {
				*left -= r.Record.NumRows()
			}
			if !yield(r, err) || err != nil || *left == 0 {
				return
			}
		}
	}
}

// ScanPart is [Scan] for a part of a scan that has begun. With pairs, whose columns were made
// for arrays, each row stands beside its partners.
func ScanPart(ctx context.Context, s *keyscan.Scanner, pairs *tables.Pairs, pieces []source.Piece) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		ended := true // the consumer has stopped, got an error or panicked
		if s.Options.Schema == dataset.UnionByName {
			yield(Rows{}, faults.Unsupported(fault.At{}, "a union of schemas, or fields of structs, in Arrow records").WithHint("write Parquet"))
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
		way := tasks.NewFlight(tasks.InFlight(pieces)/tasks.ForRecords, tasks.Workers(pieces, s.Options.Threads), func() int64 { return tasks.Need(pieces, s.Options.ColumnsOf) + keyscan.RowsNeed(pieces) })
		newWork := func() (tasks.Work[made], error) {
			w := newWorker(s, pairs, way, tasks.InFlight(pieces))
			return func(ctx context.Context, t tasks.Task, emit func(made) error) error {
				return w.group(ctx, pieces[t.Piece].File, t.Group, emit)
			}, nil
		}
		for r, err := range tasks.Map(ctx, tasks.Groups(pieces), way, newWork) {
			if !yield(Rows{Piece: r.Piece, Record: r.Value.Record, Kept: r.Value.kept}, err) || err != nil {
				return
			}
		}
		ended = false
	}
}
