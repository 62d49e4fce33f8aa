package report

import (
	"fmt"
	"math"
)

// Rendering of figures.

// Seconds and MiB render durations in seconds and sizes in bytes.
func Seconds(s float64) string { return fmt.Sprintf("%.2f", s) }
func MiB(bytes int64) string   { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }

// Number renders a ratio, which may be NaN.
func Number(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.2f", v)
}

// Met renders whether a figure is within its limit.
func Met(v, limit float64) string {
	if math.IsNaN(v) || math.IsNaN(limit) {
		return "–"
	}
	return Yes(v <= limit)
}

// Yes renders whether a target is met.
func Yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "**no**"
}

// Count renders a number of keys: 1000000 as 1 M.
func Count(n uint64) string {
	switch {
	case n >= 1e9 && n%1e8 == 0:
		return fmt.Sprintf("%g G", float64(n)/1e9)
	case n >= 1e6 && n%1e5 == 0:
		return fmt.Sprintf("%g M", float64(n)/1e6)
	case n >= 1e3 && n%100 == 0:
		return fmt.Sprintf("%g k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}
