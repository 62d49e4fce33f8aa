// Package measure times, and says what figures mean.
package measure

import (
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// Timed collects garbage, keeps the collector off, and returns how long fn
// takes. The collector stays off only until fn returns.
func Timed(fn func()) time.Duration {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	begin := time.Now()
	fn()
	return time.Since(begin)
}

// Bit is 1 for true. The compiler makes no branch of it: a loop that counts
// answers of which half are yes pays for no mispredictions of its own.
func Bit(b bool) int {
	n := 0
	if b {
		n = 1
	}
	return n
}

// Samples are the figures of the rounds of a measurement, in their order.
type Samples []float64

// Median returns the middle one, or the mean of the two.
func (s Samples) Median() float64 {
	t := slices.Sorted(slices.Values(s))
	if len(t) == 0 {
		return 0
	}
	return (t[(len(t)-1)/2] + t[len(t)/2]) / 2
}

// Over returns the quotients of the rounds: what was measured next to each
// other is compared with each other.
func (s Samples) Over(t Samples) Samples {
	q := make(Samples, len(s))
	for i := range s {
		q[i] = s[i] / t[i]
	}
	return q
}
