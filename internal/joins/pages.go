package joins

import (
	"context"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// An answer with columns of both sides is written without records where the log and
// the output are Parquet: scans make pairs, see [pagecopy.Pairs]. Rows of IDs are
// then held as leaves.

// byPages returns the task with an answer of pages. If the output takes none, or
// pages cannot be the answer, why says so, and the answer must be made of records.
func (t *task) byPages(ctx context.Context, out output.Destination) (_ *task, why string) {
	if why := out.PairsFit(nil, t.logs); why != "" {
		return nil, why
	}
	if err := out.CheckSchemas(ctx, t.answer.ScanOptions(t.logs[0], false), t.logs); err != nil {
		return nil, "the files of the log differ" // in Arrow's types too, or else records can be written
	}
	c := *t
	var err error
	if c.answer, err = t.answer.OfPages(t.ids); err != nil {
		return nil, err.Error()
	}
	if why := out.PairsFit(c.pairs(partitionRound{}), t.logs); why != "" {
		return nil, why
	}
	return &c, ""
}

// keepsLogIn reports whether a round keeps log rows without a partner: the last one of a row
// group does.
func (t *task) keepsLogIn(r partitionRound) bool {
	return t.opts.Type.keepsLog() && (r.portion == nil || r.portion.last)
}

// pairs returns what a scan of a round makes of a log row and its IDs; nil if it makes no
// pairs of pages. Of an empty round only columns count.
func (t *task) pairs(r partitionRound) *pagecopy.Pairs {
	if !t.answer.Pages {
		return nil
	}
	typ, ids := t.opts.Type, t.answer.IDs
	p := &pagecopy.Pairs{
		Columns: t.pairColumns, KeepTable: typ.keepsIDs(),
		KeepLog: t.keepsLogIn(r),
	}
	if r.portion != nil && typ.keepsLog() {
		p.Joined = *r.portion.joined
	}
	if ids.Rows {
		p.Of = ids.Leaves
	}
	side := r.side
	if side == nil {
		if ids.Rows {
			p.Table = ids.Leaves.NewTable(nil)
		}
		return p
	}
	p.Unique, p.Times = side.Unique(), timesOf(side)
	if !ids.Rows {
		return p
	}
	p.Table = side.Rows().(*leafRows).table
	p.Rows = func(dst []uint32, entry uint32) []uint32 {
		for row := side.First(entry); row != table.None; row = side.Next(entry, row) {
			dst = append(dst, row)
		}
		return dst
	}
	return p
}

// timesOf returns what counts the IDs of an entry.
func timesOf(side *table.Side) func(entry uint32) int64 {
	switch {
	case side.Unique():
		return func(uint32) int64 { return 1 }
	case !side.HasRows():
		return side.Times
	}
	return func(entry uint32) (n int64) {
		for row := side.First(entry); row != table.None; row = side.Next(entry, row) {
			n++
		}
		return n
	}
}

// pairColumns implements [pagecopy.Pairs].Columns.
func (t *task) pairColumns(f *source.File) []pagecopy.PairColumn {
	l := t.answer.Layouts[f]
	out := make([]pagecopy.PairColumn, len(l.Columns))
	for i, c := range l.Columns {
		to := pagecopy.PairColumn{Log: c.Log, Table: -1, Name: l.Schema.Field(i).Name}
		if c.Log >= 0 && l.Read != nil {
			to.Log = l.Read[c.Log]
		}
		if c.Held >= 0 {
			to.Table = int(t.answer.IDs.LeafOf[c.Held])
		}
		out[i] = to
	}
	return out
}

// writeRest writes the IDs whose key no log row has, and those with a NULL key, in
// the ID set's order.
func (p *pass) writeRest(ctx context.Context, w *output.ScanWriter) error {
	if p.held.whole {
		held := p.held.side.Rows().(*leafRows).table
		return eachMissing(p.held.side.MatchedRows(), p.held.side.NumRows(), func(rows []uint32) error {
			p.tally.rowsOut.Add(int64(len(rows)))
			return w.WriteUnmatched(ctx, held, rows)
		})
	}
	rest := p.newRest(func(t *tables.Table) error {
		p.tally.rowsOut.Add(int64(t.Len()))
		return w.WriteUnmatched(ctx, t, table.UpTo(nil, t.Len()))
	})
	defer rest.share.GiveAll()
	err := p.eachUnmatched(ctx, func(b table.Batch, rows []uint32) error { return rest.add(b.(leafBatch), rows) })
	if err != nil {
		return err
	}
	return rest.flush()
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
	r := &rest{columns: p.answer.IDs.Leaves, share: of.Share("IDs without a log row"), most: 4 << 20, write: write}
	if of.Limit() > 0 {
		r.most = min(r.most, (of.Limit()-of.InUse())/4)
	}
	r.table = r.columns.NewTable(r.share.Take)
	return r
}

// add adds rows of a batch, a part at a time if they exceed the bound.
func (r *rest) add(b leafBatch, rows []uint32) error {
	perRow := b.Bytes()/max(int64(b.Batch.Keys.Len), 1) + 1
	part := int(min(max(r.most/perRow, 1), restRows))
	for some := range slices.Chunk(rows, part) {
		if r.table.Len()+len(some) > restRows || r.table.Bytes()+perRow*int64(len(some)) > r.most {
			if err := r.flush(); err != nil {
				return err
			}
		}
		if err := r.table.Append(b.Batch, some); err != nil {
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

// leafForm is the form of ID rows as leaves, for an answer whose pages are copied.
type leafForm struct{ columns *tables.Columns }

// NewRows implements [table.Form].
func (f leafForm) NewRows(of *budget.Share) table.Rows {
	return &leafRows{f.columns.NewTable(of.Take)}
}

// Parse implements [table.Form].
func (f leafForm) Parse(src []byte, at int) (table.Batch, error) {
	b, err := f.columns.Parse(src[at:])
	return leafBatch{b}, err
}

// leafBatch is a batch of leafForm.
type leafBatch struct{ *tables.Batch }

// Keys implements [table.Batch].
func (b leafBatch) Keys() (*keys.Batch, error) { return b.Batch.Keys, nil }

// Append implements [table.Batch].
func (b leafBatch) Append(dst []byte, rows []uint32) ([]byte, error) { return b.AppendTo(dst, rows) }

// Release implements [table.Batch].
func (b leafBatch) Release() {}

// leafRows holds rows of leafForm.
type leafRows struct{ table *tables.Table }

// Add implements [table.Rows].
func (r *leafRows) Add(b table.Batch, rows []uint32) error {
	return r.table.Append(b.(leafBatch).Batch, rows)
}

// Seal implements [table.Rows].
func (r *leafRows) Seal() error { return nil }

// Release implements [table.Rows].
func (r *leafRows) Release() { r.table = nil }
