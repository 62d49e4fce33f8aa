//go:build race

package table

// raceEnabled reports whether the race detector is on. Statistical tests that take a
// minute without it are then skipped: other tests cover the same code.
const raceEnabled = true
