package joins

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// PlanOptions describe the machines that a plan is for, and its samples.
type PlanOptions = plan.Options

// plan estimates what the join will come to; see [Join.Plan].
func (t *task) plan(ctx context.Context, o plan.Options) (*plan.Plan, error) {
	start := time.Now()
	quick, _, err := t.quickPlan(ctx)
	if err != nil {
		return nil, err
	}
	p, s, err := t.facts()
	if err != nil {
		return nil, err
	}
	if t.once() == "" {
		if err := t.estimate(ctx, p, &s, o, true); err != nil {
			return nil, err
		}
	}
	l := t.limits()
	p.Settle(s, l, plan.Ends(quick.Strategy, s, l))
	p.Advise(s, l, o)
	p.Seconds = time.Since(start).Seconds()
	return p, nil
}

// Runs and rows of the sample that a join takes for itself.
const (
	quickRuns = 32
	quickRows = 2048
)

// quickPlan is plan as the join itself needs it: it takes no longer than it may
// save. If the footers determine the strategy, no key is read.
func (t *task) quickPlan(ctx context.Context) (*plan.Plan, plan.Sizes, error) {
	start := time.Now()
	p, s, err := t.facts()
	if err != nil {
		return nil, s, err
	}
	l := t.limits()
	p.Settle(s, l, l.Strategy)
	if !plan.Decided(s, l) {
		o := plan.Options{Runs: quickRuns, RunRows: quickRows}
		if !plan.SoonRead(s, l) {
			o.IDRows = quickRuns * quickRows
		}
		if err := t.estimate(ctx, p, &s, o.Filled(), false); err != nil {
			return nil, s, err
		}
		p.Settle(s, l, l.Strategy)
	}
	p.Seconds = time.Since(start).Seconds()
	return p, s, nil
}

// limits returns the constraints on the choice of a strategy.
func (t *task) limits() plan.Limits {
	typ := t.opts.Type
	return plan.Limits{
		Strategy: t.opts.Strategy, Memory: float64(t.opts.Memory), Threads: float64(t.threads()),
		Type: string(typ), IDColumns: typ.columnsOfIDs(), Anti: typ == Anti, KeepsLog: typ.keepsLog(),
		Once: t.once(), Filter: t.opts.Filter != nil, FPR: t.opts.FPR,
		KeysOnly: !t.answer.IDs.Rows, Counts: t.answer.Counts,
	}
}

// estimate samples both sides and puts the result into the plan and the sizes.
// closely says whether a user asks.
func (t *task) estimate(ctx context.Context, p *plan.Plan, s *plan.Sizes, o plan.Options, closely bool) error {
	log, ok, err := t.sample(ctx, t.pieces, t.keys.LogText, o.Runs, o.RunRows)
	if err != nil || !ok {
		return err
	}
	x, err := log.Index()
	if err != nil {
		return err
	}
	m, bounds, err := t.compare(ctx, x, p.IDs.Rows.Value, o)
	if err != nil || m == nil {
		return err
	}
	if closely {
		if p.Skips, err = t.skips(ctx, bounds); err != nil {
			return err
		}
	}
	if p.Observe(s, log, m, closely) {
		s.Exact, s.Spread = t.comesOutExact(s.IDKeys, bounds)
	}
	return nil
}

// sample reads the keys of runs of rows of one side, where values that cannot be
// keys count as NULL. ok is false if the number of rows is not known beforehand.
func (t *task) sample(ctx context.Context, pieces []source.Piece, columns string, runs, rows int) (s *plan.Sample, ok bool, err error) {
	var total int64
	groups := 0
	for _, p := range pieces {
		n := rowfilter.MostRows(p)
		if n < 0 {
			return nil, false, nil
		}
		total, groups = total+n, groups+p.Hi-p.Lo
	}
	s = &plan.Sample{Total: float64(total), All: float64(runs)*float64(rows) >= float64(total)}
	all := make([]plan.Run, max(runs, groups)) // each is written by one worker
	o := t.keysOf(columns, 0)
	o.NullMisfits, o.Runs, o.RunRows = true, runs, int64(rows)
	_, _, err = keyscan.Read(ctx, pieces, o, func() (func(*keyscan.Keys) error, error) {
		var hashes []uint64
		return func(k *keyscan.Keys) error {
			r := &all[k.Run]
			r.Rows += float64(k.Batch.Len)
			r.Stands = k.Share
			hashes = k.Batch.Hash(table.Hash, hashes)
			r.Hashes = append(r.Hashes, hashes...)
			return nil
		}, nil
	})
	for _, r := range all {
		if r.Rows > 0 {
			s.Runs = append(s.Runs, r)
		}
	}
	return s, true, err
}

// compare compares the log's sample with all IDs, about idRows, or with a sample if these are
// too many. Nil: the IDs cannot be sampled. bounds hold all IDs; nil: unknown.
func (t *task) compare(ctx context.Context, x *plan.Index, idRows float64, o plan.Options) (*plan.Matches, *keys.Bounds, error) {
	if idRows > float64(o.IDRows) {
		runs := max(2, int(min(o.IDRows/int64(o.RunRows), math.MaxInt32)))
		ids, ok, err := t.sample(ctx, t.idPieces, t.keys.IDsText, runs, o.RunRows)
		if err != nil || !ok {
			return nil, nil, err
		}
		m, err := plan.SampledMatches(x, ids)
		return m, nil, err
	}
	return t.compareAll(ctx, x)
}

// compareAll reads all IDs and counts those whose key is in the log's sample.
func (t *task) compareAll(ctx context.Context, x *plan.Index) (*plan.Matches, *keys.Bounds, error) {
	type worker struct {
		hits     *plan.Hits
		bounds   *keys.Bounds
		distinct *plan.Distinct
	}
	var mu sync.Mutex
	var all []*worker
	err := t.eachIDKey(ctx, 0, func() (func(*keyscan.Keys) error, error) {
		w := &worker{hits: x.NewHits(), bounds: keys.NewBounds(t.keys.Classes), distinct: plan.NewDistinct()}
		mu.Lock()
		all = append(all, w)
		mu.Unlock()
		var hashes []uint64
		return func(k *keyscan.Keys) error {
			hashes = k.Batch.Hash(table.Hash, hashes)
			w.hits.Add(hashes)
			w.bounds.Add(k.Batch)
			w.distinct.Add(hashes)
			return nil
		}, nil
	})
	if err != nil {
		return nil, nil, err
	}
	distinct := plan.NewDistinct()
	bounds := keys.NewBounds(t.keys.Classes)
	var hits []*plan.Hits
	for _, w := range all {
		hits = append(hits, w.hits)
		bounds.Merge(w.bounds)
		distinct.Merge(w.distinct)
	}
	return plan.AllMatches(x, hits, distinct.Estimate()), bounds, nil
}

// skips returns what the log's statistics let a scan skip, given the bounds of the
// IDs.
func (t *task) skips(ctx context.Context, bounds *keys.Bounds) (*plan.Skips, error) {
	if bounds == nil {
		return nil, nil
	}
	const groups = 256
	f := t.idPlan.Spec.Header()
	for i := range f.Facts().Key {
		f.Facts().Key[i].Min, f.Facts().Key[i].Max, _ = bounds.Column(i)
	}
	s, err := keyscan.Skippable(ctx, t.pieces, t.keys.Match(f, t.keys.LogText), groups)
	if err != nil || s.RowGroups.Load() == 0 {
		return nil, err
	}
	rows := s.RowsIn.Load()
	return &plan.Skips{
		Groups: s.RowGroups.Load(), GroupsSkipped: s.RowGroupsSkipped.Load(),
		Pages: s.Pages.Load(), PagesSkipped: s.PagesSkipped.Load(),
		Rows: rows, RowsSkipped: rows - s.RowsOut.Load(),
	}, nil
}
