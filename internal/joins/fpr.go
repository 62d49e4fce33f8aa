package joins

import "math"

// secondMoment estimates Σc², where c is the number of rows of each key: the second
// frequency moment, in one pass and fixed memory. It is a fast AMS sketch (Cormode
// and Garofalakis, "Sketching streams through the net", VLDB 2005): each key adds
// ±1 to one of m counters, and the sum of their squares has mean Σc² and a
// relative error of √(2/m), 0.6 %. One goroutine uses it.
type secondMoment struct {
	counts []int64
	rows   int64
}

const spreadBits = 16

func newSpread() *secondMoment { return &secondMoment{counts: make([]int64, 1<<spreadBits)} }

// add counts n rows whose key has hash h.
func (s *secondMoment) add(h uint64, n int64) {
	h *= 0x9e3779b97f4a7c15 // so that bits do not repeat those that the filter uses
	sign := int64(h>>(63-spreadBits)&1)<<1 - 1
	s.counts[h>>(64-spreadBits)] += sign * n
	s.rows += n
}

// merge adds the counts of another sketch.
func (s *secondMoment) merge(t *secondMoment) {
	s.rows += t.rows
	for i, c := range t.counts {
		s.counts[i] += c
	}
}

// squares returns the estimate of Σc², at least Σc.
func (s *secondMoment) squares() float64 {
	var sum float64
	for _, c := range s.counts {
		sum += float64(c) * float64(c)
	}
	return math.Max(sum, float64(s.rows))
}

// heaviest returns an estimate of the largest c; it is high if many keys share a
// counter.
func (s *secondMoment) heaviest() float64 {
	var top int64
	for _, c := range s.counts {
		top = max(top, c, -c)
	}
	return float64(top)
}

// measuredFPR is the false-positive rate that a join observed: of the rows whose
// key is in no ID, the share that passed the filter.
type measuredFPR struct {
	Rate float64
	// Low and High bound the rate expected from the filter's bits. A rate outside
	// them has a probability of one in a thousand, so something is wrong with the
	// filter. Rows of one key pass or fail together, so the variance is
	// p(1-p)·Σc²/(Σc)², c being the rows of a key. The bound is Bernstein's
	// inequality, which holds even if one key makes up much of the log.
	Low, High float64
	Rows      int64 // rows whose key is in no ID
}

// measure compares the false positives with the predicted rate p.
func measure(p float64, falsePositives int64, s *secondMoment) measuredFPR {
	m := measuredFPR{Low: p, High: p, Rows: s.rows}
	if s.rows == 0 {
		m.Low, m.High = 0, 1
		return m
	}
	n := float64(s.rows)
	m.Rate = float64(falsePositives) / n
	const confidence = 7.6 // ln(2/0.001)
	variance := p * (1 - p) * s.squares()
	b := confidence * s.heaviest() / 3
	t := (b + math.Sqrt(b*b+2*variance*confidence)) / n
	if p == 0 {
		t = 0 // an exact filter has no variance
	}
	m.Low, m.High = math.Max(0, p-t), math.Min(1, p+t)
	return m
}

// inside reports whether the rate is within its bounds.
func (m measuredFPR) inside() bool { return m.Rate >= m.Low && m.Rate <= m.High }
