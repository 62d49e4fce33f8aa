//go:build race

package table

// raceEnabled: statistics that take a minute without the race detector, and show
// it nothing that other tests do not, are left to runs without.
const raceEnabled = true
