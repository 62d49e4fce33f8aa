//go:build !race

package join

// RaceEnabled tells of the race detector.
const RaceEnabled = false
