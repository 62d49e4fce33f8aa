package joins

import (
	"context"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// lookup reads all IDs into a table, and into a filter unless one was given.
func (a *attempt) lookup(ctx context.Context) (*joinTable, error) {
	h := &joinTable{filter: a.opts.Filter, side: a.newSide(), whole: true}
	read := a.lookupKeys
	if a.answer.IDs.Rows {
		read = a.lookupRows
	}
	var err error
	if h.filter != nil {
		err = read(ctx, h, nil)
	} else if h.filter, err = a.build(ctx, a.idPlan, func(b *builds.Builder) error { return read(ctx, h, b) }); err == nil {
		err = a.holdFilter(h.filter)
	}
	if err == nil {
		err = h.side.Seal()
	}
	if err != nil {
		h.release()
		return nil, err
	}
	return h, nil
}

// lookupRows reads the IDs' rows into the table. Their keys go into a new filter, or
// are checked against the given one.
func (a *attempt) lookupRows(ctx context.Context, h *joinTable, b *builds.Builder) error {
	add, err := h.addsOrChecks(b)
	if err != nil {
		return err
	}
	h.side.Expect(a.knownIDs())
	rows, nulls, err := a.eachIDRow(ctx, nil, func(b *tables.Batch) error {
		if err := add(b.Keys, b.Piece.File.Name()); err != nil {
			return err
		}
		return h.side.AddRows(b)
	})
	h.idsTotal = rows - nulls
	return err
}

// addsOrChecks returns what is done with the keys of a file: they are added to a new filter, or
// checked against the given one if b is nil. One goroutine uses it.
func (h *joinTable) addsOrChecks(b *builds.Builder) (func(k *keys.Batch, file string) error, error) {
	if b == nil {
		return func(k *keys.Batch, file string) error { return hasAll(h.filter, k, nil, file) }, nil
	}
	w, err := b.Worker()
	return func(k *keys.Batch, _ string) error { return w.AddBatch(k) }, err
}

// knownIDs returns the rows of the files that say how many they have.
func (a *attempt) knownIDs() (n int64) {
	for _, f := range a.ids {
		n += max(f.Rows(), 0)
	}
	return n
}

// lookupKeys is lookupRows for an answer that needs keys only.
func (a *attempt) lookupKeys(ctx context.Context, h *joinTable, b *builds.Builder) error {
	h.side.Reserve(a.knownIDs())
	threads := a.opts.Threads
	if b != nil {
		threads = b.Workers()
	}
	var total, nulls atomic.Int64
	err := a.eachIDKey(ctx, threads, func() (func(*keyscan.Keys) error, error) {
		add, err := h.addsOrChecks(b)
		return func(keys *keyscan.Keys) error {
			k := keys.Batch
			if err := add(k, keys.Piece.File.Name()); err != nil {
				return err
			}
			total.Add(int64(len(k.Rows) + len(k.Void())))
			nulls.Add(int64(k.Nulls()))
			return h.side.AddKeys(k)
		}, err
	})
	h.idsTotal, h.idsNull = total.Load(), nulls.Load()
	return err
}
