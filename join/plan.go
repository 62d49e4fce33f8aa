package join

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/exact"
	"github.com/bloomjoin/bloomjoin/internal/keys"
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
// are left unread.
func (j *Join) Plan(ctx context.Context, opts PlanOptions) (*Plan, error) {
	start := time.Now()
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
	j.settle(p, s)
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
	j.settle(p, s)
	if !j.decided(s) {
		opts := PlanOptions{Runs: quickRuns, RunRows: quickRows}
		if !j.soonRead(s) {
			opts.IDRows = quickRuns * quickRows
		}
		if err := j.estimate(ctx, p, &s, opts.filled(), false); err != nil {
			return nil, s, err
		}
		j.settle(p, s)
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

// idRows is the number of ID rows, or an estimate, -1 if nothing is known.
func (j *Join) idRows() (rows int64, exact bool) {
	exact = true
	for _, f := range j.ids {
		n, sure, err := f.EstimateRows()
		if err != nil || n < 0 {
			return -1, false // whoever reads the file will get the error
		}
		rows, exact = rows+n, exact && sure
	}
	return rows, exact
}

// facts looks at the footers.
func (j *Join) facts() (*Plan, sizes, error) {
	p := &Plan{Advice: []string{}}
	s := sizes{keyBytes: 8, integer: len(j.classes) == 1 && j.classes[0] == keys.Integer}
	p.Log.Files, p.IDs.Files = len(j.pieces), len(j.ids)
	var rows int64 // -1: not known
	for _, piece := range j.pieces {
		f := piece.File
		key, kept, err := j.logColumns(f)
		if err != nil {
			return nil, s, err
		}
		if rows, err = addRows(rows, piece); err != nil {
			return nil, s, err
		}
		p.Log.KeyBytes = addBytes(p.Log.KeyBytes, f.PlainBytes(piece.Lo, piece.Hi, key))
		p.Log.Bytes = addBytes(p.Log.Bytes, f.PlainBytes(piece.Lo, piece.Hi, kept))
		s.logColumns = math.Max(s.logColumns, float64(len(f.Schema().Fields())))
		if kept != nil {
			s.logColumns = float64(len(kept))
		}
	}
	p.Log.Rows = exactly(float64(rows))
	s.logRows, s.logBytes, s.logKeyBytes = float64(rows), float64(max(p.Log.Bytes, 0)), float64(max(p.Log.KeyBytes, 0))
	if err := j.idFacts(p, &s); err != nil {
		return nil, s, err
	}
	if rows < 0 { // as many as there are IDs, for want of better
		s.logRows = math.Max(1<<20, s.idRows)
	}
	if !s.integer {
		s.keyBytes = math.Max(8, math.Max(s.logKeyBytes/math.Max(s.logRows, 1), float64(p.IDs.KeyBytes)/math.Max(s.idRows, 1)))
	}
	s.logKeys = s.logRows / 4 // as long as nobody has looked
	s.selectivity = 0.05
	s.kept = math.Min(s.idRows, s.selectivity*s.logKeys)
	s.joinRows = s.selectivity * s.logRows
	return p, s, nil
}

// addRows adds the rows of a piece to a number of rows, of which -1 says that it
// is not known.
func addRows(rows int64, p partition.Piece) (int64, error) {
	for g := p.Lo; g < p.Hi && rows >= 0; g++ {
		n := p.File.GroupRows(g)
		if n < 0 {
			all, err := p.File.CountRows()
			if err != nil || all < 0 {
				return -1, err
			}
			n = all / int64(p.File.NumGroups())
		}
		rows += n
	}
	return rows, nil
}

// addBytes adds sizes, of which -1 says that one is not known.
func addBytes(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// idFacts looks at the footers of the IDs.
func (j *Join) idFacts(p *Plan, s *sizes) error {
	n, sure := j.idRows()
	p.IDs.Rows = exactly(float64(n))
	if !sure && n >= 0 {
		p.IDs.Rows.Low, p.IDs.Rows.High = float64(n)/2, float64(n)*2
	}
	for _, f := range j.ids {
		key, err := j.keyColumns(f)
		if err != nil {
			return err
		}
		kept, err := j.idRead(f)
		if err != nil {
			return err
		}
		p.IDs.KeyBytes = addBytes(p.IDs.KeyBytes, f.PlainBytes(0, f.NumGroups(), key))
		p.IDs.Bytes = addBytes(p.IDs.Bytes, f.PlainBytes(0, f.NumGroups(), kept))
	}
	s.idRows = math.Max(0, p.IDs.Rows.High)
	s.idKeys = s.idRows
	if j.opts.Type.columnsOfIDs() {
		s.idBytes = math.Max(0, float64(p.IDs.Bytes))
	}
	s.exact, s.spread = j.comesOutExact(s.idKeys, nil)
	return nil
}

// logColumns returns the key columns of a log file, and those that the answer
// has, nil for all.
func (j *Join) logColumns(f *partition.File) (key, kept []int, err error) {
	paths, err := keys.ParsePaths(j.logKey)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		field, err := path.Resolve(f.Schema())
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		key = append(key, field.Index[0])
	}
	for _, name := range j.opts.Columns {
		if at := f.Schema().FieldIndices(name); len(at) > 0 {
			kept = append(kept, at[0])
		}
	}
	return key, kept, nil
}

// comesOutExact reports whether a filter of so many distinct IDs will be exact:
// whether, spread evenly over their range, they take fewer bytes as an exact set
// than as bits. Keys that are not spread evenly take still fewer. The range is
// that of bounds, or what the statistics tell; spread is the number of integers
// in it, 0 if it is not known.
func (j *Join) comesOutExact(n float64, bounds *keys.Bounds) (exact bool, spread float64) {
	if j.opts.Filter != nil {
		set := j.opts.Filter.Exact()
		if set == nil {
			return false, 0
		}
		lo, below, _ := set.Least()
		hi, negative, _ := set.Greatest()
		return true, integer(hi, negative) - integer(lo, below) + 1
	}
	if !j.integers() || n < 1 {
		return false, 0
	}
	lo, hi, ok := j.rangeOfIDs(bounds)
	if !ok {
		return false, 0
	}
	return exactIsSmaller(n, hi-lo+1, j.opts.FPR), hi - lo + 1
}

// rangeOfIDs returns the least and the greatest of IDs that are integers, as
// bounds or, if they are nil, statistics tell.
func (j *Join) rangeOfIDs(bounds *keys.Bounds) (lo, hi float64, ok bool) {
	if bounds == nil {
		paths, err := keys.ParsePaths(j.idKey)
		if err != nil || len(paths) != 1 {
			return 0, 0, false
		}
		return partition.IntegerRange(j.ids, paths[0])
	}
	least, most, ok := bounds.Column(0)
	a, fine := keys.Number(keys.Integer, least)
	b, known := keys.Number(keys.Integer, most)
	if !ok || !fine || !known {
		return 0, 0, false
	}
	lo, _ = a.Float64()
	hi, _ = b.Float64()
	return lo, hi, true
}

// integer is about the value of an integer in two's complement.
func integer(v uint64, negative bool) float64 {
	if negative {
		return float64(int64(v))
	}
	return float64(v)
}

// exactIsSmaller compares an exact set of n keys, spread over a range, with a
// Bloom filter: by containers of 2^16 neighbours, which take two bytes for a key
// and up to 8 KiB in all.
func exactIsSmaller(n, spread, fpr float64) bool {
	if fpr == 0 {
		fpr = bloom.DefaultFPR(uint64(n))
	}
	const header = 16
	containers := math.Min(n, spread/(1<<16)+1)
	return containers*header+math.Min(2*n, 8192*containers) < filterBytes(n, fpr)
}

func (j *Join) limits() limits {
	return limits{
		memory: float64(j.opts.Memory), threads: float64(j.threads()), typ: j.opts.Type,
		once: j.once(), filter: j.opts.Filter != nil, fpr: j.opts.FPR,
	}
}

// estimate samples both sides and puts what comes of it into the plan and the
// sizes; with sketches only if all is wanted.
func (j *Join) estimate(ctx context.Context, p *Plan, s *sizes, opts PlanOptions, all bool) error {
	log, ok, err := readSample(ctx, j.pieces, j.logKey, j.rule, j.opts.Threads, opts.Runs, opts.RunRows)
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
	} else {
		p.IDs.Rows = exactly(math.Max(p.IDs.Rows.Value, m.total))
	}
	if all {
		bound, err := x.innerProduct(m.counts)
		if err != nil {
			return err
		}
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
		ids, ok, err := readSample(ctx, pieces, j.idKey, j.rule, j.opts.Threads, runs, opts.RunRows)
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

// settle chooses the strategy and says why.
func (j *Join) settle(p *Plan, s sizes) {
	l := j.limits()
	p.Strategies = costs(s, l)
	c := choose(p.Strategies)
	if j.opts.Strategy != Auto {
		for _, forced := range p.Strategies {
			if forced.Strategy == j.opts.Strategy {
				c = forced
			}
		}
	}
	p.Strategy = c.Strategy
	p.Why = j.why(s, l, c, p.Strategies)
	m := model{sizes: s, limits: l}
	p.Filter = &FilterFacts{Bytes: int64(m.filterOfIDs()), FPR: m.rate(), Exact: s.exact}
	p.BreakEven = m.breakEvenOf(p.Strategy)
}

// why says in a sentence why a strategy is taken.
func (j *Join) why(s sizes, l limits, c Cost, all []Cost) string {
	if j.opts.Strategy != Auto {
		return "it was asked for"
	}
	if l.once != "" {
		return l.once + " can be read only once"
	}
	var lookup Cost
	for _, o := range all {
		if o.Strategy == Lookup {
			lookup = o
		}
	}
	ids, log := short(s.idRows), short(s.logRows)
	switch c.Strategy {
	case Exact:
		return fmt.Sprintf("the %s IDs lie so close together that the filter holds them exactly, and what it lets through is the answer", ids)
	case Lookup:
		return fmt.Sprintf("a table of the %s IDs takes about %s, and each side is read once", ids, inBytes(float64(c.MemoryBytes)))
	}
	instead := fmt.Sprintf("a table of all %s IDs would take about %s", ids, inBytes(float64(lookup.MemoryBytes)))
	if lookup.Feasible {
		instead = fmt.Sprintf("a table of all %s IDs would take about %.2g s and %s", ids, lookup.Seconds, inBytes(float64(lookup.MemoryBytes)))
	}
	switch c.Strategy {
	case Broadcast:
		return fmt.Sprintf("%s; of the log's %s rows few are candidates, and only the IDs that they have are kept", instead, log)
	case Reverse:
		return fmt.Sprintf("%s; a filter of the log's keys finds the few that are needed", instead)
	}
	return fmt.Sprintf("%s, and those that the log has do not fit either: log keys and IDs are divided on disk", instead)
}

// short renders a number for a sentence.
func short(n float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{" billion", 1e9}, {" million", 1e6}} {
		if n >= u.size {
			return fmt.Sprintf("%.3g%s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.0f", n)
}

// advise fills in what is for people who ask what to do.
func (j *Join) advise(p *Plan, s sizes, opts PlanOptions) {
	m := model{sizes: s, limits: j.limits()}
	p.Filter.Best = bestFPR(s, opts)
	if p.Selectivity == nil {
		if m.once != "" {
			p.Advice = append(p.Advice, "What can be read only once is not looked at beforehand: name a file for estimates.")
		}
		return
	}
	pass := m.candidates(m.rate()) / math.Max(s.logRows, 1)
	p.Shuffled = &Shuffled{BytesWithout: int64(s.logBytes), Bytes: int64(s.logBytes * pass)}
	switch {
	case s.logRows == 0 || s.idRows == 0:
		p.Advice = append(p.Advice, "One side is empty.")
		return
	case p.Selectivity.Low == 1:
		p.Advice = append(p.Advice, "Every row of the log has an ID: a filter drops nothing, and any join will do as well.")
	case !p.BreakEven.Worth:
		p.Advice = append(p.Advice, fmt.Sprintf("Filtering is not worth it: about %.3g %% of the log's rows have an ID, and it pays below %.3g %%.", 100*s.selectivity, 100*p.BreakEven.Selectivity))
	}
	if both := s.logBytes + float64(max(p.IDs.Bytes, 0)); both < smallJoin {
		p.Advice = append(p.Advice, fmt.Sprintf("Both sides together have %s decompressed, which fits into memory: DuckDB or Polars would do as well.", inBytes(both)))
	} else if s.selectivity > 0.5 && s.idRows < s.logRows {
		p.Advice = append(p.Advice, "Most rows are kept, so that reading and writing them takes most of the time: DuckDB or Polars would do as well.")
	}
}

// smallJoin is up to how many bytes of both sides any program joins in a moment.
const smallJoin = 256 << 20

// skips finds out how much of the log its statistics let a scan skip.
func (j *Join) skips(ctx context.Context, p *Plan, m *matches) error {
	const groups = 256
	f := known{j: j, bounds: m.bounds}
	s, err := partition.Skippable(ctx, j.pieces, partition.Match{Filter: f, Key: j.logKey}, groups)
	if err != nil {
		return err
	}
	if s.Groups > 0 && m.bounds != nil {
		p.Skips = &Skips{s.Groups, s.GroupsSkipped, s.Pages, s.PagesSkipped, s.Rows, s.RowsSkipped}
	}
	return nil
}

// known is a filter of which nothing is known but the bounds of its keys. It
// serves to ask what could be skipped.
type known struct {
	j      *Join
	bounds *keys.Bounds
}

func (k known) KeyNames() []string   { return nil }
func (k known) KeyClasses() []string { return k.j.plan.Spec.Classes }
func (k known) Normal() string       { return k.j.rule.NormalForm() }
func (k known) Sealed() bool         { return true }
func (k known) Bloom() *bloom.Filter { return nil }
func (k known) Exact() *exact.Set    { return nil }

func (k known) KeyRange(column int) (lo, hi []byte, ok bool) {
	if k.bounds == nil {
		return nil, nil, false
	}
	return k.bounds.Column(column)
}

// threads is the number of workers.
func (j *Join) threads() int {
	if j.opts.Threads > 0 {
		return j.opts.Threads
	}
	return runtime.GOMAXPROCS(0)
}
