package join

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/join/internal/plan"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/partition"
)

// everyRow yields the answer's rows for all log rows, with and without an ID.
func (p *pass) everyRow(ctx context.Context) iter.Seq2[partition.Rows, error] {
	return func(yield func(partition.Rows, error) bool) {
		for r, err := range p.held.each(ctx, p.pieces) {
			if err != nil {
				yield(partition.Rows{}, err)
				return
			}
			opts := partition.ReadOptions{
				Threads: p.opts.Threads,
				Columns: func(f *partition.File) ([]int, error) { return p.answer.layouts[f].read, nil },
			}
			newWork := func() (partition.Work, error) { return p.newEveryRow(r).work, nil }
			for rows, err := range partition.Map(ctx, r.Pieces, opts, newWork) {
				if err == nil {
					rows.Piece, err = partition.PieceOf(p.pieces, r.Pieces[rows.Piece])
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
	match   partition.Match
	portion *portion
	spread  *spread
	asking  *plan.Filtering
	asked   bool // the filter is probed for the batch at hand

	prober           *partition.Prober
	of               *partition.File // that prober is for
	members, entries []uint32        // candidates with an ID, and its entry
}

func (p *pass) newEveryRow(r round) *everyRow {
	return &everyRow{
		pairer: newPairer(p.task, r.side, p.tally), match: p.match(), portion: r.portion,
		spread: p.tally.newSpread(), asking: p.asking(r),
	}
}

// work implements [partition.Work].
func (w *everyRow) work(piece partition.Piece, rec arrow.Record, emit func(arrow.Record) error) (err error) {
	if w.of != piece.File {
		if w.prober, err = partition.NewProber(piece.File.Name, rec.Schema(), w.match); err != nil {
			return err
		}
		w.of = piece.File
	}
	probe := w.prober.Probe
	if w.asked = w.asking.Ask(); !w.asked {
		probe = w.prober.All
	}
	hits, err := probe(rec)
	if err != nil {
		return err
	}
	w.begin(piece.File, rec, emit)
	if err := w.rows(hits); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if w.portion.counts() {
		w.count(rec.NumRows(), int64(len(hits)))
	}
	return nil
}

// count counts a batch of rows rows, of which candidates passed the filter.
func (w *everyRow) count(rows, candidates int64) {
	w.tally.rowsIn.Add(rows)
	w.tally.keysNull.Add(int64(w.prober.Keys.Nulls()))
	w.tally.candidates.Add(candidates)
	if n := int64(len(w.prober.Keys.Rows)); w.asked {
		w.asking.Seen(n, candidates)
	} else {
		w.tally.unasked.Add(n)
	}
	if w.opts.Progress != nil {
		w.opts.Progress(rows)
	}
}

// rows adds the answer's rows for each row of the log batch, in order. hits are the
// positions in the batch of keys that passed the filter.
func (w *everyRow) rows(hits []uint32) error {
	k := &w.prober.Keys
	w.members, w.entries = w.side.Find(k, hits, w.members, w.entries)
	matched := int64(0)
	defer func() { w.tally.matched.Add(matched) }()
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
