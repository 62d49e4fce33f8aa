package plan

import "math"

// Settle fills in the costs, the strategy and what follows from it. The strategy
// is wanted, or the cheapest one if wanted is [Auto].
func (p *Plan) Settle(s Sizes, l Limits, wanted Strategy) {
	p.Strategies = Costs(s, l)
	c := Choose(p.Strategies)
	for _, other := range p.Strategies {
		if other.Strategy == wanted {
			c = other
		}
	}
	p.Strategy = c.Strategy
	p.Why = why(s, l, p.IDs.Rows, c, p.Strategies)
	m := Model{Sizes: s, Limits: l}
	p.Filter = &Filter{Bytes: int64(m.filterOfIDs()), FPR: m.rate(), Exact: s.Exact}
	p.BreakEven = m.breakEvenOf(p.Strategy)
}

// Decided reports whether keys need not be sampled: either the choice does not
// depend on them, or sampling would cost what it saves.
func Decided(s Sizes, l Limits) bool {
	if l.Once != "" || l.Strategy != Auto {
		return true
	}
	var first Strategy
	worst := 0.0
	for _, share := range []float64{0, 0.05, 1} {
		for _, repeat := range []float64{1, 1000} {
			t := s
			t.Selectivity = share
			t.LogKeys = math.Max(1, s.LogRows/repeat)
			t.Kept = share * math.Min(s.IDRows, t.LogKeys)
			t.JoinRows = share * s.LogRows
			c := Choose(Costs(t, l))
			if first == "" {
				first = c.Strategy
			}
			if c.Strategy != first {
				first = "none"
			}
			worst = math.Max(worst, c.Seconds)
		}
	}
	return first != "none" || worst < quickSeconds
}

// quickSeconds is how long a join must take for a quick sample, of some 30 ms, to
// be worthwhile.
const quickSeconds = 0.4

// SoonRead reports whether comparing all IDs with a sample takes less than a
// tenth of the time that the join is expected to take.
func SoonRead(s Sizes, l Limits) bool {
	m := Model{Sizes: s, Limits: l}
	t := nsStart + m.read(s.IDRows) + s.IDRows*ask(fastCache)
	return t/math.Max(l.Threads, 1)/1e9 < Choose(Costs(s, l)).Seconds/10
}

// Ends returns the strategy with which a join that starts with begins will end,
// after falling back to cheaper ones where memory does not suffice.
func Ends(begins Strategy, s Sizes, l Limits) Strategy {
	if l.Strategy != Auto {
		return begins
	}
	feasible := map[Strategy]bool{}
	for _, c := range Costs(s, l) {
		feasible[c.Strategy] = c.Feasible
	}
	ends := begins
	for _, next := range Fallbacks(begins, l.Filter) {
		if feasible[ends] {
			break
		}
		ends = next
	}
	return ends
}

// Fallbacks returns the strategies that take less memory than s, in the order in
// which to try them. filtered says that the caller supplied a filter of the IDs.
func Fallbacks(s Strategy, filtered bool) []Strategy {
	switch {
	case s == Exact:
		return append([]Strategy{Lookup}, Fallbacks(Lookup, filtered)...)
	case s == Lookup && filtered:
		return []Strategy{Broadcast, Shuffle}
	case s == Lookup:
		return []Strategy{Reverse, Shuffle}
	case s == Shuffle:
		return nil
	}
	return []Strategy{Shuffle}
}
