package join

import (
	"math"
)

// BestFPR is the false-positive rate that costs least over all workers of a
// distributed join:
//
//	C(p) = W·S(n, p)/N + (1-s)·L·p·b·(1/N + 1/R)
//
// W workers each get the filter of S bytes for n distinct IDs by a network of N
// bytes per second; of the log's L rows those without an ID, the share 1-s, pass
// with probability p, and each takes its b bytes through the network and, at
// R bytes per second, through the join. With the classic S = n·ln(1/p)/(8·ln²2)
// the least is where
//
//	p = W·n / (8·ln²2 · (1-s)·L·b·(1 + N/R))
//
// The filters here are blocked and take somewhat more bits, the more so the
// lower p is; so the least is searched for, over rates in steps of 5 %, with about
// the bytes that a filter takes in fact.
type BestFPR struct {
	FPR       float64 `json:"fpr"`
	Formula   float64 `json:"fpr_by_formula"` // p, as above
	Bytes     int64   `json:"bytes"`          // of the filter
	Seconds   float64 `json:"seconds"`        // C(p)
	Workers   int     `json:"workers"`
	Network   float64 `json:"network_bytes_per_second"`
	ScanSpeed float64 `json:"scan_bytes_per_second"`
}

// The rates that a filter may have.
const (
	leastFPR = 1e-6
	mostFPR  = 0.5
)

func bestFPR(s sizes, opts PlanOptions) BestFPR {
	best := BestFPR{Workers: opts.Workers, Network: opts.Network, ScanSpeed: opts.Scan, Seconds: math.Inf(1)}
	wrong := (1 - s.selectivity) * s.logBytes // bytes that pass at p = 1
	perByte := 1/opts.Network + 1/opts.Scan
	best.Formula = 1
	if wrong > 0 {
		p := float64(opts.Workers) * math.Max(s.idKeys, 1) / (8 * math.Ln2 * math.Ln2 * opts.Network * wrong * perByte)
		best.Formula = math.Min(1, p)
	}
	for p := mostFPR; p >= leastFPR; p /= 1.05 {
		bytes := filterBytes(s.idKeys, p)
		if t := float64(opts.Workers)*bytes/opts.Network + wrong*p*perByte; t < best.Seconds {
			best.FPR, best.Bytes, best.Seconds = p, int64(bytes), t
		}
	}
	return best
}

// BreakEven says from where on filtering costs more than it spares.
type BreakEven struct {
	Worth bool `json:"worth_it"`
	// Selectivity is that below which the filter pays, 0 if it never does.
	Selectivity float64 `json:"selectivity"`
}

// breakEven weighs building and asking a filter against what it spares: looking
// for a key among the IDs.
func (m *model) breakEven() BreakEven {
	filter, held := m.filterOfIDs(), m.held(m.idRows, m.idKeys)
	rows := math.Max(m.logRows, 1)
	cost := ask(filter) + m.idRows*add(filter)/rows
	e := BreakEven{Selectivity: math.Max(0, 1-m.rate()-cost/m.behind(held))}
	if m.sizes.exact && !m.typ.columnsOfIDs() { // the filter is the join
		e.Selectivity = 1
	}
	e.Worth = m.selectivity < e.Selectivity
	return e
}

// breakEvenOf is breakEven for a strategy. One that filters the IDs by the log is
// compared with looking all rows up among all IDs: it pays as long as it takes
// less time.
func (m *model) breakEvenOf(s Strategy) BreakEven {
	by := map[Strategy]func(*model) Cost{Broadcast: (*model).broadcast, Reverse: (*model).reverse, Shuffle: (*model).shuffle}[s]
	if by == nil {
		return m.breakEven()
	}
	pays := func(selectivity float64) bool {
		t := *m
		t.selectivity = selectivity
		if m.selectivity > 0 {
			t.kept = math.Min(m.idRows, m.kept*selectivity/m.selectivity)
		}
		return by(&t).Seconds < t.lookup().Seconds
	}
	e := BreakEven{Worth: pays(m.selectivity)}
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

// behind is what a row costs that the filter lets through. Other columns are
// read of rows alone whose key has been found.
func (m *model) behind(held float64) float64 { return m.find(1, held) }

// Filtering decides in mid-scan whether a filter goes on being asked. It is
// for one goroutine. A nil one always asks.
//
// Asking costs probe nanoseconds for each row, and spares behind nanoseconds for
// each row that is dropped. It stops when what it spares is below four fifths
// of what it costs, and begins again above five fourths: near the break-even,
// where either is as good, it stays as it is. Rows are forgotten by halves, so
// that it follows a log that changes; while filtering rests, whoever scans asks
// for one row group in [filterRetry] and tells what came of it.
type filtering struct {
	probe, behind   float64
	rows, passed    float64
	resting         bool
	sinceLastProbed int
}

const (
	filterLeast = 1 << 17 // rows, before which nothing is decided
	filterRetry = 16
)

// newFiltering returns the decision for a filter of so many bytes and IDs that
// take held bytes.
func newFiltering(m *model, held float64) *filtering {
	return &filtering{probe: ask(m.filterOfIDs()), behind: m.behind(held)}
}

// seen tells that of rows that were asked for, so many passed.
func (f *filtering) seen(rows, passed int64) {
	if f == nil {
		return
	}
	f.rows += float64(rows)
	f.passed += float64(passed)
	if f.rows < filterLeast {
		return
	}
	spared := f.behind * (1 - f.passed/f.rows)
	switch {
	case !f.resting && spared < 0.8*f.probe:
		f.resting = true
	case f.resting && spared > 1.25*f.probe:
		f.resting = false
	}
	f.rows, f.passed = f.rows/2, f.passed/2
}

// ask reports whether the next row group is to be asked for.
func (f *filtering) ask() bool {
	if f == nil {
		return true
	}
	if !f.resting {
		f.sinceLastProbed = 0
		return true
	}
	f.sinceLastProbed++
	if f.sinceLastProbed >= filterRetry {
		f.sinceLastProbed = 0
		return true
	}
	return false
}
