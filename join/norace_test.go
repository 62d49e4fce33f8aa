//go:build !race

package join

// RaceEnabled reports whether the race detector is on.
const RaceEnabled = false
