package plan

import (
	"math"
)

// BestFPR is the false-positive rate with the least cost over all workers of a
// distributed join:
//
//	C(p) = W·S(n, p)/N + (1-s)·L·p·b·(1/N + 1/R)
//
// W workers each receive the filter, of S bytes for n distinct IDs, over a network
// of N bytes per second. Of the log's L rows, those without an ID, the share 1-s,
// pass with probability p; each then moves its b bytes over the network and, at
// R bytes per second, through the join. With the classic S = n·ln(1/p)/(8·ln²2)
// the minimum is at
//
//	p = W·n / (8·ln²2 · (1-s)·L·b·(1 + N/R))
//
// Blocked filters take more bits than that, the more so the lower p is, so the
// minimum is searched for over rates in steps of 5 %, with the sizes of real
// filters.
type BestFPR struct {
	FPR       float64 `json:"fpr"`
	Formula   float64 `json:"fpr_by_formula"` // p, as above
	Bytes     int64   `json:"bytes"`          // of the filter
	Seconds   float64 `json:"seconds"`        // C(p)
	Workers   int     `json:"workers"`
	Network   float64 `json:"network_bytes_per_second"`
	ScanSpeed float64 `json:"scan_bytes_per_second"`
}

// Bounds on the rate of a filter.
const (
	minFPR = 1e-6
	maxFPR = 0.5
)

func bestFPR(s Sizes, opts Options) BestFPR {
	best := BestFPR{Workers: opts.Workers, Network: opts.Network, ScanSpeed: opts.Scan, Seconds: math.Inf(1)}
	wrong := (1 - s.Selectivity) * s.LogBytes // bytes that pass at p = 1
	perByte := 1/opts.Network + 1/opts.Scan
	best.Formula = 1
	if wrong > 0 {
		p := float64(opts.Workers) * math.Max(s.IDKeys, 1) / (8 * math.Ln2 * math.Ln2 * opts.Network * wrong * perByte)
		best.Formula = math.Min(1, p)
	}
	for p := maxFPR; p >= minFPR; p /= 1.05 {
		bytes := filterBytes(s.IDKeys, p)
		if t := float64(opts.Workers)*bytes/opts.Network + wrong*p*perByte; t < best.Seconds {
			best.FPR, best.Bytes, best.Seconds = p, int64(bytes), t
		}
	}
	return best
}

// BreakEven is the point from which filtering costs more than it saves.
type BreakEven struct {
	Worth bool `json:"worth_it"`
	// Selectivity below which the filter pays; 0 if it never does.
	Selectivity float64 `json:"selectivity"`
}

// breakEven compares building and probing a filter with what it saves: looking
// up keys among the IDs.
func (m *Model) breakEven() BreakEven {
	filter, held := m.filterOfIDs(), m.held(m.IDRows, m.IDKeys)
	rows := math.Max(m.LogRows, 1)
	cost := ask(filter) + m.IDRows*add(filter)/rows
	e := BreakEven{Selectivity: math.Max(0, 1-m.rate()-cost/m.lookupOne(held))}
	if m.Sizes.Exact && !m.IDColumns { // the filter is the join
		e.Selectivity = 1
	}
	e.Worth = m.Selectivity < e.Selectivity
	return e
}

// breakEvenOf is breakEven for a strategy. One that filters the IDs by the log
// pays while it takes less time than looking all rows up among all IDs.
func (m *Model) breakEvenOf(s Strategy) BreakEven {
	by := map[Strategy]func(*Model) Cost{Broadcast: (*Model).broadcast, Reverse: (*Model).reverse, Shuffle: (*Model).shuffle}[s]
	if by == nil {
		return m.breakEven()
	}
	pays := func(selectivity float64) bool {
		t := *m
		t.Selectivity = selectivity
		if m.Selectivity > 0 {
			t.Kept = math.Min(m.IDRows, m.Kept*selectivity/m.Selectivity)
		}
		return by(&t).Seconds < t.lookup().Seconds
	}
	e := BreakEven{Worth: pays(m.Selectivity)}
	lo, hi := 0.0, 1.0
	if pays(1) {
		lo = 1
	}
	for hi-lo > 1e-4 {
		if mid := (lo + hi) / 2; pays(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	e.Selectivity = lo
	return e
}

// lookupOne returns the cost of a row that passes the filter: its lookup. Other
// columns are read only for rows whose key is found.
func (m *Model) lookupOne(held float64) float64 { return m.find(1, held) }
