package plan

import (
	"math"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// Distinct counts distinct keys by their hashes in fixed memory: exactly up to
// fewKeys, then by HyperLogLog registers. One goroutine uses it.
type Distinct struct {
	few       map[uint64]struct{} // nil above fewKeys
	registers bloom.Registers
}

const fewKeys = 4096

// NewDistinct returns an empty sketch.
func NewDistinct() *Distinct { return &Distinct{few: map[uint64]struct{}{}} }

// Add counts hashes.
func (d *Distinct) Add(hashes []uint64) {
	d.registers.Add(hashes)
	for _, h := range hashes {
		if d.few == nil {
			return
		}
		d.addFew(h)
	}
}

func (d *Distinct) addFew(h uint64) {
	d.few[h] = struct{}{}
	if len(d.few) > fewKeys {
		d.few = nil
	}
}

// Merge adds the counts of another sketch.
func (d *Distinct) Merge(other *Distinct) {
	d.registers.Merge(&other.registers)
	if other.few == nil {
		d.few = nil
	}
	for h := range other.few {
		if d.few == nil {
			return
		}
		d.addFew(h)
	}
}

// Estimate returns the number of distinct keys, with bounds of two standard
// errors.
func (d *Distinct) Estimate() Estimate {
	if d.few != nil {
		return Exactly(float64(len(d.few)))
	}
	e := d.registers.Estimate()
	errors := 2 * 1.04 / math.Sqrt(float64(len(d.registers)))
	return Estimate{e, e / (1 + errors), e / (1 - errors)}
}

// The size of the count-min sketches, and with it their error: e/width of the
// product of both totals, with a confidence of 1-e^-depth.
const (
	sketchBits  = 14
	sketchWidth = 1 << sketchBits
	sketchDepth = 5
)

// countMin is a count-min sketch: sketchDepth rows of counters. Each row adds a
// key's weight to one counter, chosen by a hash function of its own, so that a
// counter is never below the weight of any of its keys.
//
// Source: G. Cormode and S. Muthukrishnan, "An improved data stream summary: the
// count-min sketch", J. Algorithms 55, 2005.
type countMin struct {
	counters [sketchDepth][sketchWidth]float64
	total    float64
}

// add adds to the weight of the key with hash h. Weights are not negative.
func (s *countMin) add(h uint64, weight float64) {
	s.total += weight
	for row := range s.counters {
		// One round of splitmix64 for each row: sums and products of one hash
		// alone would put keys that share a counter together in all rows.
		h += 0x9e3779b97f4a7c15
		z := (h ^ h>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		s.counters[row][(z^z>>31)>>(64-sketchBits)] += weight
	}
}

// innerProduct returns the sum over all keys of the product of their weights in
// both sketches, or more: the least inner product of two rows of counters
// (section 4.2 of the paper).
func (s *countMin) innerProduct(t *countMin) SketchBound {
	least := math.Inf(1)
	for row := range s.counters {
		var sum float64
		for i, c := range s.counters[row] {
			sum += c * t.counters[row][i]
		}
		least = math.Min(least, sum)
	}
	return SketchBound{
		Rows:       least,
		Error:      math.E / sketchWidth * s.total * t.total,
		Confidence: 1 - math.Exp(-sketchDepth),
	}
}

// SketchBound is an upper bound on the pairs of log row and ID, from count-min
// sketches of both sides. Rows is never below the number of pairs and, with the
// confidence, at most Error above it.
type SketchBound struct {
	Rows       float64 `json:"rows"`
	Error      float64 `json:"error"`
	Confidence float64 `json:"confidence"`
}

// innerProduct returns the bound from sketches of the log's sampled rows and of the
// IDs with one of their keys.
func (x *Index) innerProduct(ids []float64) SketchBound {
	var log, other countMin
	for h, e := range x.of {
		log.add(h, x.count[e])
		other.add(h, math.Ceil(ids[e]))
	}
	return log.innerProduct(&other)
}
