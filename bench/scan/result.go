package main

import (
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
)

// result is what a cell's rounds gave: for each contender a usage per round,
// those of one round next to each other.
type result struct {
	cell
	rows int64
	runs map[string][]usage
}

// samples returns one figure of a contender, by round.
func (r result) samples(name string, of func(usage) float64) measure.Samples {
	s := make(measure.Samples, len(r.runs[name]))
	for i, u := range r.runs[name] {
		s[i] = of(u)
	}
	return s
}

func wallOf(u usage) float64 { return u.wall }
func cpuOf(u usage) float64  { return u.cpu }

func (r result) wall(name string) float64    { return r.samples(name, wallOf).Median() }
func (r result) minimum(name string) float64 { return slices.Min(r.samples(name, wallOf)) }
func (r result) cpu(name string) float64     { return r.samples(name, cpuOf).Median() }
func (r result) size(name string) int64      { return r.runs[name][0].size }

// peak returns the most memory of any round.
func (r result) peak(name string) (most int64) {
	for _, u := range r.runs[name] {
		most = max(most, u.peak)
	}
	return most
}

// ratio returns how long a contender takes in units of another: the median of
// the rounds' quotients. It is not a number if either did not run.
func (r result) ratio(name, unit string) float64 {
	if len(r.runs[name]) == 0 || len(r.runs[name]) != len(r.runs[unit]) {
		return math.NaN()
	}
	return r.samples(name, wallOf).Over(r.samples(unit, wallOf)).Median()
}

// fastest returns the peer with the least median, or "".
func (r result) fastest(all []contender) (name string) {
	for _, c := range all {
		if c.kind == peer && len(r.runs[c.name]) > 0 && (name == "" || r.wall(c.name) < r.wall(name)) {
			name = c.name
		}
	}
	return name
}

// geometricMean returns the mean of ratios. One that is not a number makes it
// none.
func geometricMean(ratios []float64) float64 {
	var sum float64
	for _, v := range ratios {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(ratios)))
}

// limits are what we want of a cell.
type limits struct {
	fastest float64 // wall time in units of the fastest peer's
	floor   float64 // in units of the floor's: that of floor at 1 % and below, else of floor2
	peak    int64   // bytes
}

func limitsOf(c cell) limits {
	l := limits{fastest: 1, floor: 1.25, peak: 256 << 20}
	switch {
	case c.shape.name == "clustered":
		l.fastest = 0.5
	case c.codec == "zstd" && fewRows(c):
		l.fastest = 1.1
	}
	return l
}

// fewRows reports whether what is written hardly counts.
func fewRows(c cell) bool { return c.rate == "0.01%" || c.rate == "1%" }

// floorOf names the floor that a cell is measured by, or "" if none is fair.
func floorOf(c cell) string {
	switch {
	case c.shape.skipped:
		return ""
	case fewRows(c):
		return "floor"
	}
	return "floor2"
}

// Over the matrix we want the geometric means below these.
const (
	meanDuckDB  = 0.6
	meanFastest = 0.8
)
