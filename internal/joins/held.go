package joins

import (
	"context"
	"iter"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// joinTable is what the log is joined with: a filter that drops most of its rows, and
// the IDs, in one of three forms. Release it after use.
type joinTable struct {
	filter *filters.Filter

	side   *table.Side  // the IDs in a table
	whole  bool         // all of them
	marks  *table.Marks // the filter is an exact set of the IDs; these are its marks
	rounds *shuffled    // the IDs are on disk

	account           *budget.Account
	idsTotal, idsNull int64 // ID rows with and without a key
	spilled           int64 // bytes of keys written to disk to size a filter
}

// release gives back memory and disk space. h may be nil.
func (h *joinTable) release() {
	if h == nil {
		return
	}
	h.side.Release()
	if h.rounds != nil {
		_ = h.rounds.Close() // of files that are not needed any more
	}
}

// each yields the rounds of the join of pieces of the log: one, unless the IDs are
// on disk.
func (h *joinTable) each(ctx context.Context, pieces []source.Piece) iter.Seq2[partitionRound, error] {
	if h.rounds != nil {
		return h.rounds.each(ctx)
	}
	return func(yield func(partitionRound, error) bool) {
		yield(partitionRound{pieces: pieces, side: h.side, marks: h.marks}, nil)
	}
}

// partitionRound joins pieces of the log with the IDs that they need.
type partitionRound struct {
	pieces  []source.Piece
	again   bool         // the previous round had the same pieces
	side    *table.Side  // nil: marks has the IDs
	marks   *table.Marks // nil: side has the IDs
	portion *portion     // nil: side has all IDs that a row of the pieces could match
}

// attempt is one attempt at a strategy: it reads the IDs into what is held, on an
// account of its own.
type attempt struct {
	*task
	account *budget.Account
	spilled int64
}

// newSide returns an empty table for the IDs, with rows if the answer needs them.
func (a *attempt) newSide() *table.Side {
	return table.New(table.Kind{Integers: a.keys.Integers(), Columns: a.answer.IDs.Held, Threads: a.opts.Threads}, a.account)
}

// build builds a planned filter from the keys that fill adds. While it is built,
// the most that it may take is on the account.
func (a *attempt) build(ctx context.Context, plan *builds.Plan, fill func(*builds.Builder) error) (_ *filters.Filter, err error) {
	room := a.account.Share("a filter")
	if err := room.Take(a.filterBudget()); err != nil {
		return nil, err
	}
	defer room.GiveAll()
	b, err := plan.NewBuilder(ctx)
	if err != nil {
		return nil, err
	}
	defer faults.Join(&err, b.Close)
	if err := fill(b); err != nil {
		return nil, err
	}
	f, rep, err := b.Finish(ctx)
	a.spilled += rep.Spilled
	return f, err
}

// buildBloom builds a Bloom filter over keys of files, or some of them, that fill
// adds.
func (a *attempt) buildBloom(ctx context.Context, files []*source.File, opts builds.Options, fill func(*builds.Builder) error) (*filters.Filter, error) {
	opts.Kind = codec.Kind(filters.KindBloom)
	plan, err := builds.NewPlan(files, opts)
	if err != nil {
		return nil, err
	}
	return a.build(ctx, plan, fill)
}

// holdFilter puts a filter on the account until the join ends.
func (a *attempt) holdFilter(f *filters.Filter) error {
	return a.account.Share("the filter").Take(int64(f.Bytes()))
}

// newFilterAdder returns a function that adds the keys at the positions in some, or all if
// some is nil, to a filter; b may be nil, if none is wanted. One goroutine uses it.
func newFilterAdder(b *builds.Builder) (func(k *keys.Batch, some []uint32) error, error) {
	if b == nil {
		return func(*keys.Batch, []uint32) error { return nil }, nil
	}
	w, err := b.Worker()
	var picked keys.Batch
	return func(k *keys.Batch, some []uint32) error {
		if some == nil || len(some) == len(k.Rows) {
			return w.AddBatch(k)
		}
		k.Select(&picked, some)
		return w.AddBatch(&picked)
	}, err
}
