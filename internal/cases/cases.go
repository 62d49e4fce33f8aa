// Package cases sets how many cases the tests run: few under -short or the race
// detector, enough for each change by default, all if BLOOMJOIN_ALL is set.
package cases

import (
	"os"
	"runtime/debug"
	"testing"
)

// All reports whether the environment asks for every case: BLOOMJOIN_ALL is set.
func All() bool { return os.Getenv("BLOOMJOIN_ALL") != "" }

// Count returns the number of cases that a test runs: all if the environment
// asks for them, short under -short or the race detector, otherwise usual.
func Count(short, usual, all int) int {
	switch {
	case All():
		return all
	case testing.Short(), Race:
		return short
	}
	return usual
}

// CollectRarely makes this process collect garbage less often, unless GOGC says how
// often. Many small tests spend a third of their time on it. Packages whose tests
// measure the heap keep the default.
func CollectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(1 << 30)
	}
}
