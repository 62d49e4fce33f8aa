// Package cases sets how many cases the tests run: few under -short or the race
// detector, enough for each change by default, all if BLOOMJOIN_ALL is set.
package cases

import (
	"os"
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
