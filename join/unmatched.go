package join

import (
	"context"
	"errors"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// errStop ends an iteration whose consumer wants no more.
var errStop = errors.New("stop")

// unmatched yields the IDs whose key no log row has, and those with a NULL key, in
// the ID set's order, as rows of the answer.
func (p *pass) unmatched(ctx context.Context) iter.Seq2[partition.Rows, error] {
	return func(yield func(partition.Rows, error) bool) {
		l := p.answer.layouts[p.logs[0]]
		one := func(rec arrow.Record, rows []int) error {
			out, err := p.withoutLog(ctx, l, rec, rows)
			if err != nil {
				return err
			}
			p.tally.rowsOut.Add(int64(len(rows)))
			if !yield(partition.Rows{Piece: len(p.pieces), Record: out}, nil) {
				return errStop
			}
			return nil
		}
		if err := p.eachUnmatched(ctx, one); err != nil && !errors.Is(err, errStop) {
			yield(partition.Rows{}, err)
		}
	}
}

// eachUnmatched calls fn with the IDs that no log row has: rows of a record with the
// columns that are held.
func (p *pass) eachUnmatched(ctx context.Context, fn func(rec arrow.Record, rows []int) error) error {
	side := p.held.side
	switch {
	case p.held.rounds != nil:
		return p.held.rounds.eachUnmatched(ctx, fn)
	case p.held.whole:
		return side.Unmatched(fn)
	}
	var all, members, entries []uint32
	return p.eachIDRow(ctx, func(_ *partition.File, rec arrow.Record, batch *key.Batch) error {
		all = table.UpTo(all, len(batch.Rows))
		members, entries = side.Find(batch, all, members, entries)
		var rows []int
		at, member := 0, 0
		for row := range batch.Len {
			unmatched := true
			if at < len(batch.Rows) && int(batch.Rows[at]) == row {
				if member < len(members) && int(members[member]) == at {
					unmatched = !side.Marked(entries[member])
					member++
				}
				at++
			}
			if unmatched {
				rows = append(rows, row)
			}
		}
		return p.asHeld(rec, rows, fn)
	})
}

// asHeld calls fn with rows of a record that eachIDRow passed, if there are any, in
// a record of the columns that are held.
func (t *task) asHeld(rec arrow.Record, rows []int, fn func(rec arrow.Record, rows []int) error) error {
	if len(rows) == 0 {
		return nil
	}
	held := table.Project(rec, t.answer.ids.held)
	defer held.Release()
	return fn(held, rows)
}

// withoutLog makes rows of the answer from IDs without a log row.
func (p *pass) withoutLog(ctx context.Context, l *layout, rec arrow.Record, rows []int) (arrow.Record, error) {
	cols := columns{mem: p.opts.Mem}
	defer cols.release()
	for i, c := range l.columns {
		f := l.schema.Field(i)
		switch {
		case c.held < 0:
			cols.null(f.Type, len(rows))
		case c.log < 0:
			cols.take(rec.Column(c.held), rows)
		default: // a shared key
			key, err := take.Array(p.opts.Mem, rec.Column(c.held), rows)
			if err != nil {
				return nil, err
			}
			cols.add(castKey(ctx, p.opts.Mem, key, f))
			key.Release()
		}
	}
	return cols.record(l.schema, len(rows))
}
