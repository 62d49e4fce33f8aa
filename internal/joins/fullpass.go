package joins

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// allRows yields the answer's rows for all log rows, with and without an ID.
func (p *pass) allRows(ctx context.Context) iter.Seq2[arraycopy.Rows, error] {
	return func(yield func(arraycopy.Rows, error) bool) {
		for r, err := range p.held.each(ctx, p.pieces) {
			if err != nil {
				yield(arraycopy.Rows{}, err)
				return
			}
			columns := func(f *source.File) ([]int, error) { return p.answer.Layouts[f].Read, nil }
			newWork := func() (keyscan.Work, error) { return p.newEveryRow(r).work, nil }
			for rows, err := range arraycopy.Map(ctx, r.pieces, p.opts.Threads, columns, newWork) {
				if err == nil {
					rows.Piece, err = p.pieceOf(r.pieces[rows.Piece])
				}
				if !yield(rows, err) || err != nil {
					return
				}
			}
		}
	}
}

// everyRow joins all rows of log batches of a round. One goroutine uses it.
type everyRow struct {
	*pairer
	filter  *filters.Filter
	portion *portion
	spread  *secondMoment
	asking  *plan.Filtering
	asked   bool // the filter is probed for the batch at hand

	piece            source.Piece // at hand
	counts           *inputCounts // of it
	encoder          logEncoder
	all, hits        []uint32
	members, entries []uint32 // candidates with an ID, and its entry
}

func (p *pass) newEveryRow(r partitionRound) *everyRow {
	return &everyRow{
		pairer: newPairer(p.task, r.side, p.tally), filter: p.held.filter, portion: r.portion,
		spread: p.tally.newSpread(), asking: p.asking(r), encoder: logEncoder{task: p.task},
	}
}

// work implements [keyscan.Work].
func (w *everyRow) work(piece source.Piece, rec arrow.Record, emit func(arrow.Record) error) (err error) {
	k, err := w.encoder.keysOf(piece.File, rec)
	if err != nil {
		return err
	}
	if w.counts == nil || w.piece != piece {
		w.piece, w.counts = piece, w.tally.of(piece)
	}
	w.all = table.UpTo(w.all, len(k.Rows))
	hits := w.all
	if w.asked = w.asking.Ask(); w.asked {
		if w.hits, err = w.filter.ProbeBatch(k, w.hits[:0]); err != nil {
			return fmt.Errorf("%s: %w", piece.File.Name(), err)
		}
		hits = w.hits
	}
	w.begin(piece.File, rec, emit)
	if err := w.rows(k, hits); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if w.portion.counts() {
		w.count(k, int64(len(hits)))
	}
	return nil
}

// count counts the rows of a batch, of which candidates passed the filter.
func (w *everyRow) count(k *keys.Batch, candidates int64) {
	w.tally.rowsIn.Add(int64(k.Len))
	w.tally.rowsWhere.Add(int64(k.Len))
	w.tally.keysNull.Add(int64(k.Nulls()))
	w.counts.rows.Add(int64(k.Len))
	w.counts.keysNull.Add(int64(k.Nulls()))
	w.tally.candidates.Add(candidates)
	if n := int64(len(k.Rows)); w.asked {
		w.asking.Seen(n, candidates)
	} else {
		w.tally.unasked.Add(n)
	}
	if w.opts.Progress != nil {
		w.opts.Progress(int64(k.Len))
	}
}

// rows adds the answer's rows for each row of the log batch, in order. hits are the
// positions in the batch of keys that passed the filter.
func (w *everyRow) rows(k *keys.Batch, hits []uint32) error {
	w.members, w.entries = w.side.Find(k, hits, w.members, w.entries)
	matched := int64(0)
	defer func() {
		w.tally.matched.Add(matched)
		w.counts.matched.Add(matched)
	}()
	at, hit, member := 0, 0, 0 // next row with a key, next candidate, next member
	for row := range k.Len {
		e, keyed, candidate := table.None, false, false
		if at < len(k.Rows) && int(k.Rows[at]) == row {
			keyed = true
			if hit < len(hits) && int(hits[hit]) == at {
				hit++
				candidate = true
			}
			if member < len(w.members) && int(w.members[member]) == at {
				e = w.entries[member]
				member++
			}
			at++
		}
		if e != table.None {
			if err := w.pairs(row, e); err != nil {
				return err
			}
			w.side.Mark(e)
			if w.portion.join(row) {
				matched++
			}
			continue
		}
		if !w.portion.unmatched(row) {
			continue
		}
		if candidate && w.asked {
			w.tally.falsePositives.Add(1)
		}
		if keyed && w.asked {
			w.spread.add(k.HashAt(table.Hash, at-1), 1)
		}
		if err := w.add(row, -1); err != nil {
			return err
		}
	}
	w.portion.pass(k.Len)
	return nil
}
