package main

import (
	"math"
	"slices"
)

// Samples are the figures of a measurement, by round.
type Samples []float64

// Median returns the middle figure, or the mean of the middle two; NaN if there are none.
func (s Samples) Median() float64 {
	t := slices.Sorted(slices.Values(s))
	if len(t) == 0 {
		return math.NaN()
	}
	return (t[(len(t)-1)/2] + t[len(t)/2]) / 2
}

// Over returns the quotients of s and other samples, round by round, so that figures
// measured at about the same time are compared. It returns none if the rounds differ.
func (s Samples) Over(t Samples) Samples {
	if len(s) != len(t) {
		return nil
	}
	q := make(Samples, len(s))
	for i := range s {
		q[i] = s[i] / t[i]
	}
	return q
}

// samples returns a figure of each run.
func (r Result) samples(of func(Run) float64) Samples {
	s := make(Samples, len(r.Runs))
	for i, run := range r.Runs {
		s[i] = of(run)
	}
	return s
}

// Wall and CPU return seconds by round.
func (r Result) Wall() Samples { return r.samples(func(r Run) float64 { return r.Wall }) }
func (r Result) CPU() Samples  { return r.samples(func(r Run) float64 { return r.CPU }) }

// Peak returns the highest peak memory of all rounds, in bytes.
func (r Result) Peak() (most int64) {
	for _, run := range r.Runs {
		most = max(most, run.Peak)
	}
	return most
}
