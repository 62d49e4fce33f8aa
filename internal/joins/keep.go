package joins

import (
	"context"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// keeper takes the IDs that pass a filter of the log.
type keeper interface {
	// worker returns a function that takes the keys at the positions in some, for
	// one goroutine, if no rows are needed.
	worker() (func(k *keys.Batch, some []uint32) error, error)
	// addRows takes the ID rows of the batch whose keys are at the ascending positions in
	// some. first numbers the batch's first row: among all ID rows in joins that keep IDs
	// without a log row, else among the rows passed in. One goroutine calls it, in the IDs'
	// order.
	addRows(b *tables.Batch, some []uint32, first int64) error
}

// heldIDs keeps IDs in memory.
type heldIDs struct{ side *table.Side }

func (h heldIDs) worker() (func(*keys.Batch, []uint32) error, error) { return h.side.AddKeysAt, nil }

func (h heldIDs) addRows(b *tables.Batch, some []uint32, _ int64) error {
	if len(some) == b.Keys.Len {
		return h.side.AddRows(b)
	}
	return h.side.AddRowsAt(b, some)
}

// keep reads the IDs and hands the ones that pass a filter of the log to a keeper. If no filter
// of the IDs is given, it builds one of what it keeps.
func (a *attempt) keep(ctx context.Context, ofLog, ofIDs *filters.Filter, to keeper) (*joinTable, error) {
	share := a.account.Share("the filter of the log")
	defer share.GiveAll()
	if err := share.Take(int64(ofLog.Bytes())); err != nil {
		return nil, err
	}
	h := &joinTable{filter: ofIDs}
	read := a.keepKeys
	switch {
	case !a.answer.IDs.Rows:
	case a.opts.Type.keepsIDs():
		read = a.keepNumbered
	default:
		read = a.keepRows
	}
	if ofIDs != nil {
		return h, read(ctx, h, ofLog, to, nil)
	}
	opts := a.filterOptions(a.keys.IDsText)
	opts.FPR, opts.Uncounted, opts.Squeeze = a.opts.FPR, true, true
	var err error
	h.filter, err = a.buildBloom(ctx, a.ids, opts, func(b *builds.Builder) error {
		return read(ctx, h, ofLog, to, b)
	})
	if err != nil {
		return nil, err
	}
	return h, a.holdFilter(h.filter)
}

// keepKeys is keep if no rows are needed. b, if not nil, builds a filter of the
// keys that are kept.
func (a *attempt) keepKeys(ctx context.Context, h *joinTable, ofLog *filters.Filter, to keeper, b *builds.Builder) error {
	opts := a.keysOf(a.keys.IDsText, 0)
	opts.Filter, opts.IDs, opts.Distinct, opts.CountNulls = ofLog, true, true, true
	if b != nil {
		opts.Threads = b.Workers()
	}
	rows, nulls, err := keyscan.Read(a.readIDs(ctx), a.idPieces, opts, func() (func(*keyscan.Keys) error, error) {
		var times []uint32
		add, err := newFilterAdder(b)
		if err != nil {
			return nil, err
		}
		take, err := to.worker()
		return func(k *keyscan.Keys) error {
			if err := a.checkGiven(k.Batch, k.Times, k.Piece.File); err != nil {
				return err
			}
			hits, err := k.Probe()
			if err != nil {
				return err
			}
			if k.Times != nil {
				times = repeated(times[:0], hits, k.Times)
				hits = times
			}
			if len(hits) == 0 {
				return nil
			}
			if err := add(k.Batch, hits); err != nil {
				return err
			}
			return take(k.Batch, hits)
		}, err
	})
	h.idsNull, h.idsTotal = nulls, rows-nulls
	return err
}

// repeated appends each hit as many times as rows have it.
func repeated(dst, hits, rows []uint32) []uint32 {
	for _, h := range hits {
		for range rows[h] {
			dst = append(dst, h)
		}
	}
	return dst
}

// keepRows is keep of rows.
func (a *attempt) keepRows(ctx context.Context, h *joinTable, ofLog *filters.Filter, to keeper, b *builds.Builder) error {
	add, err := newFilterAdder(b)
	if err != nil {
		return err
	}
	m := keyscan.Predicate{Match: a.keys.Match(ofLog, a.keys.IDsText)}
	m.Check = func() func(*keyscan.Keys) ([]uint32, error) { return a.checkIDs }
	var n int64
	var all []uint32
	rows, nulls, err := a.eachIDRow(ctx, &m, func(b *tables.Batch) error {
		k := b.Keys
		if err := add(k, nil); err != nil {
			return err
		}
		all = table.UpTo(all, len(k.Rows))
		defer func() { n += int64(k.Len) }()
		return to.addRows(b, all, n)
	})
	h.idsTotal = rows - nulls
	return err
}

// keepNumbered is keep of rows that are numbered among all IDs.
func (a *attempt) keepNumbered(ctx context.Context, h *joinTable, ofLog *filters.Filter, to keeper, b *builds.Builder) error {
	add, err := newFilterAdder(b)
	if err != nil {
		return err
	}
	var n int64
	var hits []uint32
	rows, nulls, err := a.eachIDRow(ctx, nil, func(b *tables.Batch) error {
		k := b.Keys
		defer func() { n += int64(k.Len) }()
		if err := a.checkGiven(k, nil, b.Piece.File); err != nil {
			return err
		}
		var err error
		if hits, err = ofLog.ProbeBatch(k, hits[:0]); err != nil || len(hits) == 0 {
			return err
		}
		if err := add(k, hits); err != nil {
			return err
		}
		return to.addRows(b, hits, n)
	})
	h.idsTotal = rows - nulls
	return err
}

// checkIDs returns the positions of keys that pass the filter. The error says that
// keys are not valid IDs, or that one is missing in the given filter.
func (a *attempt) checkIDs(k *keyscan.Keys) ([]uint32, error) {
	if !k.Undecided() {
		at := fault.At{File: k.Piece.File.Name(), RowGroup: k.Piece.Lo + 1, Column: a.keys.IDsText}
		if err := k.Batch.IDs(at); err != nil {
			return nil, err
		}
		if err := a.checkGiven(k.Batch, k.Times, k.Piece.File); err != nil {
			return nil, err
		}
	}
	return k.Probe()
}

// checkGiven returns an error if one of the keys is missing in the given filter; see hasAll.
func (a *attempt) checkGiven(k *keys.Batch, times []uint32, f *source.File) error {
	if a.opts.Filter == nil {
		return nil
	}
	return hasAll(a.opts.Filter, k, times, f.Name())
}
