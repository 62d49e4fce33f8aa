package plan

import (
	"math"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/countmin"
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

// sketchParams are the parameters of a plan's count-min sketches. The width decides the error:
// e/width of the product of both totals, with a confidence of 1-e^-depth.
var sketchParams = countmin.Params{Width: 1 << 14, Depth: 5}

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
func (x *Index) innerProduct(ids []float64) (bound SketchBound, err error) {
	log, other := countmin.NewTable(sketchParams, 0), countmin.NewTable(sketchParams, 0)
	for h, e := range x.of {
		if err := log.Add(h, false, uint64(x.count[e])); err != nil {
			return bound, err
		}
		if err := other.Add(h, false, uint64(math.Ceil(ids[e]))); err != nil {
			return bound, err
		}
	}
	high, low := log.Product(other)
	return SketchBound{
		Rows:       math.Ldexp(float64(high), 64) + float64(low),
		Error:      sketchParams.Epsilon() * float64(log.Total()) * float64(other.Total()),
		Confidence: 1 - sketchParams.Delta(),
	}, nil
}
