// Package sketches has count-min sketches of the keys of rows as values, and their files: what
// package sketch shows to programs.
//
//	plan of a build ── Build ──► Sketch ── Save ──► file ── Load ──► Sketch ── Estimate, Within, …
//	partial sketches ── Merge ──► one of all rows; finished ones ── Union ──► the sum
//
// In go rows of files that a [builds.Plan] has found, or batches of keys; out come upper bounds on
// how often keys occur. A sketch is the sum of those of its rows: the number of threads and shards
// does not change it. sketch/FORMAT.md specifies the file, which has the layout of filter files.
//
// Package sketch and the command may use it.
package sketches

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/countmin"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// Spec says what a sketch counts, and how closely.
type Spec struct {
	Key    string // columns as [keys.ParseColumns] reads them
	Weight string // column with the weight of each row; empty: each row weighs 1
	Params countmin.Params
	Ranges bool // ranges of keys, too
}

// Bytes returns the size of the counters.
func (s Spec) Bytes() uint64 {
	n := s.Params.Bytes()
	if s.Ranges {
		n += countmin.RangesBytes(s.Params)
	}
	return n
}

// Sketch is a count-min sketch of the keys of rows. Methods that only read may run concurrently.
type Sketch struct {
	spec  Spec
	rows  uint64 // with a key
	facts filters.Facts
	// integer says that the keys are integers.
	integer bool
	table   *countmin.Table
	ranges  *countmin.Ranges // nil: none
}

// ParamsFor returns the parameters of tables for ε and δ, 0: [DefaultEpsilon] and [DefaultDelta].
func ParamsFor(epsilon, delta float64) (countmin.Params, error) {
	epsilon, delta = cmp.Or(epsilon, DefaultEpsilon), cmp.Or(delta, DefaultDelta)
	p, ok := countmin.ParamsFor(epsilon, delta)
	if !ok {
		return p, faults.Errorf("{Epsilon} %v, {Delta} %v: want numbers below 1, of at least %.1e and %.1e", epsilon, delta,
			1.01*countmin.Params{Width: countmin.MaxWidth}.Epsilon(), 1.01*countmin.Params{Depth: countmin.MaxDepth}.Delta())
	}
	return p, nil
}

// Defaults for tables of about 1 MiB.
const (
	DefaultEpsilon = 1e-4
	DefaultDelta   = 0.01
)

// hash is the hash of all sketches.
var hash = bloom.Hash{ID: bloom.XXH3}

// newSketch returns an empty sketch.
func newSketch(spec Spec, facts filters.Facts) *Sketch {
	s := &Sketch{spec: spec, facts: facts, table: countmin.NewTable(spec.Params, 0)}
	s.integer = len(facts.Key) == 1 && facts.Key[0].Class == string(keys.Integer)
	if spec.Ranges {
		s.ranges = countmin.NewRanges(spec.Params, 0)
	}
	return s
}

// Spec returns what the sketch counts.
func (s *Sketch) Spec() Spec { return s.spec }

// Rows returns the number of rows with a key.
func (s *Sketch) Rows() uint64 { return s.rows }

// Classes returns the classes of the key's columns.
func (s *Sketch) Classes() []string { return filters.New(s.facts).KeyClasses() }

// Facts returns what the file says of the key, the build and its shards.
func (s *Sketch) Facts() *filters.Facts { return &s.facts }

// Total returns the weight of all rows with a key: without a weight column, their number.
func (s *Sketch) Total() uint64 { return s.table.Total() }

// Bound returns nodes times ε times the total. With a probability of at least 1-δ, an estimate
// that is the sum of that many nodes is at most that much too high.
func (s *Sketch) Bound(nodes int) uint64 { return s.Spec().Bound(float64(s.Total()) * float64(nodes)) }

// Bound returns ε times a total, as a whole number: errors are whole numbers.
func (s Spec) Bound(total float64) uint64 { return whole(s.Params.Epsilon() * total) }

// whole rounds down.
func whole(f float64) uint64 {
	if f >= math.MaxUint64 {
		return math.MaxUint64
	}
	return uint64(f)
}

// KeyOptions returns the options for making keys of which the sketch can be asked.
func (s *Sketch) KeyOptions() (keys.Options, error) { return filters.New(s.facts).KeyOptions() }

// hashed returns the hash of a key in normal form, and whether it is an integer below zero: its
// hash is that of the integer with the same bits.
func (s *Sketch) hashed(key []byte) (h uint64, negative bool) {
	if s.integer {
		return hash.Sum(key[:8]), key[8] != 0
	}
	return hash.Sum(key), false
}

// add adds keys with their weights.
func (s *Sketch) add(k *weighted) error {
	k.points = k.points[:0]
	for i := range k.Batch.Rows {
		key, weight, err := k.at(i)
		if err != nil {
			return err
		}
		if weight == 0 {
			continue
		}
		h, negative := s.hashed(key)
		if err := s.table.Add(h, negative, weight); err != nil {
			return s.overflow(err)
		}
		if s.ranges != nil {
			p := pointOf(key)
			p.Weight = weight
			k.points = append(k.points, p)
		}
	}
	if s.ranges == nil {
		return nil
	}
	return s.overflow(s.ranges.Add(k.points))
}

// overflow says what overflowed.
func (s *Sketch) overflow(err error) error {
	if err == nil || s.spec.Weight == "" {
		return err
	}
	return fmt.Errorf("column %s: %w (weigh rows in a larger unit)", s.spec.Weight, err)
}

// Ranged reports whether there are ranges of keys of these classes.
func Ranged(classes []string) bool {
	return len(classes) == 1 && slices.Contains([]keys.Class{keys.Integer, keys.Date, keys.Instant, keys.Timestamp, keys.Null}, keys.Class(classes[0]))
}

// pointOf returns a key in normal form as a number: an integer, days, or whole seconds.
func pointOf(key []byte) countmin.Point {
	v := binary.LittleEndian.Uint64(key)
	if len(key) == 9 { // an integer
		return countmin.Point{Value: v, Negative: key[8] != 0}
	}
	return countmin.Point{Value: v, Negative: int64(v) < 0}
}

// merge adds the rows of another sketch of the same parameters.
func (s *Sketch) merge(t *Sketch) error {
	rows, over := bits.Add64(s.rows, t.rows, 0)
	if over != 0 {
		return countmin.ErrOverflow
	}
	if err := s.table.Merge(t.table); err != nil {
		return s.overflow(err)
	}
	s.rows = rows
	if s.ranges == nil {
		return nil
	}
	return s.overflow(s.ranges.Merge(t.ranges))
}

// Usable returns an error about a sketch that cannot be asked: a partial one, or one whose keys
// were made by rules that this version does not know.
func (s *Sketch) Usable(at fault.At) error {
	if s == nil || s.table == nil {
		return errors.New("the sketch is empty (build or load one)")
	}
	if p := s.facts.Partial; p != nil {
		return faults.Of(cause.Partial, faults.Mismatch(at, "sketch", "a finished sketch", "a partial one, in which rows are missing")).
			WithHint("merge all partial sketches of the build first")
	}
	_, err := s.KeyOptions()
	return err
}

// Estimate returns an upper bound on the weight of each key of a batch, by position in its Rows:
// never less, and more than Bound(1) above it with probability δ at most.
func (s *Sketch) Estimate(b *keys.Batch) []uint64 {
	out := make([]uint64, len(b.Rows))
	var buf [9]byte
	for i := range out {
		out[i] = s.table.Estimate(s.hashed(b.Bytes(buf[:], i)))
	}
	return out
}

// Within returns an upper bound on the weight of the keys from the first one of a batch to its
// second, inclusive, and the number of intervals that it was estimated from: it is more than
// Bound(nodes) above the weight with probability δ at most. Ends of time have whole seconds, and
// the last second counts as a whole.
func (s *Sketch) Within(ends *keys.Batch) (most uint64, nodes int, err error) {
	if s.ranges == nil {
		return 0, 0, faults.Mismatch(fault.At{}, "sketch", "one with ranges", "one without").WithHint("build it with {Range}")
	}
	var buf [9]byte
	var p [2]countmin.Point
	for i := range p {
		key := ends.Bytes(buf[:], i)
		if len(key) == 12 && binary.LittleEndian.Uint32(key[8:]) != 0 {
			return 0, 0, faults.Mismatch(fault.At{}, "end of the range", "a whole second", "a part of one").
				WithHint("sketches count ranges of time by the second")
		}
		p[i] = pointOf(key)
	}
	most, nodes = s.ranges.Estimate(p[0], p[1])
	return most, nodes, nil
}

// Product returns an upper bound on the sum, over all keys, of the product of their weights in
// both sketches: without weights, the rows of the join of their rows. It is more than bound above
// that sum with probability δ at most. The sketches must be equal in parameters and in how keys
// are made.
func Product(s, t *Sketch, names [2]string) (most, bound uint64, err error) {
	if err := alike(names[:], headersOf(names[:], []*Sketch{s, t}), false); err != nil {
		return 0, 0, err
	}
	high, most := s.table.Product(t.table)
	if high > 0 {
		return 0, 0, faults.Unsupported(fault.At{File: names[1]}, "an inner product above 2^64-1")
	}
	return most, s.spec.Bound(float64(s.Total()) * float64(t.Total())), nil
}

// Hitter is a key with its weight, or a bound on it.
type Hitter struct {
	Key    string `json:"key"` // as [keys.Text] writes it
	Weight uint64 `json:"count"`
}

// Heavy returns all keys whose weight is at least the share phi of the total, with upper bounds on
// it, in descending order. A key with less than a share of phi-ε is among them with probability δ
// at most. The sketch needs ranges of integers or dates, and phi must be above ε.
func (s *Sketch) Heavy(phi float64) ([]Hitter, error) {
	class := s.facts.Key[0].Class
	switch epsilon := s.spec.Params.Epsilon(); {
	case s.ranges == nil || !slices.Contains([]keys.Class{keys.Integer, keys.Date, keys.Null}, keys.Class(class)):
		return nil, faults.Mismatch(fault.At{}, "sketch", "one with ranges of integers or dates", "one of "+s.forms()).
			WithHint("name the inputs after the sketch: they are then read again, and the counts are exact")
	case phi <= epsilon:
		return nil, faults.Mismatch(fault.At{}, "share of heavy keys", fmt.Sprintf("more than the sketch's ε of %.3g", epsilon), fmt.Sprintf("%.3g", phi)).
			WithHint("name the inputs after the sketch, or build it with a smaller {Epsilon}")
	}
	threshold := s.Threshold(phi)
	points, ok := s.ranges.Heavy(threshold, maxHitters)
	if !ok {
		return nil, faults.Unsupported(fault.At{}, "more than %d keys may be heavy", maxHitters).WithHint("build the sketch with a smaller {Epsilon}")
	}
	var found []Hitter
	for _, p := range points {
		key := keys.IntegerPart(p.Value, p.Negative)
		if !s.integer { // days, without a sign of their own
			key = key[:8]
		}
		if most := min(p.Weight, s.table.Estimate(s.hashed(key))); most >= threshold {
			found = append(found, Hitter{keys.Text([]keys.Class{keys.Class(class)}, key), most})
		}
	}
	slices.SortStableFunc(found, byWeight)
	return found, nil
}

// maxHitters limits the intervals that are looked at for heavy keys in a level.
const maxHitters = 1 << 20

// Threshold returns the least weight, at least 1, that is a share of the total. It allows for shares
// such as 0.07, which are a little more in binary: a key with 7 of 100 rows must reach it.
func (s *Sketch) Threshold(phi float64) uint64 {
	const rounding = 1 - 1e-15
	return max(1, whole(math.Ceil(phi*rounding*float64(s.Total()))))
}

// byWeight orders hitters, the heaviest first.
func byWeight(a, b Hitter) int { return cmp.Compare(b.Weight, a.Weight) }

// forms describes the keys and what is known about them, for errors.
func (s *Sketch) forms() string {
	form := strings.Join(s.Classes(), ", ")
	if s.ranges == nil {
		return form + " without ranges"
	}
	return form
}

// memoryNeeded returns an error if some sketches do not fit the budget in bytes; 0: no limit.
func memoryNeeded(at fault.At, spec Spec, times uint64, budget int64) error {
	if need := spec.Bytes() * times; budget > 0 && need > uint64(budget) {
		return faults.Wanted(&fault.Error{Kind: fault.ErrMemory, At: at, What: "counters"}, "at most "+show.Size(budget), show.Size(int64(min(need, math.MaxInt64)))).
			WithHint("raise {Memory}, or count less closely with a larger {Epsilon} or {Delta}, or without {Range}")
	}
	return nil
}
