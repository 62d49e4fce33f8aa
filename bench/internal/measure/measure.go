// Package measure times functions and evaluates samples.
package measure

import (
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// Timed returns how long fn takes. It collects garbage before and turns the
// collector off meanwhile.
func Timed(fn func()) time.Duration {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	begin := time.Now()
	fn()
	return time.Since(begin)
}

// Bit returns 1 for true. It compiles without a branch, so a loop that counts random
// answers has no mispredictions of its own.
func Bit(b bool) int {
	n := 0
	if b {
		n = 1
	}
	return n
}

// Samples are the figures of a measurement, by round.
type Samples []float64

// Median returns the middle figure, or the mean of the middle two.
func (s Samples) Median() float64 {
	t := slices.Sorted(slices.Values(s))
	if len(t) == 0 {
		return 0
	}
	return (t[(len(t)-1)/2] + t[len(t)/2]) / 2
}

// Over returns the quotients of s and the other samples, round by round, so figures
// measured at about the same time are compared.
func (s Samples) Over(t Samples) Samples {
	q := make(Samples, len(s))
	for i := range s {
		q[i] = s[i] / t[i]
	}
	return q
}
