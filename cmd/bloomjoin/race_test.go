//go:build race

package main

// raceEnabled: the race detector takes many times the memory of the program.
const raceEnabled = true
