// Package show renders values for people, in errors and reports: sizes, and text
// that may not be printable.
package show

import (
	"math"
	"strconv"
)

// Size renders a number of bytes, as 512 B, 1.5 KiB or 12.66 MiB.
func Size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	v, i := float64(n), 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) + " " + units[i]
}
