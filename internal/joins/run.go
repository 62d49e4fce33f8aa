package joins

import (
	"context"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// running is a join whose IDs are held.
type running struct {
	pass
	plan                   *plan.Plan
	strategy               Strategy
	fprAsked, fprPredicted float64 // a mapped filter may be gone when all input has been read
}

// start plans the join and reads the IDs.
func (t *task) start(ctx context.Context) (*running, error) {
	if t.opts.Filter != nil {
		if err := t.checkFilter(); err != nil {
			return nil, err
		}
	}
	p, sizes, err := t.quickPlan(ctx)
	if err != nil {
		return nil, err
	}
	h, strategy, err := t.hold(ctx, Strategy(p.Strategy))
	if err != nil {
		return nil, err
	}
	return &running{
		pass: pass{task: t, held: h, model: &plan.Model{Sizes: sizes, Limits: t.limits()}, tally: new(tally)},
		plan: p, strategy: strategy, fprAsked: h.filter.Facts().FPRAsked, fprPredicted: h.filter.FPR(),
	}, nil
}

// conclude returns the report when all input has been read. The error says that an
// input has changed, or that a requirement is not met.
func (r *running) conclude(ctx context.Context) (Report, error) {
	rep, err := r.report(ctx)
	if err != nil {
		return rep, err
	}
	// Both sides may have been read several times.
	for _, pieces := range [][]source.Piece{r.idPieces, source.Split(r.logs, dataset.Shard{})} {
		if err := source.Unchanged(pieces); err != nil {
			return rep, err
		}
	}
	return rep, met(r.opts.Require, r.opts.Type, &rep)
}

// report returns the report.
func (r *running) report(ctx context.Context) (Report, error) {
	t := r.tally
	fpr := t.measured(r.fprPredicted)
	if f := r.held.filter; f != nil && f.Facts().Exceptions != nil {
		fpr.Low = 0 // the log may have many of the keys that are exceptions
	}
	rep := Report{
		Plan: r.plan, Strategy: r.strategy, FPRAsked: r.fprAsked, FPRPredicted: r.fprPredicted,
		RowsIn: t.rowsIn.Load(), RowsWhere: t.rowsWhere.Load(), RowsOut: t.rowsOut.Load(), KeysNull: t.keysNull.Load(),
		Candidates: t.candidates.Load(), RowsMatched: t.matched.Load(), rowsUnasked: t.unasked.Load(),
		FPRMeasured: Estimate{Value: fpr.Rate, Low: fpr.Low, High: fpr.High}, FPRRows: fpr.Rows, IDsTotal: r.held.idsTotal, SpilledBytes: r.held.spilled,
		RowGroupsSkipped: t.groupsSkipped.Load(), Pages: t.pages.Load(), PagesSkipped: t.pagesSkipped.Load(),
		filtered: !slices.ContainsFunc(r.logs, neverScanned), condition: slices.ContainsFunc(r.logs, (*source.File).Filtered),
	}
	rep.RowsIn, rep.KeysNull = rep.RowsIn+r.opts.UnreadRows, rep.KeysNull+r.opts.UnreadNulls
	var err error
	switch h := r.held; {
	case h.rounds != nil:
		rep.IDsMatched, rep.KeysMatched = h.rounds.IDsMatched.Load(), h.rounds.KeysMatched.Load()
		rep.SpilledBytes += h.rounds.Written()
	case h.marks != nil:
		rep.KeysMatched = h.marks.Count()
		rep.IDsMatched, err = r.exactMatched(ctx, h)
	default:
		rep.IDsMatched, rep.KeysMatched = h.side.Matched()
	}
	if err == nil && r.answer.Counts && !r.answer.RowsOfLog() {
		rep.RowsOut, err = countedRows(r.opts.Type, t.rowsOut.Load(), r.held.idsNull, &rep)
	}
	switch most := r.opts.Limit; {
	case most > 0 && rep.RowsOut >= most: // figures of a part of the log warn of nothing
		rep.RowsOut = most
	case err == nil:
		rep.Warnings = rep.warnings(r.opts.Type)
	}
	return rep, err
}

// neverScanned reports whether a file is not the output of a scan or join.
func neverScanned(f *source.File) bool {
	md := f.Schema().Metadata()
	_, ok := md.GetValue(source.MetaResult)
	return !ok
}
