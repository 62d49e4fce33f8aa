package plan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/datasketches-go/count"
	"github.com/apache/datasketches-go/hll"
)

// Distinct counts distinct keys by their hashes in fixed memory: HyperLogLog with
// 2^14 registers. One goroutine uses it.
type Distinct struct {
	sketch hll.HllSketch
}

const distinctBits = 14

// NewDistinct returns an empty sketch.
func NewDistinct() (*Distinct, error) {
	s, err := hll.NewHllSketch(distinctBits, hll.TgtHllTypeHll8)
	return &Distinct{s}, err
}

// Thinning returns the power of two of which one key in so many is counted: the
// sketch costs as much as all other work on a key, and of very many keys a part
// suffices.
func Thinning(rows int64) uint64 {
	thin := uint64(1)
	for rows > 1<<21 && thin < 64 {
		thin, rows = 2*thin, rows/2
	}
	return thin
}

// Add counts one hash in thin, chosen by its low bits.
func (d *Distinct) Add(hashes []uint64, thin uint64) error {
	for _, h := range hashes {
		if h&(thin-1) == 0 {
			if err := d.sketch.UpdateUInt64(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// Merge adds the counts of another sketch.
func (d *Distinct) Merge(other *Distinct) error {
	u, err := hll.NewUnion(distinctBits)
	if err != nil {
		return err
	}
	for _, s := range []hll.HllSketch{d.sketch, other.sketch} {
		if err := u.UpdateSketch(s); err != nil {
			return err
		}
	}
	d.sketch, err = u.GetResult(hll.TgtHllTypeHll8)
	return err
}

// Estimate returns the number of distinct keys with bounds of two standard
// errors, those of the sketch and of counting one key in thin.
func (d *Distinct) Estimate(thin uint64) (e Estimate, err error) {
	if e.Value, err = d.sketch.GetCompositeEstimate(); err != nil {
		return e, err
	}
	low, err := d.sketch.GetLowerBound(2)
	if err != nil {
		return e, err
	}
	high, err := d.sketch.GetUpperBound(2)
	if err != nil {
		return e, err
	}
	more := 0.0
	if thin > 1 {
		more = 2 * math.Sqrt(math.Max(e.Value, 1)*float64(thin-1)/float64(thin))
		more += 2
	}
	e.Low, e.High = math.Max(0, math.Min(low, e.Value)-more), math.Max(high, e.Value)+more
	return e.Times(float64(thin)), nil
}

// The size of the count-min sketches, and with it their error: e/width of the
// product of both totals, with a confidence of 1-e^-depth.
const (
	sketchWidth = 1 << 14
	sketchDepth = 5
	sketchSeed  = 1
)

// SketchBound is an upper bound of the pairs of log row and ID from count-min
// sketches of both sides: the least inner product of their rows of counters,
// which is never below the number of pairs, and, with the confidence, no more
// than Error above it (G. Cormode and S. Muthukrishnan, "An improved data stream
// summary: the count-min sketch", J. Algorithms 55, 2005, section 4.2).
type SketchBound struct {
	Rows       float64 `json:"rows"`
	Error      float64 `json:"error"`
	Confidence float64 `json:"confidence"`
}

// innerProduct sketches the sampled rows of the log and the IDs that have one
// of their keys, and multiplies.
func (x *Index) innerProduct(ids []float64) (SketchBound, error) {
	log, err := count.NewCountMinSketch(sketchDepth, sketchWidth, sketchSeed)
	if err != nil {
		return SketchBound{}, err
	}
	other, err := count.NewCountMinSketch(sketchDepth, sketchWidth, sketchSeed)
	if err != nil {
		return SketchBound{}, err
	}
	for h, e := range x.of {
		if err := log.UpdateUint64(h, int64(x.count[e])); err != nil {
			return SketchBound{}, err
		}
		if n := int64(math.Ceil(ids[e])); n > 0 {
			if err := other.UpdateUint64(h, n); err != nil {
				return SketchBound{}, err
			}
		}
	}
	a, err := counters(log)
	if err != nil {
		return SketchBound{}, err
	}
	b, err := counters(other)
	if err != nil {
		return SketchBound{}, err
	}
	least := math.Inf(1)
	for d := range sketchDepth {
		var sum float64
		for i := d * sketchWidth; i < (d+1)*sketchWidth; i++ {
			sum += float64(a[i]) * float64(b[i])
		}
		least = math.Min(least, sum)
	}
	return SketchBound{
		Rows: least, Confidence: 1 - math.Exp(-sketchDepth),
		Error: math.E / sketchWidth * float64(log.GetTotalWeight()) * float64(other.GetTotalWeight()),
	}, nil
}

// counters returns the counters of a sketch, row by row. The library gives them
// away in its serial form alone: a header of 24 bytes, if there are any, and then
// the counters in eight bytes each.
func counters(s *count.CountMinSketch) ([]int64, error) {
	out := make([]int64, sketchDepth*sketchWidth)
	if s.GetTotalWeight() == 0 {
		return out, nil
	}
	var buf bytes.Buffer
	if err := s.Serialize(&buf); err != nil {
		return nil, err
	}
	const header = 24
	if buf.Len() != header+8*len(out) {
		return nil, fmt.Errorf("a count-min sketch of %d bytes, want %d", buf.Len(), header+8*len(out))
	}
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(buf.Bytes()[header+8*i:]))
	}
	return out, nil
}
