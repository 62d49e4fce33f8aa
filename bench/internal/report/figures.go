package report

import (
	"fmt"
	"math"
)

// Figures as text.

// Seconds and MiB render seconds and bytes.
func Seconds(s float64) string { return fmt.Sprintf("%.2f", s) }
func MiB(bytes int64) string   { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }

// Number renders a ratio, which may be missing.
func Number(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.2f", v)
}

// Met says whether a figure keeps within its limit.
func Met(v, limit float64) string {
	if math.IsNaN(v) || math.IsNaN(limit) {
		return "–"
	}
	return Yes(v <= limit)
}

// Yes says whether a target is met.
func Yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "**no**"
}
