package join

import (
	"context"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/bloomjoin/bloomjoin/partition"
)

// Plan is what is expected of a join, and how it is to be carried out. What was
// not found out is nil.
type Plan struct {
	Strategy Strategy `json:"strategy"`
	Why      string   `json:"why"` // one sentence

	Log SideFacts `json:"log"`
	IDs SideFacts `json:"ids"`

	Selectivity *Estimate    `json:"selectivity,omitempty"` // share of the log's rows whose key is in an ID
	JoinRows    *Estimate    `json:"join_rows,omitempty"`   // pairs of log row and ID with equal keys
	Sketch      *SketchBound `json:"join_rows_sketch,omitempty"`
	Sampled     SampleFacts  `json:"sampled"`

	Filter    *FilterFacts `json:"filter,omitempty"`
	Shuffled  *Shuffled    `json:"shuffled,omitempty"`
	Skips     *Skips       `json:"skips,omitempty"`
	BreakEven BreakEven    `json:"break_even"`

	Strategies []Cost   `json:"strategies"`
	Advice     []string `json:"advice"`       // when filtering, or this program, gains little
	Seconds    float64  `json:"plan_seconds"` // that planning took
}

// SideFacts are the figures of one side.
type SideFacts struct {
	Files    int      `json:"files"`
	Rows     Estimate `json:"rows"`      // -1: not known
	Bytes    int64    `json:"bytes"`     // of the columns that the answer has, decompressed; -1: not known
	KeyBytes int64    `json:"key_bytes"` // of the key columns, decompressed; -1: not known
	// Distinct keys; nil: not looked at.
	Distinct *Estimate `json:"distinct,omitempty"`
}

// SampleFacts say what an estimate goes by.
type SampleFacts struct {
	LogRuns int64 `json:"log_runs"` // runs of rows that were read
	LogRows int64 `json:"log_rows"`
	LogAll  bool  `json:"log_all"` // no row was left out
	IDRuns  int64 `json:"id_runs"` // 0 where all were read
	IDRows  int64 `json:"id_rows"`
	IDsAll  bool  `json:"ids_all"`
}

// FilterFacts are what is expected of the filter of the IDs.
type FilterFacts struct {
	Bytes int64   `json:"bytes"`
	FPR   float64 `json:"fpr"`
	Exact bool    `json:"exact"`
	Best  BestFPR `json:"best"`
}

// Shuffled is what goes into a shuffle of the log for a distributed join.
type Shuffled struct {
	BytesWithout int64 `json:"bytes_without_filter"`
	Bytes        int64 `json:"bytes_with_filter"`
}

// Skips says what the log's statistics and page indexes let a scan skip.
type Skips struct {
	Groups        int64 `json:"row_groups"` // that were looked at
	GroupsSkipped int64 `json:"row_groups_skipped"`
	Pages         int64 `json:"pages"` // of the key column, in those that have a page index
	PagesSkipped  int64 `json:"pages_skipped"`
	Rows          int64 `json:"rows"`
	RowsSkipped   int64 `json:"rows_skipped"`
}

// PlanOptions say for what a plan is made. The zero value is good.
type PlanOptions struct {
	// Network and Scan are bytes per second: to each worker, and through one.
	// 0: 1.25e9 (10 Gbit/s) and 1e9.
	Network float64
	Scan    float64
	// Workers each get the filter; 0: one.
	Workers int
	// Runs of RunRows rows are the sample; 0: 512 of 2048.
	Runs, RunRows int
	// IDRows is the number of IDs up to which all are read; more are sampled.
	// 0: all are, whatever their number.
	IDRows int64
}

func (o PlanOptions) filled() PlanOptions {
	def := func(v *float64, d float64) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Network, 1.25e9)
	def(&o.Scan, 1e9)
	o.Workers = max(o.Workers, 1)
	if o.Runs <= 0 {
		o.Runs = 512
	}
	if o.RunRows <= 0 {
		o.RunRows = 2048
	}
	if o.IDRows <= 0 {
		o.IDRows = math.MaxInt64
	}
	return o
}

// Plan estimates what the join will come to and what each strategy would take.
// It reads footers, indexes, samples of the log's keys, and the IDs' keys, and
// writes nothing; the join can be run afterwards. IDs that can be read only once
// are left unread. The strategy is the one that the join will take, which looks
// less closely: Advice says if another one should be faster.
func (j *Join) Plan(ctx context.Context, opts PlanOptions) (*Plan, error) {
	start := time.Now()
	quick, _, err := j.choosePlan(ctx)
	if err != nil {
		return nil, err
	}
	p, s, err := j.facts()
	if err != nil {
		return nil, err
	}
	opts = opts.filled()
	if j.once() == "" {
		if err := j.estimate(ctx, p, &s, opts, true); err != nil {
			return nil, err
		}
	}
	j.settle(p, s, j.ends(quick.Strategy, s))
	j.advise(p, s, opts)
	p.Seconds = time.Since(start).Seconds()
	return p, nil
}

// choosePlan is Plan as the join itself needs it: it takes no more time than it
// may save. Where the footers tell which strategy to take whatever the keys
// are, no key is read.
func (j *Join) choosePlan(ctx context.Context) (*Plan, sizes, error) {
	start := time.Now()
	p, s, err := j.facts()
	if err != nil {
		return nil, s, err
	}
	j.settle(p, s, j.opts.Strategy)
	if !j.decided(s) {
		opts := PlanOptions{Runs: quickRuns, RunRows: quickRows}
		if !j.soonRead(s) {
			opts.IDRows = quickRuns * quickRows
		}
		if err := j.estimate(ctx, p, &s, opts.filled(), false); err != nil {
			return nil, s, err
		}
		j.settle(p, s, j.opts.Strategy)
	}
	p.Seconds = time.Since(start).Seconds()
	return p, s, nil
}

// The sample of a plan on the way of a join, and the least time that a strategy
// must take for it to be worth the while: it takes some 30 ms.
const (
	quickRuns    = 32
	quickRows    = 2048
	quickSeconds = 0.4
)

// soonRead reports whether reading all IDs past a sample takes less than a tenth
// of what the join is expected to take.
func (j *Join) soonRead(s sizes) bool {
	m := model{sizes: s, limits: j.limits()}
	t := nsStart + m.read(s.idRows) + s.idRows*ask(fastCache)
	return t/math.Max(m.threads, 1)/1e9 < choose(costs(s, m.limits)).Seconds/10
}

// decided reports whether the same strategy would be chosen whatever the keys
// are, or whether finding out would cost what it saves.
func (j *Join) decided(s sizes) bool {
	l := j.limits()
	if l.once != "" || j.opts.Strategy != Auto {
		return true
	}
	var first Strategy
	worst := 0.0
	for _, share := range []float64{0, 0.05, 1} {
		for _, repeat := range []float64{1, 1000} {
			t := s
			t.selectivity = share
			t.logKeys = math.Max(1, s.logRows/repeat)
			t.kept = share * math.Min(s.idRows, t.logKeys)
			t.joinRows = share * s.logRows
			c := choose(costs(t, l))
			if first == "" {
				first = c.Strategy
			}
			if c.Strategy != first {
				first = "none"
			}
			worst = math.Max(worst, c.Seconds)
		}
	}
	return first != "none" || worst < quickSeconds
}

// once returns the side that can be read one time only, if there is one.
func (j *Join) once() string {
	switch {
	case slices.ContainsFunc(j.ids, (*partition.File).Once):
		return "the IDs"
	case slices.ContainsFunc(j.logs, (*partition.File).Once):
		return "the log"
	}
	return ""
}

func (j *Join) limits() limits {
	return limits{
		memory: float64(j.opts.Memory), threads: float64(j.threads()), typ: j.opts.Type,
		once: j.once(), filter: j.opts.Filter != nil, fpr: j.opts.FPR,
		keysOnly: !j.idCols.rows, counts: j.counts,
	}
}

// estimate samples both sides and puts what comes of it into the plan and the
// sizes; with sketches only if all is wanted.
func (j *Join) estimate(ctx context.Context, p *Plan, s *sizes, opts PlanOptions, all bool) error {
	log, ok, err := readSample(ctx, j.pieces, j.logKey, j.keyOptions(), j.opts.Threads, opts.Runs, opts.RunRows)
	if err != nil || !ok {
		return err
	}
	x, err := log.index()
	if err != nil {
		return err
	}
	m, err := j.compare(ctx, x, p, opts)
	if err != nil || m == nil {
		return err
	}
	seen, _ := log.keyed()
	distinct := log.distinct(x)
	if !all && m.ids != nil && m.hits < fewHits { // what is estimated by these is chance
		p.Log.Distinct, s.logKeys = &distinct, distinct.Value
		return nil
	}
	selectivity, perRow := log.selectivity(m)
	perRow.High = math.Min(perRow.High, math.Max(m.total, perRow.Value))
	pairs := perRow.times(s.logRows)
	p.Selectivity, p.JoinRows = &selectivity, &pairs
	p.Log.Distinct, p.IDs.Distinct = &distinct, &m.keys
	p.Sampled = SampleFacts{LogRuns: int64(len(log.runs)), LogRows: int64(seen), LogAll: log.all, IDsAll: m.ids == nil, IDRows: int64(m.total)}
	if m.ids != nil {
		p.Sampled.IDRuns, p.Sampled.IDRows = int64(len(m.ids.runs)), int64(m.seen())
	} else if p.IDs.Rows.Low != p.IDs.Rows.High || p.IDs.Rows.Value < m.total { // else NULLs are among them
		p.IDs.Rows = exactly(m.total)
	}
	if all {
		bound := x.innerProduct(m.counts)
		if scale := s.logRows / math.Max(log.read(), 1); !log.all || m.ids != nil {
			bound.Rows, bound.Error = bound.Rows*scale, bound.Error*scale
		}
		p.Sketch = &bound
		if err := j.skips(ctx, p, m); err != nil {
			return err
		}
	}
	s.logKeys, s.selectivity, s.joinRows = distinct.Value, selectivity.Value, pairs.Value
	s.idRows, s.idKeys = math.Max(m.total, 0), math.Max(1, m.keys.Value)
	s.kept = math.Min(s.idRows, distinct.Value*m.perKey())
	s.exact, s.spread = j.comesOutExact(s.idKeys, m.bounds)
	return nil
}

// compare compares the log's sample with the IDs: with all of them, or with a
// sample; nil where there is none to be had.
func (j *Join) compare(ctx context.Context, x *index, p *Plan, opts PlanOptions) (*matches, error) {
	if n := p.IDs.Rows.Value; n > float64(opts.IDRows) {
		pieces := partition.Split(j.ids, partition.Shard{})
		runs := max(2, int(min(opts.IDRows/int64(opts.RunRows), math.MaxInt32)))
		ids, ok, err := readSample(ctx, pieces, j.idKey, j.keyOptions(), j.opts.Threads, runs, opts.RunRows)
		if err != nil || !ok {
			return nil, err
		}
		return sampled(x, ids)
	}
	return j.stream(ctx, x)
}

// read is the number of rows in the sample, with and without a key.
func (s *sample) read() (n float64) {
	for _, r := range s.runs {
		n += r.rows
	}
	return n
}

// perKey is the number of ID rows for each key of the log's sample.
func (m *matches) perKey() float64 {
	var sum float64
	for _, c := range m.counts {
		sum += c
	}
	return sum / math.Max(1, float64(len(m.counts)))
}

// fewHits is how many IDs of a sample must be among the log's sample for their
// number to say something.
const fewHits = 16

// ends returns the strategy that a join ends with which begins with the given
// one: carryOut goes on to the next where one turns out not to be feasible.
func (j *Join) ends(begins Strategy, s sizes) Strategy {
	if j.opts.Strategy != Auto {
		return begins
	}
	feasible := map[Strategy]bool{}
	for _, c := range costs(s, j.limits()) {
		feasible[c.Strategy] = c.Feasible
	}
	ends := begins
	for _, next := range lesser(begins, j.opts.Filter != nil) {
		if feasible[ends] {
			break
		}
		ends = next
	}
	return ends
}

// settle puts the costs into the plan, and the strategy: the one that is wanted
// or, if that is Auto, the best one.
func (j *Join) settle(p *Plan, s sizes, wanted Strategy) {
	l := j.limits()
	p.Strategies = costs(s, l)
	c := choose(p.Strategies)
	for _, other := range p.Strategies {
		if other.Strategy == wanted {
			c = other
		}
	}
	p.Strategy = c.Strategy
	p.Why = j.why(s, p.IDs.Rows, c, p.Strategies)
	m := model{sizes: s, limits: l}
	p.Filter = &FilterFacts{Bytes: int64(m.filterOfIDs()), FPR: m.rate(), Exact: s.exact}
	p.BreakEven = m.breakEvenOf(p.Strategy)
}

// threads is the number of workers.
func (j *Join) threads() int {
	if j.opts.Threads > 0 {
		return j.opts.Threads
	}
	return runtime.GOMAXPROCS(0)
}
