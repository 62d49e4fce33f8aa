package main

import (
	"math"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// result is what a cell's rounds gave: for each contender a usage per round,
// those of one round next to each other.
type result struct {
	cell
	rows int64
	runs race.Runs
}

// fastest returns the peer with the least median, or "".
func (r result) fastest(all []contender) string {
	var peers []string
	for _, c := range all {
		if c.kind == peer {
			peers = append(peers, c.name)
		}
	}
	return r.runs.Fastest(peers)
}

// geometricMean returns the mean of ratios. One that is not a number makes it
// none.
func geometricMean(ratios []float64) float64 {
	var sum float64
	for _, v := range ratios {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(ratios)))
}

// limits are what we want of a cell.
type limits struct {
	fastest float64 // wall time in units of the fastest peer's
	floor   float64 // in units of the floor's: that of floor at 1 % and below, else of floor2
	peak    int64   // bytes
}

func limitsOf(c cell) limits {
	l := limits{fastest: 1, floor: 1.25, peak: 256 << 20}
	switch {
	case c.shape.name == "clustered":
		l.fastest = 0.5
	case c.codec == "zstd" && fewRows(c):
		l.fastest = 1.1
	}
	return l
}

// fewRows reports whether what is written hardly counts.
func fewRows(c cell) bool { return c.rate == "0.01%" || c.rate == "1%" }

// floorOf names the floor that a cell is measured by, or "" if none is fair.
func floorOf(c cell) string {
	switch {
	case c.shape.skipped:
		return ""
	case fewRows(c):
		return "floor"
	}
	return "floor2"
}

// Over the matrix we want the geometric means below these.
const (
	meanDuckDB  = 0.6
	meanFastest = 0.8
)
