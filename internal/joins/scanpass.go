package joins

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// pass joins the log with the IDs held, and counts.
type pass struct {
	*task
	held  *joinTable
	model *plan.Model
	tally *tally
}

// probePolicy returns what decides for one worker whether to probe the filter in front of
// the IDs of a round. Nil: it is always probed, because it is the join.
func (p *pass) asking(r partitionRound) *plan.Filtering {
	if r.side == nil {
		return nil
	}
	return plan.NewFiltering(p.model, float64(r.side.Bytes()))
}

// scanner returns the scan that selects the log rows of a round with an ID or, in an anti join,
// without one. It makes pairs unless the answer is rows of the log, or their number.
func (p *pass) scanner(r partitionRound) (*keyscan.Scanner, error) {
	m := p.keys.Match(p.held.filter, p.keys.LogText)
	m.NoMatch = p.opts.Type == Anti
	countsPairs := p.answer.Counts && !p.answer.RowsOfLog()
	opts := p.answer.ScanOptions(p.logs[0])
	opts.Match, opts.Limit = []dataset.Match{m}, p.opts.Limit
	opts.Check = func() func(*keyscan.Keys) ([]uint32, error) {
		return newChecker(r, p.tally, p.asking(r), countsPairs).check
	}
	all := p.held.whole || r.marks != nil // else IDs of deleted rows alone, which the filter has, would pass for false positives
	opts.Settles = all && !m.NoMatch && !p.keepsLogIn(r)
	if p.makesPairs() {
		opts.Entries, opts.KeepLog, opts.CountNulls = true, p.keepsLogIn(r), p.opts.Type.keepsLog()
	}
	if p.answer.Counts && slices.ContainsFunc(p.logs, (*source.File).Partial) {
		opts.CountNulls = p.opts.Type.keepsLog() // whose rows are counted by RowsWhere
	}
	return keyscan.New(opts)
}

// eachScan calls fn with the scan of each round, and counts what it did.
func (p *pass) eachScan(ctx context.Context, fn func(s *keyscan.Scanner, r partitionRound) error) error {
	for r, err := range p.held.each(ctx, p.pieces) {
		if most := p.opts.Limit; err != nil || most > 0 && p.tally.rowsOut.Load() >= most {
			return err
		}
		if p.opts.Limit > 0 && r.portion != nil && p.makesPairs() { // each row would wait for all portions
			return faults.Errorf("%s: %w: {Limit} takes the IDs of all rows of a row group at once (raise {Memory})", fault.At{File: r.pieces[0].File.Name(), RowGroup: r.pieces[0].Lo + 1}, fault.ErrMemory)
		}
		s, err := p.scanner(r)
		if err != nil {
			return err
		}
		if err := fn(s, r); err != nil {
			return err
		}
		p.tally.scanned(s.Stats, r.again, p.answer.RowsOfLog() || !p.answer.Counts)
	}
	return nil
}

// sink takes the rows of the answer, in order, and brings them out: as pages or as arrays.
// [output.ScanWriter] is one, records the other.
type sink interface {
	// Scan takes the log rows of the pieces that pass the scanner, or pairs of such a row and
	// its IDs.
	Scan(ctx context.Context, s *keyscan.Scanner, pairs *tables.Pairs, pieces []source.Piece) error
	// WriteUnmatched takes IDs without a log row.
	WriteUnmatched(ctx context.Context, t *tables.Table, rows []uint32) error
}

// write brings out the answer.
func (p *pass) write(ctx context.Context, to sink) error {
	err := p.eachScan(ctx, func(s *keyscan.Scanner, r partitionRound) error {
		return to.Scan(ctx, s, p.pairs(r), r.pieces)
	})
	if err != nil || !p.opts.Type.keepsIDs() {
		return err
	}
	return p.writeRest(ctx, to)
}

// records yields the answer as Arrow records.
type records struct {
	*task
	yield func(arraycopy.Rows, error) bool
	begun func(*keyscan.Scanner) // called with each scan
	left  *int64                 // rows that may follow; nil: any number
}

// errStop ends an iteration whose consumer wants no more.
var errStop = errors.New("stop")

// Scan implements sink.
func (r *records) Scan(ctx context.Context, s *keyscan.Scanner, pairs *tables.Pairs, pieces []source.Piece) error {
	if err := s.Begin(); err != nil {
		return err
	}
	r.begun(s)
	for rows, err := range arraycopy.First(arraycopy.ScanPart(ctx, s, pairs, pieces), r.left) {
		if err != nil {
			return err
		}
		if rows.Piece, err = r.pieceOf(pieces[rows.Piece]); err != nil {
			return err
		}
		if !r.yield(rows, nil) {
			return errStop
		}
	}
	return nil
}

// WriteUnmatched implements sink.
func (r *records) WriteUnmatched(ctx context.Context, t *tables.Table, rows []uint32) error {
	return arraycopy.Unmatched(r.pairs(partitionRound{}), r.logs[0], r.opts.Mem, t, rows, func(rec arrow.Record) error {
		if !r.yield(arraycopy.Rows{Piece: len(r.pieces), Record: rec}, nil) {
			return errStop
		}
		return stopped.Err(ctx)
	})
}

// pieceOf returns which of the join's pieces a piece of a round is part of.
func (t *task) pieceOf(part source.Piece) (int, error) {
	i := slices.IndexFunc(t.pieces, func(p source.Piece) bool {
		return p.File == part.File && p.Lo <= part.Lo && part.Hi <= p.Hi
	})
	if i < 0 {
		return 0, fmt.Errorf("internal error: row groups %d to %d of %s are in no piece of the log", part.Lo+1, part.Hi, part.File.Name())
	}
	return i, nil
}
