package keyscan

import (
	"context"

	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// recordScan is a matchScan for a key of any shape. It reads Arrow records.
type recordScan struct {
	RecordKeys
	check Check
	pairs bool
	found []uint32
	of    []uint32
}

// keyBatches is the number of batches of keys that together take all bytes that may
// be in flight.
const keyBatches = 64

func newRecordScan(f *source.File, m Predicate, read []int, keys *Keys, c Check, pairs bool) (*recordScan, error) {
	columns, o, err := m.Encoding()
	from := f.Parquet()
	if f.InFlight() > 0 {
		from = from.InBatches(max(f.InFlight()/keyBatches, tasks.LeastBatch))
	}
	if c == nil {
		c = (*Keys).Probe
	}
	r := RecordKeys{File: f, from: from, Columns: columns, Options: o, Filtered: true, read: read, Keys: keys}
	return &recordScan{RecordKeys: r, check: c, pairs: pairs}, err
}

func (r *recordScan) noHits() { r.found, r.of = r.found[:0], r.of[:0] }

func (r *recordScan) pruned() bool { return false }

func (r *recordScan) within(context.Context, int) (rows.Set, error) { return nil, nil }

func (r *recordScan) compressedKeyBytes(int) (int64, bool) { return 0, false }

func (r *recordScan) entries() []uint32 { return r.of }

func (r *recordScan) size() int64 { return int64(4 * (cap(r.rows) + cap(r.found) + cap(r.of))) }

func (r *recordScan) shed() { r.rows, r.found, r.of = nil, nil, nil }

func (r *recordScan) hits(ctx context.Context, rows tasks.Range, some []uint32) (_ []uint32, nulls int64, err error) {
	r.found, r.of = r.found[:0], r.of[:0]
	r.Keys.Piece = source.Piece{File: r.File, Lo: rows.Group, Hi: rows.Group + 1}
	err = r.each(ctx, rows, some, func() error {
		nulls += int64(r.Keys.Batch.Nulls())
		members, err := r.check(r.Keys)
		for _, m := range members {
			r.found = append(r.found, r.Keys.place.row(r.Keys.Batch.Rows[m]))
		}
		if r.pairs {
			r.of = append(r.of, r.Keys.Entries[:len(members)]...)
		}
		return err
	})
	return r.found, nulls, err
}
