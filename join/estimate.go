package join

import (
	"context"
	"math"
	"sync"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// What a plan says of selectivity and size of the answer comes from a sample of
// the log: runs of rows, spread evenly over it, see [partition.Runs]. Their keys
// are put into a table, and the IDs' keys are streamed past it, so that for
// each sampled row the number of IDs with its key is known exactly. Of a log
// that is small enough all rows are in the sample, and nothing is left to chance.
//
// Where reading all IDs would take too long, runs of those are sampled, too.
// A key is told by its 64-bit hash here: two keys of one hash, or -1 and 2^64-1,
// make an estimate wrong by a row, which no answer depends on.

// Estimate is a figure with bounds. Where they are not the same, they hold with
// a confidence of 99 %.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// times returns the estimate of a multiple.
func (e Estimate) times(f float64) Estimate { return Estimate{e.Value * f, e.Low * f, e.High * f} }

// exactly is a figure that is known.
func exactly(v float64) Estimate { return Estimate{v, v, v} }

// sample holds the keys of runs.
type sample struct {
	runs  []sampledRun
	total float64 // rows of the side
	all   bool    // no row is left out
}

// sampledRun is what was found in one run.
type sampledRun struct {
	rows   float64 // with and without a key
	stands float64 // share of the side's rows that the run stands for
	hashes []uint64
}

// readSample reads runs. ok is false where the side cannot be sampled.
func readSample(ctx context.Context, pieces []partition.Piece, column string, o key.Options, threads, runs, rows int) (s *sample, ok bool, err error) {
	chosen, all, ok := partition.Runs(pieces, runs, int64(rows))
	if !ok {
		return nil, false, nil
	}
	s = &sample{runs: make([]sampledRun, len(chosen)), all: all}
	for _, r := range chosen {
		s.total += r.Stands
	}
	for i, r := range chosen {
		s.runs[i].stands = r.Stands / s.total
	}
	err = partition.ReadRuns(ctx, chosen, column, o, threads, func() (partition.RunWork, error) {
		var hashes []uint64
		return func(run int, b *key.Batch) error {
			r := &s.runs[run]
			r.rows += float64(b.Len)
			hashes = b.Hash(table.Hash, hashes)
			r.hashes = append(r.hashes, hashes...)
			return nil
		}, nil
	})
	return s, true, err
}

// keyed is the number of rows with a key in the sample, and what that makes of
// the side.
func (s *sample) keyed() (seen, all float64) {
	for _, r := range s.runs {
		seen += float64(len(r.hashes))
		if r.rows > 0 {
			all += s.total * r.stands * float64(len(r.hashes)) / r.rows
		}
	}
	return seen, all
}

// index numbers the distinct keys of a sample.
type index struct {
	of     map[uint64]uint32
	filter *bloom.Filter // of the keys, to be asked first
	rows   [][]uint32    // of each run: the key of each row that has one
	runs   []uint32      // by key: in how many runs it is
	count  []float64     // by key: rows in the sample
	share  []float64     // by key: about which share of all rows have it
}

func (s *sample) index() (*index, error) {
	seen, _ := s.keyed()
	x := &index{of: make(map[uint64]uint32, int(seen/2)), rows: make([][]uint32, len(s.runs))}
	var last []int32
	for u, r := range s.runs {
		x.rows[u] = make([]uint32, len(r.hashes))
		for i, h := range r.hashes {
			e, ok := x.of[h]
			if !ok {
				e = uint32(len(x.count))
				x.of[h] = e
				x.count, x.share, x.runs, last = append(x.count, 0), append(x.share, 0), append(x.runs, 0), append(last, -1)
			}
			x.count[e]++
			x.share[e] += r.stands / r.rows
			if last[e] != int32(u) {
				last[e] = int32(u)
				x.runs[e]++
			}
			x.rows[u][i] = e
		}
	}
	g := bloom.Split256
	var err error
	if x.filter, err = bloom.New(bloom.Params{Geometry: g, Hash: table.Hash, Blocks: g.BlocksFor(uint64(len(x.count)+1), 0.005)}); err != nil {
		return nil, err
	}
	hashes := make([]uint64, 0, len(x.of))
	for h := range x.of {
		hashes = append(hashes, h)
	}
	x.filter.Add(hashes)
	return x, nil
}

// distinct estimates how many keys the side has of which this is a sample, by
// how many are in one run alone and how many are in two: Chao's estimator for
// incidences (A. Chao, "Estimating the population size for capture-recapture
// data with unequal catchability", Biometrics 43, 1987), which falls short where
// keys differ much in how often they are. The bounds are sure up to the
// scatter of the sample: no less keys than were seen, and no more than if each
// of those in one run alone stood for as many as the run does for rows
// (M. Charikar and others, "Towards estimation error guarantees for distinct
// values", PODS 2000).
func (s *sample) distinct(x *index) Estimate {
	d := float64(len(x.count))
	if s.all || d == 0 {
		return exactly(d)
	}
	seen, all := s.keyed()
	var one, two float64
	for _, n := range x.runs {
		switch n {
		case 1:
			one++
		case 2:
			two++
		}
	}
	high := math.Min(all, d+one*(all/math.Max(seen, 1)-1)*1.1)
	k := float64(len(s.runs))
	value := d + (k-1)/k*one*math.Max(one-1, 0)/(2*(two+1))
	return Estimate{math.Min(value, high), d, math.Max(d, high)}
}

// matches is what was found of the IDs.
type matches struct {
	of     *index
	counts []float64 // by key of the log's sample: IDs with that key, or their estimate
	total  float64   // ID rows with a key
	keys   Estimate  // distinct keys
	ids    *sample   // nil: all IDs have been read
	hits   int       // of a sample of IDs those whose key is in that of the log
	bounds *key.Bounds
}

// stream reads all IDs past the sample of the log.
func (j *Join) stream(ctx context.Context, x *index) (*matches, error) {
	m := &matches{of: x, counts: make([]float64, len(x.count)), bounds: key.NewBounds(j.classes)}
	keysOf := newDistinct()
	var mu sync.Mutex
	type worker struct {
		counts   []uint32
		total    int64
		bounds   *key.Bounds
		distinct *distinct
	}
	var all []*worker
	pieces := partition.Split(j.ids, partition.Shard{})
	err := partition.MapKeys(ctx, pieces, j.idKey, j.keyOptions(), j.opts.Threads, func() (partition.KeyWork, error) {
		w := &worker{counts: make([]uint32, len(x.count)), bounds: key.NewBounds(j.classes), distinct: newDistinct()}
		mu.Lock()
		all = append(all, w)
		mu.Unlock()
		var hashes []uint64
		var hits []uint32
		return func(_ partition.Piece, b *key.Batch) error {
			hashes = b.Hash(table.Hash, hashes)
			w.total += int64(len(hashes))
			w.bounds.Add(b)
			hits = x.filter.Probe(hashes, hits[:0])
			for _, i := range hits {
				if e, ok := x.of[hashes[i]]; ok {
					w.counts[e]++
				}
			}
			w.distinct.add(hashes)
			return nil
		}, nil
	})
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		for e, n := range w.counts {
			m.counts[e] += float64(n)
		}
		m.total += float64(w.total)
		m.bounds.Merge(w.bounds)
		keysOf.merge(w.distinct)
	}
	m.keys = keysOf.estimate()
	m.keys.High = math.Min(m.keys.High, m.total)
	m.keys.Value = math.Min(m.keys.Value, m.total)
	m.keys.Low = math.Min(m.keys.Low, m.total)
	return m, nil
}

// sampled compares the sample of the log with one of the IDs.
func sampled(x *index, ids *sample) (*matches, error) {
	of, err := ids.index()
	if err != nil {
		return nil, err
	}
	m := &matches{of: x, counts: make([]float64, len(x.count)), keys: ids.distinct(of), ids: ids}
	_, m.total = ids.keyed()
	if ids.all {
		m.ids = nil
	}
	for _, r := range ids.runs {
		for _, h := range r.hashes {
			if e, ok := x.of[h]; ok {
				m.counts[e] += ids.total * r.stands / r.rows
				m.hits++
			}
		}
	}
	if ids.all { // the quotients are whole numbers, but for rounding
		for e, c := range m.counts {
			m.counts[e] = math.Round(c)
		}
	}
	return m, nil
}

// selectivity estimates the share of the log's rows whose key is in an ID, and
// the pairs of log row and ID for each log row.
//
// Both are means over runs of means over a run's rows. The rows of a run, of a
// page and of a key fall together, so that the scatter is taken between the
// runs (that of a sample of clusters, W. Cochran, "Sampling techniques", 1977,
// ch. 9), with Student's t. That is blind for what no run has come by; so the
// upper bound supposes that a share of the log matches whole which is so small
// that k runs miss it with a chance of one in two hundred.
//
// A row that was seen to match does so: the lower bound is never less than
// these. Where IDs are sampled, the log's keys may all be where no run of IDs
// was, and nothing bounds the selectivity from above.
func (s *sample) selectivity(m *matches) (selectivity, perRow Estimate) {
	var some, pairs []float64
	var certain, surely float64 // rows and pairs that were seen
	var most float64            // pairs for each row of a run
	alike := 1.0                // distinct keys for each ID row
	if m.ids != nil && m.total > 0 {
		alike = m.keys.Value / m.total
	}
	for u, r := range s.runs {
		var hit, n, seen, sum float64
		for _, e := range m.of.rows[u] {
			c := m.counts[e]
			if c > 0 {
				seen++
				hit += 1
			}
			sum += c
		}
		n = math.Max(r.rows, 1)
		if m.ids != nil {
			hit = math.Min(1, sum/n*alike) * n
		}
		some, pairs = append(some, hit/n), append(pairs, sum/n)
		certain += seen
		surely += sum
		most = math.Max(most, sum/n)
	}
	certain, surely = certain/math.Max(s.total, 1), surely/math.Max(s.total, 1)
	if s.all && m.ids == nil {
		return exactly(certain), exactly(surely)
	}
	selectivity, perRow = s.mean(some), s.mean(pairs)
	unseen := s.unseen()
	dup := 1.0
	if m.keys.Value > 0 {
		dup = math.Max(1, m.total/m.keys.Value)
	}
	selectivity.Low = math.Min(selectivity.Value, math.Max(selectivity.Low, certain))
	selectivity.High = math.Min(1, selectivity.High+unseen*(1-math.Min(1, selectivity.High)))
	perRow.High += unseen * math.Max(most, dup)
	if m.ids == nil {
		perRow.Low = math.Min(perRow.Value, math.Max(perRow.Low, surely))
		return selectivity, perRow
	}
	selectivity.Low, selectivity.High = math.Min(certain, selectivity.Value), 1
	heaviest := 5 * m.total / math.Max(1, m.seen()) // rows of a key that a sample misses with a chance below 1 %
	for _, c := range m.counts {
		heaviest = math.Max(heaviest, c)
	}
	perRow.Low, perRow.High = certain, math.Max(perRow.High, heaviest)
	return selectivity, perRow
}

// seen is the number of ID rows in the sample.
func (m *matches) seen() float64 {
	n, _ := m.ids.keyed()
	return n
}

// mean estimates the mean of a figure over all rows by its means over the runs.
func (s *sample) mean(of []float64) Estimate {
	var mean, rows, squares float64
	for u, x := range of {
		mean += s.runs[u].stands * x
		rows += s.runs[u].rows
	}
	if s.all {
		return exactly(mean)
	}
	k := float64(len(of))
	if k < 2 {
		return Estimate{mean, 0, math.Inf(1)}
	}
	for _, x := range of {
		squares += (x - mean) * (x - mean)
	}
	left := math.Max(0, 1-rows/math.Max(s.total, 1)) // of the side, that was not read
	t := student(k-1) * math.Sqrt(squares/(k-1)/k*left)
	return Estimate{mean, math.Max(0, mean-t), mean + t}
}

// unseen is the share of the side that the runs miss with a chance of one in two
// hundred, if it is made of whole runs.
func (s *sample) unseen() float64 {
	if s.all {
		return 0
	}
	var rows float64
	for _, r := range s.runs {
		rows += r.rows
	}
	share := 1 - math.Pow(0.005, 1/math.Max(1, float64(len(s.runs))))
	return math.Min(share, math.Max(0, 1-rows/math.Max(s.total, 1)))
}

// student returns the 99.5 % quantile of Student's t distribution with n
// degrees of freedom: Cornish and Fisher's expansion, right to 2 % from n = 4 on.
func student(n float64) float64 {
	const z = 2.575829
	switch {
	case n < 2:
		return 63.657
	case n < 3:
		return 9.925
	case n < 4:
		return 5.841
	}
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n) +
		(3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*n*n*n)
}
