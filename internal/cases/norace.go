//go:build !race

package cases

// Race reports whether the race detector is on. It multiplies time and memory.
const Race = false
