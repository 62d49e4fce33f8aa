package plan

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
)

// why explains a choice in one sentence.
func why(s Sizes, l Limits, idRows Estimate, c Cost, all []Cost) string {
	if l.Strategy != Auto {
		return "it was asked for"
	}
	if l.Once != "" {
		return l.Once + " can be read only once"
	}
	var lookup Cost
	for _, o := range all {
		if o.Strategy == Lookup {
			lookup = o
		}
	}
	ids, log := short(idRows.Value), short(s.LogRows)
	if idRows.Low != idRows.High {
		ids = "about " + ids
	}
	switch c.Strategy {
	case Exact:
		return fmt.Sprintf("%s IDs lie so close together that the filter holds them exactly, and what it lets through is the answer", ids)
	case Lookup:
		return fmt.Sprintf("a table of %s IDs takes about %s, and each side is read once", ids, inBytes(float64(c.MemoryBytes)))
	}
	instead := fmt.Sprintf("a table of %s IDs would take about %s", ids, inBytes(float64(lookup.MemoryBytes)))
	if lookup.Feasible {
		instead = fmt.Sprintf("a table of %s IDs would take about %.2g s and %s", ids, lookup.Seconds, inBytes(float64(lookup.MemoryBytes)))
	}
	switch c.Strategy {
	case Broadcast:
		return fmt.Sprintf("%s; of the log's %s rows few are candidates, and only the IDs that they have are kept", instead, log)
	case Reverse:
		return fmt.Sprintf("%s; a filter of the log's keys finds the few that are needed", instead)
	}
	return fmt.Sprintf("%s, and those that the log has do not fit either: log keys and IDs are divided on disk", instead)
}

// short renders a number for a sentence.
func short(n float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{" billion", 1e9}, {" million", 1e6}} {
		if n >= u.size {
			return fmt.Sprintf("%.3g%s", n/u.size, u.name)
		}
	}
	return humanize.Comma(int64(n))
}

// Advise adds what a user, rather than the join, wants to know: the best
// false-positive rate, the bytes that a distributed join would shuffle, and when
// filtering or this program gains little. Call it after Settle.
func (p *Plan) Advise(s Sizes, l Limits, o Options) {
	m := Model{Sizes: s, Limits: l}
	p.Filter.Best = bestFPR(s, o)
	if p.Selectivity == nil {
		if l.Once != "" {
			p.Advice = append(p.Advice, "What can be read only once is not looked at beforehand: name a file for estimates.")
		}
		return
	}
	pass := m.candidates(m.rate()) / math.Max(s.LogRows, 1)
	p.Shuffled = &Shuffled{BytesWithout: int64(s.LogBytes), Bytes: int64(s.LogBytes * pass)}
	switch {
	case s.LogRows == 0 || s.IDRows == 0:
		p.Advice = append(p.Advice, "One side is empty.")
		return
	case p.Selectivity.Low == 1:
		p.Advice = append(p.Advice, "Every row of the log has an ID: a filter drops nothing, and any join will do as well.")
	case !p.BreakEven.Worth:
		p.Advice = append(p.Advice, fmt.Sprintf("Filtering is not worth it: about %.3g %% of the log's rows have an ID, and it pays below %.3g %%.", 100*s.Selectivity, 100*p.BreakEven.Selectivity))
	}
	if a := p.better(); a != "" && l.Strategy == Auto {
		p.Advice = append(p.Advice, a)
	}
	if both := s.LogBytes + float64(max(p.IDs.Bytes, 0)); both < smallJoin {
		p.Advice = append(p.Advice, fmt.Sprintf("Both sides together have %s decompressed, which fits into memory: DuckDB or Polars would do as well.", inBytes(both)))
	} else if s.Selectivity > 0.5 && s.IDRows < s.LogRows {
		p.Advice = append(p.Advice, "Most rows are kept, so that reading and writing them takes most of the time: DuckDB or Polars would do as well.")
	}
}

// Another strategy is advised if it is at least faster times as fast and saves
// at least fasterSeconds.
const (
	faster        = 2
	fasterSeconds = 1
)

// better returns advice if a strategy should be much faster than the one that
// the join chooses, which looks less closely than the plan; else "".
func (p *Plan) better() string {
	best := Choose(p.Strategies)
	for _, c := range p.Strategies {
		if c.Strategy == p.Strategy && c.Seconds > faster*best.Seconds && c.Seconds-best.Seconds > fasterSeconds {
			return fmt.Sprintf("Strategy %s should take %.2g s, %s %.2g s: a join does not read the IDs to find this out, so ask for it.", best.Strategy, best.Seconds, c.Strategy, c.Seconds)
		}
	}
	return ""
}

// smallJoin is the size of both sides, in bytes, that any program joins in a
// moment.
const smallJoin = 256 << 20

// inBytes renders a size.
func inBytes(n float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if v := n / u.size; v >= 100 {
			return fmt.Sprintf("%.0f %s", v, u.name)
		} else if v >= 1 {
			return fmt.Sprintf("%.3g %s", v, u.name)
		}
	}
	return fmt.Sprintf("%.0f B", n)
}
