package joins

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// An answer with columns of both sides is made of pairs, see [tables.Pairs]: of pages where the
// log and the output are Parquet, otherwise of arrays.

// byPages returns the task with an answer of pages. If the output takes none, or
// pages cannot be the answer, why says so, and the answer must be made of arrays.
func (t *task) byPages(ctx context.Context, out output.Destination) (_ *task, why string) {
	if why := out.PairsFit(ctx, nil, t.logs); why != "" {
		return nil, why
	}
	scan := t.answer.ScanOptions(t.logs[0])
	scan.Entries = true
	if err := out.CheckSchemas(ctx, scan, t.logs); err != nil && !t.united() {
		return nil, "the files of the log differ" // in Arrow's types too, or else arrays can be written
	}
	c := *t
	var err error
	if c.answer, err = t.answer.OfPages(t.ids); err != nil {
		return nil, err.Error()
	}
	if why := out.PairsFit(ctx, c.pairs(partitionRound{}), t.logs); why != "" {
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
// pairs. Of an empty round only columns count.
func (t *task) pairs(r partitionRound) *tables.Pairs {
	if !t.makesPairs() {
		return nil
	}
	typ, ids, layouts := t.opts.Type, t.answer.IDs, t.answer.Layouts
	p := &tables.Pairs{
		Partners: rows.Partners{KeepLog: t.keepsLogIn(r)},
		Columns:  func(f *source.File) []tables.PairColumn { return layouts[f].Columns },
		Log:      func(f *source.File) *source.File { return layouts[f].Log },
		Schema:   func(f *source.File) *arrow.Schema { return layouts[f].Schema },
		Of:       ids.Held, KeepTable: typ.keepsIDs(), Arrays: !t.answer.Pages,
	}
	if r.portion != nil && typ.keepsLog() {
		p.Joined = r.portion.joined
	}
	side := r.side
	if side == nil {
		if ids.Rows {
			p.Table = ids.Held.NewTable(nil)
		}
		return p
	}
	p.Unique, p.Times, p.Table = side.Unique(), timesOf(side), side.Rows()
	p.Rows = func(dst []uint32, entry uint32) []uint32 {
		for row := side.First(entry); row != table.None; row = side.Next(entry, row) {
			dst = append(dst, row)
		}
		return dst
	}
	return p
}

// united reports whether pairs have the columns of a union of the log's files. Those are made of
// pages only.
func (t *task) united() bool { return t.makesPairs() && t.answer.Unites }

// notUnited is the error for pairs that must be made of arrays.
func (t *task) notUnited(why string) error {
	return faults.Unsupported(fault.At{}, "a union of schemas, or fields of structs, in rows that become Arrow records: %s", why).
		WithHint("scan the log so first, and join the result")
}

// makesPairs reports whether the answer is made of pairs of log row and ID.
func (t *task) makesPairs() bool { return !t.answer.RowsOfLog() && !t.answer.Counts }

// timesOf returns what counts the IDs of an entry.
func timesOf(side *table.Side) func(entry uint32) int64 {
	switch {
	case side.Unique():
		return func(uint32) int64 { return 1 }
	case side.Rows() == nil:
		return side.Times
	}
	return func(entry uint32) (n int64) {
		for row := side.First(entry); row != table.None; row = side.Next(entry, row) {
			n++
		}
		return n
	}
}

// portion is a part of the IDs. A row group is joined with one portion after another because
// together they exceed the memory. A log row is known to have no ID only after the last one.
type portion struct {
	last   bool
	joined *[]uint64   // bit set of rows with an ID, shared by the portions
	keys   *table.Side // of the row group; marked if they have an ID in this portion or an earlier one
}
