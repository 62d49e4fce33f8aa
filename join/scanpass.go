package join

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/join/internal/plan"
	"github.com/bloomjoin/bloomjoin/partition"
)

// pass joins the log with the IDs held, and counts. Release it after use.
type pass struct {
	*task
	held  *held
	model *plan.Model
	tally *tally
}

// asking returns what decides for one worker whether to probe the filter in front of
// the IDs of a round. Nil: it is always probed, because it is the join.
func (p *pass) asking(r round) *plan.Filtering {
	if r.side == nil {
		return nil
	}
	return plan.NewFiltering(p.model, float64(r.side.Bytes()))
}

// match returns the filter, as a scan applies it to the log.
func (p *pass) match() partition.Match { return p.keys.match(p.held.filter, p.keys.logText) }

// scanner returns the scan that selects the log rows with an ID, or in an anti join
// those without one. If rows of the log or their number are the answer, end is called
// when all input has been read; otherwise the scan makes pairs.
func (p *pass) scanner(end func(*partition.ScanStats) error) (*partition.Scanner, error) {
	var s *partition.Scanner
	var now round // the one that is scanned
	matchOf := func(r round) partition.Match {
		m := p.match()
		m.NoMatch = p.opts.Type == Anti
		pairs := p.answer.counts && !p.answer.rowsOfLog()
		m.Verifier = func() partition.Verifier { return newChecker(r, p.tally, p.asking(r), pairs) }
		return m
	}
	makesPairs := !p.answer.rowsOfLog() && !p.answer.counts
	opts := p.answer.scanOptions(p.logs[0], makesPairs)
	if makesPairs {
		opts.Work = func() (partition.Work, error) {
			w := &matchedRows{pairer: newPairer(p.task, now.side, p.tally)}
			return w.work, nil
		}
	} else {
		opts.End = func() error { return end(s.Stats) }
	}
	if p.held.rounds == nil {
		now = p.held.all(p.pieces)
		opts.Match = []partition.Match{matchOf(now)}
	} else {
		opts.Match = []partition.Match{matchOf(round{})}
		opts.Stages = func(ctx context.Context, _ []partition.Piece) iter.Seq2[partition.Stage, error] {
			return func(yield func(partition.Stage, error) bool) {
				for r, err := range p.held.each(ctx, p.pieces) {
					if err == nil {
						now = r
						r.Match = []partition.Match{matchOf(r)}
					}
					if !yield(r.Stage, err) || err != nil {
						return
					}
				}
			}
		}
	}
	var err error
	s, err = partition.NewScanner(opts)
	return s, err
}

// matchedRows makes pairs of the log rows that a scan has found to have an ID. One
// goroutine uses it.
type matchedRows struct {
	*pairer
	prober           *partition.Prober
	of               *partition.File // that prober is for
	members, entries []uint32
}

// work implements [partition.Work].
func (w *matchedRows) work(piece partition.Piece, rec arrow.Record, emit func(arrow.Record) error) (err error) {
	if w.of != piece.File {
		m := w.keys.match(w.idPlan.Spec.Header(), w.keys.logText)
		if w.prober, err = partition.NewProber(piece.File.Name, rec.Schema(), m); err != nil {
			return err
		}
		w.of = piece.File
	}
	hits, err := w.prober.Probe(rec)
	if err != nil {
		return err
	}
	w.begin(piece.File, rec, emit)
	k := &w.prober.Keys
	w.members, w.entries = w.side.Find(k, hits, w.members, w.entries)
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
