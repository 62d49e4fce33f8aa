package race

import (
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
)

// Runs are the rounds of a race: for each contender's name a usage per round,
// those of one round next to each other.
type Runs map[string][]Usage

// samples returns one figure of a contender, by round.
func (r Runs) samples(name string, of func(Usage) float64) measure.Samples {
	s := make(measure.Samples, len(r[name]))
	for i, u := range r[name] {
		s[i] = of(u)
	}
	return s
}

func wallOf(u Usage) float64 { return u.Wall }
func cpuOf(u Usage) float64  { return u.CPU }

// Wall and CPU return medians in seconds, Least the least wall time, Size the
// bytes of the first output.
func (r Runs) Wall(name string) float64  { return r.samples(name, wallOf).Median() }
func (r Runs) Least(name string) float64 { return slices.Min(r.samples(name, wallOf)) }
func (r Runs) CPU(name string) float64   { return r.samples(name, cpuOf).Median() }
func (r Runs) Size(name string) int64    { return r[name][0].Size }

// Peak returns the most memory of any round.
func (r Runs) Peak(name string) (most int64) {
	for _, u := range r[name] {
		most = max(most, u.Peak)
	}
	return most
}

// Ratio returns how long a contender takes in units of another: the median of
// the rounds' quotients. It is not a number if either did not run.
func (r Runs) Ratio(name, unit string) float64 {
	if len(r[name]) == 0 || len(r[name]) != len(r[unit]) {
		return math.NaN()
	}
	return r.samples(name, wallOf).Over(r.samples(unit, wallOf)).Median()
}

// Fastest returns which of the names has the least median, "" if none ran.
func (r Runs) Fastest(names []string) (name string) {
	for _, n := range names {
		if len(r[n]) > 0 && (name == "" || r.Wall(n) < r.Wall(name)) {
			name = n
		}
	}
	return name
}
