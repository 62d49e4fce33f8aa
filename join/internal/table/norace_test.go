//go:build !race

package table

// raceEnabled tells of the race detector.
const raceEnabled = false
