package join

import (
	"context"
	"fmt"
	"math"

	"github.com/bloomjoin/bloomjoin/partition"
)

// why says in a sentence why a strategy is taken.
func (j *Join) why(s sizes, idRows Estimate, c Cost, all []Cost) string {
	if j.opts.Strategy != Auto {
		return "it was asked for"
	}
	if once := j.once(); once != "" {
		return once + " can be read only once"
	}
	var lookup Cost
	for _, o := range all {
		if o.Strategy == Lookup {
			lookup = o
		}
	}
	ids, log := short(idRows.Value), short(s.logRows)
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
	return fmt.Sprintf("%.0f", n)
}

// advise fills in what is for people who ask what to do.
func (j *Join) advise(p *Plan, s sizes, opts PlanOptions) {
	m := model{sizes: s, limits: j.limits()}
	p.Filter.Best = bestFPR(s, opts)
	if p.Selectivity == nil {
		if m.once != "" {
			p.Advice = append(p.Advice, "What can be read only once is not looked at beforehand: name a file for estimates.")
		}
		return
	}
	pass := m.candidates(m.rate()) / math.Max(s.logRows, 1)
	p.Shuffled = &Shuffled{BytesWithout: int64(s.logBytes), Bytes: int64(s.logBytes * pass)}
	switch {
	case s.logRows == 0 || s.idRows == 0:
		p.Advice = append(p.Advice, "One side is empty.")
		return
	case p.Selectivity.Low == 1:
		p.Advice = append(p.Advice, "Every row of the log has an ID: a filter drops nothing, and any join will do as well.")
	case !p.BreakEven.Worth:
		p.Advice = append(p.Advice, fmt.Sprintf("Filtering is not worth it: about %.3g %% of the log's rows have an ID, and it pays below %.3g %%.", 100*s.selectivity, 100*p.BreakEven.Selectivity))
	}
	if a := better(p); a != "" && j.opts.Strategy == Auto {
		p.Advice = append(p.Advice, a)
	}
	if both := s.logBytes + float64(max(p.IDs.Bytes, 0)); both < smallJoin {
		p.Advice = append(p.Advice, fmt.Sprintf("Both sides together have %s decompressed, which fits into memory: DuckDB or Polars would do as well.", inBytes(both)))
	} else if s.selectivity > 0.5 && s.idRows < s.logRows {
		p.Advice = append(p.Advice, "Most rows are kept, so that reading and writing them takes most of the time: DuckDB or Polars would do as well.")
	}
}

// faster is how many times as fast another strategy must be to be advised, and
// fasterSeconds the least that it must save.
const (
	faster        = 2
	fasterSeconds = 1
)

// better returns advice where a strategy that the join does not choose, since it
// looks less closely than the plan, should be much faster; "" if there is none.
func better(p *Plan) string {
	best := choose(p.Strategies)
	for _, c := range p.Strategies {
		if c.Strategy == p.Strategy && c.Seconds > faster*best.Seconds && c.Seconds-best.Seconds > fasterSeconds {
			return fmt.Sprintf("Strategy %s should take %.2g s, %s %.2g s: a join does not read the IDs to find this out, so ask for it.", best.Strategy, best.Seconds, c.Strategy, c.Seconds)
		}
	}
	return ""
}

// smallJoin is up to how many bytes of both sides any program joins in a moment.
const smallJoin = 256 << 20

// skips finds out how much of the log its statistics let a scan skip.
func (j *Join) skips(ctx context.Context, p *Plan, m *matches) error {
	const groups = 256
	f := j.plan.Spec.Header()
	for i := range f.Key {
		if m.bounds != nil {
			f.Key[i].Min, f.Key[i].Max, _ = m.bounds.Column(i)
		}
	}
	s, err := partition.Skippable(ctx, j.pieces, j.matchOf(f, j.logKey), groups)
	if err != nil {
		return err
	}
	if s.Groups > 0 && m.bounds != nil {
		p.Skips = &Skips{s.Groups, s.GroupsSkipped, s.Pages, s.PagesSkipped, s.Rows, s.RowsSkipped}
	}
	return nil
}
