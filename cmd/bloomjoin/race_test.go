//go:build race

package main

// raceEnabled reports whether the race detector is on, which multiplies memory.
const raceEnabled = true
