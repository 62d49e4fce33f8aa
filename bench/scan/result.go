package main

import (
	"math"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// result has the usages of a cell's contenders, one per round.
type result struct {
	cell
	rows int64
	runs race.Runs
}

// fastest returns the peer with the lowest median, or "".
func (r result) fastest(all []contender) string {
	var peers []string
	for _, c := range all {
		if c.kind == peer {
			peers = append(peers, c.name)
		}
	}
	return r.runs.Fastest(peers)
}

// geometricMean returns the geometric mean of ratios; NaN if one is NaN.
func geometricMean(ratios []float64) float64 {
	var sum float64
	for _, v := range ratios {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(ratios)))
}

// limits are the targets of a cell.
type limits struct {
	fastest float64 // ratio of wall time to that of the fastest peer
	floor   float64 // ratio of wall time to that of floor at 1 % and below, otherwise floor2
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

// fewRows reports whether the output is too small to matter.
func fewRows(c cell) bool { return c.rate == "0.01%" || c.rate == "1%" }

// floorOf returns the floor that a cell is compared with, or "" if none is fair.
func floorOf(c cell) string {
	switch {
	case c.shape.skipped:
		return ""
	case fewRows(c):
		return "floor"
	}
	return "floor2"
}

// Targets for the geometric means over the matrix.
const (
	meanDuckDB  = 0.6
	meanFastest = 0.8
)
