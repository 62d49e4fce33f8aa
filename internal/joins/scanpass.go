package joins

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
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

// scanner returns the scan that selects the log rows of a round that have an ID, or
// in an anti join those that have none. If the answer is neither rows of the log nor
// their number, it makes pairs.
func (p *pass) scanner(r partitionRound) (*keyscan.Scanner, error) {
	m := p.keys.Match(p.held.filter, p.keys.LogText)
	m.NoMatch = p.opts.Type == Anti
	countsPairs := p.answer.Counts && !p.answer.RowsOfLog()
	makesRecords := !p.answer.RowsOfLog() && !p.answer.Counts && !p.answer.Pages
	opts := p.answer.ScanOptions(p.logs[0], makesRecords)
	opts.Match = []dataset.Match{m}
	opts.Check = func() func(*keyscan.Keys) ([]uint32, error) {
		return newChecker(r, p.tally, p.asking(r), countsPairs).check
	}
	if p.answer.Pages {
		opts.Entries, opts.KeepLog, opts.CountNulls = true, p.keepsLogIn(r), p.opts.Type.keepsLog()
	}
	if p.answer.Counts && p.filtered() {
		opts.CountNulls = p.opts.Type.keepsLog() // whose rows are counted by RowsWhere
	}
	if makesRecords {
		opts.Work = func() (keyscan.Work, error) {
			w := &matchedRows{pairer: newPairer(p.task, r.side, p.tally), encoder: logEncoder{task: p.task}}
			return w.work, nil
		}
	}
	return keyscan.New(opts)
}

// eachScan calls fn with the scan of each round, and counts what it did.
func (p *pass) eachScan(ctx context.Context, fn func(s *keyscan.Scanner, r partitionRound) error) error {
	for r, err := range p.held.each(ctx, p.pieces) {
		if err != nil {
			return err
		}
		s, err := p.scanner(r)
		if err != nil {
			return err
		}
		if err := fn(s, r); err != nil {
			return err
		}
		p.tally.scanned(s.Stats, r.again, p.answer.RowsOfLog() || p.answer.Pages)
	}
	return nil
}

// scan yields the rows of the answer that scans make: rows of the log, or pairs. got
// is called with each scan.
func (p *pass) scan(ctx context.Context, got func(*keyscan.Scanner)) iter.Seq2[arraycopy.Rows, error] {
	return func(yield func(arraycopy.Rows, error) bool) {
		err := p.eachScan(ctx, func(s *keyscan.Scanner, r partitionRound) error {
			got(s)
			for rows, err := range arraycopy.Scan(ctx, s, r.pieces) {
				if err != nil {
					return err
				}
				if rows.Piece, err = p.pieceOf(r.pieces[rows.Piece]); err != nil {
					return err
				}
				if !yield(rows, nil) {
					return errStop
				}
			}
			if !r.again {
				for _, piece := range r.pieces {
					p.tally.of(piece).keysNull.Add(s.Stats.KeysNullOf(piece))
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(arraycopy.Rows{}, err)
		}
	}
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

// logEncoder makes keys of records of log rows, file after file. One goroutine uses
// it.
type logEncoder struct {
	*task
	file  *source.File
	enc   *keys.Encoder
	batch keys.Batch
}

// keysOf returns the keys of a record, valid until the next call.
func (e *logEncoder) keysOf(f *source.File, rec arrow.Record) (*keys.Batch, error) {
	if e.file != f {
		var err error
		if e.enc, err = keys.NewEncoder(rec.Schema(), e.keys.Log, e.keys.Options()); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		e.file = f
	}
	return &e.batch, e.enc.EncodeKeys(f.Name(), rec, &e.batch)
}

// matchedRows makes pairs of the log rows that a scan has found to have an ID. One
// goroutine uses it.
type matchedRows struct {
	*pairer
	encoder               logEncoder
	all, members, entries []uint32
}

// work implements [keyscan.Work].
func (w *matchedRows) work(piece source.Piece, rec arrow.Record, emit func(arrow.Record) error) (err error) {
	k, err := w.encoder.keysOf(piece.File, rec)
	if err != nil {
		return err
	}
	w.begin(piece.File, rec, emit)
	w.all = table.UpTo(w.all, len(k.Rows))
	w.members, w.entries = w.side.Find(k, w.all, w.members, w.entries)
	if len(w.members) != k.Len {
		return fmt.Errorf("internal error: %d of %d rows that were found to have an ID have none", k.Len-len(w.members), k.Len)
	}
	for row, e := range w.entries {
		if err := w.pairer.pairs(row, e); err != nil {
			return err
		}
	}
	return w.flush()
}
