package roomtest

import (
	"context"
	"errors"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Map reads the pieces with several workers, passes each record batch through the
// worker's own Work, and yields what Work emits in input order: by piece, row
// group and batch. The rows depend on the input alone. The size of the batches
// also depends on [source.Opening].InFlight and the number of workers.
//
// threads is the number of workers; 0 means GOMAXPROCS. columns returns the
// top-level columns to read of a file, in order; nil, or a nil result, means all.
//
// Each worker holds a few batches. An error ends the sequence after everything
// before it was yielded. When the consumer stops or ctx ends, all goroutines have
// ended before Map returns.
func Map(ctx context.Context, pieces []source.Piece, threads int, columns func(*source.File) ([]int, error), newWork func() (Work, error)) iter.Seq2[arraycopy.Rows, error] {
	return func(yield func(arraycopy.Rows, error) bool) {
		if newWork == nil {
			yield(arraycopy.Rows{}, errors.New("newWork is nil: Map needs work to pass the records through"))
			return
		}
		ctx, release, err := source.MapPieces(ctx, pieces)
		if err != nil {
			yield(arraycopy.Rows{}, err)
			return
		}
		ended := true // the consumer has stopped, got an error or panicked
		defer func() {
			if err := release(); err != nil && !ended {
				yield(arraycopy.Rows{}, err)
			}
		}()
		way := tasks.NewFlight(tasks.InFlight(pieces)/tasks.ForRecords, tasks.Workers(pieces, threads), func() int64 { return tasks.Need(pieces, columns) })
		for r, err := range tasks.Map(ctx, tasks.Groups(pieces), way, func() (tasks.Work[arrow.Record], error) {
			work, err := newWork()
			return func(ctx context.Context, t tasks.Task, emit func(arrow.Record) error) error {
				return readGroup(ctx, pieces[t.Piece], t.Group, columns, way, work, func(int64) {}, emit)
			}, err
		}) {
			if !yield(arraycopy.Rows{Piece: r.Piece, Record: r.Value}, err) || err != nil {
				return
			}
		}
		ended = false
	}
}

// readGroup passes the records of a row group through work. over receives the number of
// stored rows that each step reads over.
func readGroup(ctx context.Context, p source.Piece, group int, columns func(*source.File) ([]int, error), way tasks.Flight, work Work, over func(rows int64), emit func(arrow.Record) error) error {
	var wanted []int
	var err error
	if columns != nil {
		if wanted, err = columns(p.File); err != nil {
			return err
		}
	}
	for rec, err := range rowfilter.ReadFrom(ctx, p.File, way.Table(p.File), group, wanted, func(_, rows int64) { over(rows) }) {
		if err != nil {
			return err
		}
		if err := work(p, rec, emit); err != nil {
			return source.InGroup(err, p.File, group)
		}
	}
	return nil
}

// Work transforms one record that was read. One goroutine calls it at a time. It
// passes any number of records to emit, which takes ownership of one reference to
// each. An error of emit means that the consumer has stopped; Work returns it. rec
// is released after the call.
type Work func(piece source.Piece, rec arrow.Record, emit func(arrow.Record) error) error

// Pass passes records on unchanged.
func Pass() (Work, error) {
	return func(_ source.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
		rec.Retain()
		return emit(rec)
	}, nil
}
