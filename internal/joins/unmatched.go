package joins

import (
	"context"
	"errors"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/answer"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// errStop ends an iteration whose consumer wants no more.
var errStop = errors.New("stop")

// unmatched yields the IDs whose key no log row has, and those with a NULL key, in
// the ID set's order, as rows of the answer.
func (p *pass) unmatched(ctx context.Context) iter.Seq2[arraycopy.Rows, error] {
	return func(yield func(arraycopy.Rows, error) bool) {
		l := p.answer.Layouts[p.logs[0]]
		one := func(rec arrow.Record, rows []int) error {
			out, err := p.withoutLog(ctx, l, rec, rows)
			if err != nil {
				return err
			}
			p.tally.rowsOut.Add(int64(len(rows)))
			if !yield(arraycopy.Rows{Piece: len(p.pieces), Record: out}, nil) {
				return errStop
			}
			return nil
		}
		if err := p.unmatchedRecords(ctx, one); err != nil && !errors.Is(err, errStop) {
			yield(arraycopy.Rows{}, err)
		}
	}
}

// unmatchedRecords calls fn with the IDs that no log row has: rows of a record with
// the columns that are held.
func (p *pass) unmatchedRecords(ctx context.Context, fn func(rec arrow.Record, rows []int) error) error {
	if p.held.whole {
		return p.held.side.Rows().(*table.Records).Unmatched(p.held.side.MatchedRows(), fn)
	}
	form, err := p.recordForm()
	if err != nil {
		return err
	}
	return p.eachUnmatched(ctx, func(b table.Batch, rows []uint32) error {
		rec := form.HeldOf(b)
		defer rec.Release()
		at := make([]int, len(rows))
		for i, row := range rows {
			at[i] = int(row)
		}
		return fn(rec, at)
	})
}

// eachUnmatched reads the IDs again, which are not all held, and calls fn with those
// that no log row has: rows of a batch.
func (p *pass) eachUnmatched(ctx context.Context, fn func(b table.Batch, rows []uint32) error) error {
	if p.held.rounds != nil {
		return p.held.rounds.eachUnmatched(ctx, fn)
	}
	side := p.held.side
	var all, members, entries, rows []uint32
	_, _, err := p.eachIDRow(ctx, nil, func(_ *source.File, b table.Batch, k *keys.Batch) error {
		all = table.UpTo(all, len(k.Rows))
		members, entries = side.Find(k, all, members, entries)
		rows = rows[:0]
		at, member := 0, 0
		for row := range k.Len {
			unmatched := true
			if at < len(k.Rows) && int(k.Rows[at]) == row {
				if member < len(members) && int(members[member]) == at {
					unmatched = !side.Marked(entries[member])
					member++
				}
				at++
			}
			if unmatched {
				rows = append(rows, uint32(row))
			}
		}
		return unlessNone(b, rows, fn)
	})
	return err
}

// unlessNone calls fn with rows of a batch if there are any.
func unlessNone(b table.Batch, rows []uint32, fn func(table.Batch, []uint32) error) error {
	if len(rows) == 0 {
		return nil
	}
	return fn(b, rows)
}

// withoutLog makes rows of the answer from IDs without a log row.
func (p *pass) withoutLog(ctx context.Context, l *answer.Layout, rec arrow.Record, rows []int) (arrow.Record, error) {
	cols := answer.Builder{Mem: p.opts.Mem}
	defer cols.Release()
	for i, c := range l.Columns {
		f := l.Schema.Field(i)
		switch {
		case c.Held < 0:
			cols.Null(f.Type, len(rows))
		case c.Log < 0:
			cols.Take(rec.Column(c.Held), rows)
		default: // a shared key
			key, err := take.Array(p.opts.Mem, rec.Column(c.Held), rows)
			if err != nil {
				return nil, err
			}
			cols.Add(answer.CastKey(ctx, p.opts.Mem, key, f))
			key.Release()
		}
	}
	return cols.Record(l.Schema, len(rows))
}
