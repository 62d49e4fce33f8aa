package joins

import (
	"context"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// writeRest writes the IDs without a log row, including IDs with a NULL key, in the ID set's
// order.
func (p *pass) writeRest(ctx context.Context, to sink) error {
	if p.held.whole {
		held := p.held.side.Rows()
		return eachMissing(p.held.side.MatchedRows(), p.held.side.NumRows(), func(rows []uint32) error {
			p.tally.rowsOut.Add(int64(len(rows)))
			return to.WriteUnmatched(ctx, held, rows)
		})
	}
	rest := p.newRest(func(t *tables.Table) error {
		p.tally.rowsOut.Add(int64(t.Len()))
		return to.WriteUnmatched(ctx, t, table.UpTo(nil, t.Len()))
	})
	defer rest.share.GiveAll()
	if err := p.eachUnmatched(ctx, rest.add); err != nil {
		return err
	}
	return rest.flush()
}

// eachUnmatched reads the IDs again, which are not all held, and calls fn with those
// that no log row has: rows of a batch.
func (p *pass) eachUnmatched(ctx context.Context, fn func(b *tables.Batch, rows []uint32) error) error {
	has := p.sideMatches()
	if p.held.rounds != nil {
		has = p.held.rounds.matches()
	}
	var unmatched []uint32
	_, _, err := p.eachIDRow(ctx, nil, func(b *tables.Batch) (err error) {
		if unmatched, err = has(b.Keys, unmatched[:0]); err != nil || len(unmatched) == 0 {
			return err
		}
		return fn(b, unmatched)
	})
	return err
}

// sideMatches returns a function that appends the rows of a batch of IDs whose key is not
// marked in the table.
func (p *pass) sideMatches() func(k *keys.Batch, dst []uint32) ([]uint32, error) {
	side := p.held.side
	var all, members, entries []uint32
	return func(k *keys.Batch, dst []uint32) ([]uint32, error) {
		all = table.UpTo(all, len(k.Rows))
		members, entries = side.Find(k, all, members, entries)
		at, member := 0, 0
		for row := range k.Len {
			matched := false
			if at < len(k.Rows) && int(k.Rows[at]) == row {
				if member < len(members) && int(members[member]) == at {
					matched = side.Marked(entries[member])
					member++
				}
				at++
			}
			if !matched {
				dst = append(dst, uint32(row))
			}
		}
		return dst, nil
	}
}

// restRows bounds the row numbers that are listed at once.
const restRows = 1 << 16

// eachMissing calls fn with the numbers below n that are not in a set of bits,
// ascending, some at a time.
func eachMissing(set []uint64, n int, fn func(rows []uint32) error) error {
	rows := make([]uint32, 0, min(n, restRows))
	for i := range n {
		if set[i/64]>>(i%64)&1 == 0 {
			rows = append(rows, uint32(i))
		}
		if len(rows) == restRows || i == n-1 && len(rows) > 0 {
			if err := fn(rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
	}
	return nil
}

// rest holds ID rows without a log row that were read, until there are enough to
// write. One goroutine uses it.
type rest struct {
	columns *tables.Columns
	share   *budget.Share
	most    int64 // bytes to hold
	write   func(*tables.Table) error
	table   *tables.Table
}

func (p *pass) newRest(write func(*tables.Table) error) *rest {
	of := p.held.account
	r := &rest{columns: p.answer.IDs.Held, share: of.Share("IDs without a log row"), most: 4 << 20, write: write}
	if of.Limit() > 0 {
		r.most = min(r.most, (of.Limit()-of.InUse())/4)
	}
	r.table = r.columns.NewTable(r.share.Take)
	return r
}

// add adds rows of a batch, a part at a time if they exceed the bound.
func (r *rest) add(b *tables.Batch, rows []uint32) error {
	perRow := b.Bytes()/max(int64(b.Keys.Len), 1) + 1
	part := int(min(max(r.most/perRow, 1), restRows))
	for some := range slices.Chunk(rows, part) {
		if r.table.Len()+len(some) > restRows || r.table.Bytes()+perRow*int64(len(some)) > r.most {
			if err := r.flush(); err != nil {
				return err
			}
		}
		if err := r.table.Append(b, some); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the rows held.
func (r *rest) flush() error {
	if r.table.Len() == 0 {
		return nil
	}
	err := r.write(r.table)
	r.share.GiveAll()
	r.table = r.columns.NewTable(r.share.Take)
	return err
}
