package race

import (
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
)

// Runs has the usages of each contender by name, one per round. Usages with the same
// index belong to the same round.
type Runs map[string][]Usage

// samples returns a figure of a contender for each round.
func (r Runs) samples(name string, of func(Usage) float64) measure.Samples {
	s := make(measure.Samples, len(r[name]))
	for i, u := range r[name] {
		s[i] = of(u)
	}
	return s
}

func wallOf(u Usage) float64 { return u.Wall }
func cpuOf(u Usage) float64  { return u.CPU }

// Wall and CPU return medians in seconds, Least the lowest wall time, Size the bytes
// of the first output.
func (r Runs) Wall(name string) float64  { return r.samples(name, wallOf).Median() }
func (r Runs) Least(name string) float64 { return slices.Min(r.samples(name, wallOf)) }
func (r Runs) CPU(name string) float64   { return r.samples(name, cpuOf).Median() }
func (r Runs) Size(name string) int64    { return r[name][0].Size }

// Figure returns a figure of a contender; NaN if it did not run.
func (r Runs) Figure(name string, of func(name string) float64) float64 {
	if len(r[name]) == 0 {
		return math.NaN()
	}
	return of(name)
}

// Peak returns the highest peak memory of all rounds.
func (r Runs) Peak(name string) (most int64) {
	for _, u := range r[name] {
		most = max(most, u.Peak)
	}
	return most
}

// Ratio returns the median over rounds of the quotient of two contenders' wall
// times; NaN if either did not run.
func (r Runs) Ratio(name, unit string) float64 {
	if len(r[name]) == 0 || len(r[name]) != len(r[unit]) {
		return math.NaN()
	}
	return r.samples(name, wallOf).Over(r.samples(unit, wallOf)).Median()
}

// Fastest returns the name with the lowest median wall time; "" if none ran.
func (r Runs) Fastest(names []string) (name string) {
	for _, n := range names {
		if len(r[n]) > 0 && (name == "" || r.Wall(n) < r.Wall(name)) {
			name = n
		}
	}
	return name
}
