//go:build race

package join

// RaceEnabled reports whether the race detector is on. Statistical tests that take a
// minute without it are then skipped: other tests cover the same code.
const RaceEnabled = true
