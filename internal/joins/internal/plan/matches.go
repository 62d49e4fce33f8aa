package plan

import "math"

// Matches compares a sample of the log with the IDs, or with a sample of them.
type Matches struct {
	of     *Index
	counts []float64 // by key of the log's sample: IDs with that key, perhaps estimated
	total  float64   // ID rows with a key
	keys   Estimate  // distinct keys of the IDs
	ids    *Sample   // nil: all IDs were read
	hits   int       // sampled IDs whose key is in the log's sample
}

// AllMatches returns what was counted over all IDs: total rows with a key, keys
// distinct ones, and the hits of each worker.
func AllMatches(x *Index, hits []*Hits, keys Estimate) *Matches {
	m := &Matches{of: x, counts: make([]float64, len(x.count)), keys: keys}
	for _, h := range hits {
		for e, n := range h.counts {
			m.counts[e] += float64(n)
		}
		m.total += float64(h.total)
	}
	m.keys.High = math.Min(m.keys.High, m.total)
	m.keys.Value = math.Min(m.keys.Value, m.total)
	m.keys.Low = math.Min(m.keys.Low, m.total)
	return m
}

// SampledMatches compares the log's sample with a sample of the IDs.
func SampledMatches(x *Index, ids *Sample) (*Matches, error) {
	of, err := ids.Index()
	if err != nil {
		return nil, err
	}
	m := &Matches{of: x, counts: make([]float64, len(x.count)), keys: ids.distinct(of), ids: ids}
	_, m.total = ids.keyed()
	if ids.All {
		m.ids = nil
	}
	for _, r := range ids.Runs {
		for _, h := range r.Hashes {
			if e, ok := x.of[h]; ok {
				m.counts[e] += ids.Total * r.Stands / r.Rows
				m.hits++
			}
		}
	}
	if ids.All { // the quotients are integers up to rounding
		for e, c := range m.counts {
			m.counts[e] = math.Round(c)
		}
	}
	return m, nil
}

// perKey returns the number of ID rows for each key of the log's sample.
func (m *Matches) perKey() float64 {
	var sum float64
	for _, c := range m.counts {
		sum += c
	}
	return sum / math.Max(1, float64(len(m.counts)))
}

// seen returns the number of ID rows in the sample of the IDs.
func (m *Matches) seen() float64 {
	n, _ := m.ids.keyed()
	return n
}

// selectivity estimates the share of the log's rows whose key is in an ID, and
// the pairs of log row and ID for each log row.
//
// Both are means over runs of means over a run's rows. Rows of a run, of a page
// and of a key are alike, so the scatter is taken between runs (that of a sample
// of clusters, W. Cochran, "Sampling techniques", 1977, ch. 9), with Student's t.
// That cannot see what no run contains. So the upper bound assumes that a share
// of the log matches completely, as large as k runs miss with a probability of one
// in two hundred.
//
// Rows seen to match bound the selectivity from below. If the IDs are sampled, the
// log's keys may all be among those not read, so there is no upper bound.
func (s *Sample) selectivity(m *Matches) (selectivity, perRow Estimate) {
	var some, pairs []float64
	var certain, surely float64 // rows and pairs seen
	var most float64            // pairs for each row of a run
	alike := 1.0                // distinct keys for each ID row
	if m.ids != nil && m.total > 0 {
		alike = m.keys.Value / m.total
	}
	for u, r := range s.Runs {
		var hit, n, seen, sum float64
		for _, e := range m.of.rows[u] {
			c := m.counts[e]
			if c > 0 {
				seen++
				hit += 1
			}
			sum += c
		}
		n = math.Max(r.Rows, 1)
		if m.ids != nil {
			hit = math.Min(1, sum/n*alike) * n
		}
		some, pairs = append(some, hit/n), append(pairs, sum/n)
		certain += seen
		surely += sum
		most = math.Max(most, sum/n)
	}
	certain, surely = certain/math.Max(s.Total, 1), surely/math.Max(s.Total, 1)
	if s.All && m.ids == nil {
		return Exactly(certain), Exactly(surely)
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
	heaviest := 5 * m.total / math.Max(1, m.seen()) // rows of a key that a sample misses with a probability below 1 %
	for _, c := range m.counts {
		heaviest = math.Max(heaviest, c)
	}
	perRow.Low, perRow.High = certain, math.Max(perRow.High, heaviest)
	return selectivity, perRow
}

// fewHits is how many sampled IDs must be in the log's sample for their number to
// be more than chance.
const fewHits = 16

// Observe fills in what the samples show and refines the sizes by it. closely asks
// for everything that a user may want to know. Otherwise, if too few IDs are in
// both samples, only the log's distinct keys are filled in and ok is false.
func (p *Plan) Observe(s *Sizes, log *Sample, m *Matches, closely bool) (ok bool) {
	seen, _ := log.keyed()
	distinct := log.distinct(m.of)
	if !closely && m.ids != nil && m.hits < fewHits {
		p.Log.Distinct, s.LogKeys = &distinct, distinct.Value
		return false
	}
	selectivity, perRow := log.selectivity(m)
	perRow.High = math.Min(perRow.High, math.Max(m.total, perRow.Value))
	pairs := perRow.Times(s.LogRows)
	keys := m.keys
	p.Selectivity, p.JoinRows = &selectivity, &pairs
	p.Log.Distinct, p.IDs.Distinct = &distinct, &keys
	p.Sampled = Sampled{LogRuns: int64(len(log.Runs)), LogRows: int64(seen), LogAll: log.All, IDsAll: m.ids == nil, IDRows: int64(m.total)}
	if m.ids != nil {
		p.Sampled.IDRuns, p.Sampled.IDRows = int64(len(m.ids.Runs)), int64(m.seen())
	} else if p.IDs.Rows.Low != p.IDs.Rows.High || p.IDs.Rows.Value < m.total { // else NULLs are among them
		p.IDs.Rows = Exactly(m.total)
	}
	if closely {
		bound, err := m.of.innerProduct(m.counts)
		if scale := s.LogRows / math.Max(log.read(), 1); !log.All || m.ids != nil {
			bound.Rows, bound.Error = bound.Rows*scale, bound.Error*scale
		}
		if err == nil { // else there are more than 2^64 rows
			p.Sketch = &bound
		}
	}
	s.LogKeys, s.Selectivity, s.JoinRows = distinct.Value, selectivity.Value, pairs.Value
	s.IDRows, s.IDKeys = math.Max(m.total, 0), math.Max(1, m.keys.Value)
	s.Kept = math.Min(s.IDRows, distinct.Value*m.perKey())
	return true
}
